// SPDX-License-Identifier: BSD-3-Clause
// More byte streams for a link (multipath TCP's subflows): where one TCP connection reaches a part of a path
// only, several reach more. They bring payload that was asked for: it is matched and has its place, in
// whatever order its runs come. All else stays on the first carrier, in its order, and nothing queues before
// it there.
//
// Each numbers its trains and keeps its log. What one has not brought when it ends, or is doubted, goes by
// the others. So some of a message may come twice, the second time even when nothing is known of it any more;
// what has been counted is its program's, and a copy of that goes to the sink (landing.hpp). Of two copies
// the receiver counts one (progress.hpp), and the sender waits for one: each byte is in one entry of one log,
// or yet to be dealt.
//
// Subflows acknowledge their trains themselves, each when it can. So that nobody hears of a reader's end
// before the end of what it has read, a message that came over subflows is acknowledged whole on the first
// carrier (Kind::message_ack), too.
#include "protocol/engine.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace parc::protocol {
namespace {

constexpr std::uint64_t trains_to_tell = 4;           // that were read: their acknowledgement goes alone
constexpr std::uint32_t first_train_bytes = 32 << 10; // until its path is known: it begins slowly

// Neighbours become one.
void put_in(std::vector<Span>& spans, Span span) {
  auto next = std::ranges::lower_bound(spans, span.low, {}, &Span::low);
  if (next != spans.end() && next->low == span.high) {
    span.high = next->high;
    next = spans.erase(next);
  }
  if (next != spans.begin() && (next - 1)->high == span.low)
    (next - 1)->high = span.high;
  else
    spans.insert(next, span);
}

} // namespace

Carrier& Engine::carrier_of(Link& link, std::uint32_t number) {
  if (number == 0) return link.carrier;
  Subflow* const subflow = link.subflow(number);
  assert(subflow != nullptr);
  return subflow->carrier;
}

std::optional<std::uint32_t> Engine::add_subflow(std::uint32_t index) {
  assert(links_[index] != nullptr);
  Link& link = *links_[index];
  auto place = std::find(link.subflows.begin(), link.subflows.end(), nullptr);
  if (place == link.subflows.end()) {
    if (link.subflows.size() == most_subflows) return std::nullopt;
    place = link.subflows.insert(place, nullptr);
  }
  *place = std::make_unique<Subflow>();
  Subflow& subflow = **place;
  subflow.train_bytes = std::min(link.train_bytes, first_train_bytes);
  subflow.carrier.subflow = &subflow;
  subflow.carrier.stage = Carrier::Stage::up;
  if (++link.usable_subflows == 1) restripe(link);
  return static_cast<std::uint32_t>(place - link.subflows.begin()) + 1;
}

void Engine::drop_subflow(std::uint32_t index, std::uint32_t number) {
  Link* const link = links_[index].get();
  if (link == nullptr || link->subflow(number) == nullptr) return;
  doubt_subflow(index, number);
  link->subflows[number - 1].reset();
}

void Engine::doubt_subflow(std::uint32_t index, std::uint32_t number) {
  Link* const link = links_[index].get();
  Subflow* const subflow = link != nullptr ? link->subflow(number) : nullptr;
  if (subflow == nullptr) return;
  change(*link, *subflow, &Subflow::doubted, true);
  deal_again(*link, *subflow);
}

void Engine::retire_subflow(std::uint32_t index, std::uint32_t number, bool retired) {
  Link* const link = links_[index].get();
  if (link != nullptr && link->subflow(number) != nullptr)
    change(*link, *link->subflow(number), &Subflow::retired, retired);
}

// Where there is one that is used, payload that was asked for goes over that; else over the first carrier.
void Engine::change(Link& link, Subflow& subflow, bool Subflow::*what, bool value) {
  const bool striped = link.striped();
  link.usable_subflows -= subflow.used();
  subflow.*what = value;
  link.usable_subflows += subflow.used();
  if (link.striped() != striped) restripe(link);
}

// Its log keeps their places.
void Engine::deal_again(Link& link, Subflow& subflow) {
  subflow.log.each([&](Log::Entry& entry) {
    if (entry.kind() != Kind::fragments) return;
    const Descriptor run = entry.descriptor;
    entry.forget();
    subflow.in_flight -= run.length;
    Outgoing* const message = outgoing_.find(run.message);
    if (message == nullptr || message->abandoned() || message->received) return;
    link.resent += run.length;
    put_in(message->again, {run.offset, run.offset + run.length});
    make_ready(*message);
  });
}

