// SPDX-License-Identifier: BSD-3-Clause
// Trains that leave: answers first, then envelopes in the order of their writes, then fragments, a run of
// each message in turn. An envelope that cannot be followed by data within the credit still leaves: no unread
// message blocks another.
#include "protocol/engine.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace parc::protocol {
namespace {
// While payload waits, answers and envelopes take no more of a header than half; while anything else waits,
// answers take a quarter, or three eighths where many wait. So none of them ever keeps another from moving,
// and answers leave as fast as the other side may ask for them.
constexpr std::uint16_t entries_before_payload = max_entries / 2, answers_before_others = max_entries / 4,
                        many_answers_before_others = max_entries / 8 * 3;
constexpr std::size_t many_ends = 1024;
constexpr std::uint32_t bytes_before_payload = max_header / 2;
constexpr std::uint32_t longest_train = 512 << 10; // what the receiver's cache takes
// Of a train, for each of several messages; of a message that is eaten from its end, whose fragments lie
// apart.
constexpr std::uint32_t share_of_train = 8, fragments_from_end = 16;
static_assert(sizeof(Prefix) + many_answers_before_others * sizeof(Descriptor) + sizeof(Envelope) +
                  max_inline <=
              bytes_before_payload);
constexpr std::uint64_t asked_in_flight = 16; // acknowledgements
constexpr std::uint64_t most_that_wait = 16;  // trains, for one that nobody waits for
// Where there are subflows, the first carrier brings no more of long messages unasked than its path holds:
// the rest is there sooner over them. Short ones go at once.
constexpr std::uint64_t short_beside_subflows = 192 << 10; // what kernels relay is, too

bool may_ride(const Outgoing& message) {
  return message.total + (message.rows != nullptr ? sizeof(Rows) : 0) <= max_inline;
}

std::uint64_t may_go_unasked(const Link& link, std::uint64_t message_bytes) { // in fragments
  const std::uint64_t credit = link.credit - link.credit_used;
  if (!link.striped() || message_bytes <= short_beside_subflows || link.path_holds_kib == 0) return credit;
  const std::uint64_t path = std::uint64_t{link.path_holds_kib} * 1024;
  return std::min(credit, (path - std::min(path, link.eager_unsent)) / link.fragment);
}

// The next run of a message, of so many bytes or one fragment.
Descriptor take_run(const Outgoing& message, Grant& from, std::uint32_t most, std::uint32_t fragment) {
  const bool above = from.from_above();
  if (above) most = std::min(most, fragments_from_end * fragment);
  most = std::max(most / fragment * fragment, fragment);
  const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(from.run(), most));
  const std::uint8_t flags = above ? flag_from_end : 0;
  return {Kind::fragments, flags, 0, length, message.id, from.take(length), message.asker};
}

// Likewise of what has to go again, what is needed first.
Descriptor take_again(Outgoing& message, std::uint32_t most, std::uint32_t fragment) {
  const bool above = message.rest.from_end;
  const auto next = above ? message.again.end() - 1 : message.again.begin();
  Grant from{next->low, next->high, above};
  const Descriptor run = take_run(message, from, most, fragment);
  *next = {from.low, from.high};
  if (from.left() == 0) message.again.erase(next);
  return run;
}

// One that was flushed leaves as soon as the socket takes it; until then nothing can be done for it.
bool owes_alone(const Trains& trains) {
  return !trains.ack_now && trains.received != trains.received_told;
}
bool owes_alone(const Link& link) { // on its first carrier
  return link.carrier.stage == Carrier::Stage::up && (link.ack_urgent || link.ack_wanted) &&
         owes_alone(static_cast<const Trains&>(link));
}
bool owes_alone(const std::unique_ptr<Subflow>& subflow) {
  return subflow != nullptr && owes_alone(*subflow);
}

} // namespace

std::span<const iovec> Engine::plan_write(std::uint32_t index, std::uint32_t number) {
  Link* const link = links_[index].get();
  if (link == nullptr) return {};
  Subflow* const subflow = link->subflow(number);
  if (number != 0 && subflow == nullptr) return {};
  TrainOut& train = carrier_of(*link, number).train;
  if (!train.active() && !(subflow != nullptr ? build(*link, *subflow) : build(*link))) return {};
  return train.rest();
}

