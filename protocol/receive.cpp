// SPDX-License-Identifier: BSD-3-Clause
// Trains that arrive. Headers only ever lie in the link's private buffer; every payload byte's place is known
// before it is read: the memory of a matched read, a block of the pool that the credit paid for, or the sink.
#include "protocol/engine.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace parc::protocol {
namespace {

constexpr std::size_t sink_bytes = 65536;
// Stretches of a message that are here out of order: in a peer's runs are whole fragments, but for some.
constexpr std::size_t most_between = 1 << 14, least_between = 64;
// Endpoints of a host that write to this one, and what of theirs nobody has read.
constexpr std::uint64_t most_senders = std::uint64_t{1} << 16, most_unmatched = std::uint64_t{1} << 24;
// Of puts, gets and atomics, that have not been said: who asks for so much without listening is not well.
constexpr std::size_t most_ends = std::size_t{1} << 20;

} // namespace

std::size_t Engine::plan_read(std::uint32_t index, std::span<iovec> iovecs, std::uint32_t subflow) {
  Link& link = *links_[index];
  Carrier& carrier = carrier_of(link, subflow);
  assert(carrier.stage != Carrier::Stage::none);
  std::size_t count = 0;
  const auto add = [&](void* base, std::uint64_t length) {
    if (length != 0) iovecs[count++] = {base, length};
    return count + 1 < iovecs.size();
  };
  bool room = true;
  const auto add_stretch = [&](std::byte* base, std::uint64_t length) {
    if (base != nullptr && room) room = add(base, length);
    if (base != nullptr) return;
    if (sink_.empty()) sink_.resize(sink_bytes);
    for (std::uint64_t n = 0; length != 0 && room; length -= n) {
      n = std::min<std::uint64_t>(length, sink_bytes);
      room = add(sink_.data(), n);
    }
  };
  for (const Due& due : carrier.due) {
    std::uint32_t bytes = due.length - due.done;
    if (due.from_end) // a stretch for each fragment
      bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, iovecs.size() * link.fragment));
    due.each(due.done, bytes, link.fragment, add_stretch);
    if (!room || bytes != due.length - due.done) return count;
  }
  iovecs[count++] = {carrier.header.data() + carrier.header_filled, max_header - carrier.header_filled};
  return count;
}

Refusal Engine::took(std::uint32_t index, std::size_t bytes, std::uint32_t subflow) {
  Link& link = *links_[index];
  Carrier& carrier = carrier_of(link, subflow);
  link.bytes_in += bytes;
  std::uint64_t due = 0;
  for (const Due& d : carrier.due) {
    if (due >= bytes) break;
    due += d.length - d.done;
  }
  const std::size_t payload = std::min<std::uint64_t>(due, bytes);
  fill_due(link, carrier, payload, nullptr);
  carrier.header_filled += static_cast<std::uint32_t>(bytes - payload);
  return parse(link, carrier);
}

// `bytes` of payload are in place (from == nullptr) or lie in the private buffer and are copied.
void Engine::fill_due(Link& link, Carrier& carrier, std::size_t bytes, const std::byte* from) {
  while (bytes != 0) {
    Due& due = carrier.due.front();
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(bytes, due.length - due.done));
    if (from != nullptr) {
      due.each(due.done, n, link.fragment, [&](std::byte* base, std::uint64_t part) {
        if (base != nullptr) std::memmove(base, from, part);
        from += part;
      });
    }
    const std::uint32_t before = due.whole(due.done, link.fragment);
    due.done += n;
    bytes -= n;
    const std::uint32_t after = due.whole(due.done, link.fragment);
    if (due.done != due.length) {
      if (due.landing.pooled() || after == before) continue;
      in_place(link, due, before, after);
      // The rest of this run may have come before.
      if (Incoming* message = due.landing.message(); message != nullptr && !due.eager)
        arrived(link, *message);
      continue;
    }
    Due last = std::move(due);
    carrier.due.pop_front();
    if (carrier.due.empty() && carrier.subflow != nullptr)
      carrier.subflow->received = carrier.subflow->reading;
    else if (carrier.due.empty())
      received_whole(link);
    in_place(link, last, last.landing.pooled() ? 0 : before, after);
    if (Incoming* message = last.landing.message()) arrived(link, *message);
  }
}

