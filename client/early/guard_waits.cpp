// SPDX-License-Identifier: BSD-3-Clause
// Waiting for what is missing: calls that are going to use memory, and the handler of a fault on it.
//
// Signal safety. resolve() runs at any instruction that touches memory, with the program's locks as they are,
// but never inside lock_: what holds that touches nothing that can be guarded, and lets no handler of the
// program interrupt it. So the handler may take lock_, which is held for as long as some mprotects take, and
// waits for arrivals without it. It allocates nothing, and what it waits by (Sleep) is made for that.
#include "client/early/guards.hpp"

#include "client/base/pages.hpp"
#include "shm/between.hpp"

#include <algorithm>
#include <sched.h>

namespace parc::client {
namespace {

// The last fault of this thread that no guard explained: where, and how often pages had been opened by then.
// In the handler thread-local storage must have its place from the thread's start.
struct Unexplained {
  std::uintptr_t page;
  std::uint64_t changes;
};
__attribute__((tls_model("initial-exec"))) thread_local Unexplained unexplained{0, 0};

} // namespace

bool Guards::counted(const Missing& missing) const {
  if (is_done(missing.id)) return true;
  const shm::Operation& operation = shared(missing.id);
  if (!missing.gets || missing.bytes.empty()) {
    const bool begun = has_begun(missing.id);
    if (missing.bytes.empty() || !begun) return begun;
  }
  const std::uint64_t total = missing.gets ? missing.length : operation.total.load(std::memory_order_relaxed);
  const std::uint64_t high = std::min(missing.bytes.high, total);
  return operation.front.load(std::memory_order_acquire) >= high ||
         operation.back.load(std::memory_order_acquire) + missing.bytes.low >= total;
}

// What is waited for with it need not have.
bool Guards::came_between(const Missing& missing) const {
  if (!missing.islands) return false;
  const shm::Operation& operation = shared(missing.id);
  const std::int32_t word = operation.error.load(std::memory_order_acquire);
  const std::uint64_t low = missing.touched.low;
  const std::uint64_t high =
      missing.gets ? missing.touched.high
                   : std::min(missing.touched.high, operation.total.load(std::memory_order_relaxed));
  return low < high && shm::bytes_between(word, missing.length, low, high) == high - low;
}

template <class Wanted> std::optional<Guards::Missing> Guards::find_missing(const Wanted& wanted) const {
  for (const Guard& guard : guards_) {
    if (guard.reporting && reporting_here) continue; // its handler must not wait for itself
    if (const std::optional<Stretch> bytes = wanted(guard)) return missing_from(guard, *bytes);
  }
  return {};
}

template <class Wanted> void Guards::settle_what(const Wanted& wanted) {
  while (count_.load(std::memory_order_relaxed) != 0) {
    look();
    std::optional<Missing> missing;
    {
      const Locked hold(lock_);
      missing = find_missing(wanted);
    }
    if (!missing) return;
    const std::uint64_t begin = trace_.on() ? trace::now() : 0;
    await(*missing);
    trace_wait(trace::Kind::call, begin, *missing, 0, Trace::site());
  }
}

// What a trace keeps closed, where something is. A call that uses it is its first touch.
void Guards::open_for_call(const Pages& pages, ForCall what) {
  if (!page_trace_.on() || !any()) return;
  const Locked hold(lock_);
  switch (what) {
  case ForCall::nothing: return open_untouched(pages);
  case ForCall::use: return use_untouched(pages);
  case ForCall::overwrite: return overwrite_untouched(pages);
  }
}

void Guards::settle(const void* memory, std::size_t bytes, Use use) {
  const Pages there{address_of(memory), address_of(memory) + bytes};
  if (bytes != 0)
    open_for_call(pages_around(memory, bytes), use == Use::loads ? ForCall::use : ForCall::overwrite);
  settle_what([&](const Guard& guard) -> std::optional<Stretch> {
    if (guard.writes && use == Use::loads) return {};
    return GuardTable::missing_in(guard, there);
  });
}

void Guards::settle_pages(const void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  const Pages there = pages_around(memory, bytes);
  open_for_call(there, ForCall::use); // of the system's, which may load or store
  settle_what([&](const Guard& guard) { return GuardTable::missing_in(guard, there); });
}

void Guards::settle_all() {
  open_for_call({0, UINTPTR_MAX}, ForCall::nothing);
  settle_what([](const Guard& guard) -> std::optional<Stretch> {
    if (guard.missing.empty()) return {};
    return guard.missing;
  });
}

template <class Of> void Guards::settle_begun_of(const Of& of) {
  settle_what([&](const Guard& guard) -> std::optional<Stretch> {
    if (guard.writes || !of(guard) || has_begun(guard.id)) return {};
    return Stretch{0, 0};
  });
}

void Guards::settle_begun() {
  settle_begun_of([](const Guard&) { return true; });
}

void Guards::settle_begun_reads() {
  settle_begun_of([](const Guard& guard) { return !guard.gets; });
}

void Guards::settle_gets() {
  settle_begun_of([](const Guard& guard) { return guard.gets; });
}

void Guards::trace_wait(trace::Kind kind, std::uint64_t begin, const Missing& missing, std::uintptr_t address,
                        std::uint64_t site) {
  if (!trace_.on()) return;
  trace::Record record{};
  record.kind = kind;
  record.call = site == 0 ? trace::Call::system_call : trace::Call::settle;
  record.begin = begin;
  record.end = trace::now();
  record.id = static_cast<std::uint64_t>(missing.id);
  record.address = address;
  record.bytes = missing.touched.low;
  record.site = site;
  trace_.add(record);
}

// Reads first: where only they were in the way, the instruction is done when it is executed again; a store
// that comes back has a write to wait for.
bool Guards::resolve(const void* address, std::uintptr_t instruction) {
  const std::uintptr_t begin = round_down(address_of(address), page_size());
  const Pages page{begin, begin + page_size()};
  const std::uint64_t fault = page_trace_.on() ? trace::now() : 0;
  bool ours = false, waited = false, untouched = false;
  for (;;) {
    look();
    std::optional<Missing> missing;
    Unexplained now{begin, 0};
    {
      const Locked hold(lock_);
      missing = touched(page, false);
      if (!missing && !waited) missing = touched(page, true);
      now.changes = changes_;
      if (!missing && fault != 0) untouched = touch_untouched({begin, fault, trace::now(), instruction + 1});
    }
    if (!missing) {
      // Opened since the fault: just now, or by another thread. A fault that comes again although nothing was
      // opened in between is none of ours.
      ours = waited || untouched || unexplained.page != now.page || unexplained.changes != now.changes;
      unexplained = now;
      break;
    }
    waited = true;
    const std::uint64_t started = trace_.on() ? trace::now() : 0;
    await(*missing);
    if (missing->train != 0 && counted(*missing)) await_train(missing->peer, missing->train);
    trace_wait(trace::Kind::fault, started, *missing, address_of(address), instruction + 1);
  }
  if (ours) control_.header.waits.faults.fetch_add(1, std::memory_order_relaxed);
  if (ours && !waited) control_.header.waits.late_faults.fetch_add(1, std::memory_order_relaxed);
  return ours;
}

// Who touches a page waits for more of a transfer than lies there.
std::optional<Guards::Missing> Guards::touched(const Pages& page, bool writes) const {
  const Guard* of = nullptr;
  auto missing = find_missing([&](const Guard& guard) -> std::optional<Stretch> {
    if (guard.writes != writes) return {};
    of = &guard;
    return GuardTable::missing_in(guard, page);
  });
  if (!missing || writes) return missing;
  missing->bytes = strips_.awaited(*of, missing->bytes, cost_.of_wake());
  if (of->grain == Grain::train) missing->train = end_of_strip(*of);
  return missing;
}

// When the last one of a train was started that is waited for with this one: what was started next is touched
// next. No more than some, as all guards are looked at for each.
std::uint64_t Guards::end_of_strip(const Guard& first) const {
  constexpr int most_together = 64;
  const std::uint64_t most = strips_.together(first, cost_.of_wake());
  std::uint64_t bytes = first.length, last = first.started;
  for (int together = 1; together < most_together; ++together) {
    const Guard* next = nullptr;
    for (const Guard& guard : guards_)
      if (guard.grain == Grain::train && guard.envelope.peer == first.envelope.peer && guard.started > last &&
          (next == nullptr || guard.started < next->started))
        next = &guard;
    if (next == nullptr || next->length > most || bytes > most - next->length) break;
    bytes += next->length;
    last = next->started;
  }
  return last;
}

// What was started up to there. (One that is lost is over.)
void Guards::await_train(int peer, std::uint64_t last) {
  while (!pipes_.gone()) {
    std::optional<Missing> missing;
    {
      const Locked hold(lock_);
      missing = find_missing([&](const Guard& guard) -> std::optional<Stretch> {
        if (guard.grain != Grain::train || guard.envelope.peer != peer || guard.started > last ||
            is_done(guard.id))
          return {};
        return guard.missing;
      });
    }
    if (!missing) return;
    await(*missing);
  }
}

// Ends early when the kernel goes: then the next look() finds a loss.
void Guards::await(const Missing& missing) {
  if (missing.writes) return let_go(missing.id);
  const Watching watching(control_.header);
  const auto there = [&] { return counted(missing) || came_between(missing); };
  if (there()) {
    sched_yield(); // its loss is being reported by another thread, or it is about to be done
    return;
  }
  const auto since = Clock::now();
  sleep_.anywhere(there);
  note_wait(missing, since);
}

// Between the ends of two waits in a row so much has come as the path brings.
void Guards::note_wait(const Missing& missing, Clock::time_point since) {
  const Locked hold(lock_);
  Guard* const guard = guards_.find(missing.id);
  if (guard == nullptr) return;
  guard->missed = Clock::now();
  guard->waited += guard->missed - since;
  const std::uint64_t left = bytes_missing_of(*guard);
  if (guard->came != Clock::time_point() && left < guard->left)
    strips_.note(guard->envelope.peer, guard->left - left, guard->missed - guard->came);
  guard->came = guard->missed;
  guard->left = left;
}

// Somebody wants to store where a write's bytes are. One thread hands it over, others wait for that.
void Guards::let_go(parc_op write) {
  Guard guard;
  bool mine = false;
  std::optional<WithoutHandlers> alone(std::in_place);
  {
    const Locked hold(lock_);
    Guard* const found = guards_.find(write);
    if (found == nullptr) return;
    mine = !std::exchange(found->handing, true);
    guard = *found;
  }
  if (!mine) {
    alone.reset();
    const auto& handed = shared(write).handed_or_data;
    const auto generation = shm::generation_of(static_cast<std::uint64_t>(write));
    sleep_.anywhere([&] { return is_done(write) || handed.load(std::memory_order_acquire) == generation; });
    sched_yield(); // it is about to open its pages
    return;
  }
  const bool gone = sleep_.poll([&] { return is_done(write); }, hand_over_.patience(guard.slot));
  const bool handed =
      !gone && !Ring::pushing() && hand_over_.perform(write, guard.slot, {guard.piece.data(), guard.pieces});
  alone.reset();
  if (!handed) sleep_.anywhere([&] { return is_done(write); });
  const Locked hold(lock_);
  Guard* const found = guards_.find(write);
  open_all(*found);
  drop(*found);
}

} // namespace parc::client
