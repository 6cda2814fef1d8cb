// SPDX-License-Identifier: BSD-3-Clause
// One host's protocol engine: matches, fragments, grants and counts. It makes no system call, reads no clock
// and starts no thread; whoever owns it moves the bytes between its plans and the sockets, and gives it the
// programs' memory. The same object runs in parcd, in the simulation and under the fuzzer.
//
// Invariants: payload always has a place before it is read (posted memory, pool within the granted credit, or
// the discard sink); what others can make this host keep is bounded by the pool, and by Settings::unmatched
// and pair_envelopes; a refusal concerns one link, never the engine.
//
// Not thread-safe. Listener calls are made from inside the engine's calls and must not call it back.
#pragma once

#include "protocol/objects.hpp"
#include "protocol/place.hpp"
#include "protocol/slab.hpp"
#include "protocol/wire.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace parc::protocol {

enum class Fault : std::uint8_t {
  none,
  truncated, // the message is longer than the read's memory
  peer,      // has departed, or its link is lost
  canceled,
  taken, // a read whose owner word somebody else has changed: it has a message of theirs
  place, // of a get, put or atomic: there is no such window there, it is outside, or not allowed
};

struct Outcome {
  Fault fault = Fault::none;
  std::int32_t source = -1; // row of the message's source; of a write: row of its destination
  Space space = Space::programs;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;                  // the writer's
  MessageFlags flags = MessageFlags::none; // the message's
  std::uint64_t total = 0;
  std::uint64_t claim = 0;               // of a probe that claims, or a late read: for ReadRequest::claimed
  Departure departure = Departure::none; // of the peer, where that is the fault; none: of all, or not known
};

// Hears what becomes of operations and endpoints. Cookies are those of the requests, and of open().
class Listener {
public:
  virtual ~Listener() = default;
  // A read has been matched: everything of its outcome but the fault is known.
  virtual void begun(std::uint64_t cookie, const Outcome& outcome) = 0;
  // A late write's message has been matched: it needs its memory now, by place().
  virtual void wanted(std::uint64_t /*cookie*/) {}
  // Bytes [0, front) and the last `back` ones are in place (read) or acknowledged (write).
  virtual void progressed(std::uint64_t cookie, const Progress& progress) = 0;
  // The operation is over; its memory is no longer named, its cookie is not used again.
  virtual void finished(std::uint64_t cookie, const Outcome& outcome) = 0;
  // An opened endpoint's backlog() has changed, or must_know_reads().
  virtual void backlog_changed(std::uint64_t /*endpoint_cookie*/) {}
  // An opened endpoint that has left or was killed has nothing under way any more and is gone; its operations
  // have finished before.
  virtual void drained(std::uint64_t endpoint_cookie) = 0;
  // An endpoint of this host has just departed; its operations may still be under way.
  virtual void departed(std::uint64_t /*endpoint*/, Departure /*how*/) {}
  // An endpoint of another host has departed, which endpoints of this host exchange messages with: they hear
  // of it now. It may be said more than once.
  virtual void peer_departed(const Address& /*peer*/) {}
  // A message of `from` that an endpoint of this host has not read, which has left. Its Outcome::source is
  // not set.
  virtual void unread(std::uint64_t /*endpoint*/, const Address& /*from*/, const Outcome& /*message*/) {}
  // Somebody gets or puts that of an opened endpoint's memory, which stays until let_go(hold). False: there
  // is no such place, or not for that. `acquainted`: it is of the endpoint's group, or that knows it
  // (acquaint).
  virtual bool place(std::uint64_t /*endpoint_cookie*/, const Place& /*place*/, bool /*acquainted*/,
                     Pieces& /*memory*/, std::uint64_t& /*hold*/) {
    return false;
  }
  virtual void let_go(std::uint64_t /*hold*/) {}
};

