// SPDX-License-Identifier: BSD-3-Clause
// What the engine keeps: endpoints and their peers, groups, reads, outgoing and incoming messages, links.
// Each object is in the lists that its state puts it in; the hooks unlink themselves, so dropping an object
// takes it out of all of them.
#pragma once

#include "protocol/log.hpp"
#include "protocol/pieces.hpp"
#include "protocol/train_out.hpp"
#include "protocol/wire.hpp"

#include <algorithm>
#include <array>
#include <boost/container/flat_map.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/intrusive/list.hpp>
#include <cassert>
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
struct Incoming;
struct Link;
struct Outgoing;
struct Pair;
struct Peer;
struct Reading;
struct Stream;

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

namespace hook {
using mode = boost::intrusive::link_mode<boost::intrusive::auto_unlink>;
template <class Tag> using Hook = boost::intrusive::list_base_hook<boost::intrusive::tag<Tag>, mode>;
struct Answers;  // in Link::answers
struct Queue;    // in the queue that the object's state names
struct Arrivals; // in Endpoint::arrivals
struct OfPeer;   // in Peer::pairs
struct OfGroup;  // in Group::local
struct Owned;    // with its endpoint
template <class T, class Tag> using List =
    boost::intrusive::list<T, boost::intrusive::base_hook<Hook<Tag>>,
                           boost::intrusive::constant_time_size<false>>;
} // namespace hook

// An object that owes the other kernel a descriptor. What it owes is read from its state when a train has
// room, so answers never pile up.
struct Answer : hook::Hook<hook::Answers> {
  enum class Of : std::uint8_t { outgoing, incoming, peer, stream };
  explicit Answer(Of kind) : of(kind) {}
  [[nodiscard]] bool owed() const { return hook::Hook<hook::Answers>::is_linked(); }
  Of of;
};

// A stretch of a message that may travel, eaten from one side.
struct Grant {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool from_end = false;

  [[nodiscard]] std::uint64_t left() const { return high - low; }
  [[nodiscard]] bool fits(std::uint64_t offset, std::uint64_t length) const {
    return length != 0 && length <= left() && (from_end ? offset == high - length : offset == low);
  }
  std::uint64_t take(std::uint64_t length) { // the offset of what was taken
    if (from_end) return high -= length;
    low += length;
    return low - length;
  }
  void put_back(std::uint64_t length) { // what was taken last
    if (from_end)
      high += length;
    else
      low -= length;
  }
};

// What has arrived, or has been acknowledged, counted from both ends of a message.
struct Progress {
  std::uint64_t front = 0;
  std::uint64_t back = 0;

  void add(std::uint64_t offset, std::uint64_t length, std::uint64_t total) {
    if (offset == front)
      front += length;
    else if (offset + length == total - back)
      back += length;
  }
};

// A message that a local program writes.
struct Outgoing : Answer, hook::Hook<hook::Queue>, hook::Hook<hook::Owned> {
  Outgoing() : Answer(Of::outgoing) {}
  std::uint64_t id = 0; // names the message on its link
  std::uint64_t cookie = 0;
  Endpoint* from = nullptr;
  Link* link = nullptr;     // none: the destination is local
  Stream* stream = nullptr; // of `from` and `link`
  Incoming* local = nullptr;
  Pair* pair = nullptr; // of `from` and the destination
  Space space = Space::programs;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  Pieces memory;
  std::uint64_t total = 0;
  Grant eager;                // what goes unasked
  Grant rest;                 // what was asked for
  std::uint64_t promised = 0; // bytes of both grants when they were new
  std::uint64_t acknowledged = 0;
  Progress progress;
  bool from_end = false;
  bool envelope_acknowledged = false;
  bool whole = false;        // everything goes unasked
  bool synchronous = false;  // not done before it is matched
  bool matched = false;      // the receiver has said so, and of what is not whole what it wants
  bool cancel_asked = false; // owes a cancel or has sent it

