// SPDX-License-Identifier: BSD-3-Clause
// Messages that leave, messages that arrive, and the reads that take them.
#pragma once

#include "protocol/pieces.hpp"
#include "protocol/posted_reads.hpp"
#include "protocol/progress.hpp"
#include "protocol/unexpected.hpp"
#include "protocol/wire.hpp"

#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace parc::protocol {

struct Endpoint;
struct Incoming;
struct Link;
struct Outgoing;
struct Pair;
struct Peer;
struct Reading;
struct Outflow;

// An object that owes the other kernel a descriptor. What it owes is read from its state when a train has
// room, so answers never pile up.
struct Answer : hook::Hook<hook::Answers> {
  enum class Of : std::uint8_t { outgoing, incoming, peer, outflow, pair };
  explicit Answer(Of kind) : of(kind) {}
  [[nodiscard]] bool owed() const { return hook::Hook<hook::Answers>::is_linked(); }
  Of of;
};

// A stretch of a message that may travel, eaten from one side; of one that goes to the message's far end that
// end goes first of all, as much as fills a page. (A read that is released early needs both ends of its
// buffer, which share pages with other memory.) A run of it is eaten from one side, too: where that is the
// upper one, fragment by fragment downwards.
struct Grant {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool from_end = false;
  std::uint32_t far = 0; // bytes of the other side that go first

  static constexpr std::uint32_t page = 4096;
  static constexpr std::uint64_t least_ends_first = 4; // times what goes first
  [[nodiscard]] static Grant to_far_end(std::uint64_t low, std::uint64_t high, bool from_end,
                                        std::uint32_t fragment) {
    const std::uint32_t far = (page + fragment - 1) / fragment * fragment;
    return {low, high, from_end, high >= low + least_ends_first * far ? far : 0};
  }
  // What goes before it has been asked for: the first bytes, or the last, or all of it.
  [[nodiscard]] static Grant unasked(std::uint64_t total, std::uint64_t bytes, bool from_end,
                                     std::uint32_t fragment) {
    if (bytes == total) return to_far_end(0, total, from_end, fragment);
    return from_end ? Grant{total - bytes, total, true} : Grant{0, bytes};
  }

  [[nodiscard]] std::uint64_t left() const { return high - low; }
  [[nodiscard]] std::uint64_t run() const { return far != 0 ? far : left(); } // what may go as one
  [[nodiscard]] bool from_above() const { return from_end != (far != 0); }    // that run
  [[nodiscard]] bool fits(std::uint64_t offset, std::uint64_t length) const {
    return length != 0 && length <= run() && offset == (from_above() ? high - length : low);
  }
  std::uint64_t take(std::uint32_t length) { // the offset of what was taken
    const bool above = from_above();
    if (far != 0) far -= length;
    if (above) return high -= length;
    low += length;
    return low - length;
  }
  void put_back(std::uint32_t length, bool above) { // the rest of the run that was taken last
    if (above)
      high += length;
    else
      low -= length;
    if (above != from_end) far += length;
  }
};

// A message that a local program writes or puts, the answer to a get, or the request of one until it is sent.
struct Outgoing : Answer, hook::Hook<hook::Queue>, hook::Hook<hook::Asked>, hook::Hook<hook::Owned> {
  Outgoing() : Answer(Of::outgoing) {}
  std::uint64_t id = 0; // names the message on its link
  std::uint64_t cookie = 0;
  Endpoint* from = nullptr;
  Link* link = nullptr;       // none: the destination is local
  Outflow* outflow = nullptr; // of `from` and `link`
  Incoming* local = nullptr;
  Pair* pair = nullptr; // of `from` and the destination
  Space space = Space::programs;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  MessageFlags flags = MessageFlags::none;
  Pieces memory;
  std::uint64_t total = 0;
  Grant eager;                // what goes unasked
  Grant rest;                 // what was asked for
  std::vector<Span> again;    // of that, what a subflow did not bring; ascending
  std::uint64_t promised = 0; // bytes of both grants when they were new
  std::uint64_t acknowledged = 0;
  Progress progress;
  bool envelope_acknowledged = false;
  bool matched = false;      // the receiver has said so, and of what is not whole what it wants
  bool received = false;     // the receiver has said that all of it is there
  bool cancel_asked = false; // owes a cancel or has sent it
  bool late = false;         // has no memory yet

