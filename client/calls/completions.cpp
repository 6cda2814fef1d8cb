// SPDX-License-Identifier: BSD-3-Clause
#include "client/calls/completions.hpp"

#include "client/base/failure.hpp"

#include <algorithm>

namespace parc::client {
namespace {

// A limit that lies beyond what the clock can say is none.
Limit limit_of(double timeout) {
  constexpr double longest = 1e9;
  if (timeout < 0 || timeout > longest) return {};
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout));
}

} // namespace

void Completions::started(parc_op id) {
  const bool read = !Operations::is_write(id);
  if (read ? !waiter_.may_release(id) : !operations_.finished(id)) return;
  {
    const std::lock_guard hold(lock_);
    (read ? releasable_ : ended_).push_back(id);
    count();
  }
  if (!read) sleep_.tell_others();
}

int Completions::take(std::span<parc_completion> to, double timeout) {
  const Limit limit = timeout == 0 ? Limit{} : limit_of(timeout);
  if (is_armed_.load(std::memory_order_acquire)) {
    const std::lock_guard hold(lock_);
    armed_.reset();
    is_armed_.store(false, std::memory_order_relaxed);
  }
  if (timeout != 0)
    if (const auto made = sleep_.make_wakeable(); !made) return fail({PARC_ENOMEM, made.error().text});
  for (;;) {
    if (timeout == 0)
      sleep_.look();
    else
      sleep_.progress();
    if (gather())
      if (const std::size_t reported = report(to); reported != 0) return static_cast<int>(reported);
    if (timeout != 0 && sleep_.take_wake()) return 0;
    const bool enough_memory = late_reads_.serve();
    Woken how = Woken::late;
    if (timeout == 0) {
      sleep_.looked_in_vain();
      if (waiter_.kernel_went()) how = Woken::gone;
    } else {
      how = rest(limit, enough_memory);
      if (how == Woken::late && !enough_memory && (!limit || Clock::now() < *limit)) continue;
    }
    if (how == Woken::late) return 0;
    if (how == Woken::gone) {
      gather_lost();
      const std::size_t reported = report(to);
      return reported != 0 ? static_cast<int>(reported) : fail(PARC_EKERNEL);
    }
  }
}

// The kernel, where it is watched, wakes who rests with every part of a message.
Woken Completions::rest(Limit limit, bool enough_memory) {
  const auto gathers = [&] { return gather() || sleep_.woken() || (enough_memory && late_reads_.wanting()); };
  const auto again = Clock::now() + LateReads::between_tries;
  if (!enough_memory && (!limit || again < *limit)) limit = again;
  {
    std::unique_lock hold(lock_);
    if (!releasable_.empty()) {
      hold.unlock();
      const auto watching = guards_.watch();
      return sleep_.until(gathers, limit, Cancel::yes);
    }
  }
  return sleep_.until(gathers, limit, Cancel::yes);
}

int Completions::wake() {
  sleep_.wake();
  return PARC_OK;
}

// From here on it is watched until somebody takes.
int Completions::arm() {
  {
    const std::lock_guard hold(lock_);
    if (!releasable_.empty() && !armed_) armed_.emplace(control_.header);
    is_armed_.store(armed_.has_value(), std::memory_order_release);
  }
  sleep_.arm();
  sleep_.progress();
  sleep_.tell_kernel();
  return gather() || waiter_.kernel_went() ? 1 : 0;
}

// Whether there is something to report. Each bit is looked at by one thread, and an operation that ends later
// sets it again.
bool Completions::gather() {
  if (listed_.load(std::memory_order_acquire) == 0 && !operations_.tables().any_finished()) return false;
  const std::lock_guard hold(lock_);
  if (constexpr std::size_t many = 1024; first_ >= std::max(many, ended_.size() / 2)) {
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0; // also of a program that never finds it empty
  }
  operations_.tables().take_finished([this](Slot slot) {
    auto id = operations_.queued(slot);
    if (!id) {
      // Who held it looks for its end behind such a fence (Operations::let_go): one of the two sees the
      // other.
      std::atomic_thread_fence(std::memory_order_seq_cst);
      id = operations_.queued(slot);
    }
    if (id && operations_.finished(*id)) ended_.push_back(*id);
  });
  std::erase_if(releasable_, [this](parc_op id) {
    if (!waiter_.may_release(id)) return true; // nor when it is over, or somebody has it
    if (!waiter_.collectable(id)) return false;
    ended_.push_back(id);
    return true;
  });
  while (first_ != ended_.size() && !operations_.is_live(ended_[first_])) ++first_; // it was in here twice
  const bool any = first_ != ended_.size();
  if (!any) {
    ended_.clear();
    first_ = 0;
  }
  count();
  return any;
}

void Completions::count() {
  listed_.store(ended_.size() - first_ + releasable_.size(), std::memory_order_release);
}

// The kernel has gone: all of them have ended.
void Completions::gather_lost() {
  const std::lock_guard hold(lock_);
  operations_.each_slot([this](Slot slot) {
    if (const auto id = operations_.queued(slot)) ended_.push_back(*id);
  });
  count();
}

// What was to be released and cannot be ends some time: the kernel says so.
std::size_t Completions::report(std::span<parc_completion> to) {
  std::size_t reported = 0;
  while (reported < to.size() && listed_.load(std::memory_order_acquire) != 0) {
    const auto taken = next();
    if (!taken) break;
    parc_status own; // the program's may lie on a page that is guarded
    if (waiter_.collect(taken->id, taken->slot, taken->use, own))
      to[reported++] = {taken->id, own};
    else
      missed(taken->id);
  }
  return reported;
}

// Its end, if that came while it was taken, is not looked at again.
void Completions::missed(parc_op id) {
  if (!operations_.finished(id)) return;
  const std::lock_guard hold(lock_);
  ended_.push_back(id);
  count();
}

std::optional<Completions::TakenOperation> Completions::next() {
  const std::lock_guard hold(lock_);
  std::optional<TakenOperation> taken;
  while (!taken && first_ != ended_.size()) {
    const parc_op id = ended_[first_++];
    Use use{};
    if (const auto slot = operations_.take(id, &use)) taken = {id, *slot, use};
  }
  count();
  return taken;
}

} // namespace parc::client
