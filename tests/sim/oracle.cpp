// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/oracle.hpp"

#include <algorithm>

namespace parc::sim {

using protocol::Fault;
using protocol::Outcome;

std::string Oracle::name(const Message& m) const {
  return "message " + std::to_string(&m - messages.data()) + " (actor " + std::to_string(m.from) + " to " +
         std::to_string(m.to) + ", tag " + std::to_string(m.tag) + ", space " +
         std::to_string(static_cast<int>(m.space)) + ", " + std::to_string(m.size) + " bytes)";
}

std::string Oracle::name(const Read& r) const {
  return std::string(r.probe ? "probe " : "read ") + std::to_string(&r - reads.data()) + " (actor " +
         std::to_string(r.at) + " of " + (r.source == none ? "any" : std::to_string(r.source)) + ", tag " +
         std::to_string(r.tag) + " ignoring " + std::to_string(r.ignore) + ", space " +
         std::to_string(static_cast<int>(r.space)) + (r.claim ? ", claims" : "") + ", room " +
         std::to_string(r.room) + ")";
}

// Whether a message between these two may be lost on the way.
bool Oracle::apart(std::size_t a, std::size_t b) const {
  const std::size_t x = actors[a].host, y = actors[b].host;
  return x != y && (lost_.contains({x, y}) || hostile.contains(x) || hostile.contains(y));
}

bool Oracle::fits(const Read& read, const Message& message) const {
  return read.at == message.to && read.space == message.space &&
         (read.source == none || read.source == message.from) &&
         ((read.tag ^ message.tag) & ~read.ignore) == 0;
}

bool Oracle::is(const Message& message, const Outcome& outcome) const {
  return outcome.data == data_of(static_cast<std::size_t>(&message - messages.data())) &&
         message.tag == outcome.tag && message.space == outcome.space && message.size == outcome.total;
}

bool Oracle::open(const Message& message) const {
  const bool taken_back = message.over && message.fault == Fault::canceled && !actors[message.from].killed;
  return message.read == none && message.claim == none && !taken_back && !message.unheard;
}

// It is at its receiver or will be there, whatever happens to its writer from here on.
bool Oracle::certain(const Message& message) const {
  if (!open(message) || actors[message.to].departed()) return false;
  // What a hostile host's trains say is not what it has: neither its messages nor its acknowledgements count.
  if (hostile.contains(actors[message.from].host) || hostile.contains(actors[message.to].host)) return false;
  // It may be behind a put that will never be whole.
  const bool broken = actors[message.from].killed || apart(message.from, message.to);
  if (broken && puts_.contains({message.from, message.to})) return false;
  if (message.over) return message.fault == Fault::none;
  return !actors[message.from].killed && !apart(message.from, message.to) && !message.cancel_asked;
}

// Half of the pair's own places are surely free, where no more is unread.
bool Oracle::may_be_held(std::size_t from, std::size_t to) const {
  if (actors[from].host == actors[to].host || actors[from].left) return false;
  const auto unread = std::count_if(messages.begin(), messages.end(), [&](const Message& m) {
    return m.from == from && m.to == to && m.read == none && !(m.over && m.fault != Fault::none);
  });
  return static_cast<std::uint64_t>(unread) > protocol::pair_envelopes / 2;
}

// Leaving opens the gate: it cancels the reads.
const Read* Oracle::holder(std::size_t from, std::uint64_t gate) const {
  if (gate == 0 || actors[from].left) return nullptr;
  const auto found = std::find_if(reads.begin(), reads.end(), [&](const Read& read) {
    return read.at == from && read.release != 0 && read.release <= gate && !read.over && !begun(read);
  });
  return found == reads.end() ? nullptr : &*found;
}

void Oracle::check_transfer(const std::string& what, std::size_t from, std::size_t to, Fault fault,
                            bool refused) const {
  switch (fault) {
  case Fault::none: return;
  case Fault::place:
    if (!refused) fail(what + " was refused what is there");
    return;
  case Fault::peer:
    if (!may_be_lost(from, to) && !actors[to].departed()) fail(what + " lost its target, which is there");
    return;
  case Fault::canceled:
    if (!actors[from].departed()) fail(what + " was canceled");
    return;
  default: fail(what + " ended as none can");
  }
}

void Oracle::check_gate(const Message& message) const {
  if (const Read* cause = holder(message.from, message.gate))
    fail(name(message) + " is heard of before the beginning of " + name(*cause) +
         ", from which its writer was released");
}

void Oracle::note_row(std::size_t actor, std::size_t row, std::size_t peer) {
  auto& peers = actors[actor].peers;
  if (row >= peers.size()) peers.resize(row + 1, none);
  if (peers[row] != none && peers[row] != peer)
    fail("row " + std::to_string(row) + " of actor " + std::to_string(actor) + " was another's");
  peers[row] = peer;
}

// Whoever has written to an endpoint has a row there: who that is, is known by the message. None: somebody
// whom a hostile host made up.
std::size_t Oracle::source_of(const Read& read, const Outcome& outcome) {
  const auto& peers = actors[read.at].peers;
  if (outcome.source < 0) fail(name(read) + " took a message from nobody");
  const auto row = static_cast<std::size_t>(outcome.source);
  if (row < peers.size() && peers[row] != none) return peers[row];
  const auto message =
      std::find_if(messages.begin(), messages.end(), [&](const Message& m) { return is(m, outcome); });
  if (!hostile.empty() && (message == messages.end() || hostile.contains(actors[message->from].host)))
    return none;
  if (message == messages.end() || message->to != read.at)
    fail(name(read) + " took a message from nobody: row " + std::to_string(row));
  note_row(read.at, row, message->from);
  return message->from;
}

void Oracle::check_no_older(std::size_t index, std::size_t source, const Outcome& outcome) const {
  const Read& read = reads[index];
  for (const Read& older : reads) {
    if (&older == &read) break;
    if (older.at == read.at && !older.over && (!older.probe || older.late) && !older.taken &&
        older.message == none && !fabricated(static_cast<std::size_t>(&older - reads.data())) &&
        older.space == outcome.space && (older.source == none || older.source == source) &&
        ((older.tag ^ outcome.tag) & ~older.ignore) == 0)
      fail(name(read) + " took what the older " + name(older) + " should have");
  }
}

void Oracle::begun_claimed(std::size_t index, std::size_t source, const Outcome& outcome) {
  Read& read = reads[index];
  Message& message = messages[read.claimed];
  if (message.read != none || message.from != source || !is(message, outcome))
    fail(name(read) + " took another message than the claimed " + name(message));
  message.read = index;
  read.message = read.claimed;
}

void Oracle::begun(std::size_t index, const Outcome& outcome) {
  Read& read = reads[index];
  if (read.over || read.message != none || fabricated(index) || read.probe)
    fail(name(read) + " began twice, or after its end");
  if (read.taken) fail(name(read) + " took a message when it was somebody else's");
  const std::size_t source = source_of(read, outcome);
  if (read.claimed == none) check_no_older(index, source, outcome);
  if (source == none || hostile.contains(actors[source].host)) {
    fabricated_.insert(index);
    return;
  }
  if (read.claimed != none) return begun_claimed(index, source, outcome);
  for (Message& message : messages) {
    if (message.from != source || !open(message) || !fits(read, message)) continue;
    const bool this_one = is(message, outcome);
    if (!this_one && certain(message))
      fail(name(read) + " took one of " + std::to_string(outcome.total) + " bytes, tag " +
           std::to_string(outcome.tag) + ", before the older " + name(message));
    if (!this_one) continue;
    check_gate(message);
    message.read = index;
    read.message = static_cast<std::size_t>(&message - messages.data());
    return;
  }
  fail(name(read) + " took a message that nobody sent: " + std::to_string(outcome.total) + " bytes, tag " +
       std::to_string(outcome.tag));
}

bool Oracle::hopeless(const Read& read) const {
  const auto lost = [&](std::size_t peer) { return actors[peer].departed() || apart(read.at, peer); };
  const Actor& at = actors[read.at];
  if (read.source != none) return lost(read.source);
  if (at.job == 0 || at.members == 1) return false;
  return std::all_of(at.peers.begin(), at.peers.end(),
                     [&](std::size_t peer) { return peer == none || peer == read.at || lost(peer); });
}

// Somebody of another job has written to it, or got from it, and is there: perhaps he has a row of which
// nobody has heard yet.
bool Oracle::has_stranger(std::size_t actor) const {
  const auto is_there = [&](std::size_t other) {
    return actors[other].job != actors[actor].job && !actors[other].departed() && !apart(actor, other);
  };
  return std::ranges::any_of(messages, [&](const Message& m) { return m.to == actor && is_there(m.from); }) ||
         std::ranges::any_of(gets_,
                             [&](const auto& get) { return get.second == actor && is_there(get.first); });
}

void Oracle::finished_probe(std::size_t index, const Outcome& outcome) {
  const Read& read = reads[index];
  if (read.no_wait && outcome.source < 0 && outcome.fault == Fault::none) return;
  const std::size_t source = source_of(read, outcome);
  if (source == none || hostile.contains(actors[source].host)) {
    if (!read.claim) return;
    for (Message& message : messages) // where it is not made up
      if ((source == none || message.from == source) && fits(read, message) && open(message) &&
          is(message, outcome))
        message.claim = index;
    return;
  }
  if (read.claim) check_no_older(index, source, outcome);
  for (Message& message : messages) {
    if (message.from != source || !open(message) || !fits(read, message)) continue;
    if (is(message, outcome)) {
      if (read.claim) message.claim = index;
      return check_gate(message);
    }
    if (certain(message)) break;
  }
  fail(name(read) + " saw a message that is not the next one: " + std::to_string(outcome.total) +
       " bytes, tag " + std::to_string(outcome.tag) + " from actor " + std::to_string(source));
}

void Oracle::finished_read(std::size_t index, const Outcome& outcome) {
  Read& read = reads[index];
  if (read.over) fail(name(read) + " ended twice");
  read.over = true;
  const bool matched = read.message != none || fabricated(index);
  const Actor& at = actors[read.at];
  switch (outcome.fault) {
  case Fault::canceled:
    if (at.departed() || (!matched && (read.cancel_asked || read.taken))) return;
    fail(name(read) + " was canceled, but nobody asked, or it was matched");
  case Fault::none:
  case Fault::truncated: {
    if (read.taken) fail(name(read) + " ended well when it was somebody else's");
    if (read.probe) return finished_probe(index, outcome);
    if (!matched) fail(name(read) + " ended well without a message");
    if (fabricated(index)) return;
    const Message& message = messages[read.message];
    if (outcome.total != message.size || (outcome.fault == Fault::truncated) != (message.size > read.room))
      fail(name(read) + " says " + std::to_string(outcome.total) + " bytes of " + name(message));
    return;
  }
  case Fault::peer:
    if (at.departed() || fabricated(index)) return;
    if (const std::size_t of = read.message != none ? read.message : read.claimed; of != none) {
      const Message& message = messages[of];
      if (actors[message.from].killed || apart(message.from, message.to)) return;
      fail(name(read) + " lost its writer, who is there: " + name(message));
    }
    if (!hopeless(read)) fail(name(read) + " gave up, but there is hope");
    for (const Message& message : messages) {
      // Who waits for anybody does not know of a stranger's first message that is still on its way.
      const bool may_be_unheard = read.source == none && std::ranges::count(at.peers, message.from) == 0;
      if (!may_be_unheard && fits(read, message) && certain(message))
        fail(name(read) + " gave up; there is " + name(message));
    }
    return;
  case Fault::taken:
    if (!read.taken) fail(name(read) + " is said to be somebody else's, and is not");
    return;
  case Fault::place: fail(name(read) + " ended as a get");
  }
}

void Oracle::finished_write(std::size_t index, const Outcome& outcome) {
  Message& message = messages[index];
  if (message.over) fail(name(message) + " ended twice");
  message.over = true;
  message.fault = outcome.fault;
  if (outcome.total != message.size || outcome.tag != message.tag || outcome.space != message.space)
    fail(name(message) + " ended as another message");
  const Actor& from = actors[message.from];
  const Actor& to = actors[message.to];
  message.unheard = holder(message.from, message.gate) != nullptr;
  switch (outcome.fault) {
  case Fault::none:
    if (message.synchronous && message.read == none && !hostile.contains(from.host) &&
        !hostile.contains(to.host))
      fail(name(message) + " is synchronous and ended before its match");
    return check_gate(message);
  case Fault::canceled:
    if (from.killed) return;
    if (!message.cancel_asked || message.read != none || message.claim != none)
      fail(name(message) + " was canceled, but nobody asked, or it was matched");
    return;
  case Fault::peer:
    if (!to.departed() && !apart(message.from, message.to))
      fail(name(message) + " lost its reader, who is there");
    return;
  case Fault::truncated:
  case Fault::place:
  case Fault::taken: fail(name(message) + " was truncated, taken or refused for its writer");
  }
}

void Oracle::drained(std::size_t index) {
  Actor& actor = actors[index];
  if (!actor.departed() || actor.drained)
    fail("actor " + std::to_string(index) + " drained twice or too early");
  for (const Message& message : messages)
    if (message.from == index && !message.over) fail("drained before the end of " + name(message));
  actor.drained = true;
}

std::size_t Oracle::readable(std::size_t actor, protocol::Space space, bool surely) const {
  return static_cast<std::size_t>(
      std::count_if(messages.begin(), messages.end(), [&](const Message& message) {
        return message.to == actor && message.space == space && (surely ? certain(message) : open(message));
      }));
}

void Oracle::check_rest() const {
  for (const Message& message : messages) {
    if (message.over) {
      if (message.read == none || message.fault != Fault::none) continue;
      const Read& read = reads[message.read];
      if (!read.over) fail(name(message) + " is done for its writer, but not for " + name(read));
      continue;
    }
    if (message.read != none) fail(name(message) + " is matched and never ends");
    if (actors[message.from].killed) fail(name(message) + " of a killed writer never ends");
    if (actors[message.to].departed() || apart(message.from, message.to))
      fail(name(message) + " to a rank that has departed never ends");
    if (message.cancel_asked && message.claim == none) fail(name(message) + ": no answer to its cancel");
  }
  for (const Read& read : reads) {
    if (read.over) continue;
    if (read.message != none || fabricated(static_cast<std::size_t>(&read - reads.data())))
      fail(name(read) + " is matched and never ends");
    if (read.cancel_asked || actors[read.at].departed()) fail(name(read) + " given up, never ends");
    if (hopeless(read) && (read.source != none || !has_stranger(read.at)))
      fail(name(read) + " waits for nobody");
    for (const Message& message : messages)
      if (!read.taken && fits(read, message) && certain(message) &&
          holder(message.from, message.gate) == nullptr && !may_be_held(message.from, message.to))
        fail(name(read) + " does not take " + name(message));
  }
  for (std::size_t index = 0; index < actors.size(); ++index) {
    const bool busy = std::any_of(messages.begin(), messages.end(),
                                  [&](const Message& m) { return m.from == index && !m.over; });
    if (actors[index].departed() && !busy && !actors[index].drained)
      fail("actor " + std::to_string(index) + " has departed and never drains");
  }
}

} // namespace parc::sim
