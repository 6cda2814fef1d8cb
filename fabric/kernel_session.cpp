// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/kernel_session.hpp"

#include "fabric/endpoint.hpp"
#include "fabric/patience.hpp"

#include <algorithm>
#include <array>
#include <sched.h>
#include <utility>

namespace parc::fabric {
namespace {

constexpr int taken_at_once = 64;
constexpr unsigned begins_a_look = 16;                 // of what was over at once
constexpr double between_starts = 0.01;                // seconds, of what was put off
constexpr auto longest_wait = std::chrono::minutes(1); // of a receive that was put off, while nothing moves
double in_seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::uint64_t length_of(const Start& start) {
  std::uint64_t length = 0;
  for (const iovec& piece : start.pieces) length += piece.iov_len;
  return length;
}

// A message may be for either, or goes the same way: the second must not be started before the first.
bool in_order(const Start& first, const Start& second) {
  using enum Start::Kind;
  if (first.kind >= get || second.kind >= get)
    return first.kind >= get && second.kind >= get && first.place.peer == second.place.peer;
  if ((first.kind == write) != (second.kind == write)) return false;
  const parc_envelope &one = first.envelope, &other = second.envelope;
  if (first.kind == write) return one.peer == other.peer;
  if (first.kind == read_claimed || second.kind == read_claimed) return false;
  const bool one_peer =
      one.peer == other.peer || one.peer == PARC_ANY_SOURCE || other.peer == PARC_ANY_SOURCE;
  return one_peer && ((first.flags ^ second.flags) & PARC_UNTAGGED) == 0 &&
         ((one.tag ^ other.tag) & ~(one.ignore | other.ignore)) == 0;
}

parc_status ended_with(int error, std::uint64_t length = 0) {
  return {PARC_ANY_SOURCE, PARC_ANY_TAG, 0, error, length, 0, 0};
}

// Asked for in each look: their places are there from the thread's start.
__attribute__((tls_model("initial-exec"))) thread_local Patience patience; // of this thread's polls and looks
// Of KernelSession::found_, by this thread's last poll.
__attribute__((tls_model("initial-exec"))) thread_local std::uint64_t seen = 0;

std::mutex session_lock;
KernelSession* the_session; // under session_lock

} // namespace

int KernelSession::acquire(KernelSession*& session) {
  const std::lock_guard hold(session_lock);
  if (!the_session) {
    if (const int code = parc_start_kernel(); code != PARC_OK)
      return refused_aloud(Failing::session, FI_LOG_DOMAIN, code);
    auto* const made = new KernelSession;
    if (const int code = parc_join(&made->parc_, nullptr, 0, 1); code != PARC_OK) {
      delete made;
      return refused_aloud(Failing::session, FI_LOG_DOMAIN, code);
    }
    the_session = made;
  }
  ++the_session->users_;
  session = the_session;
  return 0;
}

void KernelSession::release() {
  const std::lock_guard hold(session_lock);
  if (--users_ != 0) return;
  (void)parc_close(parc_);
  the_session = nullptr;
  delete this;
}

parc_op KernelSession::try_start(const Start& start) const {
  const unsigned flags = start.flags | PARC_QUEUED;
  const auto count = static_cast<int>(start.pieces.size());
  switch (start.kind) {
  case Start::Kind::write:
    return parc_initwritev(parc_, &start.envelope, start.pieces.data(), count, flags | PARC_AT_ONCE);
  case Start::Kind::read: return parc_initreadv(parc_, &start.envelope, start.pieces.data(), count, flags);
  case Start::Kind::probe:
    return parc_initprobe(parc_, &start.envelope, flags | ((flags & PARC_NOW) != 0 ? PARC_AT_ONCE : 0u));
  case Start::Kind::read_claimed:
    return parc_initread_claimed(parc_, start.claim, start.pieces.data(), count, flags);
  case Start::Kind::get:
    if (start.stride == 0) return parc_initgetv(parc_, &start.place, start.pieces.data(), count, flags);
    return parc_initget_rows(parc_, &start.place, start.row, start.stride, start.pieces.data(), count, flags);
  case Start::Kind::put:
    if (start.stride == 0) return parc_initputv(parc_, &start.place, start.pieces.data(), count, flags);
    return parc_initput_rows(parc_, &start.place, start.row, start.stride, start.pieces.data(), count, flags);
  case Start::Kind::atomic:
    return parc_initatomic(parc_, &start.place, start.atomic.what, start.atomic.width, start.atomic.operand,
                           start.atomic.compare, nullptr, flags);
  }
  return PARC_EINVAL;
}

// Under waiting_lock_.
bool KernelSession::must_wait(const Start& start) const {
  return std::ranges::any_of(waiting_ones_,
                             [&](const Waiting& waiting) { return in_order(waiting.start, start); });
}

// What names no memory is refused whatever else is under way.
bool KernelSession::may_wait(const Start& start) {
  return std::ranges::none_of(
      start.pieces, [](const iovec& piece) { return piece.iov_base == nullptr && piece.iov_len != 0; });
}

ssize_t KernelSession::begin(const Request& request, const Start& start) {
  registered_last.forget();
  if (put_off_.load(std::memory_order_relaxed) != 0 && may_wait(start)) {
    std::unique_lock hold(waiting_lock_);
    if (must_wait(start)) {
      if (start.kind != Start::Kind::probe) {
        put_off(request, start);
        return 0;
      }
      hold.unlock(); // a look does not wait: what it could see is for the receive before it
      hand_on(request, {PARC_OP_NULL, ended_with(PARC_OK)});
      return 0;
    }
  }
  const parc_op operation = try_start(start);
  if (operation > 0) {
    note(operation, request);
    return 0;
  }
  if (operation == PARC_OP_NULL) { // it is over; or, of a look, there is nothing
    hand_on(request, {PARC_OP_NULL, ended_with(PARC_OK, length_of(start))});
    // Who is always told of something that was over at once may never look for the rest.
    if (at_once_.fetch_add(1, std::memory_order_relaxed) % begins_a_look == 0) (void)progress(0);
    return 0;
  }
  if (operation != PARC_EAGAIN)
    return refused_aloud(Failing::operation, FI_LOG_EP_DATA, static_cast<int>(operation));
  {
    const std::lock_guard hold(waiting_lock_);
    put_off(request, start);
  }
  (void)progress(0);
  return 0;
}

ssize_t KernelSession::look(const Request& request, const Start& start) {
  const Clock::time_point before = Clock::now();
  {
    const std::lock_guard hold(looks_lock_);
    looked_for_ = start;
    looked_for_->flags &= ~static_cast<unsigned>(PARC_NOW | PARC_CLAIM);
    polls_since_ = 0;
  }
  const ssize_t code = begin(request, start);
  patience.called(before, Clock::now());
  return code;
}

// Under waiting_lock_. The program's list of pieces is its own again when the call returns.
void KernelSession::put_off(const Request& request, const Start& start) {
  Waiting& waiting =
      waiting_ones_.emplace_back(Waiting{request, start, {start.pieces.begin(), start.pieces.end()}, {}});
  if (start.injected) {
    for (const iovec& piece : waiting.pieces) {
      const auto* const bytes = static_cast<const std::byte*>(piece.iov_base);
      waiting.copied.insert(waiting.copied.end(), bytes, bytes + piece.iov_len);
    }
    waiting.pieces.assign(1, {waiting.copied.data(), waiting.copied.size()});
  }
  waiting.start.pieces = waiting.pieces;
  if (waiting_ones_.size() == 1) moved_ = Clock::now();
  count_waiting();
}

// Under waiting_lock_.
void KernelSession::count_waiting() {
  put_off_.store(waiting_ones_.size(), std::memory_order_relaxed);
  const bool for_one = !waiting_ones_.empty() && waiting_ones_.front().start.kind < Start::Kind::read_claimed;
  const int peer = for_one ? waiting_ones_.front().start.envelope.peer : PARC_ANY_SOURCE;
  (void)parc_set_put_off(parc_, waiting_ones_.size(), peer);
}

// Each that does not have to wait for another, but those for which there is no memory where less was not
// enough.
void KernelSession::start_waiting() {
  if (put_off_.load(std::memory_order_relaxed) == 0) return;
  struct Started {
    Request request;
    parc_op operation;
    std::uint64_t length;
  };
  std::vector<Started> started;
  {
    const std::lock_guard hold(waiting_lock_);
    std::vector<const Start*> still; // waits
    std::uint64_t too_much = UINT64_MAX;
    for (auto next = waiting_ones_.begin(); next != waiting_ones_.end();) {
      const Start& start = next->start;
      const std::uint64_t length = length_of(start);
      const bool waits = length >= too_much || std::ranges::any_of(still, [&](const Start* first) {
                           return in_order(*first, start);
                         });
      const parc_op operation = waits ? PARC_OP_NULL : try_start(start);
      if (waits || operation == PARC_EAGAIN) {
        too_much = length;
        still.push_back(&start);
        ++next;
        continue;
      }
      if (operation < PARC_OP_NULL)
        (void)refused_aloud(Failing::operation, FI_LOG_EP_DATA, static_cast<int>(operation));
      started.push_back({next->request, operation, length});
      next = waiting_ones_.erase(next);
    }
    if (!started.empty()) {
      moved_ = Clock::now();
      count_waiting();
    }
  }
  for (const auto& [request, operation, length] : started) // what has ended at once may start something
    if (operation > 0)
      note(operation, request);
    else
      hand_on(request, {PARC_OP_NULL, ended_with(static_cast<int>(operation), length)});
}

// Who waits for memory that receives have, and these for messages that wait for memory, would do so for ever.
// A send goes on when its receiver does, and what is for remote memory when its kernel does.
void KernelSession::give_up_waiting() {
  if (put_off_.load(std::memory_order_relaxed) == 0) return;
  {
    const std::lock_guard hold(waiting_lock_);
    if (Clock::now() - moved_ < longest_wait) return;
  }
  const auto for_others = [](const Request& request) { return request.purpose != Purpose::transfer; };
  if (const auto waiting = take_waiting(for_others))
    hand_on(*waiting, {PARC_OP_NULL, ended_with(PARC_ENOMEM)});
}

// The first of the receives and looks that wait and is wanted, which then is never started.
template <class Wanted> std::optional<Request> KernelSession::take_waiting(const Wanted& wanted) {
  const std::lock_guard hold(waiting_lock_);
  const auto found = std::ranges::find_if(waiting_ones_, [&](const Waiting& waiting) {
    return waiting.start.kind != Start::Kind::write && wanted(waiting.request);
  });
  if (found == waiting_ones_.end()) return {};
  const Request request = found->request;
  waiting_ones_.erase(found);
  count_waiting();
  return request;
}

KernelSession::Slot& KernelSession::Slots::of(parc_op operation) {
  const auto index = static_cast<std::size_t>(parc_op_index(operation));
  if (runs_.size() <= index / run_slots) runs_.resize(index / run_slots + 1);
  auto& run = runs_[index / run_slots];
  if (!run) run = std::make_unique<Slot[]>(run_slots);
  return run[index % run_slots];
}

template <class Use> void KernelSession::Slots::each(const Use& use) {
  for (const auto& run : runs_)
    for (std::size_t i = 0; run && i < run_slots; ++i)
      if (run[i].operation != PARC_OP_NULL && use(run[i])) return;
}

void KernelSession::note(parc_op operation, const Request& request) {
  parc_completion early{};
  {
    const std::lock_guard hold(lock_);
    const auto found = std::ranges::find(early_, operation, &parc_completion::operation);
    if (found == early_.end()) {
      Slot& slot = slots_.of(operation);
      if (slot.operation != PARC_OP_NULL) displaced_.push_back(slot);
      slot = {operation, false, request};
      return;
    }
    early = *found;
    early_.erase(found);
  }
  hand_on(request, early);
}

void KernelSession::ended(const parc_completion& completion) {
  Request request;
  {
    const std::lock_guard hold(lock_);
    Slot& slot = slots_.of(completion.operation);
    if (slot.operation == completion.operation) {
      slot.operation = PARC_OP_NULL;
      request = std::move(slot.request);
    } else if (const auto found = std::ranges::find(displaced_, completion.operation, &Slot::operation);
               found != displaced_.end()) {
      request = found->request;
      displaced_.erase(found);
    } else {
      early_.push_back(completion);
      return;
    }
  }
  hand_on(request, completion);
}

// It may be what another thread waits for.
void KernelSession::hand_on(const Request& request, const parc_completion& completion) {
  const bool looks = request.purpose >= Purpose::peek && request.purpose <= Purpose::peek_and_discard;
  const bool in_vain = completion.status.source == PARC_ANY_SOURCE && completion.status.error == PARC_OK;
  if (request.purpose == Purpose::await) return;
  if (!looks || !in_vain) found_.fetch_add(1, std::memory_order_relaxed);
  if (looks && !in_vain) {
    const std::lock_guard hold(looks_lock_);
    looked_for_.reset();
  }
  request.endpoint->ended(request, completion);
  wake();
}

// Of the last one that has failed, this thread has libparc's sentence now.
void KernelSession::note_failure(std::span<const parc_completion> completions) {
  const auto failed = std::ranges::find_if(completions.rbegin(), completions.rend(), [](const auto& each) {
    return each.status.error != PARC_OK && each.status.error != PARC_ECANCELED;
  });
  if (failed == completions.rend()) return;
  const std::lock_guard hold(failure_lock_);
  failure_ = {failed->status.error, parc_error_detail()};
}

std::string KernelSession::why(int parc_error) {
  const std::lock_guard hold(failure_lock_);
  return failure_.error == parc_error ? failure_.sentence : parc_error_string(parc_error);
}

int KernelSession::progress(double timeout) {
  std::array<parc_completion, taken_at_once> completions;
  // What leaves memory need not be reported: the copy of a send that has ended.
  if (put_off_.load(std::memory_order_relaxed) != 0 && (timeout < 0 || timeout > between_starts))
    timeout = between_starts;
  const int taken = parc_completions(parc_, completions.data(), taken_at_once, timeout);
  if (taken < 0) return -errno_of(taken);
  note_failure(std::span(completions).first(static_cast<std::size_t>(taken)));
  for (int i = 0; i < taken; ++i) ended(completions[static_cast<std::size_t>(i)]);
  start_waiting();
  if (taken == 0) give_up_waiting();
  return taken;
}

// On a host whose cores all compute, looks cost somebody's time.
int KernelSession::poll() {
  const bool timed = patience.is_timed();
  const Clock::time_point before = timed ? Clock::now() : Clock::time_point();
  const int taken = progress(0);
  const auto nothing = [&] { return taken >= 0 && found_.load(std::memory_order_relaxed) == seen; };
  if (nothing()) {
    const Clock::time_point now = Clock::now();
    const Patience::Next next = patience.looked(now, timed ? now - before : Clock::duration());
    if (next.offer_core) sched_yield();
    const int late = next.sleep.count() != 0 ? sleep_until(now + next.sleep) : 0;
    const bool at_once = !next.offer_core && next.sleep.count() == 0;
    patience.done(next, now, at_once ? now : Clock::now());
    if (late < 0) return late;
  }
  if (!nothing()) patience.end();
  seen = found_.load(std::memory_order_relaxed); // also what was over at once, since the last poll
  return taken;
}

// Or until something comes; also a message that nobody has received yet, where the program looks for it.
int KernelSession::sleep_until(Clock::time_point end) {
  constexpr unsigned polls_of_a_look = 3;
  parc_op awaits = PARC_OP_NULL;
  {
    const std::lock_guard hold(looks_lock_);
    if (looked_for_ && ++polls_since_ > polls_of_a_look) looked_for_.reset();
    if (looked_for_) awaits = try_start(*looked_for_);
  }
  if (awaits > 0) note(awaits, {.purpose = Purpose::await});
  int taken = 0;
  {
    const Waiter here(waiters_);
    taken = wait_once(wakes_.load(), end);
  }
  if (awaits > 0) (void)parc_cancel(parc_, awaits); // where it has ended, that does nothing
  return taken;
}

// Returns how many operations have ended, as far as it is known, or a negative FI_E*.
int KernelSession::wait_once(std::uint64_t seen, std::optional<Clock::time_point> end) {
  const std::thread::id nobody, self = std::this_thread::get_id();
  std::unique_lock hold(waiting_);
  const auto over = [&] { return wakes_.load() != seen || leader_ == nobody; };
  while (leader_ != nobody && wakes_.load() == seen) {
    if (!end)
      woken_.wait(hold, over);
    else if (!woken_.wait_until(hold, *end, over))
      return 0;
  }
  if (wakes_.load() != seen) return 1;
  leader_ = self;
  hold.unlock();
  const int taken = progress(end ? std::max(in_seconds(*end - Clock::now()), 0.0) : -1);
  hold.lock();
  leader_ = nobody;
  woken_.notify_all();
  return taken;
}

// The leader looks when it has progressed, whatever it has done for itself meanwhile.
void KernelSession::wake() {
  if (waiters_.load() == 0) return;
  const std::lock_guard hold(waiting_);
  ++wakes_;
  woken_.notify_all();
  if (leader_ != std::thread::id() && leader_ != std::this_thread::get_id()) (void)parc_wake(parc_);
}

bool KernelSession::cancel(const Endpoint& endpoint, const void* context) {
  const auto wanted = [&](const Request& request) {
    return request.endpoint == &endpoint && request.purpose == Purpose::receive && request.context == context;
  };
  if (const auto waiting = take_waiting(wanted)) {
    hand_on(*waiting, {PARC_OP_NULL, ended_with(PARC_ECANCELED)});
    return true;
  }
  const std::lock_guard hold(lock_);
  bool found = false;
  slots_.each([&](const Slot& slot) {
    if (wanted(slot.request)) (void)parc_cancel(parc_, slot.operation);
    return found = wanted(slot.request);
  });
  return found;
}

void KernelSession::cancel_all(const Endpoint& endpoint) {
  const auto waits_for_others = [&](const Request& request) {
    return request.endpoint == &endpoint && (request.purpose != Purpose::send || request.synchronous);
  };
  while (const auto waiting = take_waiting(waits_for_others))
    hand_on(*waiting, {PARC_OP_NULL, ended_with(PARC_ECANCELED)});
  const std::lock_guard hold(lock_);
  slots_.each([&](Slot& slot) {
    if (waits_for_others(slot.request) && !std::exchange(slot.given_up, true))
      (void)parc_cancel(parc_, slot.operation);
    return false;
  });
}

} // namespace parc::fabric