void Engine::wrote(std::uint32_t index, std::size_t bytes, std::uint32_t subflow) {
  Link& link = *links_[index];
  link.bytes_out += bytes;
  carrier_of(link, subflow).train.wrote(bytes);
}

void Engine::set_path(std::uint32_t index, std::uint32_t train_bytes, std::uint32_t delay_product_kib,
                      std::uint32_t number) {
  Link& link = *links_[index];
  Subflow* const subflow = link.subflow(number);
  Trains& trains = subflow != nullptr ? static_cast<Trains&>(*subflow) : link;
  trains.train_bytes = std::clamp(train_bytes, link.fragment, std::max(link.fragment, longest_train));
  if (subflow != nullptr) return;
  link.path_holds_kib = delay_product_kib;
  link.delay_product_kib = std::max(link.delay_product_kib, delay_product_kib);
}

void Engine::limit_flight(std::uint32_t index, std::uint64_t bytes) {
  if (links_[index] != nullptr) links_[index]->most_in_flight = bytes;
}

bool Engine::owes_acknowledgement() const {
  return std::any_of(open_links_.begin(), open_links_.end(),
                     [](const Link* link) { return owes_acknowledgement(*link); });
}

bool Engine::acknowledgements_may_wait() const {
  return std::none_of(open_links_.begin(), open_links_.end(), [](const Link* link) {
    const bool waits = !link->ack_urgent && link->received - link->received_told < most_that_wait;
    return waits ? std::ranges::any_of(link->subflows, [](const auto& each) { return owes_alone(each); })
                 : owes_acknowledgement(*link);
  });
}

void Engine::flush_acknowledgements() {
  for (Link* link : open_links_) {
    if (owes_alone(*link)) link->ack_now = true;
    for (const auto& subflow : link->subflows)
      if (owes_alone(subflow)) subflow->ack_now = true;
  }
}

bool Engine::owes_acknowledgement(const Link& link) {
  return owes_alone(link) ||
         std::ranges::any_of(link.subflows, [](const auto& each) { return owes_alone(each); });
}

// It is here whole. What kernels say to each other is answered by what they do next.
void Engine::want_acknowledgement(Link& link, const Incoming& message) {
  const bool unawaited = message.what == Incoming::What::message && message.total <= max_unawaited &&
                         !message.synchronous() && message.space != Space::kernels;
  (unawaited ? link.ack_wanted : link.ack_urgent) = true;
}

bool Engine::build(Link& link) {
  if (link.carrier.stage != Carrier::Stage::up) return false;
  TrainOut& train = link.carrier.train;
  const bool may_number = link.sequence - link.acknowledged < window;
  const bool payload = !link.ready.empty() && !link.flight_is_full();
  const bool has_entries =
      may_number && (!link.log.all_sent() || !link.answers.empty() || !link.gone.empty() ||
                     !link.ends.empty() || !link.fresh.empty() || payload);
  const bool pure = link.ack_now || link.received - link.received_told >= window / 4 ||
                    grant(link) - link.granted_told >= std::max<std::uint64_t>(link.reserved / 4, 1);
  if (!has_entries && !pure) return false;
  train.begin();
  const std::size_t ends = link.ends.size();
  if (has_entries && resend(link)) {
    add_answers(link);
    add_envelopes(link);
    if (payload) add_fragments(link, link, train, link.ready);
  }
  if (train.entries() == 0 && !pure) {
    train.abandon();
    return link.ends.size() > ends && build(link); // in the place of answers that were to go
  }
  Prefix prefix{};
  prefix.sequence = train.entries() != 0 ? ++link.sequence : 0;
  prefix.flags = ask_for_acknowledgement(link) ? flag_acknowledge : 0;
  prefix.acknowledgement = link.received_told = link.received;
  prefix.credit = link.granted_told = grant(link);
  prefix.envelopes = link.envelopes_told = grant_envelopes(link);
  prefix.delay_product_kib = link.delay_product_kib;
  prefix.source_host = link.self;
  prefix.destination_host = link.peer;
  train.finish(prefix);
  link.ack_now = false;
  if (link.carrier.due.empty())
    link.ack_urgent = link.ack_wanted = false; // else of a train that is not all here
  ++link.trains_out;
  return true;
}

