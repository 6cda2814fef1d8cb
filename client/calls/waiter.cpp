// SPDX-License-Identifier: BSD-3-Clause
#include "client/calls/waiter.hpp"

#include "client/base/failure.hpp"

#include <algorithm>
#include <sched.h>

namespace parc::client {
namespace {

constexpr parc_status nothing{PARC_ANY_SOURCE, PARC_ANY_TAG, 0, PARC_OK, 0, 0, 0};
constexpr auto long_rest = std::chrono::milliseconds(100);

constexpr const char* no_operation =
    "this operation is none of the context's, or has been waited for already";

// A question to the kernel that failed; empty: it was a message, or the probe for one.
std::string describe_question(shm::RequestKind kind, int peer) {
  switch (kind) {
  case shm::RequestKind::address_of: return fmt::format("asking for the address of peer {} failed", peer);
  case shm::RequestKind::add_peer: return "adding a peer failed";
  case shm::RequestKind::spawn: return "parc_spawn failed";
  case shm::RequestKind::signal: return fmt::format("parc_kill of peer {} failed", peer);
  case shm::RequestKind::exit_of: return fmt::format("waiting for the end of peer {} failed", peer);
  case shm::RequestKind::unexpose: return "parc_unexpose failed";
  default: return {};
  }
}

std::string describe_one_sided(shm::RequestKind kind, std::uint64_t bytes, std::uint64_t offset,
                               std::uint64_t window, int peer) {
  return fmt::format("the {} of {} bytes at {} of window {} of peer {} failed",
                     kind == shm::RequestKind::get   ? "get"
                     : kind == shm::RequestKind::put ? "put"
                                                     : "atomic operation",
                     bytes, offset, window, peer);
}

} // namespace

// What it was: as the program knows it, and where the other end is.
std::string Waiter::describe(parc_op id, const parc_status& status) const {
  const Operations::Failed& failed = Operations::last_failed();
  const shm::RequestKind kind = failed.kind;
  if (std::string question = describe_question(kind, status.source); !question.empty()) return question;
  if (shm::is_one_sided(kind))
    return describe_one_sided(kind, failed.room, failed.offset, shm::tag_of(status.context, status.tag),
                              status.source);
  if (status.context == PARC_CONTEXT_RESERVED && static_cast<std::size_t>(status.source) < hosts_.size())
    return fmt::format("the barrier failed, which waits for rank {} on host {}", status.source,
                       hosts_[static_cast<std::size_t>(status.source)]);
  const std::string tag = status.tag == PARC_ANY_TAG ? "any tag" : fmt::format("tag {}", status.tag);
  const char* what = Operations::is_write(id)          ? "write to"
                     : kind == shm::RequestKind::probe ? "probe for a message from"
                                                       : "read from";
  if (status.source < 0) return fmt::format("the {} any rank ({}) failed", what, tag);
  if (static_cast<std::size_t>(status.source) >= hosts_.size())
    return fmt::format("the {} peer {}, which is of another job ({}), failed", what, status.source, tag);
  return fmt::format("the {} rank {} on host {} ({}) failed", what, status.source,
                     hosts_[static_cast<std::size_t>(status.source)], tag);
}

int Waiter::explain(int code, parc_op id, const parc_status& status) const {
  const Operations::Failed& failed = Operations::last_failed();
  if (id < 0) return fail(code);
  switch (code) {
  case PARC_OK: return code;
  case PARC_EINVAL:
    if (failed.kind == shm::RequestKind::exit_of)
      return fail(error(code, "{}: this program has not spawned it", describe(id, status)));
    return fail(error(code,
                      "operation {} is none of this context's, has been waited for already, names memory "
                      "that was freed, or reads a message that it has not claimed",
                      id));
  case PARC_ETRUNCATE:
    return fail(error(code, "{}: the message has {} bytes and the read {}; the buffer holds its beginning",
                      describe(id, status), status.length, failed.room));
  case PARC_EPEER:
    return fail(error(code, "{}: {}", describe(id, status),
                      status.source < 0 ? "every other rank has left the job, was killed or is lost"
                                        : departure_sentence(failed.departure)));
  case PARC_EAGAIN:
    if (failed.kind != shm::RequestKind::exit_of) return fail(code);
    return fail(error(code, "{}: 64 operations wait for that already", describe(id, status)));
  case PARC_ENOMEM:
    return fail(error(code,
                      "{}: its message is there, and this process has too little address space (RLIMIT_AS), "
                      "or its host too little shared memory (kernel.shmall), to take it, or to keep what no "
                      "read has asked for before it",
                      describe(id, status)));
  default: return fail(error(code, "{}: {}", describe(id, status), sentence(code)));
  }
}

// A traced program that rests for long first says for what: nobody may ever end this rest but by a signal.
template <class Done> Woken Waiter::rest(const Done& done, Limit limit, Cancel cancel, Slot own) {
  if (operations_.traced() && !limit) {
    const Woken how = rest_serving(done, Clock::now() + long_rest, cancel, own);
    if (how != Woken::late) return how;
    operations_.trace_under_way();
  }
  return rest_serving(done, limit, cancel, own);
}

// Reads that wait for memory get it meanwhile. Where there is none, whatever ends may have left some.
template <class Done> Woken Waiter::rest_serving(const Done& done, Limit limit, Cancel cancel, Slot own) {
  for (;;) {
    const bool enough = late_reads_.serve(own);
    const auto again = Clock::now() + LateReads::between_tries;
    const bool tries = !enough && (!limit || again < *limit);
    const Woken how = sleep_.until([&] { return done() || (enough && late_reads_.wanting(own)); },
                                   tries ? Limit{again} : limit, cancel);
    if (how == Woken::gone || (how == Woken::late && !tries) || (how == Woken::done && done())) return how;
  }
}

// What is found out goes to a status of our own first, here and in any: the program's may lie on a page of
// the buffer, and is written when no lock is held.
int Waiter::wait(parc_op id, parc_status* status) {
  parc_status own;
  const int code = finish(id, own, status ? Release::when_begun : Release::at_once, Cancel::yes);
  if (status) *status = own;
  return code;
}

void Waiter::give_up(parc_op id) {
  parc_status own;
  (void)conclude(id, own, Release::never, Cancel::no);
}

int Waiter::finish(parc_op id, parc_status& status, Release release, Cancel cancel) {
  return explain(conclude(id, status, release, cancel), id, status);
}

int Waiter::conclude(parc_op id, parc_status& status, Release release, Cancel cancel) {
  status = nothing;
  if (id == PARC_OP_NULL) return PARC_OK;
  if (id < 0) return status.error = static_cast<int>(id); // it was never started
  Use use{};
  auto slot = operations_.take(id, &use);
  for (; !slot && operations_.is_held_now(id); slot = operations_.take(id, &use)) sched_yield();
  if (!slot) return status.error = PARC_EINVAL;
  if (operations_.done(*slot)) return finish_done(*slot, status);
  if (use == Use::loose) return finish_loose(id, *slot, status, cancel);
  return Operations::is_write(id) ? finish_write(id, *slot, status, release, cancel)
                                  : finish_read(id, *slot, status, release, cancel);
}

bool Waiter::is_copied_here(Slot slot) const {
  const Operations::Entry& entry = operations_.entry(slot);
  if (!entry.takes_fragments()) return entry.own_memory;
  std::atomic_thread_fence(std::memory_order_seq_cst); // as in Inbox::take_fragment
  return entry.own_memory || entry.fragments.load(std::memory_order_relaxed);
}

// Of one that is done and was not released. Its memory is the program's from here on.
int Waiter::finish_done(Slot slot, parc_status& status) {
  if (is_copied_here(slot)) sleep_.settle_copies();
  return finish_settled(slot, status);
}

int Waiter::finish_settled(Slot slot, parc_status& status) {
  guards_.ended_unreleased(slot);
  return operations_.finish(slot, status);
}

int Waiter::test(parc_op id, parc_status& status) {
  status = nothing;
  if (id == PARC_OP_NULL) return 1;
  if (id < 0) return status.error = fail(static_cast<int>(id));
  bool finished = operations_.finished(id);
  if (!finished) {
    sleep_.look();
    finished = operations_.finished(id);
  }
  if (!finished) late_reads_.place_from_what_is_there(id);
  if (!finished) sleep_.tell_kernel();
  if (!finished && !kernel_went()) return 0;
  Use use{};
  const auto slot = operations_.take(id, &use);
  int code = PARC_OK;
  if (!slot) {
    if (operations_.being_finished(id) || operations_.is_held_now(id)) return 0;
    return fail(status.error = PARC_EINVAL, no_operation);
  } else if (operations_.done(*slot) && is_copied_here(*slot) && !sleep_.settled()) {
    operations_.put_back(*slot); // maybe of it, which a handler's test may have interrupted
    return 0;
  } else if (operations_.done(*slot)) {
    code = finish_settled(*slot, status);
  } else if (use == Use::loose) {
    code = operations_.detach(*slot, status);
  } else if (!sleep_.forget_local(id)) {
    operations_.put_back(*slot);
    return 0;
  } else {
    code = operations_.lost(*slot, PARC_EKERNEL, status);
  }
  if (code == PARC_EPEER) return fail(code, departure_sentence(Operations::last_failed().departure));
  return code == PARC_OK ? 1 : fail(code);
}

void Waiter::hand_over_own_memory() {
  operations_.each_slot([this](Slot number) {
    const auto id = shm::is_write(number) ? operations_.live(number) : std::nullopt;
    const auto slot = id ? operations_.take(*id) : std::nullopt;
    if (!slot) return;
    parc_status own;
    if (operations_.entry(*slot).own_memory)
      (void)finish_write(*id, *slot, own, Release::never, Cancel::no);
    else
      operations_.put_back(*slot);
  });
}

bool Waiter::done(parc_op id) {
  if (id <= 0 || operations_.finished(id)) return true;
  sleep_.look();
  if (operations_.finished(id)) return true;
  late_reads_.place_from_what_is_there(id);
  sleep_.tell_kernel();
  return kernel_went();
}

int Waiter::all(std::span<parc_op> ids, parc_status* statuses, Cancel cancel) {
  // Everything but writes first: meanwhile the network may take the writes, and nothing is copied.
  const Release release = statuses ? Release::when_begun : Release::at_once;
  std::size_t finished = 0;
  const auto reads_finished = [&] {
    while (finished < ids.size() &&
           (Operations::is_write(ids[finished]) || operations_.finished(ids[finished]) ||
            would_release(ids[finished], release)))
      ++finished;
    return finished == ids.size();
  };
  // Where the kernel has gone, each wait says so. A kernel that is watched rings with every part of a
  // message: that is for those who wait for a beginning.
  if (std::ranges::any_of(ids, [&](parc_op id) { return release_of(id, release) == Release::when_begun; })) {
    const auto watching = guards_.watch();
    (void)rest(reads_finished, {}, cancel);
  } else {
    (void)rest(reads_finished, {}, cancel);
  }
  int first = PARC_OK;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    parc_status status;
    const parc_op id = ids[i];
    const int code = conclude(id, status, release, cancel);
    ids[i] = PARC_OP_NULL;
    if (statuses) statuses[i] = status;
    if (first == PARC_OK) first = explain(code, id, status);
  }
  return first;
}

