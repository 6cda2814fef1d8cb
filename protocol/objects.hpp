// SPDX-License-Identifier: BSD-3-Clause
// What the engine keeps beside messages: endpoints and their peers, groups, links.
// Each object is in the lists that its state puts it in; the hooks unlink themselves, so dropping an object
// takes it out of all of them.
#pragma once

#include "protocol/landing.hpp"
#include "protocol/log.hpp"
#include "protocol/messages.hpp"
#include "protocol/train_out.hpp"
#include "protocol/wire.hpp"

#include <algorithm>
#include <array>
#include <boost/container/deque.hpp>
#include <boost/container/flat_map.hpp>
#include <boost/container/small_vector.hpp>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace parc::protocol {

struct Endpoint;
struct Group;
struct Link;
struct Pair;
struct Peer;
struct Outflow;

// Of an endpoint: where it is, and its number there, which its kernel never gives again.
inline constexpr std::int32_t here = -1;
struct Address {
  std::int32_t place = here; // or a link
  std::uint64_t number = 0;
  friend auto operator<=>(const Address&, const Address&) = default;
};

} // namespace parc::protocol

template <> struct std::hash<parc::protocol::Address> {
  std::size_t operator()(const parc::protocol::Address& address) const {
    return (address.number ^ static_cast<std::uint64_t>(address.place) << 48) * 0x9e3779b97f4a7c15 >> 7;
  }
};

namespace parc::protocol {

// One endpoint's sending side towards one host.
struct Outflow : Answer {
  Outflow(Endpoint* endpoint, Link* on) : Answer(Of::outflow), from(endpoint), link(on) {}
  Endpoint* from;
  Link* link;
  std::uint64_t fresh = 0;     // writes whose envelopes have not left, held ones too
  std::uint64_t envelopes = 0; // sent
  // The last train whose header was here when `from` departed. What it read of that is acknowledged before,
  // or together with, the news of its departure.
  std::uint64_t departs_after = 0;
};

// Somebody that endpoints of this host write to, read from or wait for, whoever of them does.
struct Peer : Answer {
  explicit Peer(const Address& whose) : Answer(Of::peer), address(whose) {}
  Address address;
  Departure how = Departure::none; // none: it is there
  hook::List<Pair, hook::OfPeer> pairs;
  std::vector<Group*> groups; // whose members wait for anybody
  bool watched = false;
  bool watch_owed = false;
  std::uint64_t envelopes = 0; // that have come from it
};

// What an endpoint and a peer have to do with each other.
struct Pair : Answer, hook::Hook<hook::OfPeer>, hook::Hook<hook::Held> {
  Pair() : Answer(Of::pair) {}
  Endpoint* at = nullptr;
  Peer* peer = nullptr;
  std::int32_t row = 0;       // of the peer, for `at`
  std::uint64_t messages = 0; // from it that are here, or arriving, and name this

  // What `at` writes to the peer: envelopes, and where that is on another host...
  std::uint64_t sent = 0;
  std::uint64_t queued = 0;               // in Link::fresh
  std::uint64_t returned = 0;             // of those that were sent, no longer kept for a read
  hook::List<Outgoing, hook::Queue> held; // the receiver has no place for more: they wait here
  [[nodiscard]] std::uint64_t unread() const { return sent + queued - returned; }
  Outgoing* answering = nullptr;             // the long answer to a get that is being sent
  hook::List<Outgoing, hook::Queue> answers; // and those behind it