struct Settings {
  std::uint64_t pool = std::uint64_t{64} << 20;        // bytes for messages that nobody has posted a read for
  std::uint64_t unmatched = std::uint64_t{256} << 20;  // bytes for envelopes of a link that no read has taken
  std::uint32_t waiting_writes = 512;                  // of an endpoint, before short local ones are copied
  std::uint64_t link_window = std::uint64_t{2} << 20;  // bytes of pool that a link gets at first
  std::uint64_t long_copy = std::uint64_t{64} << 10;   // bytes left from which on a copy is long
  std::uint64_t copy_slice = std::uint64_t{256} << 10; // bytes copied between local programs a turn
  std::size_t departed_kept = 1024;                    // rows of departed peers that an endpoint keeps
};

struct LinkSettings {
  std::uint32_t fragment = default_fragment; // bytes of a full one, as negotiated
  std::uint32_t self = 0;                    // low halves of the two host identities
  std::uint32_t peer = 0;
  bool kernels_only = false; // the peer may not write to programs
};

struct ReadRequest {
  std::uint64_t cookie = 0;
  std::int64_t source = -1; // row (of the kernel's endpoint: link); -1: any
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0; // bits of the tag that may be any
  Space space = Space::programs;
  MessageFlags flags = MessageFlags::none; // from_end; of a probe: no_wait, then source -1 says none, claim
  Pieces memory;
  bool probe = false;        // finishes when a matching message is there, and leaves it
  std::uint64_t claimed = 0; // the message to read, in place of everything that matches
  OwnerWord owner_word = {}; // where somebody else may answer the read as well
  bool late = false;         // has no memory yet: finishes when it is matched, with its message as claim
};

struct WriteRequest {
  std::uint64_t cookie = 0;
  std::uint32_t destination = 0; // row (of the kernel's endpoint: link)
  std::uint64_t tag = 0;
  std::uint64_t data = 0; // for who reads it
  Space space = Space::programs;
  MessageFlags flags = MessageFlags::none; // flags_that_travel
  Pieces memory;
  bool gated = false;            // held back until pass(): nobody hears of it before
  bool put = false;              // into the window `tag`, at `data`: it ends when it is in place
  std::optional<Rows> rows = {}; // of a put, there
  std::uint64_t late = 0;        // bytes of a message that has no memory before place(); 0: it has
};

struct GetRequest {
  std::uint64_t cookie = 0;
  std::uint32_t target = 0; // row
  std::uint64_t window = 0, offset = 0;
  MessageFlags flags = MessageFlags::none; // from_end
  Pieces memory;
  std::optional<Rows> rows = {};     // of the window
  std::optional<Atomic> atomic = {}; // in place of a get: its outcome's data is what was there before
  bool gated = false;                // as a write
};