// Now and then, of the train that goes now; in any case when no more may follow it. So where a flight is full
// there is one that will be acknowledged, and the path's round trip and rate show (daemon/link/train_timer).
bool Engine::ask_for_acknowledgement(Link& link) {
  if (link.most_in_flight == 0 || link.carrier.train.entries() == 0) return false;
  if (link.carrier.train.payload() == 0 && link.asked_for > link.acknowledged) return false;
  link.sent_since += link.carrier.train.payload();
  if (link.in_flight < link.most_in_flight && link.sent_since < link.most_in_flight / asked_in_flight)
    return false;
  link.asked_for = link.sequence;
  link.sent_since = 0;
  return true;
}

void Engine::owe(Link& link, Answer& answer) {
  if (link.open && !answer.owed()) link.answers.push_back(answer);
}

void Engine::owe(Incoming& message, Kind answer) {
  message.owes = answer;
  owe(*message.link, message);
}

// It is behind the last envelope, and behind the acknowledgement of what was being received.
void Engine::owe_departure(Outflow& outflow) {
  Link& link = *outflow.link;
  if (!link.open || outflow.fresh != 0 || !outflow.from->departed() || outflow.owed()) return;
  if (link.received >= outflow.departs_after)
    owe(link, outflow);
  else
    link.departing.push_back(outflow);
}

void Engine::add_answers(Link& link) {
  const bool others_wait = !link.ready.empty() || !link.fresh.empty();
  const std::uint16_t most =
      link.ends.size() > many_ends ? many_answers_before_others : answers_before_others;
  const auto room = [&] {
    return link.carrier.train.room_for(sizeof(Descriptor)) &&
           !(others_wait && link.carrier.train.entries() >= most);
  };
  const auto add = [&](const Descriptor& descriptor) {
    link.carrier.train.add(descriptor);
    link.log.append(link.sequence + 1, descriptor);
  };
  for (bool ends = true; !(link.answers.empty() && link.ends.empty()) && room(); ends = !ends) { // in turns
    if (!link.ends.empty() && (ends || link.answers.empty())) {
      const auto [name, kind, flags, extra] = link.ends.front();
      add({kind, flags, 0, 0, name, 0, extra});
      link.ends.pop_front();
      continue;
    }
    Answer& answer = link.answers.front();
    link.answers.pop_front();
    Descriptor descriptor{};
    if (describe_answer(answer, descriptor)) add(descriptor);
  }
  for (; !link.gone.empty() && room(); link.gone.pop_front())
    add({Kind::departed, link.gone.front().flags, 0, 0, link.gone.front().number, 0, 0});
}

// Reads what an object owes from its state; an object that owes nothing more may go with it.
bool Engine::describe_answer(Answer& answer, Descriptor& descriptor) {
  switch (answer.of) {
  case Answer::Of::outgoing: {
    auto& message = static_cast<Outgoing&>(answer);
    descriptor.kind = message.abandoned() ? Kind::abort : Kind::cancel;
    descriptor.message = message.id;
    if (message.abandoned()) outgoing_.drop(message);
    return true;
  }
  case Answer::Of::incoming: {
    auto& message = static_cast<Incoming&>(answer);
    descriptor.message = message.message;
    descriptor.kind = std::exchange(message.owes, Kind::none);
    if (descriptor.kind != Kind::want) {
      if (!message.matched() && message.arrived == message.promised) drop_incoming(message);
      return true;
    }
    if (!message.matched()) { // its read has ended meanwhile: nothing more is wanted
      message.promised -= message.rest.left();
      message.rest = {message.rest.low, message.rest.low};
    }
    descriptor.flags = message.rest.from_end ? flag_from_end : 0;
    descriptor.offset = message.rest.low;
    descriptor.extra = message.rest.high;
    if (message.arrived == message.promised) drop_incoming(message);
    return true;
  }
  case Answer::Of::peer: {
    auto& peer = static_cast<Peer&>(answer);
    descriptor.kind = Kind::watch;
    descriptor.message = peer.address.number;
    peer.watch_owed = false;
    return true;
  }
  case Answer::Of::pair: {
    auto& pair = static_cast<Pair&>(answer);
    descriptor.kind = Kind::envelope_credit;
    descriptor.message = pair.peer->address.number;
    descriptor.offset = pair.at->number;
    descriptor.extra = pair.reported = pair.received - pair.unmatched;
    return true;
  }
  case Answer::Of::outflow: {
    auto& outflow = static_cast<Outflow&>(answer);
    descriptor.kind = Kind::departed;
    descriptor.message = outflow.from->number;
    descriptor.extra = outflow.envelopes;
    if (outflow.from->how == Departure::killed) descriptor.flags = flag_killed;
    check_drained(*outflow.from);
    return true;
  }
  }
  return false;
}