// Bytes [from, to) of its payload, whole fragments: of a block all that is kept of it.
void Engine::in_place(Link& link, Due& due, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t length = to - from;
  const std::uint64_t fragments = fragments_of(length, link.fragment);
  link.fragments_in += fragments;
  Incoming* const message = due.landing.message();
  const std::uint64_t offset = due.offset + (due.from_end ? due.length - to : from);
  if (message != nullptr && !due.eager) { // it may have come before
    if (due.landing.pooled() && message->matched()) deliver_new(*message, due.landing.block());
    message->arrived += message->progress.add(offset, length, message->limit);
    if (message->matched()) tell_progress(*message);
    return;
  }
  if (message != nullptr) message->arrived += length;
  if (due.landing.stores()) return message->blocks.push_back(due.landing.take_block());
  if (due.eager) link.freed += fragments;
  if (message == nullptr || !message->matched()) return;
  if (due.landing.pooled()) return copy_in(*message, due.offset, due.landing.block().bytes());
  advance(*message, offset, length);
}

// What has been counted is its program's.
void Engine::deliver_new(const Incoming& message, const Block& block) {
  const std::uint64_t offset = block.offset();
  if (offset >= message.limit) return;
  const std::uint64_t length = std::min<std::uint64_t>(block.length(), message.limit - offset);
  message.progress.each(offset, length, message.limit,
                        [&](std::uint64_t from, std::uint64_t n, bool counted) {
                          if (!counted) deliver(message, from, block.bytes().subspan(from - offset, n));
                        });
}

// A run of it is here to its end.
void Engine::arrived(Link& link, Incoming& message) {
  if (message.arrived != message.promised) return;
  if (message.whole()) want_acknowledgement(link, message);
  if (message.rest_wanted()) link.ack_urgent = true;
  if (message.striped && message.owes == Kind::none && message.what != Incoming::What::put) {
    owe(message, Kind::message_ack);
    for (const auto& subflow : link.subflows) // what it says of them is not to be waited for
      if (subflow != nullptr && subflow->received != subflow->received_told) subflow->ack_now = true;
  }
  if (message.matched()) {
    if (message.whole() || message.owes != Kind::want) forget_name(message);
    check_read_done(message);
  } else if (!message.waits()) {
    if (!message.owed()) drop_incoming(message); // what nobody will read is here, nothing more is asked for
  } else if (message.whole() && !message.synchronous()) { // that one can still be canceled
    forget_name(message);
  }
}

// Departures that waited for it may leave.
void Engine::received_whole(Link& link) {
  link.received = link.reading;
  if (link.asked_to_tell != 0 && std::exchange(link.asked_to_tell, 0) > link.received_told)
    link.ack_now = true;
  for (auto it = link.departing.begin(); it != link.departing.end();) {
    auto& outflow = static_cast<Outflow&>(*it++);
    if (outflow.departs_after > link.received) continue;
    outflow.hook::Hook<hook::Answers>::unlink();
    owe(link, outflow);
  }
}

