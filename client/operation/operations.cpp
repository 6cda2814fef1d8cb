// SPDX-License-Identifier: BSD-3-Clause
// Slots: taking one, finding it by id, ending its operation.
#include "client/operation/operations.hpp"

#include "client/base/pieces.hpp"
#include "system/coarse_clock.hpp"

namespace parc::client {
namespace {

std::uint64_t generation_of(parc_op id) {
  return shm::generation_of(static_cast<std::uint64_t>(id));
}
parc_op id_of(std::uint64_t generation, Slot slot) {
  return static_cast<parc_op>(shm::id_of(generation, slot));
}

// As it was asked for.
parc_status status_of(const parc_envelope& asked, int error, std::uint64_t length) {
  const std::uint64_t tag = asked.tag | asked.ignore;
  return {asked.peer, shm::tag_in(tag), shm::context_in(tag), error, length, 0, 0};
}

} // namespace

thread_local Operations::Failed Operations::failed_;

Operations::Operations(OperationTable& table, Arena& arena, AdoptedMemory& adopted, CopyRoom& room,
                       Trace& trace, int ranks)
    : table_(table), arena_(arena), adopted_(adopted), room_(room), trace_(trace), peers_(ranks) {}

Result<parc_op> Operations::begin(shm::RequestKind kind, const Message& message) {
  auto slot = take_slot(kind == shm::RequestKind::write || kind == shm::RequestKind::put);
  if (!slot) {
    give_up(message);
    return std::move(slot).error();
  }
  Entry& entry = table_[slot.value()];
  entry.envelope = message.envelope;
  entry.length = message.length;
  entry.pieces.assign(message.pieces);
  entry.pays = message.pays;
  entry.flags.store(message.flags, std::memory_order_relaxed);
  entry.order = message.order;
  entry.local = message.local;
  entry.own_memory = message.listed == shm::in_own_memory;
  entry.straight = message.straight;
  entry.fragments.store(false, std::memory_order_relaxed);
  entry.placed = false;
  if (message.adopted.any())
    entry.adopted = std::make_unique<Adopted>(message.adopted); // a free slot has none
  entry.list = message.list;
  entry.held = message.held;
  entry.given_up = false;
  if (message.late) set_late(slot.value(), true);
  const auto generation = generation_in(entry.tag.load(std::memory_order_relaxed)) + 1;

  entry.kind = kind;
  entry.set_block(message.block, message.length);
  entry.site = Trace::site();
  if (kind == shm::RequestKind::get) entry.posted = trace::now();
  if (trace_.on()) {
    entry.posted = trace::now();
    entry.thread = Trace::thread();
    entry.released = 0;
    shm::Times& times = tables().times(slot.value());
    times.begun.store(0, std::memory_order_relaxed);
    times.done.store(0, std::memory_order_relaxed);
  }

  // All of it before the request, which publishes it to the kernel.
  shm::Operation& shared = tables().operation(slot.value());
  shared.front.store(0, std::memory_order_relaxed);
  shared.back.store(0, std::memory_order_relaxed);
  shared.total.store(entry.has_message() ? message.length : shm::probe_total, std::memory_order_relaxed);
  shared.source.store(message.envelope.peer, std::memory_order_relaxed);
  shared.tag.store(message.envelope.tag | message.envelope.ignore, std::memory_order_relaxed);
  shared.error.store(PARC_OK, std::memory_order_relaxed);
  shared.handed_or_data.store(0, std::memory_order_relaxed);
  shared.posted.store(coarse_ms(), std::memory_order_relaxed);
  shared.departure_or_data.store(static_cast<std::uint32_t>(shm::one_sided(kind)), std::memory_order_relaxed);
  shared.state.store(shm::state_word(generation, shm::Phase::pending), std::memory_order_relaxed);

  entry.tag.store(tag_of(generation, message.loose ? Use::loose : Use::live), std::memory_order_release);
  if (kind == shm::RequestKind::put || kind == shm::RequestKind::atomic)
    puts_started_.fetch_add(1, std::memory_order_release); // it can be seen
  return id_of(generation, slot.value());
}

bool Operations::are_over(std::vector<PutUnderWay>& puts) const {
  while (!puts.empty() &&
         tables().operation(puts.back().slot).state.load(std::memory_order_acquire) != puts.back().state)
    puts.pop_back();
  return puts.empty();
}

void Operations::set_message(Slot slot, const End& message) {
  shm::Operation& shared = tables().operation(slot);
  shared.source.store(message.source, std::memory_order_relaxed);
  shared.tag.store(message.tag, std::memory_order_relaxed);
  shared.handed_or_data.store(message.data, std::memory_order_relaxed);
  shared.departure_or_data.store(message.departure != 0 ? message.departure
                                                        : has(message.flags, MessageFlags::with_data),
                                 std::memory_order_relaxed);
  shared.total.store(message.total, std::memory_order_relaxed);
}

parc_status Operations::status_after(const End& how) {
  return {how.source,
          shm::tag_in(how.tag),
          shm::context_in(how.tag),
          how.error,
          how.total,
          how.data,
          has(how.flags, MessageFlags::with_data)};
}

void Operations::end(parc_op id, const End& how) {
  const Slot slot = slot_of(id);
  shm::Operation& shared = tables().operation(slot);
  set_message(slot, how);
  shared.error.store(how.error, std::memory_order_relaxed);
  const bool queued = table_[slot].is(MessageFlags::queued);
  if (trace_.on()) {
    shm::Times& times = tables().times(slot);
    times.done.store(trace::now(), std::memory_order_relaxed);
    if (how.error == PARC_OK || how.error == PARC_ETRUNCATE) // it has come whole
      times.begun.store(times.done.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  shared.state.store(shm::state_word(generation_of(id), shm::Phase::done), std::memory_order_release);
  if (queued && (how.late || !shm::is_write(slot))) tables().note_finished(slot);
}

void Operations::abandon(parc_op id) {
  auto slot = take(id);
  for (; !slot && is_held_now(id); slot = take(id)) sched_yield();
  if (!slot) return;
  // Nobody waits for it, as parc_quiet does for all that is pending.
  tables().operation(*slot).state.store(shm::state_word(generation_of(id), shm::Phase::done),
                                        std::memory_order_release);
  set_use(*slot, Use::spent);
  spent_.push(table_, *slot);
}

// The slot may have gone to another operation between the two loads (let go, begun again): its state has
// another generation then, and this operation has finished.
bool Operations::finished(parc_op id) const {
  const Slot slot = slot_of(id);
  if (!table_.has(slot)) return true;
  const auto tag = table_[slot].tag.load(std::memory_order_acquire);
  if (generation_in(tag) != generation_of(id)) return true;
  if (use_of(tag) != Use::live && use_of(tag) != Use::held && use_of(tag) != Use::taken) return true;
  const auto state = tables().operation(slot).state.load(std::memory_order_acquire);
  return state != shm::state_word(generation_of(id), shm::Phase::pending) &&
         state != shm::state_word(generation_of(id), shm::Phase::begun);
}

bool Operations::begun(parc_op id) const {
  return finished(id) || tables().operation(slot_of(id)).state.load(std::memory_order_acquire) !=
                             shm::state_word(generation_of(id), shm::Phase::pending);
}

bool Operations::being_finished(parc_op id) const {
  const Slot slot = slot_of(id);
  if (!table_.has(slot)) return false;
  const auto tag = table_[slot].tag.load(std::memory_order_acquire);
  return tag == tag_of(generation_of(id), Use::taken) || tag == tag_of(generation_of(id), Use::held);
}

bool Operations::is_live(parc_op id) const {
  const Slot slot = slot_of(id);
  if (!table_.has(slot)) return false;
  const auto tag = table_[slot].tag.load(std::memory_order_acquire);
  return tag == tag_of(generation_of(id), Use::live) || tag == tag_of(generation_of(id), Use::loose);
}

bool Operations::is_held(parc_op id) const {
  const Slot slot = slot_of(id);
  if (id <= 0 || !table_.has(slot)) return false;
  const auto tag = table_[slot].tag.load(std::memory_order_acquire);
  if (generation_in(tag) != generation_of(id)) return false;
  const Use use = use_of(tag);
  return use == Use::live || use == Use::loose || use == Use::held || use == Use::taken;
}

std::optional<parc_op> Operations::live(Slot slot) const {
  const auto tag = table_[slot].tag.load(std::memory_order_acquire);
  if (use_of(tag) != Use::live) return {};
  return id_of(generation_in(tag), slot);
}

std::optional<parc_op> Operations::queued(Slot slot) const {
  const auto tag = table_[slot].tag.load(std::memory_order_acquire);
  if ((use_of(tag) != Use::live && use_of(tag) != Use::loose) || !table_[slot].is(MessageFlags::queued))
    return {};
  return id_of(generation_in(tag), slot);
}

std::optional<Slot> Operations::take(parc_op id, Use* before) {
  const Slot slot = slot_of(id);
  if (id <= 0 || !table_.has(slot)) return {};
  for (const Use use : {Use::live, Use::loose}) {
    auto tag = tag_of(generation_of(id), use);
    if (!table_[slot].tag.compare_exchange_strong(tag, tag_of(generation_of(id), Use::taken),
                                                  std::memory_order_acq_rel))
      continue;
    if (before) *before = use;
    return slot;
  }
  return {};
}

bool Operations::hold(parc_op id) {
  auto live = tag_of(generation_of(id), Use::live);
  return table_[slot_of(id)].tag.compare_exchange_strong(live, tag_of(generation_of(id), Use::held),
                                                         std::memory_order_acq_rel);
}

bool Operations::is_held_now(parc_op id) const {
  const Slot slot = slot_of(id);
  if (id <= 0 || !table_.has(slot)) return false;
  const auto tag = table_[slot].tag.load(std::memory_order_acquire);
  return tag == tag_of(generation_of(id), Use::held) || tag == tag_of(generation_of(id), Use::live);
}

// Whoever saw its end in the completion queue meanwhile has found nothing live: it is noted again.
void Operations::let_go(Slot slot) {
  set_use(slot, Use::live);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (table_[slot].is(MessageFlags::queued) && done(slot)) tables().note_finished(slot);
}

bool Operations::wants_memory(Slot slot) const {
  return table_[slot].late.load(std::memory_order_relaxed) &&
         shm::phase_of(tables().operation(slot).state.load(std::memory_order_acquire)) == shm::Phase::begun;
}

std::uint64_t Operations::memory_of(Slot slot) const {
  const Use use = use_of(table_[slot].tag.load(std::memory_order_relaxed));
  return use != Use::free && use != Use::spent ? table_[slot].bounced.load(std::memory_order_relaxed) : 0;
}

void Operations::set_late(Slot slot, bool late) {
  if (table_[slot].late.exchange(late, std::memory_order_relaxed) == late) return;
  late_.fetch_add(late ? 1 : UINT32_MAX, std::memory_order_relaxed);
}

bool Operations::done(Slot slot) const {
  return shm::phase_of(tables().operation(slot).state.load(std::memory_order_acquire)) == shm::Phase::done;
}

int Operations::finish(Slot slot, parc_status& status) {
  const int error = result(slot, status);
  set_use(slot, Use::spent);
  spent_.push(table_, slot);
  return error;
}

int Operations::detach(Slot slot, parc_status& status) {
  const Entry& entry = table_[slot];
  status = status_of(entry.envelope, PARC_OK, entry.length);
  set_use(slot, Use::detached);
  detached_.push(table_, slot);
  return PARC_OK;
}

int Operations::lost(Slot slot, int error, parc_status& status) {
  const Entry& entry = table_[slot];
  status = status_of(entry.envelope, error, 0);
  failed_ = {.departure = 0, .room = entry.length, .kind = entry.kind, .offset = entry.envelope.data};
  set_use(slot, Use::spent);
  spent_.push(table_, slot);
  return error;
}

void Operations::set_released(Slot slot) {
  if (trace_.on()) table_[slot].released = trace::now();
  set_use(slot, Use::detached);
}

void Operations::spend_released(Slot slot) {
  set_use(slot, Use::spent);
  spent_.push(table_, slot);
}

void Operations::describe(Slot slot, parc_status& status) {
  const Entry& entry = table_[slot];
  const shm::Operation& shared = tables().operation(slot);
  status = status_of(entry.envelope, PARC_OK, entry.length);
  if (shm::phase_of(shared.state.load(std::memory_order_acquire)) == shm::Phase::pending) return;
  take_message(shared, status);
}

// What is known of a read's message.
void Operations::take_message(const shm::Operation& shared, parc_status& status) {
  const std::uint64_t tag = shared.tag.load(std::memory_order_relaxed);
  status.source = shared.source.load(std::memory_order_relaxed);
  status.tag = shm::tag_in(tag);
  status.context = shm::context_in(tag);
  status.length = shared.total.load(std::memory_order_relaxed);
  int known = peers_.load(std::memory_order_relaxed);
  while (status.source >= known &&
         !peers_.compare_exchange_weak(known, status.source + 1, std::memory_order_relaxed)) {
  }
  status.data = shared.handed_or_data.load(std::memory_order_relaxed);
  status.has_data = shared.departure_or_data.load(std::memory_order_relaxed) != 0;
}

// The result of a done operation, with a bounced read's bytes brought to where they were wanted.
int Operations::result(Slot slot, parc_status& status) {
  const Entry& entry = table_[slot];
  const shm::Operation& shared = tables().operation(slot);
  const int error = entry.given_up ? PARC_ENOMEM : shared.error.load(std::memory_order_relaxed);
  status = status_of(entry.envelope, error, entry.length);
  if (error != PARC_OK)
    failed_ = {.departure = shared.departure_or_data.load(std::memory_order_relaxed),
               .room = entry.length,
               .kind = entry.kind,
               .offset = entry.envelope.data};
  if (shm::is_write(slot)) {
    note_peer(entry.envelope.peer, error);
    return error;
  }
  status.length = 0;
  if (error != PARC_OK && error != PARC_ETRUNCATE) return error; // no message came
  take_message(shared, status);
  if (entry.kind == shm::RequestKind::atomic) {
    status.length = entry.length;
    status.has_data = 1;
    scatter(entry.pieces, &status.data, sizeof status.data);
  }
  if (entry.block && !entry.placed) scatter(entry.pieces, entry.block, std::min(status.length, entry.length));
  return error;
}

bool Operations::peer_answers(int rank) const {
  return !failed_peers_[static_cast<std::size_t>(rank) % failed_peers_.size()].load(
      std::memory_order_relaxed);
}

void Operations::note_peer(int rank, int error) {
  failed_peers_[static_cast<std::size_t>(rank) % failed_peers_.size()].store(error == PARC_EPEER,
                                                                             std::memory_order_relaxed);
}

void Operations::loosen(parc_op id) {
  if (!is_write(id)) return;
  auto live = tag_of(generation_of(id), Use::live);
  table_[slot_of(id)].tag.compare_exchange_strong(live, tag_of(generation_of(id), Use::loose),
                                                  std::memory_order_acq_rel);
}

void Operations::set_use(Slot slot, Use use) {
  auto& tag = table_[slot].tag;
  tag.store(tag_of(generation_in(tag.load(std::memory_order_relaxed)), use), std::memory_order_release);
}

void Operations::Stack::push(const OperationTable& table, Slot slot) {
  Slot top = top_.load(std::memory_order_relaxed);
  do table[slot].next = top;
  while (!top_.compare_exchange_weak(top, slot, std::memory_order_release, std::memory_order_relaxed));
}

} // namespace parc::client