int Waiter::any(std::span<parc_op> ids, int& index, parc_status& status) {
  parc_status own = nothing;
  index = pick(ids);
  int code = PARC_OK;
  if (index >= 0) {
    parc_op& id = ids[static_cast<std::size_t>(index)];
    code = finish(id, own, Release::never, Cancel::yes);
    id = PARC_OP_NULL;
  }
  status = own;
  return code;
}

int Waiter::some(std::span<parc_op> ids, int& done, int* indices, parc_status* statuses) {
  done = -1;
  const int picked = pick(ids);
  if (picked < 0) return PARC_OK;
  done = 0;
  int first = PARC_OK;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const int index = static_cast<int>(i);
    if (ids[i] == PARC_OP_NULL || (index != picked && !operations_.finished(ids[i]))) continue;
    parc_status status;
    const parc_op id = ids[i];
    const int code = conclude(id, status, Release::never, Cancel::yes);
    ids[i] = PARC_OP_NULL;
    if (indices) indices[done] = index;
    if (statuses) statuses[done] = status;
    ++done;
    if (first == PARC_OK) first = explain(code, id, status);
  }
  return first;
}

// Rests until one of them has finished, and says which; -1: there is none. When nothing but writes is left,
// the first of them: its wait copies.
int Waiter::pick(std::span<const parc_op> ids) {
  int ready = -1, first = -1;
  bool only_writes = true;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == PARC_OP_NULL) continue;
    if (first < 0) first = static_cast<int>(i);
    if (!operations_.may_copy(ids[i])) only_writes = false;
  }
  const auto any_finished = [&] {
    for (std::size_t i = 0; i < ids.size() && ready < 0; ++i)
      if (ids[i] != PARC_OP_NULL && operations_.finished(ids[i])) ready = static_cast<int>(i);
    return ready >= 0;
  };
  if (first < 0) return -1;
  const Limit at_once = Clock::time_point{};
  (void)rest(any_finished, only_writes ? at_once : Limit{}, Cancel::yes);
  return ready < 0 ? first : ready; // where the kernel has gone, the wait says so
}

