// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/invariants.hpp"

#include <algorithm>

namespace parc::protocol {
namespace {

template <class Tag, class Object> bool in_list(const Object& object) {
  return object.hook::template Hook<Tag>::is_linked();
}

std::uint64_t in_flight(Log& log) {
  std::uint64_t bytes = 0;
  log.each([&](const Log::Entry& entry) {
    if (entry.kind() == Kind::fragments) bytes += entry.descriptor.length;
  });
  return bytes;
}

} // namespace

std::string Invariants::broken(Engine& engine) {
  Invariants look(engine);
  look.count_due();
  look.look_at_outgoing();
  look.look_at_incoming();
  look.look_at_readings();
  look.look_at_atomics();
  look.look_at_peers();
  look.look_at_links();
  look.look_at_endpoints();
  look.holds(engine.pool_used_ == look.pool_used_, "the pool holds what blocks there are");
  look.holds(engine.apart_used_ == look.apart_used_, "what comes for other processes is counted");
  return look.broken_;
}

void Invariants::count_due() {
  for (Link* link : engine_.open_links_) {
    link->each_carrier([&](const Carrier& carrier) {
      for (const Due& due : carrier.due) {
        const bool pooled = due.landing.pooled();
        if (pooled) (due.eager ? pool_used_ : apart_used_) += due.landing.block().length();
        holds(due.done < due.length, "what is due is not here");
        holds(!due.eager || carrier.subflow == nullptr, "subflows bring only what was asked for");
        if (const Incoming* message = due.landing.message(); message != nullptr && due.eager)
          due_[message] += due.length - (pooled ? 0 : due.whole(due.done, link->fragment));
      }
    });
    if (link->log.all_sent())
      holds(in_flight(link->log) == link->in_flight, "the first carrier's flight is counted");
    const auto count = [&](const Log::Entry& entry) {
      if (brings_bytes(entry.kind())) logged_[entry.envelope.message] += entry.envelope.inline_length;
      if (entry.kind() == Kind::fragments) logged_[entry.descriptor.message] += entry.descriptor.length;
    };
    link->log.each(count);
    for (const auto& subflow : link->subflows) {
      if (subflow == nullptr) continue;
      subflow->log.each(count);
      holds(in_flight(subflow->log) == subflow->in_flight, "a subflow's flight is counted");
    }
  }
}

void Invariants::look_at_outgoing() {
  engine_.outgoing_.each([&](const Outgoing& message) { look_at(message); });
}

void Invariants::look_at(const Outgoing& message) {
  using Stage = Outgoing::Stage;
  const Stage stage = message.stage;
  const bool queued = in_list<hook::Queue>(message);
  const bool local = stage == Stage::local || (stage == Stage::waiting && message.local != nullptr);
  const bool striped = message.asked() && message.link != nullptr && message.link->striped();
  const bool may_move = message.eager.left() != 0 || (message.asked() && !striped);
  holds(stage != Stage::made, "a write that is made is gated or goes somewhere");
  holds((stage >= Stage::held && !local) == (message.link != nullptr), "a write to another host has a link");
  holds(local == (message.local != nullptr), "a local write has its message here");
  holds(message.local == nullptr || message.local->local == &message, "a local message knows its write");
  holds(stage == Stage::abandoned || (message.from != nullptr && in_list<hook::Owned>(message)),
        "a write is its endpoint's");
  holds(stage != Stage::abandoned || (message.from == nullptr && message.owed() && !queued),
        "what was abandoned owes its abort");
  holds((stage != Stage::held && stage != Stage::queued && stage != Stage::waiting) || queued,
        "what is held, queued or waiting is in a list");
  holds(stage != Stage::announced || queued == (may_move && !message.late),
        "what may move is in the ready list, and only that");
  holds(in_list<hook::Asked>(message) == (stage == Stage::announced && striped && !message.late),
        "what was asked for is in the list of the subflows where there are any, and only that");
  holds(!message.late || (message.memory.count() == 0 && message.eager.left() == 0 && !message.whole()),
        "what has no memory has sent nothing");
  holds(message.acknowledged <= message.promised && message.promised <= message.total,
        "no more is acknowledged than was promised, no more promised than there is");
  holds(!message.whole() || message.promised == message.total, "what goes whole is promised whole");
  if (message.role == Outgoing::Role::request)
    holds(message.asks != nullptr && message.asks->link == message.link && !message.asks->asked &&
              requests_.insert(message.asks).second,
          "a request is for one get that has not been asked for");
  holds(message.role != Outgoing::Role::answer || stage == Stage::local || stage == Stage::waiting ||
            stage == Stage::announced,
        "an answer is under way");
  if (message.link == nullptr || stage == Stage::abandoned) return;
  if (message.role == Outgoing::Role::answer)
    ++links_[message.link].unmatched, ++pairs_[message.pair].unmatched;
  if (stage == Stage::announced) links_[message.link].eager_unsent += message.eager.left();
  std::uint64_t sent = message.acknowledged + message.eager.left() + message.rest.left();
  for (const Span& span : message.again) sent += span.length();
  if (const auto logged = logged_.find(message.id); logged != logged_.end()) sent += logged->second;
  holds(stage != Stage::announced || message.received || sent == message.promised,
        "each byte is acknowledged, in one log, or to be sent");
  holds(message.outflow != nullptr && message.outflow->link == message.link &&
            message.outflow->from == message.from,
        "a write is in its endpoint's outflow");
  OfOutflow& outflow = outflows_[message.outflow];
  OfPair& pair = pairs_[message.pair];
  if (stage == Stage::held) ++outflow.held, ++pair.held;
  if (stage == Stage::queued) ++outflow.queued, ++pair.queued;
}

void Invariants::look_at_incoming() {
  engine_.incoming_.each([&](const Incoming& message) { look_at(message); });
}

void Invariants::look_at(const Incoming& message) {
  using Stage = Incoming::Stage;
  const Stage stage = message.stage;
  std::uint64_t blocks = 0;
  for (const Block& block : message.blocks) blocks += block.length();
  pool_used_ += blocks;
  holds(stage != Stage::made, "a message that is here was matched, stored or given up");
  holds(message.matched() == (message.read != nullptr), "a matched message has a read");
  holds(message.read == nullptr || message.read->message == &message, "a read knows its message");
  holds((message.pair != nullptr) == (message.waits() || message.matched()),
        "a message that may be read has a pair");
  holds(in_list<hook::Arrivals>(message) == message.unread(), "what waits for a read is with its endpoint");
  // Its asker's own; with a request that its gate keeps.
  const bool asks_here =
      message.gets() && message.matched() && message.local == nullptr && message.link == nullptr;
  holds(in_list<hook::Queue>(message) ==
            (stage == Stage::stored || stage == Stage::behind ||
             (asks_here && !requests_.contains(&message)) ||
             (message.matched() && message.local != nullptr && !message.local->late &&
              message.local->stage == Outgoing::Stage::local)),
        "a message is in the list of its stage");
  holds(message.waits() || message.blocks.empty(), "only what waits for a read is in the pool");
  holds(!message.counted || message.waits(), "only what waits for a read counts against its source");
  holds(message.rode == nullptr || message.waits() || message.gets(), "what rode is kept for a read");
  holds(!has(message.flags, MessageFlags::rows) || message.rode != nullptr ||
            message.stage == Incoming::Stage::unwanted,
        "who has rows keeps them");
  holds((message.owes != Kind::none) == message.owed(), "what a message owes waits for a train");
  holds(message.local == nullptr ||
            (message.link == nullptr && message.local->local == &message && stage <= Stage::matched),
        "a local message goes with its write");
  holds(message.local != nullptr || message.link != nullptr ||
            (message.unread() && message.whole() && message.arrived == message.promised) || asks_here,
        "what has neither its write nor a link is whole");
  const auto due = due_.find(&message);
  std::uint64_t to_come = message.eager.left() + (due == due_.end() ? 0 : due->second);
  if (asks_here)
    to_come = message.total;
  else if (message.local != nullptr)
    to_come += message.rest.left();
  else
    message.progress.each(message.rest.low, message.rest.left(), message.limit,
                          [&](std::uint64_t, std::uint64_t n, bool counted) { to_come += counted ? 0 : n; });
  holds(message.promised <= message.total && message.arrived + to_come == message.promised,
        "what was promised is here, due or to come");
  holds(message.waits() || message.matched() || message.arrived != message.promised || message.owed() ||
            requests_.contains(&message) || message.asked,
        "what is over is kept only for what still comes or is owed");
  if (message.pair != nullptr) ++pairs_[message.pair].messages;
  if (message.link == nullptr) parted_ += blocks;
  if (!message.counted) return;
  holds(message.link != nullptr, "what counts against its source has a link");
  ++links_[message.link].unmatched;
  ++pairs_[message.pair].unmatched;
}

void Invariants::look_at_readings() {
  engine_.readings_.each([&](const Reading& read) {
    const bool posted = read.posted_as != Reading::not_posted;
    holds(in_list<hook::Owned>(read), "a read is its endpoint's");
    holds(read.message == nullptr || read.message->read == &read, "a message knows its read");
    holds(posted == (read.message == nullptr && !read.probe), "a read without a message is posted");
    holds(in_list<hook::Queue>(read) == (read.message == nullptr), "a read that waits is in a list");
  });
}

void Invariants::look_at_atomics() {
  for (const auto& asked : engine_.asked_atomics_) {
    ++pairs_[asked.pair].messages;
    holds(asked.pair->atomic_asked, "a pair waits for the atomic that its program was asked for");
    const Incoming* const message = engine_.incoming_.find(asked.message);
    holds(message == nullptr || message->what == Incoming::What::atomic, "what is asked for is an atomic");
  }
}

void Invariants::look_at_peers() {
  for (const auto& [address, peer] : engine_.peers_) {
    const Link* const link = engine_.find_link(address);
    if (link == nullptr) continue;
    if (peer->envelopes != 0 && peer->how == Departure::none) ++links_[link].senders;
  }
}

void Invariants::look_at_links() {
  std::uint64_t reserved = parted_;
  for (const Link* link : engine_.open_links_) {
    look_at(*link);
    reserved += link->reserved * link->fragment;
  }
  holds(engine_.pool_reserved_ == reserved, "the pool is reserved for links, and for what is kept of none");
}

void Invariants::look_at(const Link& link) {
  const Carrier& carrier = link.carrier;
  const OnLink& counted = links_[&link];
  holds(link.unmatched == counted.unmatched, "a link counts its messages that nobody has read");
  holds(link.senders == counted.senders, "a link counts the endpoints that it has heard of");
  holds(carrier.stage != Carrier::Stage::none ||
            (carrier.due.empty() && carrier.header_filled == 0 && !carrier.train.active()),
        "nothing is under way without a carrier");
  look_at(link, carrier);
  std::uint32_t usable = 0;
  for (const auto& subflow : link.subflows) {
    if (subflow == nullptr) continue;
    usable += subflow->used();
    holds(subflow->carrier.subflow == subflow.get(), "a subflow's carrier knows it");
    look_at(*subflow, subflow->carrier);
  }
  holds(usable == link.usable_subflows, "a link counts the subflows that are used");
  holds(link.eager_unsent == counted.eager_unsent, "a link counts what will go unasked");
  holds(link.credit_used <= link.credit, "no more is sent unasked than there is credit for");
  holds(link.granted_used <= link.granted_told && link.granted_told <= engine_.grant(link),
        "no more credit is used than was told, no more told than there is");
  holds(link.freed <= link.granted_used, "no more credit is freed than was used");
  holds(link.envelopes_told <= engine_.grant_envelopes(link), "no more places are told than there are");
  for (const Pair& pair : link.held)
    holds(pair.peer->address.place == static_cast<std::int32_t>(link.index), "a pair is held by its link");
  for (const auto& [name, id] : link.incoming) {
    const Incoming* const message = engine_.incoming_.find(id);
    holds(message != nullptr && message->link == &link && message->message == name,
          "a name of the sender is of a message that is here");
  }
  for (const Outgoing& message : link.fresh)
    holds(message.stage == Outgoing::Stage::queued && message.link == &link, "fresh writes are queued");
  for (const Outgoing& message : link.ready)
    holds(message.stage == Outgoing::Stage::announced && message.link == &link, "ready writes are announced");
  for (const Outgoing& message : link.asked)
    holds(message.stage == Outgoing::Stage::announced && message.link == &link && message.matched,
          "what was asked for is matched");
}

void Invariants::look_at(const Trains& trains, const Carrier& carrier) {
  holds(carrier.due.size() <= max_entries, "no more is due than one train brings");
  holds(carrier.due.empty() == (trains.received == trains.reading),
        "a train is received when nothing of it is due");
  holds(trains.received_told <= trains.received && trains.received <= trains.reading &&
            trains.reading - trains.received <= 1,
        "trains are received, then acknowledged, one after the other");
  holds(trains.acknowledged <= trains.sequence && trains.sequence - trains.acknowledged <= window,
        "no more trains are under way than the window has");
}

void Invariants::look_at_endpoints() {
  for (const auto& [number, endpoint] : engine_.endpoints_) look_at(*endpoint);
}

void Invariants::look_at(const Endpoint& endpoint) {
  holds(!endpoint.killing, "no endpoint is being emptied between calls");
  holds(endpoint.writes.size() == endpoint.unfinished, "an endpoint counts its writes");
  bool waits = !endpoint.writes.empty();
  for (const auto& [index, outflow] : endpoint.outflows) {
    const OfOutflow& counted = outflows_[outflow.get()];
    holds(outflow->fresh == counted.held + counted.queued, "an outflow counts what it has not announced");
    waits = waits || outflow->owed() || outflow->fresh != 0;
  }
  std::uint64_t held = 0;
  for (const auto& [address, pair] : endpoint.pairs) {
    look_at(pair);
    held += pair.held.size();
  }
  const auto unread =
      static_cast<std::uint64_t>(std::ranges::distance(endpoint.arrivals)) + endpoint.claimed.size();
  holds(endpoint.backlog.held == held && endpoint.backlog.unread == unread,
        "an endpoint counts what it holds and what it has not read");
  for (const auto& [number, row] : endpoint.more_rows) look_at(endpoint, number, row);
  holds(std::ranges::all_of(endpoint.through,
                            [&](std::int32_t row) { return endpoint.more_rows.contains(row); }),
        "what may be given up is there");
  if (!endpoint.departed()) return;
  holds(endpoint.reads.empty() && endpoint.probes.empty() && endpoint.arrivals.empty() &&
            endpoint.claimed.empty(),
        "who has departed reads nothing");
  holds(waits, "who has departed is here only for what is under way");
}

void Invariants::look_at(const Endpoint& endpoint, std::int32_t number, const Row& row) {
  const auto pair = endpoint.pairs.find(row.address);
  holds(row.pair == (pair == endpoint.pairs.end() ? nullptr : &pair->second), "a row knows its pair");
  holds(row.pair == nullptr || row.pair->row == number, "a pair knows its row");
  holds(std::ranges::count(endpoint.through, number) == (row.listed ? 1 : 0), "a row may be given up once");
  const bool through = endpoint.number != kernel_endpoint && row.pair != nullptr && row.pair->messages == 0 &&
                       row.pair->peer->how != Departure::none;
  holds(!through || row.listed || row.kept, "who is through may be given up");
}

void Invariants::look_at(const Pair& pair) {
  const OfPair& counted = pairs_[&pair];
  holds(pair.messages == counted.messages, "a pair counts the messages that name it");
  const Link* const link = engine_.find_link(pair.peer->address);
  holds(pair.answers.empty() || pair.answering != nullptr, "an answer waits for another one only");
  if (const Outgoing* const answer = pair.answering; answer != nullptr) {
    const bool moves = answer->local != nullptr
                           ? answer->stage == Outgoing::Stage::local && in_list<hook::Queue>(*answer->local)
                           : answer->stage == Outgoing::Stage::announced && answer->asked();
    holds(answer->pair == &pair && moves, "the answer that others wait for is being sent, or copied");
  }
  if (link == nullptr) return;
  holds(pair.unmatched == counted.unmatched, "a pair counts what waits for a read");
  holds(pair.queued == counted.queued, "a pair counts what is about to be announced");
  holds(pair.held.size() == counted.held, "what is held is in its pair's list");
  holds(pair.held.empty() || in_list<hook::Held>(pair), "the link knows of a pair that holds writes");
  holds(pair.held.empty() || !may_send_envelope(pair.unread(), link->envelopes_left()),
        "writes are held only where there is no place for them");
  holds(pair.returned <= pair.sent && pair.reported + pair.unmatched <= pair.received,
        "no more is read than was sent");
  holds(pair.not_reported() < pair_envelopes / 2 || pair.owed(), "what was read is told in time");
}

} // namespace parc::protocol