Refusal Engine::parse(Link& link, Carrier& carrier) {
  std::uint32_t at = 0;
  while (at < carrier.header_filled) {
    const std::uint32_t have = carrier.header_filled - at;
    if (!carrier.due.empty()) {
      const std::uint32_t n = std::min(have, carrier.due.front().length - carrier.due.front().done);
      fill_due(link, carrier, n, carrier.header.data() + at);
      at += n;
      continue;
    }
    if (carrier.stage == Carrier::Stage::stating) {
      if (have < sizeof(Statement)) break;
      Statement statement;
      std::memcpy(&statement, carrier.header.data() + at, sizeof statement);
      at += sizeof statement;
      if (const Refusal refusal = take_statement(link, statement); refusal != Refusal::none) return refusal;
      continue;
    }
    if (have < sizeof(Prefix)) break;
    Prefix prefix;
    std::memcpy(&prefix, carrier.header.data() + at, sizeof prefix);
    if (const Refusal refusal = check_prefix(prefix); refusal != Refusal::none) return refusal;
    if (have < prefix.header_length) break;
    const std::span<const std::byte> entries(carrier.header.data() + at + sizeof prefix,
                                             prefix.header_length - sizeof prefix);
    at += prefix.header_length;
    if (prefix.source_host != link.peer || prefix.destination_host != link.self) return Refusal::host;
    const Refusal refusal = carrier.subflow != nullptr ? take_header(link, carrier, prefix, entries)
                                                       : take_header(link, prefix, entries);
    if (refusal != Refusal::none) return refusal;
  }
  carrier.header_filled -= at;
  std::memmove(carrier.header.data(), carrier.header.data() + at, carrier.header_filled);
  return Refusal::none;
}

Refusal Engine::take_header(Link& link, const Prefix& prefix, std::span<const std::byte> entries) {
  if (prefix.entries != 0 && prefix.sequence != link.reading + 1) return Refusal::sequence;
  if ((prefix.flags & flag_retired) != 0) return Refusal::kind;
  if (const Refusal refusal = acknowledge(link, link.carrier, prefix.acknowledgement);
      refusal != Refusal::none)
    return refusal;
  if (prefix.credit < link.credit) return Refusal::credit;
  link.credit = prefix.credit;
  if (prefix.envelopes < link.envelope_credit) return Refusal::credit;
  if (std::exchange(link.envelope_credit, prefix.envelopes) != prefix.envelopes) release_held(link);
  widen(link, prefix.delay_product_kib);
  ++link.trains_in;

  std::uint64_t payload = 0;
  EntryWalk walk(entries, prefix.entries);
  while (const EntryWalk::Entry* entry = walk.next()) {
    const Refusal refusal = is_envelope(entry->kind) ? take_envelope(link, *entry)
                                                     : take_descriptor(link, entry->descriptor, payload);
    if (refusal != Refusal::none) return refusal;
  }
  if (walk.refusal() != Refusal::none) return walk.refusal();
  if (payload != prefix.payload_length) return Refusal::length;
  if (prefix.entries != 0) {
    link.reading = prefix.sequence;
    if ((prefix.flags & flag_acknowledge) != 0) link.asked_to_tell = prefix.sequence;
    link.missing = 0;
  }
  if (link.carrier.due.empty()) received_whole(link);
  return Refusal::none;
}

