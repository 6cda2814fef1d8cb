// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/guards.hpp"

#include "client/failure.hpp"
#include "client/pages.hpp"
#include "client/ring.hpp"

#include <algorithm>
#include <cstdlib>
#include <sched.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>

namespace parc::client {
namespace {

std::uintptr_t page_of(std::uintptr_t address) {
  return round_down(address, page_size());
}
std::uintptr_t page_end(std::uintptr_t address) {
  return round_up(address, page_size());
}
bool set_access(std::uintptr_t begin, std::uintptr_t end, int access) {
  return mprotect(reinterpret_cast<void*>(begin), end - begin, access) == 0;
}

// The last fault of this thread that no guard explained: where, and how often pages had been opened by then.
// In the handler thread-local storage must have its place from the thread's start.
struct Unexplained {
  std::uintptr_t page;
  std::uint64_t changes;
};
__attribute__((tls_model("initial-exec"))) thread_local Unexplained unexplained{0, 0};

} // namespace

Result<Level> level_from_environment() {
  const char* const value = getenv("PARC_EARLY_RELEASE");
  const std::string_view text = value ? value : "off";
  if (text == "off") return Level::off;
  if (text == "envelope") return Level::envelope;
  if (text == "full") return Level::full;
  return error(PARC_EINVAL, "PARC_EARLY_RELEASE={} in the environment is none of off, envelope and full",
               text);
}

thread_local bool Guards::reporting_here = false;

Guards::Guards(shm::Control& control, Operations& operations, Ring& ring, Rest& rest, Pipes& pipes,
               Trace& trace, int rank)
    : control_(control), operations_(operations), ring_(ring), rest_(rest), pipes_(pipes), trace_(trace),
      rank_(rank) {
  guards_.reserve(shm::read_slots);
  (void)page_size(); // before a handler asks
  if (const auto mapping = mappings_.find(address_of(&control_))) segments_device_ = mapping->device;
}

Level Guards::level_for(const Operations::Entry& entry) const {
  const Level level = entry.early ? Level::full : level_.load(std::memory_order_relaxed);
  return level == Level::full && !__libc_single_threaded ? Level::envelope : level;
}

bool Guards::can_guard(Slot slot) const {
  const Operations::Entry& entry = operations_.entry(slot);
  return entry.block == nullptr && entry.length >= page_size() && entry.pieces.size() <= most_pieces;
}

// A signal that comes on the alternate stack must find it there.
bool Guards::holds_signal_stack(const Guard& guard) {
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) != 0) return false;
  const std::uintptr_t begin = address_of(stack.ss_sp), end = begin + stack.ss_size;
  for (std::size_t i = 0; i < guard.pieces; ++i) {
    const Pages pages = pages_of(guard, i, guard.guarded);
    if (pages.begin < end && begin < pages.end) return true;
  }
  return false;
}