// The first subflow is there, or the last one is not any more.
void Engine::restripe(Link& link) {
  std::vector<Outgoing*> waiting;
  const auto take = [&](auto& list) {
    for (; !list.empty(); list.pop_front()) waiting.push_back(&list.front());
  };
  take(link.ready);
  take(link.asked);
  for (Outgoing* message : waiting) make_ready(*message);
}

bool Engine::build(Link& link, Subflow& subflow) {
  TrainOut& train = subflow.carrier.train;
  const bool has_entries =
      subflow.used() && !link.asked.empty() && subflow.sequence - subflow.acknowledged < window;
  const bool pure = subflow.ack_now || subflow.received - subflow.received_told >= trains_to_tell ||
                    subflow.retired != subflow.retired_told;
  if (!has_entries && !pure) return false;
  train.begin();
  if (has_entries) add_fragments(link, subflow, train, link.asked);
  Prefix prefix{};
  prefix.sequence = train.entries() != 0 ? ++subflow.sequence : 0;
  prefix.acknowledgement = subflow.received_told = subflow.received;
  prefix.flags = subflow.retired ? flag_retired : 0;
  subflow.retired_told = subflow.retired;
  prefix.source_host = link.self;
  prefix.destination_host = link.peer;
  train.finish(prefix);
  subflow.ack_now = false;
  ++link.trains_out;
  return true;
}

Refusal Engine::take_header(Link& link, Carrier& carrier, const Prefix& prefix,
                            std::span<const std::byte> entries) {
  Subflow& subflow = *carrier.subflow;
  if (prefix.entries != 0 && prefix.sequence != subflow.reading + 1) return Refusal::sequence;
  if (prefix.credit != 0 || prefix.envelopes != 0) return Refusal::credit;
  const std::uint64_t before = subflow.acknowledged;
  if (const Refusal refusal = acknowledge(subflow, carrier, prefix.acknowledgement); refusal != Refusal::none)
    return refusal;
  if (subflow.acknowledged != before && subflow.doubted) change(link, subflow, &Subflow::doubted, false);
  if (const bool retired = (prefix.flags & flag_retired) != 0; retired != subflow.peer_retired)
    change(link, subflow, &Subflow::peer_retired, retired);
  ++link.trains_in;

  std::uint64_t payload = 0;
  EntryWalk walk(entries, prefix.entries);
  while (const EntryWalk::Entry* entry = walk.next()) {
    if (entry->kind != Kind::fragments) return Refusal::kind;
    payload += entry->descriptor.length;
    const Refusal refusal = take_fragments(link, carrier, entry->descriptor);
    if (refusal != Refusal::none) return refusal;
  }
  if (walk.refusal() != Refusal::none) return walk.refusal();
  if (payload != prefix.payload_length) return Refusal::length;
  if (prefix.entries != 0) subflow.reading = prefix.sequence;
  if (carrier.due.empty()) subflow.received = subflow.reading;
  return Refusal::none;
}

Refusal Engine::take_message_ack(Link& link, const Descriptor& d) {
  Outgoing* const message = outgoing_.find(d.message);
  if (message == nullptr || message->abandoned()) return Refusal::none;
  if (message->link != &link || !message->announced() || !message->matched || message->whole() ||
      message->eager.left() != 0 || message->late || !link.may_see_copies())
    return Refusal::request;
  note_received(link, *message);
  check_write_done(*message);
  return Refusal::none;
}

// All of it, whatever was acknowledged and is to be sent.
void Engine::note_received(Link& link, Outgoing& message) {
  link.bytes_acknowledged += message.promised - message.acknowledged;
  message.received = true;
  message.acknowledged = message.promised;
  message.rest = {};
  message.again.clear();
  message.hook::Hook<hook::Queue>::unlink();
  message.hook::Hook<hook::Asked>::unlink();
}

// What is left of a message in half-written trains is copied, so that its memory can go.
void Engine::unname(Link& link, std::uint64_t message) {
  link.each_carrier([&](Carrier& carrier) { carrier.train.unname(message); });
}

} // namespace parc::protocol
