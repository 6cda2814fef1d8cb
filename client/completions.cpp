// SPDX-License-Identifier: BSD-3-Clause
#include "client/completions.hpp"

#include "client/failure.hpp"

#include <bit>
#include <iterator>

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
  const bool finished = operations_.finished(id);
  if (!finished && !waits_.may_release(id)) return;
  const std::lock_guard hold(lock_);
  if (finished)
    ended_.push_back(id);
  else
    releasable_.push_back(id);
}

int Completions::take(std::span<parc_completion> to, double timeout) {
  const Limit limit = timeout == 0 ? Limit{} : limit_of(timeout);
  {
    const std::lock_guard hold(lock_);
    armed_.reset();
  }
  for (;;) {
    if (gather())
      if (const std::size_t reported = report(to); reported != 0) return static_cast<int>(reported);
    Woken how = Woken::late;
    if (timeout == 0) {
      rest_.tell_kernel();
      if (waits_.kernel_went()) how = Woken::gone;
    } else {
      how = rest(limit);
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
Woken Completions::rest(Limit limit) {
  const auto gathers = [this] { return gather(); };
  {
    std::unique_lock hold(lock_);
    if (!releasable_.empty()) {
      hold.unlock();
      const auto watching = guards_.watch();
      return rest_.until(gathers, limit, Cancel::yes);
    }
  }
  return rest_.until(gathers, limit, Cancel::yes);
}

// From here on it is watched until somebody takes.
int Completions::arm() {
  {
    const std::lock_guard hold(lock_);
    if (!releasable_.empty() && !armed_) armed_.emplace(control_.header);
  }
  rest_.arm();
  rest_.tell_kernel();
  return gather() || waits_.kernel_went() ? 1 : 0;
}

// Whether there is something to report. Each bit is looked at by one thread, and an operation that ends later
// sets it again.
bool Completions::gather() {
  const std::lock_guard hold(lock_);
  for (std::size_t word = 0; word < std::size(control_.finished); ++word) {
    auto& shared = control_.finished[word];
    if (shared.load(std::memory_order_relaxed) == 0) continue;
    for (auto bits = shared.exchange(0, std::memory_order_acquire); bits != 0; bits &= bits - 1) {
      const auto slot = static_cast<Slot>(word * 64) + static_cast<Slot>(std::countr_zero(bits));
      if (slot >= shm::control_slot) continue;
      if (const auto id = operations_.queued(slot); id && operations_.finished(*id)) ended_.push_back(*id);
    }
  }
  std::erase_if(releasable_, [this](parc_op id) {
    if (!operations_.is_live(id)) return true;
    if (!waits_.collectable(id)) return false;
    ended_.push_back(id);
    return true;
  });
  while (!ended_.empty() && !operations_.is_live(ended_.front())) ended_.pop_front(); // it was in here twice
  return !ended_.empty();
}

// The kernel has gone: all of them have ended.
void Completions::gather_lost() {
  const std::lock_guard hold(lock_);
  for (Slot slot = 0; slot < shm::control_slot; ++slot)
    if (const auto id = operations_.queued(slot)) ended_.push_back(*id);
}

std::size_t Completions::report(std::span<parc_completion> to) {
  const std::lock_guard hold(lock_);
  std::size_t reported = 0;
  while (!ended_.empty() && reported < to.size()) {
    const parc_op id = ended_.front();
    ended_.pop_front();
    if (!operations_.is_live(id)) continue;
    parc_status own; // the program's may lie on a page that is guarded
    if (waits_.collect(id, own))
      to[reported++] = {id, own};
    else
      releasable_.push_back(id);
  }
  return reported;
}

} // namespace parc::client
