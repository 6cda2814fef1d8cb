// SPDX-License-Identifier: BSD-3-Clause
// Puts: a peer's window is written, and its program has no part in it.
//
// A put is a message that brings its own read: the place in the window, found when its turn comes. So its
// bytes come as those of any message: as many unasked as there is credit for, straight to their place or,
// where it is not its turn yet, to the pool; the rest when it is asked for. Its writer hears of its end when
// it is in place, or that it has none.
//
// What one program sends to another takes effect in its order: while a put is not in place, whatever came
// behind it from the same program (messages, puts, gets) waits here. That needs no memory that is not paid
// for: bytes of what waits are as those of messages that nobody has read. And it ends: of the put that all
// wait for everything that was not paid for has been asked for. What is behind a put that will never be
// whole, because its writer was killed, is given up with it.
#include "protocol/engine.hpp"

#include <cassert>
#include <utility>

namespace parc::protocol {

void Engine::take_in_order(Incoming& message, std::span<const std::byte> riding) {
  Pair& pair = *message.pair;
  if (!pair.keeps_order()) return take_effect(pair, message, riding);
  keep_riding(message, riding);
  message.enter(Incoming::Stage::behind);
  pair.behind.push_back(message);
}

// Of `pair`, also where the message is its asker's own.
void Engine::take_effect(Pair& pair, Incoming& message, std::span<const std::byte> riding) {
  switch (message.what) {
  case Incoming::What::message: return arrive(message, riding);
  case Incoming::What::put: return place_put(message, riding);
  case Incoming::What::get:
  case Incoming::What::atomic: break;
  }
  if (message.link == nullptr) return serve_here(message, pair);
  Link& link = *message.link;
  Envelope e{};
  e.flags = message.flags;
  e.tag = message.tag;
  e.data = message.data;
  e.length = message.total;
  e.message = message.message;
  message.counted = false; // its place is the answer's from here on
  const bool gets = message.what == Incoming::What::get;
  const Atomic atomic = gets ? Atomic{} : atomic_of(message);
  const auto rows = message.rows();
  drop_incoming(message);
  gets ? answer_get(link, pair, e, rows ? &*rows : nullptr) : answer_atomic(link, pair, e, atomic);
}

void Engine::place_put(Incoming& message, std::span<const std::byte> riding) {
  Pair& pair = *message.pair;
  Reading& read = readings_.make();
  const auto rows = take_rows(message);
  const Place place{.window = message.tag,
                    .offset = message.data,
                    .length = message.total,
                    .put = true,
                    .rows = rows ? &*rows : nullptr};
  if (!find_place(pair, place, read.memory, read.cookie)) {
    readings_.drop(read);
    return refuse_put(message);
  }
  read.of_window = true;
  read.apart = !read.memory.is_here() || read.memory.has_short_rows();
  read.at = pair.at;
  read.pair = &pair;
  read.tag = message.tag;
  read.flags = message.flags & MessageFlags::from_end;
  pair.at->reads.push_back(read);
  pair.put = &message;
  match(read, message, riding);
}

void Engine::refuse_put(Incoming& message) {
  if (Outgoing* const write = message.local) {
    drop_incoming(message);
    return finish_write(*write, Fault::place);
  }
  say_end(*message.link, refused(message.message, Refused::place, flag_put));
  discard(message);
}

Refusal Engine::take_refused_put(const Link& link, const Descriptor& d) {
  Outgoing* const put = outgoing_.find(d.message);
  if (put == nullptr || put->abandoned()) return Refusal::none;
  if (put->link != &link || !put->announced() || put->role != Outgoing::Role::put) return Refusal::request;
  fail_write(*put, Fault::place);
  return Refusal::none;
}

// Its acknowledgement does not say that: its target may have departed meanwhile.
Refusal Engine::take_placed(Link& link, Outgoing& put) {
  if (put.link != &link || !put.announced() || put.eager.left() != 0 || (!put.whole() && !put.matched))
    return Refusal::request;
  note_received(link, put);
  unname(link, put.id); // who says so may not have read all of it
  finish_write(put, Fault::none);
  return Refusal::none;
}

// The next one's turn. Where somebody has departed, reads may wait for nobody now.
void Engine::put_is_over(Pair& pair) {
  if (pair.going_on) return;
  pair.going_on = true;
  const Endpoint& at = *pair.at;
  const bool had_some = !pair.behind.empty();
  while (!pair.in_the_middle() && !pair.behind.empty()) {
    Incoming& next = pair.behind.front();
    pair.behind.pop_front();
    take_effect(pair, next, {});
  }
  pair.going_on = false;
  if (!had_some || !pair.behind.empty()) return;
  const bool alone = at.group != nullptr && at.group->waited_for && at.group->living <= 1;
  const Address address = pair.peer->address;
  if (alone || at.missed_somebody) fail_hopeless(*pair.at, &address);
}

// All behind `put`, which is coming, or waits itself.
void Engine::give_up_behind(Pair& pair, const Incoming& put) {
  while (!pair.behind.empty() && &pair.behind.back() != &put) give_up(pair.behind.back());
}

// It will not take effect: its writer was killed, or its receiver has departed.
void Engine::give_up(Incoming& behind) {
  if (behind.local != nullptr) return fail_write(*behind.local, Fault::peer);
  if (behind.link == nullptr) { // a get or atomic, and its asker's own
    fail_read(*behind.read, Fault::peer);
    return drop_incoming(behind);
  }
  const Departure how = behind.pair->at->how;
  if (!behind.gets()) {
    if (how == Departure::left && behind.what == Incoming::What::message)
      listener_.unread(
          behind.pair->at->number, behind.pair->peer->address,
          {.space = behind.space, .tag = behind.tag, .data = behind.data, .total = behind.total});
    return discard(behind);
  }
  say_end(*behind.link, refused(behind.message, how == Departure::left ? Refused::left : Refused::killed));
  drop_incoming(behind);
}

} // namespace parc::protocol