  // ... and what comes from it.
  std::uint64_t received = 0;
  std::uint64_t unmatched = 0; // of those, kept here for a read
  std::uint64_t reported = 0;  // so many were not, as last told
  hook::List<Incoming, hook::Queue> unexpected;
  // What it does to the endpoint takes effect in its order (puts.cpp).
  Incoming* put = nullptr;                  // that is coming to its place
  hook::List<Incoming, hook::Queue> behind; // that or an atomic, and each other
  bool atomic_asked = false;                // of the program, which has not made it
  bool going_on = false;                    // with those behind
  [[nodiscard]] bool in_the_middle() const { return put != nullptr || atomic_asked; }
  [[nodiscard]] bool keeps_order() const { return in_the_middle() || !behind.empty(); }
  [[nodiscard]] std::uint64_t not_reported() const { return received - unmatched - reported; }
};

// What waits for others: writes in Pair::held, and messages that no read has taken.
struct Backlog {
  std::uint64_t held = 0, unread = 0;
};

// A peer that is not of the endpoint's group.
struct Row {
  Address address;
  Pair* pair = nullptr; // none: there is none yet
  bool kept = false;    // also when the peer has departed long ago
  bool acquainted = false;
  bool listed = false; // in Endpoint::through
};

struct Endpoint : hook::Hook<hook::OfGroup> {
  std::uint64_t number = 0;
  std::uint64_t cookie = 0;
  bool opened = false; // its owner is told of its end
  Group* group = nullptr;
  std::unordered_map<std::int32_t, Row> more_rows; // by their numbers, which follow those of the group
  std::int64_t rows_given = 0;                     // of these
  boost::container::deque<std::int32_t> through;   // rows that may be given up, the oldest first
  std::unordered_map<Address, Pair> pairs;         // on first use
  PostedReads<Reading> posted;
  hook::List<Reading, hook::Queue> probes;
  UnexpectedMessages<Incoming> arrivals; // oldest first
  hook::List<Incoming, hook::Arrivals> claimed;
  hook::List<Outgoing, hook::Owned> writes;
  std::size_t unfinished = 0; // of these
  Backlog backlog;
  hook::List<Reading, hook::Owned> reads;
  boost::container::flat_map<std::uint32_t, std::unique_ptr<Outflow>> outflows; // by link
  std::uint64_t posts = 0;
  bool missed_somebody = false; // one of its peers has departed
  bool has_far_peers = false;   // members of its group, or others in its table
  bool has_kept_some = false;   // messages that came before their reads, but neighbours' (Space::neighbours)
  Departure how = Departure::none;
  bool killing = false; // its lists are being emptied: it must not be forgotten meanwhile

  [[nodiscard]] bool departed() const { return how != Departure::none; }
};

// Endpoints that were started together: row r of each is member r.
struct Group {
  std::uint64_t id = 0;
  std::vector<Address> members;
  std::vector<std::uint32_t> by_address;     // the rows, for Group::row_of
  hook::List<Endpoint, hook::OfGroup> local; // members of this host that are not gone
  bool waited_for = false;                   // somebody has waited for anybody: `living` counts
  std::size_t living = 0;
  bool missed_somebody = false; // a member of this host has departed
  bool dropped = false;         // goes with its last local member

  [[nodiscard]] std::int32_t row_of(const Address& address) const; // -1: no member
};

struct Subflow;

// One byte stream between the two hosts of a link, and what is good only while it lasts. Each side says first
// what it has (Statement), and sends trains when it has heard that of the other. (A subflow says nothing
// first.)
struct Carrier {
  enum class Stage : std::uint8_t { none, stating, up };
  Stage stage = Stage::none;
  TrainOut train;
  std::array<std::byte, max_header> header{};
  std::uint32_t header_filled = 0;
  std::deque<Due> due;
  Subflow* subflow = nullptr; // that it carries; none: it is the link's first one
};

// Trains that are numbered, both ways.
struct Trains {
  // Sending
  std::uint32_t train_bytes = 0;
  std::uint64_t sequence = 0;     // of the last train sent
  std::uint64_t acknowledged = 0; // by the peer
  std::uint64_t in_flight = 0;    // bytes of payload, sent and not acknowledged
  std::uint64_t delivered = 0;    // and those that were acknowledged
  Log log;
  // Receiving
  std::uint64_t reading = 0;       // sequence of the last train whose header is here
  std::uint64_t received = 0;      // of the last one of which nothing more is due
  std::uint64_t received_told = 0; // as last acknowledged
  bool ack_now = false;            // the kernel is about to sleep
};

// One more carrier of a link (a subflow, as of multipath TCP): for payload that was asked for. A link goes on
// without it, and it ends with its byte stream.
struct Subflow : Trains {
  Carrier carrier;
  // Nothing new goes over one that is
  bool doubted = false;      // what it has not brought was dealt again: until it brings some of it
  bool retired = false;      // not needed, as this side finds,
  bool peer_retired = false; // or the other one
  bool retired_told = false; // the other side knows of that
  [[nodiscard]] bool used() const { return !doubted && !retired && !peer_retired; }
};

struct Link : Trains {
  std::uint32_t index = 0;
  bool open = false;
  Carrier carrier;
  std::uint32_t fragment = default_fragment;
  std::uint32_t self = 0; // low halves of the host identities
  std::uint32_t peer = 0;
  bool kernels_only = false; // nothing to programs may come, and not much to the kernel

