// SPDX-License-Identifier: BSD-3-Clause
// Which message goes to which read, in MPI's order: of the reads that fit a message the oldest takes it, of
// the messages that fit a read the oldest is taken; messages of one pair of ranks never overtake each other.
#include "protocol/engine.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace parc::protocol {
namespace {

bool fits(const Reading& read, const Incoming& message) {
  return read.fits(message.pair, message.space, message.tag);
}

bool misses_somebody(const Endpoint& at) {
  return at.missed_somebody || (at.group != nullptr && at.group->missed_somebody);
}

Outcome outcome_of(const Incoming& message, Fault fault) {
  return {.fault = fault,
          .source = message.pair->row,
          .space = message.space,
          .tag = message.tag,
          .data = message.data,
          .flags = message.flags,
          .total = message.total};
}

} // namespace

void Engine::arrive(Incoming& message, std::span<const std::byte> riding) {
  Endpoint& at = *message.pair->at;
  while (Reading* read = at.posted.find(message.pair, message.space, message.tag)) {
    if (!read->owner_word.take()) {
      lose(*read);
      continue;
    }
    if (!read->late) return match(*read, message, riding);
    store(message, riding);
    return finish_read(*read, probed(*read, message));
  }
  store(message, riding);
  satisfy_probes(at, message);
}

void Engine::store(Incoming& message, std::span<const std::byte> riding) {
  Endpoint& at = *message.pair->at;
  keep_riding(message, riding);
  if (message.link != nullptr && at.number != kernel_endpoint) ++totals_.unexpected;
  message.enter(Incoming::Stage::stored);
  at.arrivals.add(message, message.pair->unexpected);
  at.has_kept_some = at.has_kept_some || message.space != Space::neighbours;
  count(at, &Backlog::unread, true);
}

void Engine::keep_riding(Incoming& message, std::span<const std::byte> riding) {
  if (riding.empty()) return;
  message.rode = std::make_unique_for_overwrite<std::byte[]>(riding.size());
  std::memcpy(message.rode.get(), riding.data(), riding.size());
}

// It is about to be read, or never will be.
void Engine::unstore(const Incoming& message) {
  if (message.unread()) count(*message.pair->at, &Backlog::unread, false);
}

Incoming* Engine::find_unexpected(Endpoint& at, const Reading& read) {
  return at.arrivals.find(read, read.pair != nullptr ? &read.pair->unexpected : nullptr);
}

bool Engine::may_answer_reads(std::uint64_t endpoint) const {
  const Endpoint* const at = find_endpoint(endpoint);
  return at != nullptr && (!at->arrivals.empty() || misses_somebody(*at));
}

bool Engine::must_know_reads(std::uint64_t endpoint) const {
  const Endpoint* const at = find_endpoint(endpoint);
  return at != nullptr && (at->has_far_peers || at->has_kept_some || misses_somebody(*at));
}

void Engine::satisfy_probes(Endpoint& at, Incoming& message) {
  for (auto probe = at.probes.begin();
       probe != at.probes.end() && message.stage == Incoming::Stage::stored;) {
    Reading& read = *probe++;
    if (!fits(read, message)) continue;
    if (read.owner_word.take())
      finish_read(read, probed(read, message));
    else
      lose(read);
  }
}

// One that claims takes the message out of the matching.
Outcome Engine::probed(const Reading& read, Incoming& message) {
  Outcome outcome = outcome_of(message, Fault::none);
  if (!has(read.flags, MessageFlags::claim)) return outcome;
  message.take_out();
  message.enter(Incoming::Stage::claimed);
  read.at->claimed.push_back(message);
  outcome.claim = message.id;
  return outcome;
}

void Engine::unpost(Reading& read) {
  if (read.posted_as == Reading::not_posted) return;
  read.at->posted.remove(read);
}

void Engine::match(Reading& read, Incoming& message, std::span<const std::byte> riding) {
  unpost(read);
  unstore(message);
  message.take_out();
  message.enter(Incoming::Stage::matched);
  message.read = &read;
  message.limit = std::min(message.total, read.memory.size());
  read.message = &message;
  if (!read.of_window) listener_.begun(read.cookie, outcome_of(message, Fault::none));

  if (message.local != nullptr) {
    message.promised = message.limit;
    const bool at_once = message.limit <= small_copy && !message.local->late;
    message.rest = at_once ? Grant{0, message.limit}
                           : Grant::to_far_end(0, message.limit, has(read.flags, MessageFlags::from_end),
                                               default_fragment);
    if (message.local->late) return listener_.wanted(message.local->cookie);
    copies_.push_back(message);
    if (at_once) copy_part(message, small_copy);
    return;
  }
  count_match(message);
  if (message.rode != nullptr) {
    riding = {message.rode.get(), message.total};
    if (read.at->number != kernel_endpoint) totals_.unexpected_bytes += message.total;
  }
  if (!riding.empty()) copy_in(message, 0, riding);
  for (const Block& block : message.blocks) {
    copy_in(message, block.offset(), block.bytes());
    if (read.at->number != kernel_endpoint) totals_.unexpected_bytes += block.length();
  }
  free_blocks(message);
  if (!message.whole()) {
    const std::uint64_t eager = message.promised;
    const bool end_is_here = message.eager.from_end;
    const std::uint64_t low = end_is_here ? 0 : eager;
    const std::uint64_t high =
        end_is_here ? std::min(message.limit, message.total - eager) : std::max(message.limit, eager);
    message.rest =
        Grant::to_far_end(low, high, has(read.flags, MessageFlags::from_end), message.link->fragment);
    message.promised += message.rest.left();
    owe(message, Kind::want);
  } else if (message.synchronous() && message.link != nullptr && !read.of_window) {
    owe(message, Kind::matched);
  }
  check_read_done(message);
}

