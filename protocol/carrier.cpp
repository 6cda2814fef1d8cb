// SPDX-License-Identifier: BSD-3-Clause
// A link outlives its byte streams. When one ends, at whatever byte, each side forgets the fragment that it
// had half; on the next one each states what it has taken, and sends again from its log what the other has
// not.
//
// Who was half read is not read on: of the last train that was begun, the fragments that are in place count
// as delivered, and those behind them as never sent. The sender puts those back to the front of its log, the
// receiver back into what it expects of their messages (Grant::put_back), and both number on from that train.
// A statement may be made again and again: it changes only when another train has begun.
#include "protocol/engine.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cassert>
#include <cstring>
#include <utility>

namespace parc::protocol {
namespace {

// How many fragments of the train that is being written have bytes that the carrier has not taken.
std::uint32_t count_cut_off(const Link& link) {
  std::uint64_t left = 0;
  for (const iovec& part : link.carrier.train.rest()) left += part.iov_len;
  std::uint32_t fragments = 0;
  link.log.each_of(link.sequence, [&](const Log::Entry& entry) {
    if (left == 0) return false;
    if (entry.kind() != Kind::fragments) return true;
    const std::uint32_t length = entry.descriptor.length;
    const auto cut = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, length));
    left -= cut;
    fragments +=
        static_cast<std::uint32_t>(fragments_of(length, link.fragment)) - (length - cut) / link.fragment;
    return true;
  });
  return left == 0 ? fragments : ~std::uint32_t{0}; // not even its header
}

} // namespace

void Engine::detach(std::uint32_t index) {
  if (links_[index] == nullptr) return;
  Link& link = *links_[index];
  Carrier& carrier = link.carrier;
  if (carrier.stage == Carrier::Stage::none) return;
  if (carrier.stage == Carrier::Stage::up) {
    const bool half_written = carrier.train.active() && carrier.train.entries() != 0;
    link.cut_off = half_written ? count_cut_off(link) : 0;
  }
  carrier.train.abandon();
  carrier.stage = Carrier::Stage::none;
  carrier.header_filled = 0;
  if (carrier.due.empty()) return;
  link.missing = 0;
  for (; !carrier.due.empty(); carrier.due.pop_back()) {
    Due& due = carrier.due.back();
    const std::uint32_t whole = due.whole(due.done, link.fragment), left = due.length - whole;
    link.missing += static_cast<std::uint32_t>(fragments_of(left, link.fragment));
    if (due.landing.pooled() && whole != 0) keep(link, due, whole);
    Incoming* const message = due.landing.message();
    if (message != nullptr && due.eager)
      message->eager.put_back(left, due.from_end);
    else if (due.eager)
      link.freed += fragments_of(
          left, link.fragment); // of a message that was given up: its sender will not send it again
  }
  received_whole(link);
}

// The first `whole` bytes of the payload of a block.
void Engine::keep(Link& link, const Due& due, std::uint32_t whole) {
  const std::uint64_t offset = due.offset + (due.from_end ? due.length - whole : 0);
  Block block(due.eager ? pool_used_ : apart_used_, offset, whole);
  std::memcpy(block.at(offset), due.landing.block().at(offset), whole);
  Due part{.landing = {due.landing.message(), std::move(block)},
           .offset = offset,
           .length = whole,
           .eager = due.eager};
  in_place(link, part, 0, whole);
}

void Engine::attach(std::uint32_t index) {
  assert(links_[index] != nullptr);
  detach(index);
  Link& link = *links_[index];
  link.carrier.stage = Carrier::Stage::stating;
  link.received_told = link.received;
  link.granted_told = grant(link);
  link.envelopes_told = grant_envelopes(link);
  link.carrier.train.state({statement_magic, link.missing, link.reading, link.granted_told,
                            link.envelopes_told, link.self, link.peer});
}