class Engine {
public:
  Engine(const Settings& settings, Listener& listener);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- Endpoints (endpoints.cpp). Each has a table of those that it exchanges messages with: the rows of
  // its group, those that were added, and whoever else has written to it. Who is not of its group, has
  // departed, and has nothing unread or unfinished any more, gives his row up when so many others are through
  // since (Settings::departed_kept): its number means nobody from then on.
  std::uint64_t add_endpoint(); // others may write to it from now on; its reads come with open()
  bool open(std::uint64_t endpoint, std::uint64_t cookie);                  // false: it is gone
  [[nodiscard]] std::uint64_t kernel() const { return kernel_endpoint; }    // for messages between kernels
  [[nodiscard]] bool is_there(std::uint64_t endpoint) const;                // and has not departed
  [[nodiscard]] std::size_t endpoints() const { return endpoints_.size(); } // with the kernel's
  [[nodiscard]] bool has_given(std::uint64_t endpoint, std::int64_t row) const; // also a row given up since
  [[nodiscard]] Backlog backlog(std::uint64_t endpoint) const;                  // 0, 0 where it is not there
  // Adds a row for an address, or returns the row that it has already; below 0: one of the two constants.
  std::int32_t add_row(std::uint64_t endpoint, const Address& address);
  static constexpr std::int32_t no_such_endpoint = -1, no_room_for_row = -2;
  // The address of a row; none: it has been given up, or never given.
  [[nodiscard]] std::optional<Address> address(std::uint64_t endpoint, std::int64_t row) const;
  void keep_row(std::uint64_t endpoint, std::int32_t row); // never to be given up: others have noted it
  void acquaint(std::uint64_t endpoint,
                std::int32_t row);    // it may get what is for those that the endpoint knows
  void leave(std::uint64_t endpoint); // cleanly: what it wrote is delivered, its reads are canceled
  void kill(std::uint64_t endpoint);  // its unfinished messages are aborted
  // Makes a group of endpoints that were started together: row r of each member of this host is member r. A
  // read from anybody fails when all other members, and whoever else is in its table, have departed.
  // no_group: a member is named twice, or is an endpoint of this host that was never made or that a program
  // or another group has already.
  static constexpr std::uint64_t no_group = 0;
  std::uint64_t add_group(std::span<const Address> members);
  // Kills a group's members here; what those that left have written is still delivered.
  void drop_group(std::uint64_t group);
  [[nodiscard]] std::int32_t row_in_group(std::uint64_t group, const Address& address) const; // -1: no member

  // Whether a new read could end at once: messages wait there, or somebody has departed.
  [[nodiscard]] bool may_answer_reads(std::uint64_t endpoint) const;
  // Whether one may, ever: it has peers on other hosts, a message has waited there, or somebody has departed.
  [[nodiscard]] bool must_know_reads(std::uint64_t endpoint) const;

  // ---- Operations (operations.cpp). Each returns a handle for cancel and hand_over, which stay harmless
  // when stale.
  std::uint64_t read(std::uint64_t endpoint, const ReadRequest& request);
  std::uint64_t write(std::uint64_t endpoint, const WriteRequest& request);
  // Reads bytes of a peer's window, which that peer has no part in (gets.cpp). It begins when it is asked
  // for, and cannot be canceled when it has left.
  std::uint64_t get(std::uint64_t endpoint, const GetRequest& request);
  void cancel(std::uint64_t operation);
  void pass(std::uint64_t operation);                    // what is gated goes on as if it were made now
  void place(std::uint64_t write, const Pieces& memory); // gives a late write its memory
  // Makes a read late that has no message yet: its memory is not named any more. False: it has one, or is
  // over, or is late, or is a probe.
  bool unplace(std::uint64_t read);
  // Bytes [begin, begin + length) of a write lie at `base` from here on; the old memory is no longer named.
  void hand_over(std::uint64_t operation, std::uint64_t begin, std::byte* base, std::uint64_t length);

