// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/guards.hpp"

#include "client/failure.hpp"
#include "client/pages.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/single_threaded.h>
#include <unistd.h>

namespace parc::client {
namespace {

// The last fault of this thread that no guard explained: where, and how often pages had been opened by then.
// In the handler thread-local storage must have its place from the thread's start.
struct Unexplained {
  std::uintptr_t page;
  std::uint64_t changes;
};
__attribute__((tls_model("initial-exec"))) thread_local Unexplained unexplained{0, 0};

// Its client is a program like any other, but for what valgrind preloads.
bool under_valgrind() {
  const char* const preload = getenv("LD_PRELOAD");
  return preload != nullptr && std::strstr(preload, "/vgpreload_") != nullptr;
}

// Empty where it is not.
std::string_view why_impossible() {
  if (under_valgrind()) return "parc: early release is off: valgrind does not say what a fault is\n";
  if (early_library_is_another())
    return "parc: early release is off: libparc-early.so is not of the version of this program's libparc; "
           "install "
           "both from one build\n";
  return {};
}

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

Guards::Guards(shm::Control& control, Operations& operations, const Arena& arena, HandOver& hand_over,
               Ring& ring, Rest& rest, Pipes& pipes, Trace& trace, int rank)
    : control_(control), operations_(operations), arena_(arena), hand_over_(hand_over), ring_(ring),
      rest_(rest), pipes_(pipes), trace_(trace), rank_(rank), possible_(why_impossible().empty()) {
  guards_.reserve(shm::control_slot);
  (void)page_size(); // before a handler asks
  if (const auto mapping = mappings_.find(address_of(&control_))) segments_device_ = mapping->device;
}

void Guards::set_level(Level level) {
  level_.store(level, std::memory_order_relaxed);
  static std::atomic_flag said;
  if (level == Level::off || possible_ || said.test_and_set()) return;
  const std::string_view text = why_impossible();
  (void)!write(STDERR_FILENO, text.data(), text.size());
}

Level Guards::level_for(const Operations::Entry& entry) const {
  if (!possible_) return Level::off;
  const Level level = entry.early ? Level::full : level_.load(std::memory_order_relaxed);
  return level == Level::full && !__libc_single_threaded ? Level::envelope : level;
}

bool Guards::can_guard(Slot slot) const {
  const Operations::Entry& entry = operations_.entry(slot);
  return entry.block == nullptr && entry.length >= page_size() && entry.pieces.size() <= most_pieces;
}

Guards::Guard Guards::make_guard(parc_op id, Slot slot) const {
  const Operations::Entry& entry = operations_.entry(slot);
  Guard guard{.id = id,
              .slot = slot,
              .envelope = entry.envelope,
              .length = entry.length,
              .missing = {0, 0},
              .order = entry.order,
              .pieces = static_cast<std::uint32_t>(entry.pieces.size()),
              .writes = Operations::is_write(id),
              .adopted = entry.adopted,
              .reporting = false,
              .handing = false,
              .piece = {}};
  std::copy(entry.pieces.begin(), entry.pieces.end(), guard.piece.begin());
  return guard;
}

// Faults are caught from here on: one is measured, too.
std::chrono::nanoseconds Guards::cost_of_guarding(std::uint64_t bytes) {
  catch_faults(*this);
  std::call_once(cost_measured_, [this] { cost_ = measure_guard_cost(); });
  return cost_.of(bytes / page_size() + 1);
}

bool Guards::release_read(parc_op id, Slot slot, parc_status& status) {
  if (!can_guard(slot) || operations_.done(slot)) return false;
  const Guard guard = make_guard(id, slot);
  if (rest_.poll([&] { return operations_.done(slot); }, cost_of_guarding(guard.length))) return false;
  if (gate_ && !has_begun(id)) {
    shm::Request request{};
    request.kind = shm::RequestKind::release;
    request.id = static_cast<std::uint64_t>(id);
    if (!ring_.push(request, shm::Sleep::light)) return false; // for the writes that come behind it
  }
  (void)pipes_.look(); // nothing was rung: a kernel that has gone is seen here
  return add(guard, status);
}

// Its bytes are in parc_alloc's memory although a copy has its place: that is what prepare made. Other writes
// were copied when they began, and their waits return at once.
bool Guards::release_write(parc_op id, Slot slot, parc_status& status) {
  const Operations::Entry& entry = operations_.entry(slot);
  const bool may = possible_ && (entry.early || wanted());
  if (!may || entry.length < page_size() || entry.pieces.size() > most_pieces) return false;
  const bool cheaper = cost_of_guarding(entry.length) < hand_over_.copy_time(slot);
  return (entry.early || cheaper) && add(make_guard(id, slot), status);
}

bool Guards::add(const Guard& guard, parc_status& status) {
  const Locked hold(lock_);
  const Stretch missing = missing_of(guard); // before its loss is asked for, as in look()
  if (missing.empty() || loss_of(guard) != PARC_OK || guards_.size() == guards_.capacity() || held_back_ != 0)
    return false;
  guards_.push_back(guard);
  guards_.back().missing = missing;
  bool guarded = !holds_signal_stack(guards_.back());
  for (std::size_t i = 0; i < guard.pieces && guarded; ++i)
    guarded = set_access(guard, pages_of(guard, i, guarded_of(guard, missing)));
  if (!guarded) { // too many mappings, say
    open_all(guards_.back());
    guards_.pop_back();
    return false;
  }
  count_.store(guards_.size(), std::memory_order_relaxed);
  operations_.describe(guard.slot, status); // under lock_: from here on others may end it
  operations_.set_released(guard.slot);
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
      Guard& guard = guards_[i];
      const bool done = is_done(guard.id) || (guard.writes && pipes_.gone());
      const Stretch missing = done ? Stretch{0, 0} : missing_of(guard);
      if (guard.handing || guard.reporting || loss_of(guard) != PARC_OK) {
        lost = lost || (!guard.reporting && !guard.handing);
        ++i;
        continue;
      }
      if (shrink(guard, missing) && done)
        drop(i);
      else
        ++i;
    }
  }
  if (lost) report_losses();
}