bool Guards::release(parc_op id, Slot slot, parc_status& status) {
  if (!can_guard(slot) || operations_.done(slot)) return false;
  const Operations::Entry& entry = operations_.entry(slot);
  Guard guard{.id = id,
              .slot = slot,
              .address = entry.address,
              .length = entry.length,
              .guarded = {0, 0},
              .pieces = static_cast<std::uint32_t>(entry.pieces.size()),
              .adopted = entry.adopted,
              .reporting = false,
              .piece = {}};
  std::copy(entry.pieces.begin(), entry.pieces.end(), guard.piece.begin());
  if (gate_ && !has_begun(id)) {
    shm::Request request{};
    request.kind = shm::RequestKind::release;
    request.id = static_cast<std::uint64_t>(id);
    if (!ring_.push(request)) return false;
  }
  catch_faults(*this);

  const Locked hold(lock_);
  guard.guarded = missing_of(guard); // before its loss is asked for, as in look()
  if (guard.guarded.empty() || loss_of(guard) != PARC_OK || guards_.size() == guards_.capacity() ||
      holds_signal_stack(guard))
    return false;
  guards_.push_back(guard);
  if (!protect(guard)) { // too many mappings, say
    guards_.back().guarded = {0, 0};
    for (std::size_t i = 0; i < guard.pieces; ++i)
      if (!unguard(guard, pages_of(guard, i, guard.guarded))) std::abort(); // these merge mappings
    guards_.pop_back();
    return false;
  }
  count_.store(guards_.size(), std::memory_order_relaxed);
  operations_.describe(slot, status); // under lock_: from here on others may end it
  operations_.set_released(slot);
  released_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// What has arrived is opened, with one call for each stretch, and what is over goes.
void Guards::look() {
  bool lost = false;
  {
    const Locked hold(lock_);
    for (std::size_t i = 0; i < guards_.size();) {
      // What is missing first, then whether it is lost: what seems whole because it has failed is not opened.
      // Once lost is always lost.
      const bool done = is_done(guards_[i].id);
      const Stretch missing = missing_of(guards_[i]);
      if (guards_[i].reporting || loss_of(guards_[i]) != PARC_OK) {
        lost = lost || !guards_[i].reporting;
        ++i;
        continue;
      }
      if (open(i, missing) && done)
        drop(i);
      else
        ++i;
    }
  }
  if (lost) report_losses();
}

// False where the system has no room for more mappings: then more of it has to arrive first, and in the end
// all of it is one.
bool Guards::open(std::size_t index, const Stretch& missing) {
  Guard& guard = guards_[index];
  const Stretch before = guard.guarded;
  guard.guarded = {std::max(before.low, missing.low), std::min(before.high, missing.high)};
  if (guard.guarded.low == before.low && guard.guarded.high == before.high) return true;
  for (std::size_t i = 0; i < guard.pieces; ++i) {
    const Pages old = pages_of(guard, i, before);
    Pages left = pages_of(guard, i, guard.guarded);
    if (left.begin == left.end) left = {old.end, old.end};
    if (unguard(guard, {old.begin, left.begin}) && unguard(guard, {left.end, old.end})) continue;
    guard.guarded = before;
    return false;
  }
  return true;
}

void Guards::drop(std::size_t index) {
  operations_.spend_released(guards_[index].slot);
  guards_[index] = guards_.back();
  guards_.pop_back();
  count_.store(guards_.size(), std::memory_order_relaxed);
}

// Gives the pages back but for those that other guards need.
bool Guards::unguard(const Guard& guard, Pages pages) {
  while (pages.begin < pages.end) {
    const Pages still = next_guarded(pages.begin, pages.end);
    if (still.begin > pages.begin && !give_back(guard, {pages.begin, still.begin})) return false;
    pages.begin = still.end;
  }
  return true;
}

// Adopted memory may have been unmapped since, and something else may lie there, which is none of ours.
bool Guards::give_back(const Guard& guard, Pages pages) {
  ++changes_;
  openings_.fetch_add(1, std::memory_order_relaxed);
  if (!guard.adopted) return set_access(pages.begin, pages.end, PROT_READ | PROT_WRITE);
  while (pages.begin < pages.end) {
    const auto mapping = mappings_.find(pages.begin);
    const std::uintptr_t end = mapping ? std::min(mapping->end, pages.end) : pages.begin + page_size();
    const bool ours = mapping && mapping->shared && mapping->device == segments_device_;
    if (ours && !set_access(pages.begin, end, PROT_READ | PROT_WRITE)) return false;
    pages.begin = end;
  }
  return true;
}

// The lowest guarded pages in [from, end); {end, end} where there are none.
Guards::Pages Guards::next_guarded(std::uintptr_t from, std::uintptr_t end) const {
  Pages lowest{end, end};
  for (const Guard& guard : guards_)
    for (std::size_t i = 0; i < guard.pieces; ++i) {
      const Pages pages = pages_of(guard, i, guard.guarded);
      if (pages.end <= from || pages.begin >= end) continue;
      const std::uintptr_t begin = std::max(pages.begin, from);
      if (begin < lowest.begin) lowest = {begin, std::min(pages.end, end)};
    }
  return lowest;
}

bool Guards::protect(const Guard& guard) {
  for (std::size_t i = 0; i < guard.pieces; ++i) {
    const Pages pages = pages_of(guard, i, guard.guarded);
    if (pages.begin != pages.end && !set_access(pages.begin, pages.end, PROT_NONE)) return false;
  }
  return true;
}

// Where those bytes of the message lie in a piece; {0, 0} where it has none of them.
Guards::Pages Guards::place_of(const Guard& guard, std::size_t piece, const Stretch& bytes) {
  std::uint64_t base = 0;
  for (std::size_t i = 0; i < piece; ++i) base += guard.piece[i].iov_len;
  const std::uint64_t low = std::max(bytes.low, base);
  const std::uint64_t high = std::min<std::uint64_t>(bytes.high, base + guard.piece[piece].iov_len);
  if (low >= high) return {0, 0};
  const std::uintptr_t address = address_of(guard.piece[piece].iov_base);
  return {address + (low - base), address + (high - base)};
}

Guards::Pages Guards::pages_of(const Guard& guard, std::size_t piece, const Stretch& bytes) {
  const Pages place = place_of(guard, piece, bytes);
  return {page_of(place.begin), page_end(place.end)};
}

// The guarded bytes of the message that lie in there, those of one piece.
std::optional<Guards::Stretch> Guards::guarded_in(const Guard& guard, const Pages& there) {
  std::uint64_t base = 0;
  for (std::size_t i = 0; i < guard.pieces; base += guard.piece[i++].iov_len) {
    const Pages place = place_of(guard, i, guard.guarded);
    const std::uintptr_t low = std::max(place.begin, there.begin), high = std::min(place.end, there.end);
    const std::uint64_t to_message = base - address_of(guard.piece[i].iov_base); // modulo 2^64
    if (low < high) return Stretch{low + to_message, high + to_message};
  }
  return {};
}

const shm::Operation& Guards::shared(parc_op id) const {
  return control_.operations[shm::slot_of(static_cast<std::uint64_t>(id))];
}

bool Guards::is_done(parc_op id) const {
  return shared(id).state.load(std::memory_order_acquire) ==
         shm::state_word(shm::generation_of(static_cast<std::uint64_t>(id)), shm::Phase::done);
}

bool Guards::has_begun(parc_op id) const {
  return shared(id).state.load(std::memory_order_acquire) !=
         shm::state_word(shm::generation_of(static_cast<std::uint64_t>(id)), shm::Phase::pending);
}

// A message that is shorter than the buffer leaves its end alone.
Guards::Stretch Guards::missing_of(const Guard& guard) const {
  const shm::Operation& operation = shared(guard.id);
  if (is_done(guard.id)) return {0, 0};
  std::uint64_t end = guard.length;
  if (has_begun(guard.id)) end = std::min(end, operation.total.load(std::memory_order_relaxed));
  const std::uint64_t front = operation.front.load(std::memory_order_acquire);
  const std::uint64_t back = std::min(operation.back.load(std::memory_order_acquire), end);
  return {front, end - back};
}

bool Guards::arrived(const Missing& missing) const {
  if (is_done(missing.id)) return true;
  const shm::Operation& operation = shared(missing.id);
  const bool begun = has_begun(missing.id);
  if (missing.bytes.empty()) return begun;
  if (!begun) return false;
  const std::uint64_t total = operation.total.load(std::memory_order_relaxed);
  return operation.front.load(std::memory_order_acquire) >= std::min(missing.bytes.high, total) ||
         operation.back.load(std::memory_order_acquire) + missing.bytes.low >= total;
}

template <class Wanted> std::optional<Guards::Missing> Guards::find(const Wanted& wanted) const {
  for (const Guard& guard : guards_) {
    if (guard.reporting && reporting_here) continue; // its handler must not wait for itself
    if (const std::optional<Stretch> bytes = wanted(guard)) return Missing{guard.id, *bytes};
  }
  return {};
}

template <class Wanted> void Guards::settle_what(const Wanted& wanted) {
  while (count_.load(std::memory_order_relaxed) != 0) {
    look();
    std::optional<Missing> missing;
    {
      const Locked hold(lock_);
      missing = find(wanted);
    }
    if (!missing) return;
    const std::uint64_t begin = trace_.on() ? trace::now() : 0;
    await(*missing);
    trace_wait(trace::Kind::call, begin, *missing, 0, Trace::site());
  }
}

void Guards::trace_wait(trace::Kind kind, std::uint64_t begin, const Missing& missing, std::uintptr_t address,
                        std::uint64_t site) {
  if (!trace_.on()) return;
  trace::Record record{};
  record.kind = kind;
  record.call = trace::Call::settle;
  record.begin = begin;
  record.end = trace::now();
  record.id = static_cast<std::uint64_t>(missing.id);
  record.address = address;
  record.bytes = missing.bytes.low;
  record.site = site;
  trace_.add(record);
}

void Guards::settle(const void* memory, std::size_t bytes) {
  const Pages there{address_of(memory), address_of(memory) + bytes};
  settle_what([&](const Guard& guard) { return guarded_in(guard, there); });
}

void Guards::settle_pages(const void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  const Pages there{page_of(address_of(memory)), page_end(address_of(memory) + bytes)};
  settle_what([&](const Guard& guard) { return guarded_in(guard, there); });
}

void Guards::settle_all() {
  settle_what([](const Guard& guard) -> std::optional<Stretch> {
    if (guard.guarded.empty()) return {};
    return guard.guarded;
  });
}

void Guards::settle_begun() {
  settle_what([this](const Guard& guard) -> std::optional<Stretch> {
    if (has_begun(guard.id)) return {};
    return Stretch{0, 0};
  });
}

bool Guards::resolve(const void* address, std::uintptr_t instruction) {
  const std::uintptr_t page = page_of(address_of(address));
  bool ours = false, waited = false;
  for (;;) {
    look();
    std::optional<Missing> missing;
    Unexplained now{page, 0};
    {
      const Locked hold(lock_);
      missing = find([&](const Guard& guard) { return guarded_in(guard, {page, page + page_size()}); });
      now.changes = changes_;
    }
    if (!missing) {
      // Opened since the fault: just now, or by another thread. A fault that comes again although nothing was
      // opened in between is none of ours.
      ours = waited || unexplained.page != now.page || unexplained.changes != now.changes;
      unexplained = now;
      break;
    }
    waited = true;
    const std::uint64_t begin = trace_.on() ? trace::now() : 0;
    await(*missing);
    trace_wait(trace::Kind::fault, begin, *missing, address_of(address), instruction + 1);
  }
  if (ours) faults_.fetch_add(1, std::memory_order_relaxed);
  if (ours && !waited) late_faults_.fetch_add(1, std::memory_order_relaxed);
  return ours;
}

// Ends early when the kernel goes: then the next look() finds a loss.
void Guards::await(const Missing& missing) {
  const Watching watching(control_.header);
  const auto there = [&] { return arrived(missing); };
  if (there()) {
    sched_yield();              // its loss is being reported by another thread, or it is about to be done
  } else if (Rest::resting()) { // a signal handler has interrupted a wait of this thread, and touches a page
    while (!there() && !pipes_.gone()) pipes_.pause();
  } else {
    (void)rest_.until(there);
  }
}

int Guards::loss_of(const Guard& guard) const {
  const shm::Operation& operation = shared(guard.id);
  const bool gone = pipes_.gone(); // before the kernel's last word
  if (is_done(guard.id)) return operation.error.load(std::memory_order_relaxed);
  if (has_begun(guard.id) && operation.total.load(std::memory_order_relaxed) > guard.length)
    return PARC_ETRUNCATE; // as it will end
  return gone ? PARC_EKERNEL : PARC_OK;
}

} // namespace parc::client