// A message that was kept here is matched or gone: its place is free again. The sender hears of it before it
// could miss those places (may_send_envelope).
void Engine::count_match(Incoming& message) {
  if (std::exchange(message.counted, false)) return_place(*message.link, message.pair);
}

void Engine::return_place(Link& link, Pair* pair) {
  --link.unmatched;
  if (pair == nullptr) return;
  --pair->unmatched;
  if (pair->not_reported() >= pair_envelopes / 2 ||
      pair->unmatched + pair->not_reported() >= link.places_left() / 2)
    owe(link, *pair);
}

void Engine::copy_in(Incoming& message, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (offset >= message.limit) return;
  deliver(message, offset, bytes.first(std::min<std::uint64_t>(bytes.size(), message.limit - offset)));
  advance(message, offset, bytes.size());
}

void Engine::deliver(const Incoming& message, std::uint64_t offset, std::span<const std::byte> bytes) {
  Reading& read = *message.read;
  if (!read.apart) return read.memory.copy_in(offset, bytes.data(), bytes.size());
  if (!scatter(read.memory, bytes.data(), offset, bytes.size(), CrossMemory::no_name)) read.unreached = true;
}

// Those bytes are in the memory of its read, as far as that has room.
void Engine::advance(Incoming& message, std::uint64_t offset, std::uint64_t length) {
  if (offset >= message.limit) return;
  message.progress.add(offset, std::min(length, message.limit - offset), message.limit);
  tell_progress(message);
}

void Engine::tell_progress(const Incoming& message) {
  if (!message.read->of_window) listener_.progressed(message.read->cookie, message.progress);
}

void Engine::check_read_done(Incoming& message) {
  if (!message.matched() || message.arrived != message.promised) return;
  Reading& read = *message.read;
  Pair& pair = *message.pair;
  const bool put = read.of_window;
  if (message.link != nullptr) want_acknowledgement(*message.link, message);
  if (put && message.link != nullptr && !read.unreached)
    say_end(*message.link, {message.message, Kind::matched, 0, 0});
  else if (put && message.link != nullptr && !read.memory.ends()) // or its departure says it
    say_end(*message.link, refused(message.message, Refused::place, flag_put));
  const Outcome outcome = outcome_of(message, message.total > message.limit ? Fault::truncated : Fault::none);
  end_reading(message);
  if (message.local == nullptr && !message.owed()) drop_incoming(message);
  finish_read(read, outcome);
  if (put) put_is_over(pair);
}

void Engine::end_reading(Incoming& message) {
  end_steps(message);
  message.enter(Incoming::Stage::over);
  message.read = nullptr;
  if (message.pair->put == &message) message.pair->put = nullptr;
  forget_pair(message);
}

// Somebody else has a message for it.
void Engine::lose(Reading& read) {
  finish_read(read, {.fault = Fault::taken});
}

// `how` its peer has departed, where that is the fault and not known yet.
void Engine::fail_read(Reading& read, Fault fault, Departure how) {
  const Pair* pair = read.pair;
  Outcome outcome{
      .fault = fault, .source = pair != nullptr ? pair->row : -1, .space = read.space, .tag = read.tag};
  if (Incoming* message = read.message) {
    outcome = outcome_of(*message, fault);
    pair = message->pair;
    end_reading(*message);
  }
  if (fault == Fault::peer) {
    if (pair != nullptr) outcome.departure = pair->peer->how;
    // A message that was on its way is aborted only by the end of its rank, which is heard of behind it.
    if (outcome.departure == Departure::none && read.message != nullptr) outcome.departure = how;
  }
  finish_read(read, outcome);
}

void Engine::finish_read(Reading& read, const Outcome& outcome) {
  const std::uint64_t cookie = read.cookie;
  const bool of_window = read.of_window;
  unpost(read);
  readings_.drop(read);
  if (of_window)
    listener_.let_go(cookie);
  else
    listener_.finished(cookie, outcome);
}

// Nothing that is stored or announced fits (the caller has looked), and nobody is left who could send it, or
// has sent it behind a put.
bool Engine::hopeless(const Reading& read) {
  if (read.pair != nullptr) return read.pair->peer->how != Departure::none && read.pair->behind.empty();
  const Group* const group = read.at->group;
  if (group == nullptr || group->members.size() == 1 || group->living > 1) return false; // it is one of them
  if (std::ranges::any_of(read.at->pairs, [](const auto& each) { return !each.second.behind.empty(); }))
    return false;
  return std::ranges::none_of(read.at->more_rows, [&](const auto& each) {
    return pair_of(*read.at, each.first)->peer->how == Departure::none;
  });
}

} // namespace parc::protocol