// Nothing is changed by a statement that is refused.
Refusal Engine::take_statement(Link& link, const Statement& statement) {
  if (statement.magic != statement_magic) return Refusal::magic;
  if (statement.source_host != link.peer || statement.destination_host != link.self) return Refusal::host;
  const std::uint64_t last = statement.trains;
  if (last < link.acknowledged || last > link.sequence) return Refusal::resume;
  if (last == link.sequence && statement.missing < link.cut_off) return Refusal::resume;
  if (statement.credit < link.credit || statement.envelopes < link.envelope_credit) return Refusal::credit;
  // Those of a statement that was heard before are back in the log already, and are in no train.
  std::uint32_t fragments = 0;
  link.log.each_of(last, [&](const Log::Entry& entry) {
    if (entry.kind() == Kind::fragments)
      fragments += static_cast<std::uint32_t>(fragments_of(entry.descriptor.length, link.fragment));
    return true;
  });
  if (last != link.stated && statement.missing > fragments) return Refusal::resume;

  link.credit = statement.credit;
  link.envelope_credit = statement.envelopes;
  release_held(link);
  std::uint32_t in_place = fragments - std::min(fragments, statement.missing);
  boost::container::small_vector<Log::Entry, max_entries> again;
  for (Log::Entry entry; link.log.take(last, entry);) {
    if (entry.train != last || entry.kind() != Kind::fragments) {
      acknowledged(entry);
      continue;
    }
    // Of a run the first ones.
    const Descriptor run = entry.descriptor;
    const auto there = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(run.length, std::uint64_t{in_place} * link.fragment));
    in_place -= static_cast<std::uint32_t>(fragments_of(there, link.fragment));
    const bool from_end = (run.flags & flag_from_end) != 0;
    if (there != run.length) {
      again.push_back(entry);
      again.back().descriptor.length = run.length - there;
      if (!from_end) again.back().descriptor.offset += there;
    }
    if (there == 0) continue;
    entry.descriptor.length = there;
    if (from_end) entry.descriptor.offset += run.length - there;
    acknowledged(entry);
  }
  link.log.rewind();
  link.in_flight = link.asked_for = link.sent_since = 0;
  for (; !again.empty(); again.pop_back()) link.log.put_back(again.back());
  link.acknowledged = link.sequence = link.stated = last;
  link.cut_off = 0;
  link.carrier.stage = Carrier::Stage::up;
  return Refusal::none;
}

// What earlier carriers did not bring goes first. True: that was all.
bool Engine::resend(Link& link) {
  TrainOut& train = link.carrier.train;
  for (; !link.log.all_sent(); link.log.sent(link.sequence + 1)) {
    Log::Entry& entry = link.log.next();
    const bool of_envelope = brings_bytes(entry.kind());
    const bool of_fragments = entry.kind() == Kind::fragments;
    Outgoing* message = of_envelope || of_fragments
                            ? outgoing_.find(of_envelope ? entry.envelope.message : entry.descriptor.message)
                            : nullptr;
    const bool dead = (of_envelope || of_fragments) && (message == nullptr || message->abandoned());
    if (dead && of_fragments) entry.forget();
    if (entry.kind() == Kind::none) continue;
    if (entry.kind() == Kind::get || entry.kind() == Kind::atomic) {
      // It is kept until it is answered, which a peer may do that has not heard of it.
      const Incoming* const asks = incoming_.find(entry.envelope.message);
      const auto rows = asks != nullptr ? asks->rows() : std::nullopt;
      if (asks == nullptr) undo_request(entry.envelope);
      if (!train.room_for(size_of(entry.envelope))) return false;
      train.add(entry.envelope,
                asks != nullptr ? Pieces(asks->rode.get(), entry.envelope.inline_length) : Pieces(),
                rows ? &*rows : nullptr);
      continue;
    }
    if (of_envelope) {
      if (dead) undo_envelope(link, entry.envelope);
      if (!train.room_for(size_of(entry.envelope))) return false;
      link.resent += entry.envelope.inline_length;
      train.add(entry.envelope, dead ? Pieces() : message->memory, dead ? nullptr : message->rows.get());
      continue;
    }
    if (!train.room_for(sizeof(Descriptor))) return false;
    if (of_fragments &&
        (train.payload() >= link.train_bytes || !train.room_for_pieces() || link.flight_is_full()))
      return false;
    if (of_fragments) {
      if (!add_run(link, train, *message, entry.descriptor)) {
        lose_answer(*message);
        entry.forget();
        continue;
      }
      link.resent += entry.descriptor.length;
      link.in_flight += entry.descriptor.length;
    } else {
      train.add(entry.descriptor);
    }
  }
  return true;
}

// Its message was given up before the other side heard of it: its place in the order is taken, nothing
// follows, and what was booked for it is free again. The abort is behind it.
void Engine::undo_envelope(Link& link, Envelope& envelope) {
  if (envelope.inline_length == 0) link.credit_used -= fragments_of(envelope.eager, link.fragment);
  envelope.flags &= ~(MessageFlags::whole | MessageFlags::rows);
  envelope.inline_length = 0;
  envelope.eager = 0;
}

// As a get of nothing.
void Engine::undo_request(Envelope& envelope) {
  envelope.kind = Kind::get;
  envelope.flags = MessageFlags::none;
  envelope.inline_length = 0;
  envelope.length = envelope.eager = 0;
}

} // namespace parc::protocol