int Waiter::await_puts(Cancel cancel) {
  const std::uint64_t started = operations_.puts_started();
  if (started == quiet_puts_.load(std::memory_order_relaxed)) return PARC_OK;
  auto puts = operations_.puts_under_way([](int) { return true; });
  const Woken how = rest([&] { return operations_.are_over(puts); }, {}, cancel);
  if (how == Woken::gone) return PARC_EKERNEL;
  quiet_puts_.store(started, std::memory_order_relaxed);
  return PARC_OK;
}

// What is kept behind a wait that was released leaves first.
int Waiter::quiet() {
  if (guards_.any()) guards_.settle_begun();
  if (const int code = await_puts(Cancel::yes); code != PARC_OK) return fail(code);
  const auto lost = operations_.take_lost_put();
  if (!lost) return PARC_OK;
  const std::string what = describe_one_sided(shm::RequestKind::put, lost->length, lost->envelope.data,
                                              lost->envelope.tag, lost->envelope.peer);
  const std::string why =
      lost->error == PARC_EPEER ? departure_sentence(lost->departure) : std::string(sentence(lost->error));
  return fail(error(lost->error, "{}: {}", what, why));
}

int Waiter::finish_read(parc_op id, Slot slot, parc_status& status, Release most, Cancel cancel) {
  const Release release = release_of(slot, most);
  if (release == Release::when_begun && !guards_.edges_arrived(id, slot)) {
    const auto watching = guards_.watch();
    (void)claimed_until(
        slot, [&] { return guards_.edges_arrived(id, slot); }, {}, cancel);
  }
  if (release != Release::never && guards_.release_read(id, slot, status)) return PARC_OK;
  return ended(until_done(slot, {}, cancel), id, slot, status);
}