Refusal Engine::take_envelope(Link& link, const EntryWalk::Entry& entry) {
  const Envelope& e = entry.envelope;
  const bool to_kernel = e.destination == kernel_endpoint;
  if (to_kernel != (e.space == Space::kernels) || to_kernel != (e.source == kernel_endpoint))
    return Refusal::envelope;
  if (link.kernels_only && (!to_kernel || has(e.flags, MessageFlags::parting))) return Refusal::destination;
  const Address source{static_cast<std::int32_t>(link.index), e.source};
  Endpoint* to = find_endpoint(e.destination);
  if (to != nullptr && to->departed()) to = nullptr;
  Peer& peer = peer_of(source);
  if (peer.how != Departure::none) return Refusal::departure;
  if (peer.envelopes++ == 0 && ++link.senders > most_senders) return Refusal::envelope;
  if (to != nullptr) outflow_of(*to, link); // the writer is told when it departs
  Pair* const pair = to != nullptr ? &pair_of(*to, source) : nullptr;
  // Those before the first were for nobody, as the endpoint had not been made.
  if (pair != nullptr && pair->received == 0 && e.sequence > 1) {
    pair->received = e.sequence - 1;
    owe(link, *pair);
  }
  if (pair != nullptr && e.sequence != ++pair->received) return Refusal::order;
  if (++link.unmatched > most_unmatched || link.ends.size() > most_ends) return Refusal::credit;
  if (pair != nullptr && !may_send_envelope(pair->unmatched++, link.places_left()) &&
      !has(e.flags, MessageFlags::parting))
    return Refusal::credit;
  ++link.envelopes_in;
  if (e.inline_length == 0) link.granted_used += fragments_of(e.eager, link.fragment);
  if (link.granted_used > link.granted_told) return Refusal::credit;

  if (entry.kind == Kind::get || entry.kind == Kind::atomic) return take_get(link, to, pair, entry);
  if (!to_kernel) ++link.messages_in;
  Incoming& message = incoming_.make();
  message.link = &link;
  message.message = e.message;
  message.counted = true;
  if (entry.kind == Kind::put) message.what = Incoming::What::put;
  if (pair != nullptr) name_pair(message, *pair);
  message.space = e.space;
  message.tag = e.tag;
  message.data = e.data;
  message.flags = e.flags;
  message.total = e.length;
  message.promised = e.eager;
  const bool from_end = has(e.flags, MessageFlags::from_end);
  if (e.inline_length == 0) message.eager = Grant::unasked(e.length, e.eager, from_end, link.fragment);
  const bool all_here = message.whole() && message.eager.left() == 0;
  if (all_here) want_acknowledgement(link, message);
  if ((!all_here || message.synchronous()) && !link.incoming.emplace(e.message, message.id).second) {
    forget_pair(message);
    incoming_.drop(message);
    return Refusal::order;
  }
  message.arrived = e.inline_length;
  if (to == nullptr) {
    if (entry.kind == Kind::envelope && e.destination <= last_endpoint_ && !killed_.contains(e.destination))
      listener_.unread(e.destination, source,
                       {.space = e.space, .tag = e.tag, .data = e.data, .total = e.length});
    discard(message);
  } else {
    std::span<const std::byte> riding{entry.inline_data, e.inline_length};
    if (const Rows* const rows = entry.rows()) keep_rows(message, *rows, std::exchange(riding, {}));
    take_in_order(message, riding);
  }
  return Refusal::none;
}

Refusal Engine::take_descriptor(Link& link, const Descriptor& d, std::uint64_t& payload) {
  switch (d.kind) {
  case Kind::fragments: payload += d.length; return take_fragments(link, link.carrier, d);
  case Kind::want: return take_want(link, d);
  case Kind::matched: return take_matched(link, d);
  case Kind::message_ack: return take_message_ack(link, d);
  case Kind::refused: return take_refused(link, d);
  case Kind::none_to_send: return take_none_to_send(link, d);
  case Kind::result: return take_result(link, d);
  case Kind::departed: return take_departure(link, d);
  case Kind::watch: return take_watch(link, d);
  case Kind::cancel: {
    Incoming* message = find_incoming(link, d.message);
    if (message == nullptr || message->what != Incoming::What::message ||
        (message->stage != Incoming::Stage::stored && message->stage != Incoming::Stage::behind) ||
        (message->whole() && !message->synchronous()))
      return Refusal::none;
    owe(*message, Kind::canceled);
    discard(*message);
    return Refusal::none;
  }
  case Kind::canceled: {
    Outgoing* message = outgoing_.find(d.message);
    if (message == nullptr || message->abandoned()) return Refusal::none;
    if (message->link != &link || !message->cancel_asked) return Refusal::request;
    fail_write(*message, Fault::canceled);
    return Refusal::none;
  }
  case Kind::abort: {
    Incoming* message = find_incoming(link, d.message);
    if (message == nullptr) return Refusal::none;
    Pair* const pair = message->what == Incoming::What::put ? message->pair : nullptr;
    if (pair != nullptr) give_up_behind(*pair, *message);
    if (message->matched()) {
      listener_.peer_departed(message->pair->peer->address); // which is said behind this
      fail_read(*message->read, Fault::peer);
    }
    drop_incoming(*message);
    if (pair != nullptr) fail_those_behind(*pair->peer);
    return Refusal::none;
  }
  case Kind::envelope_credit: {
    Endpoint* endpoint = find_endpoint(d.message);
    if (endpoint == nullptr) return d.message > last_endpoint_ ? Refusal::request : Refusal::none;
    const auto found = endpoint->pairs.find({static_cast<std::int32_t>(link.index), d.offset});
    const bool all_there = static_cast<std::size_t>(endpoint->rows_given) == endpoint->more_rows.size();
    if (found == endpoint->pairs.end()) return all_there ? Refusal::request : Refusal::none; // given up
    Pair& pair = found->second;
    if (d.extra < pair.returned || d.extra > pair.sent) return Refusal::credit;
    pair.returned = d.extra;
    release_held(link);
    return Refusal::none;
  }
  default: return Refusal::kind;
  }
}