  // ---- Links (receive.cpp, send.cpp).
  std::uint32_t add_link(const LinkSettings& settings); // with its first carrier attached
  // Ends a link: operations on it fail with Fault::peer, messages that are here whole stay. The index is not
  // used again.
  void break_link(std::uint32_t link);
  // A link's byte stream has ended, at whatever byte; what it did not bring waits for the next (carrier.cpp).
  void detach(std::uint32_t link);
  // A link has a new byte stream between the same two engines; an old one is detached, its unread bytes are
  // void.
  void attach(std::uint32_t link);
  // One more byte stream beside the first one: its number, from 1, by which the calls below name it (0: the
  // first one). None: the link has as many as it may have. What a dropped one did not bring goes by others,
  // and so does what one that is doubted has under way, which is used again when it brings some of that; one
  // that is retired, by either side, brings that and nothing new (subflows.cpp).
  static constexpr std::size_t most_subflows = 15;
  std::optional<std::uint32_t> add_subflow(std::uint32_t link);
  void drop_subflow(std::uint32_t link, std::uint32_t subflow);
  void doubt_subflow(std::uint32_t link, std::uint32_t subflow);
  void retire_subflow(std::uint32_t link, std::uint32_t subflow, bool retired); // or takes that back
  void set_path(std::uint32_t link, std::uint32_t train_bytes, std::uint32_t delay_product_kib,
                std::uint32_t subflow = 0);
  // Of payload on a link's first carrier: bytes that are sent and not acknowledged. 0: as its stream takes.
  void limit_flight(std::uint32_t link, std::uint64_t bytes);
  // Says where the next bytes of the stream belong: fills `iovecs` and returns how many.
  std::size_t plan_read(std::uint32_t link, std::span<iovec> iovecs, std::uint32_t subflow = 0);
  Refusal took(std::uint32_t link, std::size_t bytes, std::uint32_t subflow = 0);
  // Says what to write next; empty when there is nothing.
  std::span<const iovec> plan_write(std::uint32_t link, std::uint32_t subflow = 0);
  void wrote(std::uint32_t link, std::size_t bytes, std::uint32_t subflow = 0);
  // A program has been asked for an atomic operation, and has not made it.
  [[nodiscard]] bool asks_programs() const { return !asked_atomics_.empty(); }
  // Acknowledgements that let the other side finish something go out alone before the owner sleeps: flush,
  // and write. Where nobody waits for any of them they may ride with what is said next, within some
  // milliseconds.
  [[nodiscard]] bool owes_acknowledgement() const;
  [[nodiscard]] bool acknowledgements_may_wait() const;
  void flush_acknowledgements();
  [[nodiscard]] const Link& link(std::uint32_t index) const; // of one that broke only open is valid: false
  [[nodiscard]] std::size_t links() const { return links_.size(); }

  // ---- Copies between local programs (local.cpp). copy() makes at most one slice; 0: there was none to
  // make, else about its bytes.
  std::uint64_t copy();
  [[nodiscard]] bool copies_long() const; // the next copy will take some time
  void resume_copies();                   // a program has copied what was asked of it (CrossMemory)

  [[nodiscard]] std::uint64_t pool_in_use() const { return pool_used_; }

  // Counts since the start; messages between kernels are not among the messages.
  struct Totals {
    std::uint64_t messages_in = 0, messages_out = 0, messages_local = 0; // local ones when they are written
    std::uint64_t unexpected = 0, unexpected_bytes = 0; // kept for a read to come, and copied to it then
    std::uint64_t copied = 0;                           // bytes between local programs
    std::uint64_t trains_in = 0, trains_out = 0, fragments_in = 0, fragments_out = 0, bytes_in = 0,
                  bytes_out = 0;
  };
  [[nodiscard]] Totals totals() const;

private:
  friend class Invariants; // of all of it: tests/sim/invariants.hpp

  // Bytes of the longest local message that is copied at the match, without a turn; it may wait for its match
  // in the pool.
  static constexpr std::uint64_t small_copy = 8192;
  static constexpr std::uint64_t reading_handle = std::uint64_t{1}
                                                  << 63; // tells handles of reads from writes'

  // matching.cpp
  // `riding`: the bytes that came with the envelope.
  void arrive(Incoming& message, std::span<const std::byte> riding = {});
  void store(Incoming& message, std::span<const std::byte> riding);
  static void keep_riding(Incoming& message, std::span<const std::byte> riding);
  void unstore(const Incoming& message);
  void match(Reading& read, Incoming& message, std::span<const std::byte> riding = {});
  Incoming* find_unexpected(Endpoint& at, const Reading& read);
  Outcome probed(const Reading& read, Incoming& message);
  void unpost(Reading& read);
  void satisfy_probes(Endpoint& at, Incoming& message);
  void count_match(Incoming& message);
  void return_place(Link& link, Pair* pair);
  void copy_in(Incoming& message, std::uint64_t offset, std::span<const std::byte> bytes);
  static void deliver(const Incoming& message, std::uint64_t offset, std::span<const std::byte> bytes);
  void advance(Incoming& message, std::uint64_t offset, std::uint64_t length);
  void check_read_done(Incoming& message);
  void tell_progress(const Incoming& message);
  void end_reading(Incoming& message);
  void lose(Reading& read);
  void fail_read(Reading& read, Fault fault, Departure how = Departure::killed);
  void finish_read(Reading& read, const Outcome& outcome);
  [[nodiscard]] bool hopeless(const Reading& read);