// Its bytes lie in a copy.
int Waiter::finish_loose(parc_op id, Slot slot, parc_status& status, Cancel cancel) {
  const Woken how = keep_pace(slot, cancel);
  return how == Woken::late ? operations_.detach(slot, status) : ended(how, id, slot, status);
}

// Late: it is to wait no longer.
Woken Waiter::keep_pace(Slot slot, Cancel cancel) {
  Woken how = Woken::late;
  for (HandOver::Pace pace; how == Woken::late && hand_over_.keeps_pace(slot, pace);)
    how = until_done(slot, Clock::now() + HandOver::look_at_pace, cancel);
  return how;
}

int Waiter::finish_write(parc_op id, Slot slot, parc_status& status, Release release, Cancel cancel) {
  Woken how = until_done(slot, Clock::now() + hand_over_.patience(slot), cancel);
  if (how == Woken::late && hand_over_.may_copy(slot)) how = keep_pace(slot, cancel);
  if (how == Woken::late) {
    if (hand_over_.prepare(slot)) {
      if (release != Release::never && guards_.release_write(id, slot, status)) return PARC_OK;
      if (hand_over_.perform(id, slot, operations_.entry(slot).pieces))
        return operations_.detach(slot, status);
    }
    how = until_done(slot, {}, cancel);
  }
  return ended(how, id, slot, status);
}