void Guards::drop(std::size_t index) {
  if (guards_[index].writes)
    operations_.let_go_released(guards_[index].slot);
  else
    operations_.spend_released(guards_[index].slot);
  guards_[index] = guards_.back();
  guards_.pop_back();
  count_.store(guards_.size(), std::memory_order_relaxed);
}

Guards::Guard* Guards::find(parc_op id) {
  const auto found = std::ranges::find(guards_, id, &Guard::id);
  return found == guards_.end() ? nullptr : &*found;
}

const shm::Operation& Guards::shared(parc_op id) const {
  return control_.operations[shm::slot_of(static_cast<std::uint64_t>(id))];
}

// Also when its slot has another operation by now: somebody else has dropped its guard meanwhile.
bool Guards::is_done(parc_op id) const {
  const std::uint64_t state = shared(id).state.load(std::memory_order_acquire);
  const std::uint64_t generation = shm::generation_of(static_cast<std::uint64_t>(id));
  return state != shm::state_word(generation, shm::Phase::pending) &&
         state != shm::state_word(generation, shm::Phase::begun);
}

bool Guards::has_begun(parc_op id) const {
  return shared(id).state.load(std::memory_order_acquire) !=
         shm::state_word(shm::generation_of(static_cast<std::uint64_t>(id)), shm::Phase::pending);
}