  enum class Stage : std::uint8_t {
    made,
    gated,     // until pass(): no link, stream or local yet
    local,     // its receiver is here
    held,      // in Stream::held
    queued,    // in Link::fresh
    announced, // its envelope has been sent
    abandoned, // reported as finished; owes an abort
  };
  Stage stage = Stage::made;
  void enter(Stage next) {
    assert(next == Stage::gated       ? stage == Stage::made
           : next == Stage::local     ? stage <= Stage::gated
           : next == Stage::held      ? stage <= Stage::gated
           : next == Stage::queued    ? stage <= Stage::gated || stage == Stage::held
           : next == Stage::announced ? stage == Stage::queued
                                      : next == Stage::abandoned && stage == Stage::announced);
    stage = next;
  }
  [[nodiscard]] bool abandoned() const { return stage == Stage::abandoned; }
  [[nodiscard]] bool announced() const { return stage >= Stage::announced; }
};

// A message that is arriving, has arrived, or is announced by a local writer.
struct Incoming : Answer, hook::Hook<hook::Queue>, hook::Hook<hook::Arrivals> {
  Incoming() : Answer(Of::incoming) {}
  struct Chunk {
    std::uint64_t offset;
    std::uint32_t length;
    std::unique_ptr<std::byte[]> bytes;
  };
  std::uint64_t id = 0;
  Link* link = nullptr; // none: local, or whole and parted from its link
  Outgoing* local = nullptr;
  std::uint64_t message = 0; // the sender's name for it
  Reading* read = nullptr;   // while it is matched
  Peer* counted = nullptr;   // the source, as long as the message is in its `unmatched`
  Pair* pair = nullptr;      // of its destination and the source, as long as it may be read
  Space space = Space::programs;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint64_t total = 0;
  std::uint64_t limit = 0;    // bytes that the read has room for
  std::uint64_t promised = 0; // bytes that will arrive
  std::uint64_t arrived = 0;
  Grant eager;
  Grant rest;
  std::vector<Chunk> chunks; // what arrived before its read
  // As its envelope said: whatever becomes of the message, they stay.
  bool whole = false;  // everything comes unasked
  bool riding = false; // it came with its envelope; its chunk is paid for by inline_cost()
  bool synchronous = false;
  // Want, matched or canceled, until a train has room for that: by then the message may be at a later stage.
  Kind owes = Kind::none;

  enum class Stage : std::uint8_t {
    made,
    stored,   // no read yet: in Pair::unexpected and Endpoint::arrivals
    claimed,  // in Endpoint::claimed: only a read that names it takes it
    matched,  // `read` takes it
    over,     // its read has ended, with all of it or without; what still comes is not wanted
    unwanted, // nobody will read it
  };
  Stage stage = Stage::made;
  void enter(Stage next) {
    assert(next == Stage::stored    ? stage == Stage::made
           : next == Stage::claimed ? stage == Stage::stored
           : next == Stage::matched ? stage <= Stage::claimed
           : next == Stage::over    ? stage == Stage::matched
                                    : next == Stage::unwanted && stage <= Stage::claimed);
    stage = next;
  }
  [[nodiscard]] bool waits() const { return stage == Stage::stored || stage == Stage::claimed; }
  [[nodiscard]] bool matched() const { return stage == Stage::matched; }
  // Of what does not come whole, its read has asked, or will ask, for the rest.
  [[nodiscard]] bool rest_wanted() const { return !whole && (matched() || stage == Stage::over); }
};

// A posted read or probe.
struct Reading : hook::Hook<hook::Queue>, hook::Hook<hook::Owned> {
  std::uint64_t id = 0;
  std::uint64_t cookie = 0;
  Endpoint* at = nullptr;
  Incoming* message = nullptr;
  Pair* pair = nullptr; // of `at` and the source; none: any
  Space space = Space::programs;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0; // bits of it that may be any
  std::uint64_t number = 0; // order of posting
  Pieces memory;
  Progress progress;
  bool from_end = false;
  bool probe = false;
  bool claim = false;                  // of a probe
  std::uint8_t posted_as = not_posted; // PostedReads's
  static constexpr std::uint8_t not_posted = 0xff;