  // operations.cpp
  void launch(Outgoing& message);
  void keep_short(Incoming& message);
  void announce(Outgoing& message);
  void queue(Outgoing& message);
  void unqueue(Outgoing& message);
  void release_held(Link& link);
  void release_held(Endpoint& leaving);
  void count(Endpoint& of, std::uint64_t Backlog::*what, bool one_more);
  void say_changed(const Endpoint& endpoint);
  void note_of(Endpoint& endpoint, bool Endpoint::*what);
  void check_write_done(Outgoing& message);
  void finish_write(Outgoing& message, Fault fault);
  void fail_write(Outgoing& message, Fault fault);
  void check_drained(Endpoint& endpoint);

  // gets.cpp
  void ask(Outgoing& request);
  void get_here(Incoming& message, std::uint64_t offset);
  void answer_here(Incoming& message, Pair& asker);
  void serve_here(Incoming& message, Pair& asker);
  void send_request(Link& link, Outgoing& request);
  void finish_request(Outgoing& request, Fault fault);
  Refusal take_get(Link& link, Endpoint* to, Pair* pair, const EntryWalk::Entry& entry);
  Incoming& keep_request(Link& link, Pair& pair, const Envelope& envelope);
  static void keep_rows(Incoming& message, const Rows& rows, std::span<const std::byte> riding = {});
  [[nodiscard]] static std::optional<Rows> take_rows(Incoming& message);
  void answer_get(Link& link, Pair& asker, const Envelope& envelope, const Rows* rows);
  bool find_place(const Pair& peer, const Place& place, Pieces& memory, std::uint64_t& hold);
  void add_answer(Pair& asker, Outgoing& answer);
  void copy_answer(Outgoing& answer);
  void begin_answer(Outgoing& answer);
  void answer_next(Pair& pair);
  static void say_end(Link& link, const Link::End& end);
  static Link::End refused(std::uint64_t name, Refused why, std::uint8_t flags = 0) {
    return {name, Kind::refused, flags, static_cast<std::uint64_t>(why)};
  }
  void end_answer(const Outgoing& answer);
  void give_up_answer(Outgoing& answer);
  void lose_answer(Outgoing& answer);
  Refusal take_refused(Link& link, const Descriptor& descriptor);
  Refusal take_none_to_send(Link& link, const Descriptor& descriptor);
  Incoming* find_get(const Link& link, std::uint64_t name);

  // atomics.cpp
  struct Word {
    std::byte* at = nullptr;
    CrossMemory* of = nullptr;
    std::uint64_t hold = 0;
  };
  struct AskedAtomic {         // of a program, which has not made it yet
    std::uint64_t message = 0; // the request's id, which may be gone
    Pair* pair = nullptr;      // of who asks
    std::uint64_t name = 0;
    Word word;
    Atomic atomic{};
  };
  [[nodiscard]] std::optional<Word> find_word(const Pair& peer, const Place& place);
  void make_atomic_here(Incoming& message, Pair& asker);
  void ask_for_atomic(Incoming& message, Pair& asker, const Word& word, const Atomic& atomic);
  void look_at_atomics();
  void end_atomic(std::size_t index, std::optional<std::uint64_t> before);
  void finish_atomic(Incoming& message, std::optional<std::uint64_t> before);
  void give_up_atomics(const Endpoint& target);
  void answer_atomic(Link& link, Pair& asker, const Envelope& envelope, const Atomic& atomic);
  Refusal take_result(Link& link, const Descriptor& descriptor);
  static Atomic atomic_of(const Incoming& message);