// What goes unasked comes in its order. What was asked for does not where there are subflows, some of it
// twice, and the second copy of its end when nothing is known of it any more.
Refusal Engine::take_fragments(Link& link, Carrier& carrier, const Descriptor& d) {
  const bool above = d.flags == flag_from_end;
  if (d.length == 0 || d.length > max_payload || (d.flags != 0 && !above)) return Refusal::fragment;
  Incoming* const message = d.extra != 0 ? find_get(link, d.extra) : find_incoming(link, d.message);
  if (d.extra != 0 && message != nullptr) message->message = d.message;
  const bool copy = message == nullptr && link.may_see_copies();
  const bool asked = message != nullptr && message->has_asked_for(d.offset, d.length);
  const bool eager = !copy && !asked;
  if (asked && message->progress.between.size() >
                   std::min(most_between, least_between + message->rest.left() / link.fragment))
    return Refusal::fragment;
  if (asked && carrier.subflow != nullptr) message->striped = true;
  if (eager) {
    if (message == nullptr || carrier.subflow != nullptr) return Refusal::fragment;
    Grant& from = message->eager;
    const bool full_sized = d.length % link.fragment == 0 || d.length == from.run();
    if (!full_sized || !from.fits(d.offset, d.length) || above != from.from_above()) return Refusal::fragment;
    from.take(d.length);
  }
  carrier.due.push_back(
      {.landing = copy ? Landing(nullptr, Block())
                       : Landing(*message, eager ? pool_used_ : apart_used_, d.offset, d.length),
       .offset = d.offset,
       .length = d.length,
       .eager = eager,
       .from_end = above});
  return Refusal::none;
}

Refusal Engine::take_want(Link& link, const Descriptor& d) {
  Outgoing* message = outgoing_.find(d.message);
  if (message == nullptr || message->abandoned()) return Refusal::none;
  if (message->link != &link || !message->announced() || message->matched || message->whole())
    return Refusal::request;
  const std::uint64_t eager = message->promised;
  const std::uint64_t low = message->from_end() ? 0 : eager;
  const std::uint64_t high = message->from_end() ? message->total - eager : message->total;
  if (d.offset != low || d.extra < low || d.extra > high) return Refusal::request;
  message->matched = true;
  message->rest = Grant::to_far_end(d.offset, d.extra, (d.flags & flag_from_end) != 0, link.fragment);
  message->promised += message->rest.left();
  if (message->rest.left() != 0 && message->late) listener_.wanted(message->cookie);
  make_ready(*message);
  check_write_done(*message);
  return Refusal::none;
}

