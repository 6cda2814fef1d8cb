// SPDX-License-Identifier: BSD-3-Clause
// An endpoint (fi_endpoint(3), type RDM): the message queue that this process has in the kernel of its host.
// There is one, so one endpoint for messages can be open in a process at a time; and beside it one for remote
// memory, which has none, or one is for both. Their calls are in messages.cpp and in remote_memory.cpp; they
// may be made by any thread.
#pragma once

#include "fabric/address_vector.hpp"
#include "fabric/completion_queue.hpp"
#include "fabric/counter.hpp"
#include "fabric/info.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <span>

namespace parc::fabric {

// A buffer of one piece, as calls have it.
inline iovec piece(const void* buffer, std::size_t length) {
  return {const_cast<void*>(buffer), length};
}

// A message and whom it is for, in the calls that have all of it. Flags are those of fi_sendmsg and
// fi_recvmsg, the tag counts only where it is `tagged`.
struct Transfer {
  std::span<const iovec> pieces;
  fi_addr_t address = FI_ADDR_UNSPEC;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  std::uint64_t data = 0;
  void* context = nullptr;
  std::uint64_t flags = 0;
  bool tagged = false;
};

// Beyond what a message may have where any of them is: no sum wraps around.
inline std::uint64_t length_of(std::span<const iovec> pieces) {
  std::uint64_t length = 0;
  for (const iovec& piece : pieces) length += std::min<std::uint64_t>(piece.iov_len, longest_message + 1);
  return length;
}

inline std::uint64_t kind_of(const Transfer& transfer) {
  return transfer.tagged ? FI_TAGGED : FI_MSG;
}

inline unsigned space_of(const Transfer& transfer) {
  return transfer.tagged ? 0 : PARC_UNTAGGED;
}

// One of remote memory.
struct RemoteTransfer {
  Start::Kind kind = Start::Kind::get;
  std::span<const iovec> pieces;
  fi_addr_t address = FI_ADDR_UNSPEC;
  std::span<const fi_rma_iov> places; // one of an atomic operation
  AtomicWords atomic{};
  void* result = nullptr;     // of an atomic operation: where what was there goes
  void* descriptor = nullptr; // of a get: of the memory that it goes into
  void* context = nullptr;
  std::uint64_t flags = 0;
  bool told = true;
};

class Endpoint final : public Child<fid_ep, Domain> {
public:
  Endpoint(Domain& domain, const fi_info& info);
  ~Endpoint();

  int bind(struct fid* other, std::uint64_t flags);
  int enable();
  int name(void* address, std::size_t* length);
  int control(int command, void*) { return command == FI_ENABLE ? enable() : -FI_ENOSYS; }
  [[nodiscard]] bool let_go();

  // Each is one operation; its end is told to the queue and the counter that are bound for its direction.
  // What was not `told` is not: an injected message.
  ssize_t send(const Transfer& transfer, bool told = true);
  ssize_t receive(const Transfer& transfer);
  ssize_t cancel(const void* context);
  ssize_t transfer(const RemoteTransfer& transfer);

  // FI_OPT_MIN_MULTI_RECV.
  std::atomic<std::size_t> least_room = inject_bytes;

  // From the session.
  void ended(const Request& request, const parc_completion& completion);

  // What calls without flags have.
  const std::uint64_t send_flags, receive_flags, message_flags; // of messages, in place of send_flags
  const bool messages, remote;                                  // what it is for: these, and remote memory

private:
  ssize_t begin(const Request& request, const Start& start);
  ssize_t begin_or_refuse(const Request& request, const Start& start);
  ssize_t refuse(const Request& request, ssize_t code, const char* sentence);
  ssize_t begin_parts(Request request, Start start, const RemoteTransfer& transfer);
  [[nodiscard]] static parc_envelope envelope_of(const Transfer& transfer, int peer);
  [[nodiscard]] std::optional<parc_envelope> wanted(const Transfer& transfer) const;
  [[nodiscard]] Request request_of(Purpose purpose, const Transfer& transfer);
  ssize_t look(const Transfer& transfer);
  ssize_t receive_claimed(const Transfer& transfer);
  ssize_t read_claim(const Request& request, parc_op claim, std::span<const iovec> pieces);
  void looked(const Request& request, const parc_completion& completion);
  ssize_t receive_several(const Request& request);
  ssize_t begin_several(const Request& request);
  void received_one(const Request& request, const parc_status& status);
  void give_back(Request request, const parc_status& status, int error);
  void next_several(int peer);
  bool cancel_waiting(const void* context);
  void report(const Request& request, const parc_status& status, int error);
  void report_parts(const Request& request);

  AddressVector* vector_ = nullptr;
  CompletionQueue* sent_ = nullptr;
  CompletionQueue* received_ = nullptr;
  Counter* sends_ = nullptr;
  Counter* receives_ = nullptr;
  Counter* gets_ = nullptr; // of remote memory: all that brings something
  Counter* puts_ = nullptr;
  const bool directed_;     // receives name their source
  const bool tells_source_; // completions do
  bool selective_sent_ = false, selective_received_ = false;
  bool enabled_ = false;
  std::atomic<bool> closing_ = false; // nothing is reported any more
  std::atomic<std::uint64_t> under_way_ = 0;
  std::atomic<std::uint64_t> transferring_ = 0; // bytes of gets and puts that are under way

  std::mutex lock_;
  std::unordered_map<const void*, parc_op> claims_; // by the context of the look; under lock_
  // Of sources for which a buffer of several messages is being filled: those that wait for their turn, under
  // lock_.
  std::map<int, std::deque<Request>> several_;
};

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context);

extern fi_ops_msg message_calls;
extern fi_ops_tagged tagged_calls;
extern fi_ops_rma remote_memory_calls;
extern fi_ops_atomic atomic_calls;

} // namespace parc::fabric
