// SPDX-License-Identifier: BSD-3-Clause
// A completion queue (fi_cq(3)): what has ended and was not read yet. It grows as it has to, so that it never
// overruns.
#pragma once

#include "fabric/domain.hpp"
#include "fabric/wait_object.hpp"

#include <deque>
#include <mutex>
#include <rdma/fi_eq.h>

namespace parc::fabric {

struct Completion {
  fi_cq_tagged_entry entry{};
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  int error = 0;            // PARC_E*, or another failure's FI_E* (positive)
  std::uint64_t missed = 0; // bytes that had no room
};

class CompletionQueue final : public Child<fid_cq, Domain> {
public:
  CompletionQueue(Domain& domain, const fi_cq_attr& attributes);

  void add(const Completion& completion);
  ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources);
  // `condition`: of a queue with FI_CQ_COND_THRESHOLD no pointer, but how many entries.
  ssize_t wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources, const void* condition,
                        int timeout_ms);
  ssize_t read_error(fi_cq_err_entry& entry);
  int signal();
  int try_wait();
  int control(int command, void* answer) const { return wait_object.control(command, answer); }
  [[nodiscard]] bool ready() { return holds(1); }
  WaitObject wait_object;

private:
  // A read of this thread, which is handed at once what ends meanwhile.
  struct Reader {
    Reader(CompletionQueue* of, void* to, std::size_t entries, fi_addr_t* their_sources)
        : queue(of), buffer(static_cast<std::byte*>(to)), room(entries), sources(their_sources) {
      reader_ = this;
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() { reader_ = nullptr; }
    CompletionQueue* const queue;
    std::byte* const buffer;
    const std::size_t room; // entries
    fi_addr_t* const sources;
    std::size_t taken = 0;
  };
  __attribute__((tls_model("initial-exec"))) static thread_local Reader* reader_;
  [[nodiscard]] static bool hand_over(Reader& reader, const Completion& completion);
  ssize_t take(void* buffer, std::size_t count, fi_addr_t* sources);
  [[nodiscard]] bool holds(std::size_t entries); // or what has failed

  const std::size_t entry_size_;
  const bool counts_; // waits are for a number of entries
  std::mutex lock_;
  std::deque<Completion> completions_; // under lock_
  std::size_t failed_ = 0;             // of them, under lock_
  std::atomic<bool> any_ = false;      // there are: who sees that there are none needs no lock
  std::atomic<bool> signaled_ = false;
};

int open_completion_queue(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context);

} // namespace parc::fabric