// Of a message that came whole; of another, what it wants says so. Of a put: that it is in place.
Refusal Engine::take_matched(Link& link, const Descriptor& d) {
  Outgoing* message = outgoing_.find(d.message);
  if (message == nullptr || message->abandoned()) return Refusal::none;
  if (message->role == Outgoing::Role::put) return take_placed(link, *message);
  if (message->link != &link || !message->announced() || !message->synchronous() || !message->whole() ||
      message->matched)
    return Refusal::request;
  message->matched = true;
  check_write_done(*message);
  return Refusal::none;
}

Refusal Engine::take_departure(Link& link, const Descriptor& d) {
  if (d.message == kernel_endpoint) return Refusal::departure;
  const auto found = peers_.find({static_cast<std::int32_t>(link.index), d.message});
  // Nobody waits for it any more, or it has been said before: of what it sent, and as the answer to a watch.
  if (found == peers_.end() || found->second->how != Departure::none) return Refusal::none;
  const bool unknown = (d.flags & flag_unknown) != 0;
  if (found->second->envelopes != d.extra || (unknown && d.extra != 0)) return Refusal::departure;
  if (d.extra != 0) --link.senders;
  link.ack_urgent = true; // it leaves when all that it wrote is acknowledged
  found->second->how = (d.flags & flag_killed) != 0 ? Departure::killed : Departure::left;
  listener_.peer_departed(found->first);
  tell_departed(*found->second);
  if (!unknown) return Refusal::none;
  // Whoever gets this number later is somebody else: it is asked for again.
  if (const auto later = peers_.find({static_cast<std::int32_t>(link.index), d.message});
      later != peers_.end()) {
    later->second->how = Departure::none;
    later->second->watched = false;
  }
  return Refusal::none;
}

Incoming* Engine::find_incoming(Link& link, std::uint64_t message) {
  const auto found = link.incoming.find(message);
  return found == link.incoming.end() ? nullptr : incoming_.find(found->second);
}

// The sender may use the name for another message from here on.
void Engine::forget_name(Incoming& message) {
  if (message.link == nullptr) return;
  const auto found = message.link->incoming.find(message.message);
  if (found != message.link->incoming.end() && found->second == message.id)
    message.link->incoming.erase(found);
}

void Engine::free_blocks(Incoming& message) {
  for (const Block& block : message.blocks)
    if (message.link == nullptr)
      pool_reserved_ -= block.length();
    else
      message.link->freed += fragments_of(block.length(), message.link->fragment);
  message.blocks.clear();
  message.rode.reset();
}

void Engine::drop_incoming(Incoming& message) {
  unstore(message);
  forget_name(message);
  free_blocks(message);
  count_match(message);
  if (message.link != nullptr) {
    message.link->freed += fragments_of(message.eager.left(), message.link->fragment); // they never come
    message.link->each_carrier([&](Carrier& carrier) {
      for (Due& due : carrier.due)
        if (due.landing.message() == &message) due.landing.forget_message();
    });
  }
  forget_pair(message);
  incoming_.drop(message);
}

// Nobody will read it. What the sender still sends goes to the sink; then nothing is kept of it, whether the
// sender gives it up or not.
void Engine::discard(Incoming& message) {
  unstore(message);
  message.take_out();
  message.enter(Incoming::Stage::unwanted);
  count_match(message);
  forget_pair(message);
  free_blocks(message);
  if (message.link == nullptr || (message.arrived == message.promised && !message.owed()))
    drop_incoming(message);
}

void Engine::widen(Link& link, std::uint32_t delay_product_kib) {
  const std::uint64_t wanted = fragments_of(std::uint64_t{delay_product_kib} * 2 * 1024, link.fragment);
  if (wanted <= link.reserved) return;
  // The rest is for the first windows of other links, and for those that lead to programs.
  const std::uint64_t most = settings_.pool / 4 * (link.kernels_only ? 2 : 3);
  const std::uint64_t room = most > pool_reserved_ ? (most - pool_reserved_) / link.fragment : 0;
  const std::uint64_t more = std::min(wanted - link.reserved, room);
  link.reserved += more;
  pool_reserved_ += more * link.fragment;
}

} // namespace parc::protocol