// Of a read, what has not arrived; a message that is shorter than the buffer leaves its end alone. Of a
// write, what is not acknowledged.
Guards::Stretch Guards::missing_of(const Guard& guard) const {
  const shm::Operation& operation = shared(guard.id);
  if (is_done(guard.id)) return {0, 0};
  std::uint64_t end = guard.length;
  if (!guard.writes && has_begun(guard.id))
    end = std::min(end, operation.total.load(std::memory_order_relaxed));
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

template <class Wanted> std::optional<Guards::Missing> Guards::find_missing(const Wanted& wanted) const {
  for (const Guard& guard : guards_) {
    if (guard.reporting && reporting_here) continue; // its handler must not wait for itself
    if (const std::optional<Stretch> bytes = wanted(guard)) return Missing{guard.id, *bytes, guard.writes};
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

void Guards::settle(const void* memory, std::size_t bytes, Use use) {
  const Pages there{address_of(memory), address_of(memory) + bytes};
  settle_what([&](const Guard& guard) -> std::optional<Stretch> {
    if (guard.writes && use == Use::loads) return {};
    return missing_in(guard, there);
  });
}

void Guards::settle_pages(const void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  const Pages there{round_down(address_of(memory), page_size()),
                    round_up(address_of(memory) + bytes, page_size())};
  settle_what([&](const Guard& guard) { return missing_in(guard, there); });
}

void Guards::settle_all() {
  settle_what([](const Guard& guard) -> std::optional<Stretch> {
    if (guard.missing.empty()) return {};
    return guard.missing;
  });
}

void Guards::settle_begun() {
  settle_what([this](const Guard& guard) -> std::optional<Stretch> {
    if (guard.writes || has_begun(guard.id)) return {};
    return Stretch{0, 0};
  });
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
  record.bytes = missing.bytes.low;
  record.site = site;
  trace_.add(record);
}

// Reads first: where only they were in the way, the instruction is done when it is executed again; a store
// that comes back has a write to wait for.
bool Guards::resolve(const void* address, std::uintptr_t instruction) {
  const std::uintptr_t begin = round_down(address_of(address), page_size());
  const Pages page{begin, begin + page_size()};
  bool ours = false, waited = false;
  for (;;) {
    look();
    std::optional<Missing> missing;
    Unexplained now{begin, 0};
    {
      const Locked hold(lock_);
      for (const bool writes : {false, true})
        if (!missing && !(writes && waited))
          missing = find_missing([&](const Guard& guard) {
            return guard.writes == writes ? missing_in(guard, page) : std::optional<Stretch>();
          });
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
    const std::uint64_t started = trace_.on() ? trace::now() : 0;
    await(*missing);
    trace_wait(trace::Kind::fault, started, *missing, address_of(address), instruction + 1);
  }
  if (ours) faults_.fetch_add(1, std::memory_order_relaxed);
  if (ours && !waited) late_faults_.fetch_add(1, std::memory_order_relaxed);
  return ours;
}

// Ends early when the kernel goes: then the next look() finds a loss.
void Guards::await(const Missing& missing) {
  if (missing.writes) return let_go(missing.id);
  const Watching watching(control_.header);
  const auto there = [&] { return arrived(missing); };
  if (there())
    sched_yield(); // its loss is being reported by another thread, or it is about to be done
  else
    rest_.anywhere(there);
}

// Somebody wants to store where a write's bytes are. One thread hands it over, others wait for that.
void Guards::let_go(parc_op write) {
  Guard guard;
  bool mine = false;
  std::optional<WithoutHandlers> alone(std::in_place);
  {
    const Locked hold(lock_);
    Guard* const found = find(write);
    if (found == nullptr) return;
    mine = !std::exchange(found->handing, true);
    guard = *found;
  }
  if (!mine) {
    alone.reset();
    const auto& handed = shared(write).handed_or_data;
    const auto generation = shm::generation_of(static_cast<std::uint64_t>(write));
    rest_.anywhere([&] { return is_done(write) || handed.load(std::memory_order_acquire) == generation; });
    sched_yield(); // it is about to open its pages
    return;
  }
  const bool gone = rest_.poll([&] { return is_done(write); }, hand_over_.copy_time(guard.slot));
  const bool handed =
      !gone && !Ring::pushing() && hand_over_.perform(write, guard.slot, {guard.piece.data(), guard.pieces});
  alone.reset();
  if (!handed) rest_.anywhere([&] { return is_done(write); });
  const Locked hold(lock_);
  Guard* const found = find(write);
  open_all(*found);
  drop(static_cast<std::size_t>(found - guards_.data()));
}

int Guards::loss_of(const Guard& guard) const {
  if (guard.writes) return PARC_OK; // as for one that was let go: the next write to that peer says it
  const shm::Operation& operation = shared(guard.id);
  const bool gone = pipes_.gone(); // before the kernel's last word
  if (is_done(guard.id)) return operation.error.load(std::memory_order_relaxed);
  if (has_begun(guard.id) && operation.total.load(std::memory_order_relaxed) > guard.length)
    return PARC_ETRUNCATE; // as it will end
  return gone ? PARC_EKERNEL : PARC_OK;
}

} // namespace parc::client