  [[nodiscard]] bool fits(const Pair* of, Space in, std::uint64_t bits) const {
    return space == in && ((tag ^ bits) & ~ignore) == 0 && (pair == nullptr || pair == of);
  }
};

// One endpoint's sending side towards one host.
struct Stream : Answer {
  Stream(Endpoint* endpoint, Link* on) : Answer(Of::stream), from(endpoint), link(on) {}
  Endpoint* from;
  Link* link;
  std::uint64_t unfinished = 0; // writes; more than a table of them are held
  std::uint64_t fresh = 0;      // writes whose envelopes have not left, held ones too
  hook::List<Outgoing, hook::Queue> held;
  std::uint64_t envelopes = 0; // sent
  std::uint64_t whole = 0;     // messages sent whole
  std::uint64_t returned = 0;  // of those, matched over there
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
  // What this host owes it: the receiving side of its Stream.
  std::uint64_t envelopes = 0;
  std::uint64_t unmatched = 0; // held here, at most twice the write table
  std::uint64_t matched_whole = 0;
  std::uint64_t reported = 0;
};

// What an endpoint and a peer have to do with each other.
struct Pair : hook::Hook<hook::OfPeer> {
  Endpoint* at = nullptr;
  Peer* peer = nullptr;
  std::int32_t row = 0; // of the peer, for `at`
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  hook::List<Incoming, hook::Queue> unexpected;
};

// The reads of an endpoint that wait for a message (posted_reads.cpp). They are found by their source (or
// any), the bits of the tag that they ignore and those that they do not: a hash for the few masks that
// programs use, a list for reads with others.
class PostedReads {
public:
  void add(Reading& read);
  void remove(Reading& read);
  [[nodiscard]] Reading* find(const Incoming& message); // the oldest that fits

private:
  using List = hook::List<Reading, hook::Queue>; // in the order of posting
  struct Mask {
    std::uint64_t ignore = 0;
    std::uint32_t naming = 0; // reads that name a source
    std::uint32_t any = 0;    // those that do not
  };
  [[nodiscard]] List& bucket(const Pair* pair, Space space, std::uint64_t ignore, std::uint64_t tag);
  void grow();

  std::array<Mask, 4> masks_;
  std::vector<List> buckets_; // a power of two of them, from the first read on
  List others_;
  std::size_t hashed_ = 0;
};

struct Endpoint : hook::Hook<hook::OfGroup> {
  std::uint64_t number = 0;
  std::uint64_t cookie = 0;
  bool opened = false; // its owner is told of its end
  Group* group = nullptr;
  std::vector<Address> more_rows;          // behind those of the group
  std::unordered_map<Address, Pair> pairs; // on first use
  PostedReads posted;
  hook::List<Reading, hook::Queue> probes;
  hook::List<Incoming, hook::Arrivals> arrivals; // all unexpected messages, oldest first
  hook::List<Incoming, hook::Arrivals> claimed;
  hook::List<Outgoing, hook::Owned> writes;
  hook::List<Reading, hook::Owned> reads;
  boost::container::flat_map<std::uint32_t, std::unique_ptr<Stream>> streams; // by link
  std::uint64_t posts = 0;
  bool missed_somebody = false; // one of its peers has departed
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

// What a message that rides with its envelope takes here while nobody has read it: more than its bytes.
static_assert(sizeof(Incoming) + sizeof(Incoming::Chunk) <= inline_overhead);

// A run of fragments that is still due on a carrier, in the order of the stream.
struct Due {
  Incoming* message = nullptr; // none: discard
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint32_t done = 0; // of its payload
  bool eager = false;     // counts against the credit we granted
  bool from_end = false;
  std::unique_ptr<std::byte[]> chunk; // none: straight to the read's memory, or discard