  // Of one-sided transfers (puts.cpp, gets.cpp). A request has no memory, and goes when it is sent; an
  // answer's memory is that of a window, and its cookie what holds it.
  enum class Role : std::uint8_t { message, put, request, answer };
  Role role = Role::message;
  Incoming* asks = nullptr;   // of a request
  std::uint64_t asker = 0;    // of an answer to another host: the name of its Incoming there
  std::unique_ptr<Rows> rows; // of a put into some

  enum class Stage : std::uint8_t {
    made,
    gated,     // until pass(): no link, outflow or local yet
    local,     // its receiver is here
    held,      // in Pair::held
    queued,    // in Link::fresh
    waiting,   // of an answer: behind another one, in Pair::answers
    announced, // its envelope has been sent
    abandoned, // reported as finished; owes an abort
  };
  Stage stage = Stage::made;
  void enter(Stage next) {
    assert(next == Stage::gated       ? stage == Stage::made
           : next == Stage::local     ? stage <= Stage::gated || stage == Stage::waiting
           : next == Stage::held      ? stage <= Stage::gated
           : next == Stage::queued    ? stage <= Stage::gated || stage == Stage::held
           : next == Stage::waiting   ? stage == Stage::made && role == Role::answer
           : next == Stage::announced ? stage == Stage::queued || role == Role::answer
                                      : next == Stage::abandoned && stage == Stage::announced);
    stage = next;
  }
  [[nodiscard]] bool of_program() const { return role == Role::message || role == Role::put; }
  [[nodiscard]] bool abandoned() const { return stage == Stage::abandoned; }
  [[nodiscard]] bool announced() const { return stage >= Stage::announced; }
  [[nodiscard]] bool whole() const { return has(flags, MessageFlags::whole); }    // everything goes unasked
  [[nodiscard]] bool asked() const { return rest.left() != 0 || !again.empty(); } // and not sent yet
  [[nodiscard]] bool synchronous() const { return has(flags, MessageFlags::synchronous); }
  [[nodiscard]] bool from_end() const { return has(flags, MessageFlags::from_end); }
};

// Payload that came before its read, counted in the pool as long as it is kept.
class Block {
public:
  Block() = default;
  Block(std::uint64_t& pool_used, std::uint64_t offset, std::uint32_t length)
      : offset_(offset), bytes_(new std::byte[length], {&pool_used, length}) {
    pool_used += length;
  }
  explicit operator bool() const { return bytes_ != nullptr; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint32_t length() const { return bytes_.get_deleter().length; }
  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return bytes_.get() + (offset - offset_); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {bytes_.get(), length()}; }

private:
  struct Free {
    std::uint64_t* pool_used;
    std::uint32_t length;
    void operator()(const std::byte* bytes) const {
      *pool_used -= length;
      delete[] bytes;
    }
  };
  std::uint64_t offset_ = 0; // of the message
  std::unique_ptr<std::byte[], Free> bytes_;
};

// Of a message between local programs, one of which must copy: the step that is under way.
struct CopySteps {
  std::uint64_t name = 0; // CrossMemory::no_name: there is none
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::unique_ptr<std::byte[]> fetched; // what its writer has copied, and its reader has not
};

// A message that is arriving, has arrived, or is announced by a local writer.
struct Incoming : Answer, Unexpected<Pair> {
  Incoming() : Answer(Of::incoming) {}
  std::uint64_t id = 0;
  Link* link = nullptr; // none: local, or whole and parted from its link or its write
  Outgoing* local = nullptr;
  std::uint64_t message = 0; // the sender's name for it
  Reading* read = nullptr;   // while it is matched
  std::uint64_t data = 0;
  MessageFlags flags = MessageFlags::none; // as its envelope said: whatever becomes of it, they stay
  // A put's read is the window's (puts.cpp). A get or atomic: what one gets by it, or that somebody asks for
  // it, until its turn.
  enum class What : std::uint8_t { message, put, get, atomic };
  What what = What::message;
  bool counted = false;    // as unmatched, by its link and its pair
  bool asked = false;      // by a get: its fragments have our id
  bool striped = false;    // some of it came over a subflow
  bool rows_alone = false; // nothing of it rode behind its Rows
  std::uint64_t total = 0;
  std::uint64_t limit = 0;    // bytes that the read has room for
  std::uint64_t promised = 0; // bytes that will arrive
  std::uint64_t arrived = 0;
  Progress progress; // of the bytes that the read has room for
  Grant eager;
  Grant rest;                // of another host: what was asked for, whatever of it is here
  std::vector<Block> blocks; // what arrived before its read
  std::unique_ptr<std::byte[]>
      rode; // all of it, where that came with its envelope before its read; an Atomic; before all that Rows
  std::unique_ptr<CopySteps> steps; // none: it is local and copied as it comes, or not local
  // Want, matched, canceled or message_ack, until a train has room for that: by then the message may be at a
  // later stage.
  Kind owes = Kind::none;