void Engine::add_envelopes(Link& link) {
  const bool payload_waits = !link.ready.empty();
  TrainOut& train = link.carrier.train;
  while (!link.fresh.empty()) {
    Outgoing& message = link.fresh.front();
    const bool atomic = message.asks != nullptr && message.asks->what == Incoming::What::atomic;
    const bool rows = message.rows != nullptr || (message.asks != nullptr && message.asks->rows());
    const std::uint64_t rides = atomic ? sizeof(Atomic) : may_ride(message) ? message.total : 0;
    const std::size_t bytes =
        sizeof(Envelope) + (rows ? sizeof(Rows) : 0) + padded(static_cast<std::uint32_t>(rides));
    if (!train.room_for(bytes)) return;
    if (payload_waits &&
        (train.entries() >= entries_before_payload || train.header_length() + bytes > bytes_before_payload))
      return;
    if (message.role == Outgoing::Role::request) {
      send_request(link, message);
      continue;
    }
    link.fresh.pop_front();

    Envelope envelope{};
    envelope.kind = message.role == Outgoing::Role::put ? Kind::put : Kind::envelope;
    envelope.flags = message.flags | when(message.from->departed(), MessageFlags::parting);
    envelope.space = message.space;
    envelope.tag = message.tag;
    envelope.data = message.data;
    envelope.source = message.from->number;
    envelope.destination = message.pair->peer->address.number;
    envelope.sequence = ++message.pair->sent;
    --message.pair->queued;
    envelope.length = message.total;
    envelope.message = message.id;
    decide_eager(link, message, envelope);
    train.add(envelope, message.memory, message.rows.get());
    link.log.append(link.sequence + 1, envelope);
    message.enter(Outgoing::Stage::announced);
    if (envelope.source != kernel_endpoint) ++link.messages_out;

    Outflow& outflow = *message.outflow;
    ++outflow.envelopes;
    --outflow.fresh;
    owe_departure(outflow);
    make_ready(message);
  }
}

void Engine::decide_eager(Link& link, Outgoing& message, Envelope& envelope) {
  const std::uint64_t available = may_go_unasked(link, message.total);
  const std::uint64_t fragments = fragments_of(message.total, link.fragment);
  if (message.late) {
    // nothing of it can go before it is wanted
  } else if (message.total != 0 && may_ride(message)) {
    envelope.inline_length = static_cast<std::uint16_t>(message.total);
    message.flags |= MessageFlags::whole;
  } else if (fragments <= available) {
    link.credit_used += fragments;
    message.flags |= MessageFlags::whole;
  } else {
    link.credit_used += available / 2;
    envelope.eager = available / 2 * link.fragment;
  }
  if (message.whole()) {
    envelope.eager = message.total;
    envelope.flags |= MessageFlags::whole;
  }
  message.promised = envelope.eager;
  if (envelope.inline_length == 0) {
    message.eager = Grant::unasked(message.total, envelope.eager, message.from_end(), link.fragment);
    link.eager_unsent += envelope.eager;
  }
}

// It goes to the list that its trains are filled from: what was asked for over subflows, while there are any.
void Engine::make_ready(Outgoing& message) {
  Link& link = *message.link;
  if (message.late) return;
  const bool striped = message.asked() && link.striped();
  if (striped && !message.hook::Hook<hook::Asked>::is_linked()) link.asked.push_back(message);
  if ((message.eager.left() != 0 || (message.asked() && !striped)) &&
      !message.hook::Hook<hook::Queue>::is_linked())
    link.ready.push_back(message);
}