  // Of so many bytes of its payload, those that make whole fragments.
  [[nodiscard]] std::uint32_t whole(std::uint32_t bytes, std::uint32_t fragment) const {
    return bytes == length ? length : bytes / fragment * fragment;
  }
  // Where bytes [from, from + bytes) of its payload belong in the message, a stretch at a time.
  template <class Use>
  void each(std::uint32_t from, std::uint32_t bytes, std::uint32_t fragment, Use use) const {
    if (!from_end) return use(offset + from, bytes);
    while (bytes != 0) {
      const std::uint32_t high = length - from / fragment * fragment;
      const std::uint32_t low = high > fragment ? high - fragment : 0;
      const std::uint32_t within = from % fragment;
      const std::uint32_t n = std::min(bytes, high - low - within);
      use(offset + low + within, n);
      from += n;
      bytes -= n;
    }
  }
};

// One byte stream between the two hosts of a link, and what is good only while it lasts. Each side says first
// what it has (Statement), and sends trains when it has heard that of the other.
struct Carrier {
  enum class Stage : std::uint8_t { none, stating, up };
  Stage stage = Stage::none;
  TrainOut train;
  std::array<std::byte, max_header> header{};
  std::uint32_t header_filled = 0;
  std::deque<Due> due;
};

struct Link {
  std::uint32_t index = 0;
  bool open = false;
  Carrier carrier;
  std::uint32_t fragment = default_fragment;
  std::uint32_t self = 0; // low halves of the host identities
  std::uint32_t peer = 0;
  std::uint32_t write_table = 0; // of a rank over there

  // Sending
  std::uint32_t train_bytes = max_entries * default_fragment;
  std::uint64_t sequence = 0;     // of the last train sent
  std::uint64_t acknowledged = 0; // by the peer
  Log log;
  std::uint64_t stated = 0;  // the last train of the last statement heard
  std::uint32_t cut_off = 0; // fragments of the last train that its carrier did not take
  hook::List<Answer, hook::Answers> answers;
  struct Gone {
    std::uint64_t number;
    std::uint8_t flags; // as of the departure
  };
  std::deque<Gone> gone;                       // endpoints that the peer watches and that are not there
  std::size_t senders = 0;                     // endpoints over there that have sent envelopes
  std::size_t unmatched = 0;                   // of their messages, those that are held here
  hook::List<Answer, hook::Answers> departing; // streams whose departure waits for a train to be here whole
  hook::List<Outgoing, hook::Queue> fresh;     // envelopes to send, in the order of the writes
  hook::List<Outgoing, hook::Queue> ready;     // payload to send, in turns
  std::uint64_t credit = 0;                    // fragments the peer lets us send unasked, in total
  std::uint64_t credit_used = 0;
  std::uint64_t credit_for_small = 0; // of it, what only messages that ride may use
  std::uint64_t inline_out =
      0; // inline_cost() of what rode with envelopes, in bytes: a fragment of credit each
  std::uint32_t delay_product_kib = 0;

  // Receiving
  std::unordered_map<std::uint64_t, std::uint64_t> incoming; // by the sender's name for it: our Incoming's id
  std::uint64_t reading = 0;       // sequence of the last train whose header is here
  std::uint64_t received = 0;      // of the last one of which nothing more is due
  std::uint32_t missing = 0;       // of that, fragments that its carrier did not bring: they come anew
  std::uint64_t received_told = 0; // as last acknowledged
  std::uint64_t reserved = 0;      // fragments of pool set aside for this link
  std::uint64_t granted_used = 0;  // eager fragments announced
  std::uint64_t inline_in = 0;     // inline_cost() of what rode with envelopes
  std::uint64_t inline_freed = 0;  // of that, no longer in the pool
  std::uint64_t freed = 0;         // of those, no longer in the pool
  std::uint64_t granted_told = 0;  // as last sent
  bool ack_urgent = false;         // the peer can finish something with it
  bool ack_now = false;            // the kernel is about to sleep
  // Counters
  std::uint64_t trains_in = 0, trains_out = 0, fragments_in = 0, fragments_out = 0, bytes_in = 0,
                bytes_out = 0;
};

} // namespace parc::protocol