  enum class Stage : std::uint8_t {
    made,
    behind,   // a put of its pair that is not in place: in Pair::behind
    stored,   // no read yet: in Pair::unexpected and Endpoint::arrivals
    claimed,  // in Endpoint::claimed: only a read that names it takes it
    matched,  // `read` takes it
    over,     // its read has ended, with all of it or without; what still comes is not wanted
    unwanted, // nobody will read it
  };
  Stage stage = Stage::made;
  void enter(Stage next) {
    assert(next == Stage::behind    ? stage == Stage::made
           : next == Stage::stored  ? stage <= Stage::behind
           : next == Stage::claimed ? stage == Stage::stored
           : next == Stage::matched ? stage <= Stage::claimed
           : next == Stage::over    ? stage == Stage::matched
                                    : next == Stage::unwanted && stage <= Stage::claimed);
    stage = next;
  }
  [[nodiscard]] bool gets() const { return what == What::get || what == What::atomic; }
  // Of the window, where it is a get, or a put that has no place yet.
  [[nodiscard]] std::optional<Rows> rows() const {
    if (!has(flags, MessageFlags::rows)) return {};
    Rows found;
    std::memcpy(&found, rode.get(), sizeof found);
    return found;
  }
  [[nodiscard]] bool unread() const { return stage == Stage::stored || stage == Stage::claimed; }
  [[nodiscard]] bool waits() const { return unread() || stage == Stage::behind; } // for its read
  [[nodiscard]] bool matched() const { return stage == Stage::matched; }
  [[nodiscard]] bool whole() const { return has(flags, MessageFlags::whole); } // everything comes unasked
  [[nodiscard]] bool synchronous() const { return has(flags, MessageFlags::synchronous); }
  // Of what does not come whole, its read has asked, or will ask, for the rest.
  [[nodiscard]] bool rest_wanted() const { return !whole() && (matched() || stage == Stage::over); }
  [[nodiscard]] bool has_asked_for(std::uint64_t offset, std::uint64_t length) const {
    return rest_wanted() && owes != Kind::want && offset >= rest.low && offset <= rest.high &&
           length <= rest.high - offset;
  }
};

// A read that two may take a message for, the engine and whoever else can reach the word: who changes it
// first has it. None: the engine's alone.
struct OwnerWord {
  std::atomic<std::uint64_t>* word = nullptr;
  std::uint64_t open = 0; // what stands there while nobody has taken it
  std::uint64_t ours = 0; // and what is stored when the engine does

  // The order of what it stands for is kept by whoever tells of it: nothing is read because of this word
  // alone.
  [[nodiscard]] bool take() const {
    std::uint64_t expected = open;
    return word == nullptr || word->compare_exchange_strong(expected, ours, std::memory_order_acq_rel);
  }
};

// A posted read or probe.
struct Reading : Wanted<Pair>, hook::Hook<hook::Owned> {
  std::uint64_t id = 0;
  std::uint64_t cookie = 0;
  Endpoint* at = nullptr;
  Incoming* message = nullptr;
  Outgoing* request = nullptr; // of a get, until that has left
  OwnerWord owner_word;
  Pieces memory;
  MessageFlags flags = MessageFlags::none; // as asked for; claim: also of one that is late
  bool probe = false;
  bool late = false;      // has no memory: it claims its message as a read takes it
  bool of_window = false; // the engine's own, for a put; its cookie is what holds the window's memory
  bool apart = false;     // that is another process's, or in short rows: blocks are copied there
  bool unreached = false; // some of it was not reached
};

// With the place of an index (unexpected.hpp), what malloc adds to bytes that rode, and its name.
static_assert(sizeof(Incoming) + 16 + 2 * sizeof(void*) + max_inline + 64 <= envelope_bytes);

} // namespace parc::protocol
