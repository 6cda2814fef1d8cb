// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/guards.hpp"

#include "client/base/failure.hpp"
#include "client/base/in_library.hpp"
#include "client/base/pages.hpp"
#include "shm/between.hpp"
#include "system/environment.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <sys/single_threaded.h>
#include <unistd.h>

namespace parc::client {
namespace {

// Its client is a program like any other, but for what valgrind preloads.
bool under_valgrind() {
  const char* const preload = getenv("LD_PRELOAD");
  return preload != nullptr && std::strstr(preload, "/vgpreload_") != nullptr;
}

// Empty where it is not.
std::string_view why_impossible() {
  if (under_valgrind()) return "parc: early release is off: valgrind does not say what a fault is\n";
  if (early_library() == EarlyLibrary::another)
    return "parc: early release is off: libparc-early.so is not of the version of this program's libparc; "
           "install "
           "both from one build\n";
  return {};
}

// Whose waits are released at one time; beyond that a wait waits.
constexpr std::size_t most_released = 2048;
// Of all of them: with their guards they are far from the 65,530 mappings that Linux has for a process.
constexpr std::size_t most_islands = 4096;

void say(std::string_view text) {
  (void)!write(STDERR_FILENO, text.data(), text.size());
}

} // namespace

Result<Level> level_from_environment() {
  const char* const value = getenv(env_early_release);
  const std::string_view text = value ? value : "off";
  if (text == "off") return Level::off;
  if (text != "envelope" && text != "full" && text != "gets")
    return error(PARC_EINVAL, "{}={} in the environment is none of off, gets, envelope and full",
                 env_early_release, text);
  if (has_early_library && early_library() == EarlyLibrary::none) {
    say("parc: early release is off: libparc-early.so is not loaded before this program, and its system "
        "calls would fail on buffers that are still missing; parc run and parc mpi load it with "
        "--early-release\n");
    return Level::off;
  }
  return text == "full" ? Level::full : text == "gets" ? Level::gets : Level::envelope;
}

thread_local bool Guards::reporting_here = false;
constinit std::atomic<std::size_t> Guards::count_ = 0;

Guards::Guards(shm::Control& control, Operations& operations, const Arena& arena, HandOver& hand_over,
               Ring& ring, Sleep& sleep, Pipes& pipes, Trace& trace, int rank)
    : control_(control), operations_(operations), arena_(arena), hand_over_(hand_over), ring_(ring),
      sleep_(sleep), pipes_(pipes), trace_(trace), rank_(rank), possible_(why_impossible().empty()),
      guards_(most_released, page_size(), most_islands), // asked for here before a handler does
      page_trace_(trace, trace.of_pages() && (!has_early_library || early_library() == EarlyLibrary::ours),
                  page_size()) {
  if (const auto mapping = mappings_.find(address_of(&control_))) segments_device_ = mapping->device;
}

void Guards::set_level(Level level) {
  level_.store(level, std::memory_order_relaxed);
  static std::atomic_flag said;
  if (level == Level::off || possible_ || said.test_and_set()) return;
  say(why_impossible());
}

Level Guards::level_for(const Operations::Entry& entry) const {
  if (!possible_ || !entry.pays) return Level::off;
  Level level = entry.is(MessageFlags::early) ? Level::full : level_.load(std::memory_order_relaxed);
  if (level == Level::gets) level = entry.kind == shm::RequestKind::get ? Level::envelope : Level::off;
  return level == Level::full && !__libc_single_threaded ? Level::envelope : level;
}

bool Guards::can_guard(Slot slot) const {
  const Operations::Entry& entry = operations_.entry(slot);
  return entry.block == nullptr && !entry.given_up && !entry.late.load(std::memory_order_relaxed) &&
         !entry.own_memory && is_long_enough(entry) && entry.pieces.size() <= Guard::most_pieces &&
         !exposed_.has_any_of(entry.pieces);
}

// A shorter get is guarded on request (HUNT 2005, table 2), in memory of parc_alloc: who touches what lies
// beside it there waits, too.
bool Guards::is_long_enough(const Operations::Entry& entry) const {
  if (entry.length >= page_size()) return true;
  return entry.kind == shm::RequestKind::get && entry.is(MessageFlags::early) && entry.length != 0 &&
         !entry.adopted;
}

Guard Guards::make_guard(parc_op id, Slot slot) const {
  const Operations::Entry& entry = operations_.entry(slot);
  assert(entry.pieces.size() <= Guard::most_pieces);
  Guard guard{.id = id,
              .writes = Operations::is_write(id),
              .missing = {0, 0},
              .islands = {},
              .refused = false,
              .pieces = static_cast<std::uint32_t>(entry.pieces.size()),
              .piece = {},
              .slot = slot,
              .order = entry.order,
              .gets = entry.kind == shm::RequestKind::get,
              .from_end = entry.is(MessageFlags::from_end),
              .grain = Grain::strips,
              .started = entry.posted,
              .envelope = entry.envelope,
              .length = entry.length,
              .adopted = entry.adopted ? *entry.adopted : Adopted(),
              .reporting = false,
              .handing = false,
              .released = Clock::now(),
              .missed = {},
              .waited = {},
              .came = {},
              .left = 0};
  std::copy(entry.pieces.begin(), entry.pieces.end(), guard.piece.begin());
  return guard;
}

// Faults are caught from here on: one is measured, too.
std::chrono::nanoseconds Guards::cost_of_guarding(std::uint64_t bytes) {
  catch_faults(*this);
  std::call_once(cost_measured_, [this] {
    cost_ = measure_guard_cost();
    trace::Record cost{};
    cost.kind = trace::Kind::cost;
    cost.begin = cost.end = trace::now();
    cost.released = static_cast<std::uint64_t>(cost_.of_wake().count());
    cost.bytes = page_size();
    if (page_trace_.on()) trace_.add(cost);
  });
  return known_cost(bytes);
}

std::chrono::nanoseconds Guards::known_cost(std::uint64_t bytes) const {
  return cost_.of(bytes / page_size() + 1);
}

bool Guards::edges_arrived(parc_op id, Slot slot) const {
  const Guard guard = make_guard(id, slot);
  if (!guard.gets && !operations_.begun(id)) return false;
  return guards_.on_whole_pages(guard, missing_of(guard));
}

bool Guards::release_read(parc_op id, Slot slot, parc_status& status) {
  if (!can_guard(slot) || operations_.done(slot)) return false;
  const Guard guard = make_guard(id, slot);
  const auto cost = cost_of_guarding(guard.length);
  const bool pays = guard.gets && get_times_.least(guard.envelope.peer, guard.length) > 2 * cost;
  if (!pays && sleep_.poll([&] { return operations_.done(slot); }, cost)) return false;
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
  const bool may =
      possible_ && !only_traces() && (entry.is(MessageFlags::early) || wanted(shm::RequestKind::write));
  if (!may || entry.length < page_size() || entry.pieces.size() > Guard::most_pieces) return false;
  const bool cheaper = cost_of_guarding(entry.length) < hand_over_.patience(slot);
  return (entry.is(MessageFlags::early) || cheaper) && add(make_guard(id, slot), status);
}

bool Guards::add(const Guard& guard, parc_status& status) {
  const Locked hold(lock_);
  const Stretch missing = missing_of(guard); // before its loss is asked for, as in look()
  if (missing.empty() || loss_of(guard) != PARC_OK || guards_.full() || held_back_ != 0) return false;
  // Again: what is exposed meanwhile is settled behind this, under lock_.
  if (!guard.writes && exposed_.has_any_of(operations_.entry(guard.slot).pieces)) return false;
  if (is_protected(guard)) return false;
  const auto others =
      std::ranges::count_if(guards_, [](const Guard& other) { return other.gets && !other.missing.empty(); });
  Guard& added = guards_.add(guard);
  added.missing = missing;
  added.grain = strips_.grain_of(added, static_cast<std::size_t>(others), cost_.of_wake());
  if (holds_signal_stack(added) || !guard_pages(added)) { // too many mappings, say
    open_all(added);
    guards_.remove(added);
    return false;
  }
  close_untouched(added);
  added.released = Clock::now(); // what was polled before, and what guarding cost, is no gain
  count();
  operations_.describe(guard.slot, status); // under lock_: from here on others may end it
  operations_.set_released(guard.slot);
  control_.header.waits.released.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// What has arrived is opened, with one call for each stretch, and what is over goes.
void Guards::look() {
  bool lost = false;
  const auto now = Clock::now();
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
      if (!missing.empty()) guard.missed = std::max(guard.missed, now);
      if (shrink(guard, missing) && done) {
        drop(guard);
        continue;
      }
      if (!done) open_islands(guard);
      ++i;
    }
  }
  if (lost) report_losses();
}