  std::vector<std::unique_ptr<Subflow>> subflows;                     // by number, from 1; none: it has ended
  std::uint32_t usable_subflows = 0;                                  // that are used
  [[nodiscard]] bool striped() const { return usable_subflows != 0; } // what was asked for goes over these
  [[nodiscard]] bool may_see_copies() const { return !subflows.empty(); }
  [[nodiscard]] Subflow* subflow(std::uint32_t number) const {
    return number != 0 && number <= subflows.size() ? subflows[number - 1].get() : nullptr;
  }
  template <class Use> void each_carrier(Use use) {
    use(carrier);
    for (const auto& each : subflows)
      if (each != nullptr) use(each->carrier);
  }

  // Sending
  std::uint64_t stated = 0;  // the last train of the last statement heard
  std::uint32_t cut_off = 0; // fragments of the last train that its carrier did not take
  hook::List<Answer, hook::Answers> answers;
  struct Gone {
    std::uint64_t number;
    std::uint8_t flags; // as of the departure
  };
  std::deque<Gone> gone; // endpoints that the peer watches and that are not there
  struct End {
    std::uint64_t name; // over there
    Kind kind;
    std::uint8_t flags;
    std::uint64_t extra;
  };
  std::deque<End> ends;                        // of gets, puts and atomics, that nothing else says
  std::size_t senders = 0;                     // endpoints over there that have sent envelopes, and are there
  std::uint64_t unmatched = 0;                 // of their messages, those that are kept here for a read
  hook::List<Answer, hook::Answers> departing; // outflows whose departure waits for a train to be here whole
  hook::List<Outgoing, hook::Queue> fresh;     // envelopes to send, in the order of the writes
  hook::List<Outgoing, hook::Queue> ready;     // payload to send on the first carrier, in turns
  hook::List<Outgoing, hook::Asked> asked;     // payload to send over subflows, likewise
  std::uint64_t credit = 0;                    // fragments the peer lets us send unasked, in total
  std::uint64_t credit_used = 0;
  std::uint64_t eager_unsent = 0;      // bytes that will go unasked
  std::uint64_t most_in_flight = 0;    // on the first carrier; 0: what its stream takes
  std::uint64_t asked_for = 0;         // the last train there whose acknowledgement was asked for,
  std::uint64_t sent_since = 0;        // and so many bytes since
  std::uint64_t envelope_credit = 0;   // envelopes that it lets us send, in total
  std::uint64_t envelopes_out = 0;     // queued or sent
  hook::List<Pair, hook::Held> held;   // pairs with writes that are held
  std::uint32_t path_holds_kib = 0;    // of the first carrier
  std::uint32_t delay_product_kib = 0; // the most that this was
  [[nodiscard]] bool flight_is_full() const {
    return most_in_flight != 0 && in_flight >= most_in_flight && asked_for > acknowledged;
  }
  [[nodiscard]] std::uint64_t envelopes_left() const {
    return envelope_credit - std::min(envelope_credit, envelopes_out);
  }

  // Receiving
  std::unordered_map<std::uint64_t, std::uint64_t> incoming; // by the sender's name for it: our Incoming's id
  std::uint32_t missing = 0; // of the last train, fragments that its carrier did not bring: they come anew
  std::uint64_t asked_to_tell = 0; // the last train of which the sender waits for the acknowledgement
  std::uint64_t reserved = 0;      // fragments of pool set aside for this link
  std::uint64_t granted_used = 0;  // eager fragments announced
  std::uint64_t freed = 0;         // of those, no longer in the pool
  std::uint64_t granted_told = 0;  // as last sent
  std::uint64_t envelopes_in = 0;
  std::uint64_t envelopes_told = 0; // that may come, as last sent
  // As far as the other side knows at the least.
  [[nodiscard]] std::uint64_t places_left() const {
    return envelopes_told - std::min(envelopes_told, envelopes_in);
  }
  // The peer can finish something with it: what somebody may wait for, or only what holds memory.
  bool ack_urgent = false, ack_wanted = false;
  // Counters
  std::uint64_t trains_in = 0, trains_out = 0, fragments_in = 0, fragments_out = 0, bytes_in = 0,
                bytes_out = 0, messages_in = 0, messages_out = 0;
  std::uint64_t resent = 0;             // bytes of payload that an earlier carrier did not bring
  std::uint64_t bytes_acknowledged = 0; // of payload
};

} // namespace parc::protocol