  // puts.cpp
  void take_in_order(Incoming& message, std::span<const std::byte> riding);
  void take_effect(Pair& pair, Incoming& message, std::span<const std::byte> riding);
  void place_put(Incoming& message, std::span<const std::byte> riding);
  void refuse_put(Incoming& message);
  void put_is_over(Pair& pair);
  void give_up_behind(Pair& pair, const Incoming& put);
  void give_up(Incoming& behind);
  Refusal take_placed(Link& link, Outgoing& put);
  Refusal take_refused_put(const Link& link, const Descriptor& descriptor);

  // subflows.cpp
  bool build(Link& link, Subflow& subflow);
  void deal_again(Link& link, Subflow& subflow);
  void restripe(Link& link);
  void change(Link& link, Subflow& subflow, bool Subflow::*what, bool value);
  Refusal take_header(Link& link, Carrier& carrier, const Prefix& prefix, std::span<const std::byte> entries);
  Refusal take_message_ack(Link& link, const Descriptor& descriptor);
  static void note_received(Link& link, Outgoing& message);
  static Carrier& carrier_of(Link& link, std::uint32_t subflow);
  static void unname(Link& link, std::uint64_t message);

  // carrier.cpp
  Refusal take_statement(Link& link, const Statement& statement);
  bool resend(Link& link);
  void keep(Link& link, const Due& due, std::uint32_t whole);
  void undo_envelope(Link& link, Envelope& envelope);
  static void undo_request(Envelope& envelope);

  // send.cpp
  bool build(Link& link);
  static bool ask_for_acknowledgement(Link& link);
  void add_answers(Link& link);
  void add_envelopes(Link& link);
  template <class Tag>
  void add_fragments(Link& link, Trains& trains, TrainOut& train, hook::List<Outgoing, Tag>& waiting);
  static bool add_run(Link& link, TrainOut& train, const Outgoing& message, const Descriptor& run);
  static void make_ready(Outgoing& message);
  void decide_eager(Link& link, Outgoing& message, Envelope& envelope);
  bool describe_answer(Answer& answer, Descriptor& descriptor);
  void owe(Link& link, Answer& answer);
  void owe(Incoming& message, Kind answer);
  void owe_departure(Outflow& outflow);
  Refusal acknowledge(Trains& trains, const Carrier& carrier, std::uint64_t sequence);
  void acknowledged(const Log::Entry& entry);
  static bool owes_acknowledgement(const Link& link);
  static void want_acknowledgement(Link& link, const Incoming& message);
  [[nodiscard]] static std::uint64_t grant(const Link& link) { return link.reserved + link.freed; }
  [[nodiscard]] std::uint64_t grant_envelopes(const Link& link) const {
    const std::uint64_t most = settings_.unmatched / envelope_bytes;
    return (link.kernels_only ? std::min(most, envelopes_of_kernels) : most) + link.envelopes_in -
           link.unmatched;
  }

  // local.cpp
  void copy_part(Incoming& message, std::uint64_t most);
  void lose_place(Incoming& message);
  [[nodiscard]] bool copy_run(Incoming& message, std::uint64_t most);
  [[nodiscard]] bool copy_step(Incoming& message);
  [[nodiscard]] static bool take_step(Incoming& message);
  void copied(Incoming& message, std::uint64_t offset, std::uint64_t length);
  void end_steps(Incoming& message);
  static void forget_source(const Incoming& message);