void Guards::drop(Guard& guard) {
  if (guard.writes) {
    operations_.let_go_released(guard.slot);
  } else {
    note_benefit(guard);
    if (guard.gets) note_get(guard.slot);
    operations_.spend_released(guard.slot);
  }
  guards_.remove(guard);
  count();
}

// What it brought is the time in which the program did not wait for it although some of it was missing, as
// far as that was seen: by touches and calls, or, where none has waited, until it was found to be here.
void Guards::note_benefit(const Guard& guard) {
  const bool touched = guard.waited != Clock::duration::zero();
  const auto worked = (touched ? guard.missed : Clock::now()) - guard.released - guard.waited;
  const auto cost = known_cost(guard.length);
  const std::uint64_t site = operations_.entry(guard.slot).site;
  benefit_.ended({guard.piece[0].iov_base, site}, !touched || worked > 2 * cost);
  if (operations_.entry(guard.slot).is(MessageFlags::early)) return;
  if (worked > 2 * cost) {
    budget_.paid(worked, cost);
  } else {
    budget_.spend(cost);
    budget_.ended_in_vain(coarse_ms);
  }
}

// One that failed says nothing of how long others take.
void Guards::note_get(Slot slot) {
  const Operations::Entry& get = operations_.entry(slot);
  if (operations_.shared(slot).error.load(std::memory_order_relaxed) != PARC_OK) return;
  get_times_.note(get.envelope.peer, get.length, std::chrono::nanoseconds(trace::now() - get.posted));
}