// A run of each message in turn: all that the train has room for where it is the only one.
template <class Tag>
void Engine::add_fragments(Link& link, Trains& trains, TrainOut& train, hook::List<Outgoing, Tag>& waiting) {
  while (!waiting.empty() && train.payload() < trains.train_bytes && train.room_for_pieces() &&
         train.room_for(sizeof(Descriptor))) {
    Outgoing& message = waiting.front();
    waiting.pop_front();
    std::uint32_t most = trains.train_bytes - train.payload();
    if (!waiting.empty()) most = std::min(most, trains.train_bytes / share_of_train);
    if (message.memory.count() > 1 || message.memory.has_rows_elsewhere()) most = 0;
    const bool eager = std::is_same_v<Tag, hook::Queue> && message.eager.left() != 0;
    const Descriptor run = eager                   ? take_run(message, message.eager, most, link.fragment)
                           : message.again.empty() ? take_run(message, message.rest, most, link.fragment)
                                                   : take_again(message, most, link.fragment);
    if (eager) link.eager_unsent -= run.length;
    if (!add_run(link, train, message, run)) {
      lose_answer(message);
      continue;
    }
    trains.log.append(trains.sequence + 1, run);
    trains.in_flight += run.length;
    make_ready(message);
    if (message.role == Outgoing::Role::answer && message.pair->answering == &message && !message.asked())
      answer_next(*message.pair);
  }
}
template void Engine::add_fragments(Link&, Trains&, TrainOut&, hook::List<Outgoing, hook::Asked>&);

// False: its memory, which is another process's, is not reached.
bool Engine::add_run(Link& link, TrainOut& train, const Outgoing& message, const Descriptor& run) {
  std::byte* fetched = nullptr;
  if (!message.memory.is_here()) {
    fetched = train.stage(run.length);
    if (!gather(fetched, message.memory, run.offset, run.length, CrossMemory::no_name)) return false;
  }
  train.add(run);
  link.fragments_out += fragments_of(run.length, link.fragment);
  const auto add = [&](std::uint32_t offset, std::uint32_t length) {
    if (fetched != nullptr) return train.add_payload(fetched + offset, length);
    train.add_payload(message.memory, run.offset + offset, length, message.id);
  };
  if ((run.flags & flag_from_end) == 0) {
    add(0, run.length);
    return true;
  }
  for (std::uint32_t high = run.length; high != 0;) {
    const std::uint32_t length = std::min(high, link.fragment);
    high -= length;
    add(high, length);
  }
  return true;
}

Refusal Engine::acknowledge(Trains& trains, const Carrier& carrier, std::uint64_t sequence) {
  // A train that is still being written cannot have been read.
  const bool half_written = carrier.train.active() && carrier.train.entries() != 0;
  const std::uint64_t complete = half_written ? trains.sequence - 1 : trains.sequence;
  if (sequence < trains.acknowledged || sequence > complete) return Refusal::ack;
  trains.acknowledged = sequence;
  for (Log::Entry entry; trains.log.take(sequence, entry);) {
    if (entry.kind() == Kind::fragments) {
      trains.in_flight -= entry.descriptor.length;
      trains.delivered += entry.descriptor.length;
    }
    acknowledged(entry);
  }
  return Refusal::none;
}

void Engine::acknowledged(const Log::Entry& entry) {
  const bool of_envelope = brings_bytes(entry.kind());
  if (!of_envelope && entry.kind() != Kind::fragments) return;
  Outgoing* message = outgoing_.find(of_envelope ? entry.envelope.message : entry.descriptor.message);
  if (message == nullptr || message->abandoned()) return;
  if (of_envelope) message->envelope_acknowledged = true;
  const std::uint64_t offset = of_envelope ? 0 : entry.descriptor.offset;
  const std::uint64_t length = of_envelope ? entry.envelope.inline_length : entry.descriptor.length;
  if (!message->received) {
    message->link->bytes_acknowledged += length;
    message->acknowledged += length;
  }
  if (length != 0) {
    message->progress.add(offset, length, message->total);
    if (message->of_program()) listener_.progressed(message->cookie, message->progress);
  }
  check_write_done(*message);
}

} // namespace parc::protocol