  // receive.cpp
  Refusal parse(Link& link, Carrier& carrier);
  Refusal take_header(Link& link, const Prefix& prefix, std::span<const std::byte> entries);
  Refusal take_envelope(Link& link, const EntryWalk::Entry& entry);
  Refusal take_descriptor(Link& link, const Descriptor& descriptor, std::uint64_t& payload);
  Refusal take_fragments(Link& link, Carrier& carrier, const Descriptor& descriptor);
  Refusal take_want(Link& link, const Descriptor& descriptor);
  Refusal take_matched(Link& link, const Descriptor& descriptor);
  Refusal take_departure(Link& link, const Descriptor& descriptor);
  void fill_due(Link& link, Carrier& carrier, std::size_t bytes, const std::byte* from);
  static void deliver_new(const Incoming& message, const Block& block);
  void in_place(Link& link, Due& due, std::uint32_t from, std::uint32_t to);
  void arrived(Link& link, Incoming& message);
  void received_whole(Link& link);
  void free_blocks(Incoming& message);
  Incoming* find_incoming(Link& link, std::uint64_t message);
  void forget_name(Incoming& message);
  void drop_incoming(Incoming& message);
  void discard(Incoming& message);
  void widen(Link& link, std::uint32_t delay_product_kib);

  // endpoints.cpp
  [[nodiscard]] Endpoint* find_endpoint(std::uint64_t number) const;
  Group* find_group(std::uint64_t id) const;
  [[nodiscard]] bool may_be_member(const Address& address) const;
  Link* find_link(const Address& address) const; // none: it is here, or its link is no more
  Pair& pair_of(Endpoint& at, const Address& address);
  Pair* pair_of(Endpoint& at, std::int32_t row); // none: it has been given up
  Pair& add_pair(Endpoint& at, const Address& address, std::int32_t row);
  Peer& peer_of(const Address& address);
  void watch(Peer& peer);
  void wait_for_anybody(Group& group);
  void forget_if_over(Peer& peer);
  Outflow& outflow_of(Endpoint& from, Link& link);
  void forget_endpoint(Endpoint& endpoint);
  std::int32_t make_row(Endpoint& at, const Address& address);
  void enter_row(Pair& pair, std::int32_t row);
  void note_through(Pair& pair);
  void name_pair(Incoming& message, Pair& pair);
  void forget_pair(Incoming& message);
  void give_up_rows(Endpoint& at);
  void forget_if_over(Group& group);
  Refusal take_watch(Link& link, const Descriptor& descriptor);

  // departure.cpp
  void depart(Endpoint& endpoint, Departure how);
  void tell_departed(Peer& peer);
  void fail_hopeless(Endpoint& endpoint, const Address* departed);
  void fail_those_behind(const Peer& peer);
  void forget_kernel(std::uint32_t link);

  Settings settings_;
  Listener& listener_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Group>> groups_;
  std::unordered_map<Address, std::unique_ptr<Peer>> peers_;
  std::vector<std::unique_ptr<Link>> links_; // by index; none: it broke
  std::vector<Link*> open_links_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Endpoint>> endpoints_;
  std::uint64_t last_endpoint_ = kernel_endpoint;
  std::unordered_set<std::uint64_t>
      killed_; // numbers of the last endpoints that were killed, also when they are gone
  std::uint64_t last_group_ = 0;
  Slab<Outgoing> outgoing_;
  Slab<Incoming> incoming_;
  Slab<Reading> readings_;
  hook::List<Incoming, hook::Queue> copies_;  // matched local messages, to be copied in turns
  hook::List<Incoming, hook::Queue> stalled_; // and those that wait until one of their programs copies
  std::vector<AskedAtomic> asked_atomics_;    // likewise, and their requests, those that are there:
  hook::List<Incoming, hook::Queue> asking_;
  std::uint64_t steps_ = 0;         // the last CopySteps::name, or AskedAtomic's
  std::uint64_t pool_reserved_ = 0; // bytes for links, and of messages kept that have no link
  std::uint64_t pool_used_ = 0;
  std::uint64_t apart_used_ = 0; // of trains that are coming, for windows that are not read into
  Totals totals_;
  std::vector<std::byte> sink_; // discarded payload goes here
};

} // namespace parc::protocol
