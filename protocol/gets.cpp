// SPDX-License-Identifier: BSD-3-Clause
// Gets: a peer's window is read, and its program has no part in it (HUNT, section 3).
//
// A get is what a write and a read of it make of a long message, without the envelope and the match: at the
// asker a message that is matched from the start, at the target a write that has been asked for. Between
// hosts a request in the envelope's place says what is wanted, and takes that place in all that is counted of
// envelopes until it has been answered: by fragments with the asker's name for it, or by a refusal. It is
// always answered, also where its target is gone: a departure ends only those that have not been sent.
#include "protocol/engine.hpp"

#include <cassert>
#include <cstring>
#include <utility>

namespace parc::protocol {

std::uint64_t Engine::get(std::uint64_t endpoint, const GetRequest& request) {
  Endpoint* const at = find_endpoint(endpoint);
  assert(at != nullptr && has_given(endpoint, request.target));
  const auto row = static_cast<std::int32_t>(request.target);
  Pair* const pair = pair_of(*at, row);
  if (pair == nullptr || pair->peer->how != Departure::none) {
    listener_.finished(request.cookie, {.fault = Fault::peer,
                                        .source = row,
                                        .tag = request.window,
                                        .total = request.memory.size(),
                                        .departure = pair != nullptr ? pair->peer->how : Departure::none});
    return 0;
  }
  Reading& read = readings_.make();
  read.cookie = request.cookie;
  read.at = at;
  read.pair = pair;
  read.tag = request.window;
  read.memory = request.memory;
  at->reads.push_back(read);
  Incoming& message = incoming_.make();
  name_pair(message, *pair);
  message.tag = request.window;
  message.flags = request.flags & MessageFlags::from_end;
  message.total = message.limit = message.promised = request.memory.size();
  message.enter(Incoming::Stage::matched);
  message.read = &read;
  read.message = &message;

  const std::uint64_t handle = read.id | reading_handle;
  message.what = request.atomic ? Incoming::What::atomic : Incoming::What::get;
  if (request.rows) keep_rows(message, *request.rows);
  if (request.atomic) keep_riding(message, std::as_bytes(std::span(&*request.atomic, 1)));
  const Address& to = pair->peer->address;
  if (to.place == here && !request.gated) {
    get_here(message, request.offset);
    return handle;
  }
  Outgoing& ask = outgoing_.make();
  ask.role = Outgoing::Role::request;
  ask.asks = &message;
  read.request = &ask;
  ask.from = at;
  ask.pair = pair;
  ask.data = request.offset;
  at->writes.push_back(ask);
  ++at->unfinished;
  if (request.gated)
    ask.enter(Outgoing::Stage::gated);
  else
    launch(ask);
  return handle;
}

// A request to its target, which waits for its turn, as writes do.
void Engine::ask(Outgoing& request) {
  Incoming& message = *request.asks;
  Endpoint& from = *request.from;
  if (request.link == nullptr) {
    const std::uint64_t offset = request.data;
    --from.unfinished;
    if (message.read != nullptr) message.read->request = nullptr;
    outgoing_.drop(request);
    return get_here(message, offset);
  }
  const bool from_end = has(message.flags, MessageFlags::from_end);
  message.link = request.link;
  message.rest = Grant::to_far_end(0, message.total, from_end, request.link->fragment);
  announce(request);
}

// Of a program of this host, whose own message it is; behind its puts there.
void Engine::get_here(Incoming& message, std::uint64_t offset) {
  const Address& to = message.pair->peer->address;
  Pair& asker = pair_of(*find_endpoint(to.number), {here, message.read->at->number});
  message.data = offset;
  if (asker.keeps_order())
    asker.behind.push_back(message);
  else
    serve_here(message, asker);
}

void Engine::serve_here(Incoming& message, Pair& asker) {
  if (message.what == Incoming::What::atomic)
    make_atomic_here(message, asker);
  else
    answer_here(message, asker);
}

void Engine::answer_here(Incoming& message, Pair& asker) {
  Outgoing& answer = outgoing_.make();
  answer.role = Outgoing::Role::answer;
  const std::uint64_t offset = std::exchange(message.data, 0);
  const auto rows = message.rows();
  const Place place{
      .window = message.tag, .offset = offset, .length = message.total, .rows = rows ? &*rows : nullptr};
  if (!find_place(asker, place, answer.memory, answer.cookie)) {
    outgoing_.drop(answer);
    fail_read(*message.read, Fault::place);
    return drop_incoming(message);
  }
  add_answer(asker, answer);
  answer.local = &message;
  message.local = &answer;
  const bool from_end = has(message.flags, MessageFlags::from_end);
  message.rest = message.total <= small_copy
                     ? Grant{0, message.total}
                     : Grant::to_far_end(0, message.total, from_end, default_fragment);
  begin_answer(answer);
}

void Engine::copy_answer(Outgoing& answer) {
  Incoming& message = *answer.local;
  answer.enter(Outgoing::Stage::local);
  copies_.push_back(message);
  if (message.total <= small_copy) copy_part(message, small_copy);
}

// What the memory of that endpoint is, which `peer` gets or puts, and that it is held.
bool Engine::find_place(const Pair& peer, const Place& place, Pieces& memory, std::uint64_t& hold) {
  const Endpoint& target = *peer.at;
  const auto row = target.more_rows.find(peer.row);
  const bool acquainted = row == target.more_rows.end() || row->second.acquainted;
  return target.opened && listener_.place(target.cookie, place, acquainted, memory, hold);
}

void Engine::add_answer(Pair& asker, Outgoing& answer) {
  Endpoint& target = *asker.at;
  answer.from = &target;
  answer.pair = &asker;
  answer.total = answer.memory.size();
  target.writes.push_back(answer);
  ++target.unfinished;
}

// One whose read has ended meanwhile is not sent.
void Engine::send_request(Link& link, Outgoing& request) {
  Incoming& asks = *request.asks;
  if (!asks.matched()) return fail_write(request, Fault::canceled);
  Pair& pair = *request.pair;
  Outflow& outflow = *request.outflow;
  Envelope envelope{};
  envelope.kind = Kind::get;
  envelope.flags = asks.flags;
  Pieces riding;
  envelope.tag = asks.tag;
  envelope.data = request.data; // the offset
  envelope.source = request.from->number;
  envelope.destination = pair.peer->address.number;
  envelope.sequence = ++pair.sent;
  envelope.length = asks.total;
  envelope.message = asks.id;
  if (asks.what == Incoming::What::atomic) {
    envelope.kind = Kind::atomic;
    envelope.flags = MessageFlags::whole;
    envelope.length = envelope.eager = envelope.inline_length = sizeof(Atomic);
    riding = {asks.rode.get(), sizeof(Atomic)};
  }
  --pair.queued;
  asks.asked = true;
  asks.read->request = nullptr;
  const auto rows = asks.rows();
  link.carrier.train.add(envelope, riding, rows ? &*rows : nullptr);
  link.log.append(link.sequence + 1, envelope);
  --request.from->unfinished;
  outgoing_.drop(request);
  ++outflow.envelopes;
  --outflow.fresh;
  owe_departure(outflow);
}

// Nobody over there has heard of it.
void Engine::finish_request(Outgoing& request, Fault fault) {
  Incoming& asks = *request.asks;
  Endpoint& from = *request.from;
  if (asks.read != nullptr) asks.read->request = nullptr;
  --from.unfinished;
  unqueue(request);
  outgoing_.drop(request);
  if (asks.matched()) fail_read(*asks.read, fault);
  drop_incoming(asks);
  check_drained(from);
}

// Or an atomic, whose operands ride.
Refusal Engine::take_get(Link& link, Endpoint* to, Pair* pair, const EntryWalk::Entry& entry) {
  const Envelope& e = entry.envelope;
  const std::byte* const riding = entry.inline_data;
  Atomic atomic{};
  if (e.inline_length != 0) {
    std::memcpy(&atomic, riding, sizeof atomic);
    if (!is_good(atomic)) return Refusal::envelope;
  }
  if (to == nullptr) {
    --link.unmatched;
    say_end(link, refused(e.message, e.destination > last_endpoint_    ? Refused::place // it may yet come
                                     : killed_.contains(e.destination) ? Refused::killed
                                                                       : Refused::left));
    return Refusal::none;
  }
  if (!pair->keeps_order()) {
    e.inline_length != 0 ? answer_atomic(link, *pair, e, atomic) : answer_get(link, *pair, e, entry.rows());
    return Refusal::none;
  }
  Incoming& request = keep_request(link, *pair, e); // until its turn
  if (const Rows* const rows = entry.rows()) keep_rows(request, *rows);
  if (e.inline_length != 0) request.what = Incoming::What::atomic;
  take_in_order(request, {riding, e.inline_length});
  return Refusal::none;
}

Incoming& Engine::keep_request(Link& link, Pair& pair, const Envelope& e) {
  Incoming& request = incoming_.make();
  request.what = Incoming::What::get;
  request.link = &link;
  request.message = e.message;
  request.counted = true;
  name_pair(request, pair);
  request.tag = e.tag;
  request.data = e.data;
  request.flags = e.flags;
  request.total = e.length;
  return request;
}

void Engine::keep_rows(Incoming& message, const Rows& rows, std::span<const std::byte> riding) {
  message.flags |= MessageFlags::rows;
  message.rows_alone = riding.empty();
  message.rode = std::make_unique_for_overwrite<std::byte[]>(sizeof rows + riding.size());
  std::memcpy(message.rode.get(), &rows, sizeof rows);
  if (!riding.empty()) std::memcpy(message.rode.get() + sizeof rows, riding.data(), riding.size());
}

// Of a put: what rode is its bytes alone from here on.
std::optional<Rows> Engine::take_rows(Incoming& message) {
  const auto rows = message.rows();
  if (!rows) return {};
  if (message.rows_alone)
    message.rode.reset();
  else
    std::memmove(message.rode.get(), message.rode.get() + sizeof *rows, message.total);
  message.flags &= ~MessageFlags::rows;
  return rows;
}

void Engine::answer_get(Link& link, Pair& asker, const Envelope& e, const Rows* rows) {
  Outgoing& answer = outgoing_.make();
  answer.role = Outgoing::Role::answer;
  const Place place{.window = e.tag, .offset = e.data, .length = e.length, .rows = rows};
  if (!find_place(asker, place, answer.memory, answer.cookie)) {
    outgoing_.drop(answer);
    return_place(link, &asker);
    return say_end(link, refused(e.message, Refused::place));
  }
  add_answer(asker, answer);
  answer.link = &link;
  answer.outflow = &outflow_of(*asker.at, link);
  answer.asker = e.message;
  answer.flags = e.flags;
  answer.matched = answer.envelope_acknowledged = true;
  answer.promised = answer.total;
  answer.rest = Grant::to_far_end(0, answer.total, answer.from_end(), link.fragment);
  if (answer.total != 0) return begin_answer(answer);
  answer.enter(Outgoing::Stage::announced);
  finish_write(answer, Fault::none);
  say_end(link, {e.message, Kind::none_to_send, 0, 0});
}

// Of a pair's long ones each when the one before has left: that is whole, and worked on, while this one comes
// (HUNT, section 5.3). Short ones wait for none.
void Engine::begin_answer(Outgoing& answer) {
  Pair& pair = *answer.pair;
  if (answer.total > small_copy && pair.answering != nullptr) {
    answer.enter(Outgoing::Stage::waiting);
    pair.answers.push_back(answer);
    return;
  }
  if (answer.total > small_copy) pair.answering = &answer;
  if (answer.local != nullptr) return copy_answer(answer);
  answer.enter(Outgoing::Stage::announced);
  make_ready(answer);
}

void Engine::answer_next(Pair& pair) {
  pair.answering = nullptr;
  if (pair.answers.empty()) return;
  Outgoing& next = pair.answers.front();
  pair.answers.pop_front();
  begin_answer(next);
}

// What is not said by fragments, until a train has room for it.
void Engine::say_end(Link& link, const Link::End& end) {
  link.ends.push_back(end);
}

// Its place among the envelopes is free, and its memory not named any more.
void Engine::end_answer(const Outgoing& answer) {
  if (answer.link != nullptr && answer.link->open) return_place(*answer.link, answer.pair);
  if (answer.pair->answering == &answer) answer_next(*answer.pair);
  listener_.let_go(answer.cookie);
}

// Its endpoint has departed, or who asked.
void Engine::give_up_answer(Outgoing& answer) {
  say_end(*answer.link,
          refused(answer.asker, answer.from->how == Departure::left ? Refused::left : Refused::killed));
  finish_write(answer, Fault::peer);
}

// Its memory is not there, whatever the program has said.
void Engine::lose_answer(Outgoing& answer) {
  assert(answer.role == Outgoing::Role::answer);
  say_end(*answer.link, refused(answer.asker, answer.memory.ends() ? Refused::killed : Refused::place));
  finish_write(answer, Fault::place);
}

Refusal Engine::take_refused(Link& link, const Descriptor& d) {
  const auto why = static_cast<Refused>(d.extra);
  if (d.extra == 0 || d.extra > static_cast<std::uint64_t>(Refused::place)) return Refusal::request;
  if ((d.flags & flag_put) != 0) return take_refused_put(link, d);
  Incoming* const message = find_get(link, d.message);
  if (message == nullptr) return Refusal::none; // all of it came before its target ended
  if (message->matched() && why == Refused::place) {
    fail_read(*message->read, Fault::place);
  } else if (message->matched()) {
    listener_.peer_departed(message->pair->peer->address); // which is said behind this
    fail_read(*message->read, Fault::peer, why == Refused::left ? Departure::left : Departure::killed);
  }
  drop_incoming(*message);
  return Refusal::none;
}

Refusal Engine::take_none_to_send(Link& link, const Descriptor& d) {
  Incoming* const message = find_get(link, d.message);
  if (message == nullptr) return Refusal::none;
  if (message->total != 0 || message->what != Incoming::What::get) return Refusal::request;
  if (message->matched())
    check_read_done(*message);
  else
    drop_incoming(*message);
  return Refusal::none;
}

// By our own name for it.
Incoming* Engine::find_get(const Link& link, std::uint64_t name) {
  Incoming* const message = incoming_.find(name);
  return message != nullptr && message->asked && message->link == &link ? message : nullptr;
}

} // namespace parc::protocol
