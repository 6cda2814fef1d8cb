// SPDX-License-Identifier: BSD-3-Clause
#include "client/calls/context.hpp"

#include "client/base/failure.hpp"
#include "client/early/fault.hpp"

#include <algorithm>
#include <array>
#include <unistd.h>

namespace parc::client {
namespace {

constexpr std::uint32_t barrier_context = PARC_CONTEXT_RESERVED; // as tools show it
constexpr int kill_patience = 10'000;                            // ms, or rather pauses of one

} // namespace

Context::Context(Session session, Adoption& adoption, Fd trace)
    : session_(std::move(session)), adoption_(adoption),
      control_(*reinterpret_cast<shm::Control*>(session_.control.data())),
      pipes_(std::move(session_.from_kernel), std::move(session_.to_kernel)), ring_(control_, pipes_),
      sleep_(control_.header, pipes_),
      trace_(std::move(trace), session_.hosts[static_cast<std::size_t>(session_.rank)]),
      control_calls_(control_, ring_, sleep_), own_copies_(control_, pipes_),
      copying_thread_(control_.bounce, own_copies_), arena_(control_calls_, adoption_),
      table_(control_, control_calls_), operations_(table_, arena_, adoption_, room_, trace_, session_.size),
      hand_over_(operations_, arena_, room_, ring_, sleep_, session_.copy_ns_per_kib),
      guards_(control_, operations_, arena_, hand_over_, ring_, sleep_, pipes_, trace_, session_.rank),
      late_reads_(operations_, arena_, control_calls_, ring_, sleep_, session_.rank),
      neighbour_windows_(control_, control_calls_, ring_),
      starter_(arena_, adoption_, room_, operations_, guards_, ring_, sleep_, late_reads_, neighbours_,
               neighbour_windows_, session_.size),
      waiter_(operations_, hand_over_, guards_, sleep_, late_reads_, session_.hosts),
      completions_(control_, operations_, waiter_, guards_, sleep_, late_reads_) {
  if (trace_.on()) control_.header.program_tracing.store(1, std::memory_order_relaxed);
  adoption_.serve(&control_calls_, &guards_, &session_.control);
}

Result<void> Context::open_letterbox() {
  if (session_.area < 0) return success();
  auto opened = Neighbours::open({session_.letterbox, session_.area}, {.control = control_,
                                                                       .own_copies = own_copies_,
                                                                       .operations = operations_,
                                                                       .room = room_,
                                                                       .control_calls = control_calls_,
                                                                       .ring = ring_,
                                                                       .sleep = sleep_,
                                                                       .rank = session_.rank,
                                                                       .hosts = session_.hosts});
  if (!opened) return {std::move(opened).error()};
  neighbours_ = std::move(opened).value();
  return success();
}

void Context::set_level(Level level) {
  if (neighbours_ && level == Level::full) neighbours_->stop();
  guards_.set_level(level);
}

const char* Context::host(int rank) const {
  if (rank < 0 || rank >= size()) return nullptr;
  return session_.hosts[static_cast<std::size_t>(rank)].c_str();
}

int Context::descriptor() {
  const auto made = sleep_.descriptor();
  return made ? made.value() : fail({PARC_ENOMEM, made.error().text});
}

int Context::read(const parc_envelope& envelope, const iovec& buffer, parc_status* status) {
  parc_status own;
  if (starter_.read_at_once(envelope, buffer, own)) {
    if (status) *status = own;
    return PARC_OK;
  }
  auto id = starter_.read(envelope, {&buffer, 1}, 0, true);
  return id ? finish(id.value(), status) : fail(id.error());
}

int Context::write(const parc_envelope& envelope, const iovec& buffer) {
  if (starter_.write_at_once(envelope, {&buffer, 1}, 0)) return PARC_OK;
  auto id = starter_.write(envelope, {&buffer, 1}, 0, true);
  return id ? finish(id.value(), nullptr) : fail(id.error());
}

// Its id is nobody else's: a thread that is cancelled gives it up before its buffer goes.
int Context::finish(parc_op id, parc_status* status) {
  try {
    return waiter_.wait(id, status);
  } catch (...) {
    (void)starter_.cancel(id);
    waiter_.give_up(id);
    throw;
  }
}

int Context::probe(const parc_envelope& envelope, bool wait, parc_status& status) {
  if (!wait && starter_.finds_nothing(envelope, PARC_NOW)) {
    sleep_.offer_core_now_and_then();
    status = {};
    status.source = PARC_ANY_SOURCE;
    return 0;
  }
  auto id = starter_.probe(envelope, wait ? 0 : PARC_NOW);
  if (!id) return fail(id.error());
  const int code = finish(id.value(), &status);
  if (code != PARC_OK || wait) return code;
  return status.source == PARC_ANY_SOURCE ? 0 : 1;
}

int Context::address_of(int peer, char* text, std::size_t bytes) {
  std::array<char, PARC_ADDRESS_BYTES> room{};
  const auto id = starter_.name_peer(peer, {room.data(), room.size() - 1});
  if (!id) return fail(id.error());
  parc_status status;
  if (const int code = finish(id.value(), &status); code == PARC_EPEER)
    return fail(error(code, "peer {} has no address any more: its host is lost", peer));
  else if (code != PARC_OK)
    return code;
  if (status.length >= bytes)
    return fail(error(PARC_ETRUNCATE, "the address of peer {} has {} bytes, there is room for {}", peer,
                      status.length + 1, bytes));
  std::copy_n(room.data(), status.length + 1, text);
  if (peer == rank()) trace_.name_peer(-1, text);
  return PARC_OK;
}

int Context::add_peer(const char* address) {
  const auto id = starter_.add_peer(address);
  if (!id) return fail(id.error());
  parc_status status;
  const int code = finish(id.value(), &status);
  if (code == PARC_OK) {
    trace_.name_peer(status.source, address);
    return status.source;
  }
  if (code == PARC_EINVAL)
    return fail(
        error(code, "\"{}\" is no address that parc_address_of of this version of parc has given", address));
  if (code == PARC_EPEER)
    return fail(
        error(code, "no program can be reached at {}: the log of this host's parcd says why", address));
  if (code == PARC_EAGAIN)
    return fail(error(code, "cannot add {}: this program is adding 16 others, or has added 65,536", address));
  return code;
}

// What is put before it is in place behind it, for all: its messages come from others.
// Dissemination: after round k, everybody knows of the 2^(k+1) ranks below it. Rounds of one barrier go to
// different ranks, and the tag is the barrier's number, so no message is taken for another. Cannot be
// cancelled: half a barrier would hold up all other ranks. One that could not start something goes on where
// it was when it is called again, with the same number, as the others do.
int Context::barrier() {
  const std::lock_guard hold(barrier_lock_);
  if (const int code = waiter_.await_puts(Cancel::no); code != PARC_OK) return fail(code);
  const std::uint64_t tag = shm::tag_of(barrier_context, static_cast<std::int32_t>(barriers_ & INT32_MAX));
  int code = PARC_OK;
  for (; code == PARC_OK && barrier_distance_ < size(); barrier_distance_ *= 2) {
    if (const auto started = start_barrier_round(tag); !started) return fail(started.error());
    code = waiter_.all(barrier_round_, nullptr, Cancel::no);
    barrier_round_ = {};
  }
  barrier_distance_ = 1;
  ++barriers_;
  return code;
}

// What of it was started before is not again.
Result<void> Context::start_barrier_round(std::uint64_t tag) {
  auto& [above, below] = barrier_round_;
  const auto at = [this](std::int64_t rank) { return static_cast<int>((rank + size()) % size()); };
  if (below == PARC_OP_NULL) {
    PARC_TRY(from_below, starter_.barrier_read(at(rank() - barrier_distance_), tag));
    below = from_below;
  }
  PARC_TRY(to_above, starter_.barrier_write(at(rank() + barrier_distance_), tag));
  above = to_above;
  return success();
}

void Context::abort(int status) {
  trace_.flush();
  shm::Request request{};
  request.kind = shm::RequestKind::abort;
  request.aborted.status = static_cast<std::uint64_t>(status);
  if (ring_.push(request))
    for (int turn = 0; turn < kill_patience && !pipes_.look(); ++turn) pipes_.pause();
  _exit(status);
}

// After leaving the kernel delivers from memory that must stay as it is: a heap writes into what is freed.
void Context::free(void* block) {
  if (ring_.closed()) return;
  if (guards_.any()) guards_.settle(block, arena_.size_of(block), Guards::Use::stores);
  arena_.free(block);
}

// A handler of parc_on_lost may call exit() while its guard is settled, here or in another thread: that is
// waited for without the lock.
void Context::leave() {
  guards_.hold_back(); // for good: other threads may still be in a wait
  guards_.settle_all();
  const std::lock_guard hold(leaving_);
  if (ring_.closed()) return;
  neighbour_windows_.close();
  adoption_.serve(nullptr, nullptr, nullptr);
  forget_faults();
  if (neighbours_) {
    neighbours_->close();
    waiter_.hand_over_own_memory();
  }
  shm::Request request{};
  request.kind = shm::RequestKind::leave;
  (void)control_calls_.run_last(request); // the kernel may go meanwhile: then there is nothing to leave
  if (neighbours_) {
    neighbours_->settle_copies(); // what was asked for has ended, or was taken back
    neighbours_->inbox().end_taken();
  }
  copying_thread_.stop();
  if (!trace_.on()) return;
  operations_.trace_rest();
  trace_.close();
}

} // namespace parc::client