// One that a neighbour's short message may answer is the kernel's, and nobody else stores into its buffer,
// when it has begun. What a get's status says is known from the start.
Waiter::Release Waiter::release_of(Slot slot, Release most) const {
  const Operations::Entry& entry = operations_.entry(slot);
  if (!guards_.can_guard(slot) || guards_.only_traces()) return Release::never;
  if (entry.kind == shm::RequestKind::get && most != Release::never) most = Release::at_once;
  if (entry.local) most = std::min(most, Release::when_begun);
  switch (guards_.level_for(entry)) {
  case Level::off:
  case Level::gets: return Release::never; // the latter is one of the others, by the operation's kind
  case Level::envelope: return std::min(most, Release::when_begun);
  case Level::full: break;
  }
  return most;
}

// Of an operation that the caller holds and nobody has claimed.
Waiter::Release Waiter::release_of(parc_op id, Release most) const {
  if (id <= 0 || Operations::is_write(id) || !operations_.is_live(id)) return Release::never;
  return release_of(slot_of(id), most);
}

bool Waiter::would_release(parc_op id, Release most) const {
  const Release release = release_of(id, most);
  return release == Release::at_once ||
         (release == Release::when_begun && guards_.edges_arrived(id, slot_of(id)));
}

bool Waiter::may_release(parc_op id) const {
  return release_of(id, Release::when_begun) != Release::never;
}

bool Waiter::collectable(parc_op id) const {
  return operations_.finished(id) || would_release(id, Release::when_begun);
}

// Its sentence is this thread's last one, if it has failed: where many end, the last of them.
bool Waiter::collect(parc_op id, Slot slot, Use use, parc_status& status) {
  if (!collect_ended(id, slot, use, status)) return false;
  if (status.error != PARC_OK && status.error != PARC_ECANCELED) (void)explain(status.error, id, status);
  return true;
}

bool Waiter::collect_ended(parc_op id, Slot slot, Use use, parc_status& status) {
  status = nothing;
  if (operations_.done(slot)) {
    (void)finish_done(slot, status);
  } else if (use == Use::loose) {
    (void)operations_.detach(slot, status);
  } else if (release_of(slot, Release::when_begun) == Release::never || !guards_.edges_arrived(id, slot) ||
             !guards_.release_read(id, slot, status)) {
    if (operations_.done(slot)) {
      (void)finish_done(slot, status);
    } else if (kernel_went() && sleep_.forget_local(id)) {
      (void)operations_.lost(slot, PARC_EKERNEL, status);
    } else {
      operations_.put_back(slot);
      return false;
    }
  }
  return true;
}

Woken Waiter::until_done(Slot slot, Limit limit, Cancel cancel) {
  return claimed_until(
      slot, [&] { return operations_.done(slot); }, limit, cancel);
}

// Of a thread that is cancelled meanwhile the operation is nobody's again: another may wait for it.
template <class Done> Woken Waiter::claimed_until(Slot slot, const Done& done, Limit limit, Cancel cancel) {
  try {
    return rest(done, limit, cancel, slot);
  } catch (...) {
    operations_.put_back(slot);
    throw;
  }
}

int Waiter::ended(Woken how, parc_op id, Slot slot, parc_status& status) {
  if (how == Woken::done) return finish_done(slot, status);
  while (!sleep_.forget_local(id)) sched_yield();
  // Somebody else of this program may have brought it in the meantime.
  return operations_.done(slot) ? finish_done(slot, status) : operations_.lost(slot, PARC_EKERNEL, status);
}

} // namespace parc::client