void Guards::ended_unreleased(Slot slot) {
  const Operations::Entry& entry = operations_.entry(slot);
  if (entry.kind == shm::RequestKind::get) note_get(slot);
  trace_pages(slot);
  if (wanted(entry.kind) && !entry.is(MessageFlags::early) && entry.pays && entry.length >= least_released &&
      (entry.kind == shm::RequestKind::read || entry.kind == shm::RequestKind::get))
    budget_.ended_in_vain(coarse_ms);
}

// Of a read that has ended before anybody was released from it: those of the message. A signal handler may
// have interrupted whoever has a lock that this takes, or measures what guards cost.
void Guards::trace_pages(Slot slot) {
  if (!page_trace_.on() || shm::is_write(slot) || InLibrary::nested() || !can_guard(slot) ||
      level_for(operations_.entry(slot)) == Level::off)
    return;
  Guard guard = make_guard(operations_.id_in(slot), slot);
  guard.length = std::min(guard.length, operations_.shared(slot).total.load(std::memory_order_relaxed));
  (void)cost_of_guarding(guard.length);
  const Locked hold(lock_);
  if (loss_of(guard) == PARC_OK && held_back_ == 0) close_untouched(guard);
}

const shm::Operation& Guards::shared(parc_op id) const {
  return operations_.shared(slot_of(id));
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
Stretch Guards::missing_of(const Guard& guard) const {
  const shm::Operation& operation = shared(guard.id);
  if (is_done(guard.id)) return {0, 0};
  std::uint64_t end = guard.length;
  if (!guard.writes && has_begun(guard.id))
    end = std::min(end, operation.total.load(std::memory_order_relaxed));
  const std::uint64_t front = operation.front.load(std::memory_order_acquire);
  const std::uint64_t back = std::min(operation.back.load(std::memory_order_acquire), end);
  return {front, end - back};
}

// Without what came between: when the last gap before it closes the counters tell of all at once.
std::uint64_t Guards::bytes_missing_of(const Guard& guard) const {
  const Stretch missing = missing_of(guard);
  if (missing.empty()) return 0;
  const std::int32_t word = shared(guard.id).error.load(std::memory_order_acquire);
  return missing.high - missing.low - shm::bytes_between(word, guard.length, missing.low, missing.high);
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
