// SPDX-License-Identifier: BSD-3-Clause
// What lies in the control segment between a program and its kernel, and what goes over the two pipes beside
// it: plain structures of fixed size, no behaviour. The program's view of them is client/, the kernel's,
// which trusts nothing, is daemon/program/session.hpp.
//
//   control segment:  ControlHeader | bits of finished operations | blocks | Request ring[request_slots]
//                     | Operation table[operation_slots] | Times[operation_slots]
//                     | AttachedWindow[most_attached_windows] | Bounce
//
// The tables grow by further segments, their blocks: shm/tables.hpp.
//
// Beside each field: who writes it (P the program, K the kernel), and the memory order that makes it safe. No
// lock lives here; a side that dies in the middle of anything leaves nothing held.
#pragma once

#include "protocol/message_flags.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace parc::shm {

using protocol::MessageFlags;

inline constexpr std::uint64_t control_magic = 0x6c72746363726170; // "parcctrl"
inline constexpr std::uint32_t layout_version = 27;
inline constexpr std::uint32_t request_slots = 1024; // a power of two
inline constexpr std::uint32_t read_slots = 1024;    // in the first block of the tables, as write_slots
inline constexpr std::uint32_t write_slots = 1024;
// The slot of the program's requests about itself (map, leave ...), one at a time: so none of them waits for
// a message to end before it gets a slot.
inline constexpr std::uint32_t control_slot = read_slots + write_slots;
inline constexpr std::uint32_t operation_slots = control_slot + 1;
inline constexpr unsigned most_blocks = 9; // behind the first one: a million reads, and as many writes
inline constexpr std::size_t most_windows = 65536; // that a program has exposed
inline constexpr std::uint32_t max_segments = 32;  // data segments of one program; SHMMNI is shared by all
inline constexpr std::uint32_t max_pieces = 1024;  // of one message
inline constexpr std::uint64_t max_address = 64;   // bytes of the text that names an endpoint
inline constexpr std::uint64_t max_message = std::uint64_t{8} << 30;
inline constexpr std::uint64_t probe_total = UINT64_MAX; // Operation::total of a probe that is pending

// An operation's id: its slot in the low 21 bits, its generation above. Which slots are for reads (a probe
// has one of them too) and for writes says shm/slots.hpp; map, unmap, grow, leave, neighbour, expose,
// attach_window and unplace have control_slot.
// Generations start at 1, so no id is 0.
inline constexpr unsigned slot_bits = 21;
inline constexpr std::uint64_t slot_of(std::uint64_t id) {
  return id & ((1u << slot_bits) - 1);
}
inline constexpr std::uint64_t generation_of(std::uint64_t id) {
  return id >> slot_bits;
}
inline constexpr std::uint64_t id_of(std::uint64_t generation, std::uint64_t slot) {
  return generation << slot_bits | slot;
}
static_assert(operation_slots <= 1u << slot_bits);

// What a request wants, and which fields of it mean something then.
enum class RequestKind : std::uint8_t {
  none = 0,
  read,       // peer, Read, memory, flags, space, with
  write,      // peer, Write, memory, flags, space, with
  probe,      // peer, Read, flags, space, with; answered in a read slot without data
  address_of, // peer, memory; answered in a read slot: the peer's address as text, of total bytes
  add_peer,   // memory: such a text; answered in a read slot: source is the row
  cancel,     // id of the operation to give up
  hand_over,  // id of a write, HandOver, memory, flags
  map,        // address, length, Attached: the kernel attaches the segment and answers in slot `id`
  unmap,      // address: the program starts nothing there any more; answered in slot `id` when the kernel has
              // detached, or at once (no_wait)
  abort,      // Abort: of the whole job
  grow,       // length, Attached: the tables' next block, whose segment the kernel attaches, and answers in
              // slot `id`
  leave,      // a clean departure: what was accepted is delivered
  // A wait for read `id` has returned although its message has not arrived (early release). Writes to others
  // that are asked for behind this leave when that read has begun, or has failed.
  release,
  neighbour, // peer: where messages for it go; answered in slot `id`: source is the queue in this program's
             // letterbox, or -1: through the kernel. Peer -1: from now on nobody new is to send to this
             // letterbox
  bell,      // peer: a neighbour that sleeps, or this program itself, is to look at its letterbox
  withdraw,  // id of a shared read: the program has a message for it
  unread,    // peer, Read::tag, length: of a message from a neighbour that the program leaves without reading
  // Spawn: starts processes. Memory: the texts, the hosts and each argument, a zero behind each; when all
  // run, or do not, answered in a read slot: their rows in memory, an int32 each, and source the last of
  // them, or source -1 and a sentence of total bytes.
  spawn,
  signal, // peer, Signal: to a rank of this job, or a process that this program has spawned; answered in a
          // read slot
  // Memory for read `id`, which was posted without (no_memory_yet) and has begun. What of its message is
  // longer is lost.
  place,
  // Unplace: takes its memory from a read, which goes on without. Answered in slot `id`: PARC_EINVAL where it
  // has a message, or is over. `with` as the read's; taken: for a read that neighbours alone may answer, of
  // which the kernel does not know before one of them has taken it.
  unplace,
  exit_of,  // peer: answered in a read slot when that process has ended, which this program has spawned: its
            // status is in handed_or_data
  expose,   // address, length, Exposed, `pieces`: others get from there; answered in slot `id`: PARC_EINVAL
            // where the number is in use, PARC_EAGAIN where there are most_windows, PARC_ENOMEM where it is
            // not shared and, with in_own_memory, not reached
  unexpose, // Exposed: answered in a read slot when gets and puts that have begun there have ended
  get,      // peer, Place, memory, flags: in a read slot
  put,      // peer, Place, memory, flags: in a write slot; it is done when it is in place
  atomic, // peer, Atomic, flags, `address`: what is compared with; in a read slot: handed_or_data is what was
          // there before
  attach_window, // peer, Place::window: it lies in shared memory of this host, and Control::windows[entry]
                 // says where from here on; answered in slot `id`: source is 0, or -1 where it does not
  leave_window,  // nobody is inside Control::windows[entry] any more, which is closed
};

// Of a peer's window.
[[nodiscard]] constexpr bool is_one_sided(RequestKind kind) {
  return kind == RequestKind::get || kind == RequestKind::put || kind == RequestKind::atomic;
}
// Whether a request is for bytes of others; all others are questions to the kernel.
[[nodiscard]] constexpr bool is_message(RequestKind kind) {
  return kind == RequestKind::read || kind == RequestKind::write || is_one_sided(kind);
}

// Who else than the kernel knows of a read, write or probe.
enum class With : std::uint8_t {
  nobody,
  neighbours, // read, probe: the library may take it, too; its owner word (shm/letterbox.hpp) says who has it
  rendezvous, // read, write: neighbours have matched this message themselves; tag is the write's id
  taken,      // write: a read of the receiver's has been taken for it (Write::read)
};

// Memory of a request: `pieces` == 0 means [address, address + length) in the program's addresses; otherwise
// address names an array of `pieces` Piece in shared memory, whose lengths add up to `length`. All of it is
// shared memory, but where `pieces` == in_own_memory: [address, address + length) is any memory of the
// program, which the kernel reaches through the system (process_vm_readv and _writev), where
// ControlHeader::cross_memory says so and neighbours have matched the message.
inline constexpr std::uint16_t in_own_memory = UINT16_MAX;
// `pieces` of a read that has no memory before RequestKind::place: when it has begun its message waits for
// it.
inline constexpr std::uint16_t no_memory_yet = UINT16_MAX - 1;
static_assert(no_memory_yet > max_pieces);
struct Piece {
  std::uint64_t address;
  std::uint64_t length;
};
static_assert(sizeof(Piece) == 16);

// A request. P writes it before it publishes ControlHeader::request_tail (release); K copies it out after
// reading the tail (acquire) and reads every field of the copy once. Whatever P writes, each member of the
// union is numbers alone.
struct Request {
  struct Read {
    std::uint64_t tag;
    std::uint64_t ignore; // bits of the tag that may be any
    std::uint64_t claim;  // id of the probe that has claimed the message (MessageFlags::claimed)
  };
  struct Write {
    std::uint64_t tag;
    std::uint64_t data; // for who reads it
    std::uint64_t read; // with taken: id of the read that it is for
  };
  struct HandOver { // memory is where its bytes from `border` to its end lie from here on, or, with from_end,
    std::uint64_t border; // its bytes before that
  };
  struct Attached {
    std::uint64_t segment; // System V's id
    std::uint64_t block;   // grow: its number
  };
  struct Spawn {
    std::uint64_t texts; // bytes of them
    std::uint64_t count; // of processes
  };
  struct Signal {
    std::uint64_t number;
  };
  struct Abort {
    std::uint64_t status; // to exit with
  };
  struct Unplace {
    std::uint64_t read; // its id
  };
  struct Exposed {
    std::uint64_t window;
    std::uint64_t rights; // PARC_MAY_*
  };
  struct Place {
    std::uint64_t window;
    std::uint64_t offset;
    std::int64_t stride; // of rows
  };
  struct Atomic {
    std::uint64_t window;
    std::uint64_t offset;
    std::uint64_t operand;
  };

  RequestKind kind;
  With with;
  protocol::Space space;
  std::uint8_t reserved;
  MessageFlags flags;
  std::uint16_t pieces;
  std::int32_t peer; // a row, or PARC_ANY_SOURCE
  // write, with taken: where the reader has published its read; atomic: its protocol::Atomic::What, and its
  // width << 8; get and put: how many rows of one length its place is, 0: its bytes lie together there.
  std::uint32_t entry;
  std::uint64_t id;
  std::uint64_t address;
  std::uint64_t length;
  union {
    Write write;
    Read read;
    HandOver handed;
    Attached attached;
    Spawn spawned;
    Signal signalled;
    Abort aborted;
    Unplace unplaced;
    Exposed exposed;
    Place place;
    Atomic atomic;
  };
};
static_assert(sizeof(Request) == 64);

// parc.h's context and tag are the halves of a message's tag.
inline constexpr std::uint64_t tag_of(std::uint32_t context, std::int32_t tag) {
  return std::uint64_t{context} << 32 | static_cast<std::uint32_t>(tag);
}
inline constexpr std::uint32_t context_in(std::uint64_t tag) {
  return static_cast<std::uint32_t>(tag >> 32);
}
inline constexpr std::int32_t tag_in(std::uint64_t tag) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(tag));
}

enum class Phase : std::uint64_t {
  idle = 0, // P: the slot is free
  pending,  // P: the request is in the ring or with the kernel
  begun,    // K: a read's envelope has arrived: source, tag, data and total are valid
  done,     // K: finished; error and everything else are valid and K writes no more
};

// What a pending operation is to those who look on.
enum class OneSided : std::uint32_t { none, get, put, atomic };
[[nodiscard]] constexpr OneSided one_sided(RequestKind kind) {
  switch (kind) {
  case RequestKind::get: return OneSided::get;
  case RequestKind::put: return OneSided::put;
  case RequestKind::atomic: return OneSided::atomic;
  default: return OneSided::none;
  }
}

// One operation. P writes all of it before the request (published by the ring's release); from then on only K
// writes, until it stores Phase::done. Reading: load state with acquire; fields that a phase makes valid are
// then plain relaxed loads. front, back and, of a read that is not over, error are K's release stores, so
// that a reader that sees what they tell of also sees those bytes.
struct alignas(64) Operation {
  std::atomic<std::uint64_t> state; // generation << 8 | Phase
  std::atomic<std::uint64_t> front; // bytes in place (read) or acknowledged (write) from the message's start
  std::atomic<std::uint64_t> back;  // bytes in place or acknowledged from the message's end
  std::atomic<std::uint64_t>
      total; // length of the message as sent; while pending, that of the program's memory
  std::atomic<std::int32_t> source; // of the message (reads, probes)
  std::atomic<std::int32_t> error;  // PARC_OK or PARC_E*; of a read that is not over, K: shm/between.hpp
  std::atomic<std::uint64_t> tag;   // while pending: as asked for, the bits that may be any all ones
  // K: of a write, the generation whose hand-over is confirmed (release); of a read or probe, what its writer
  // sent with the message.
  std::atomic<std::uint64_t> handed_or_data;
  std::atomic<std::uint32_t> posted; // P: coarse_ms() when it was begun, for those who look on
  // P: of what is pending, a OneSided. K: where error is PARC_EPEER a protocol::Departure; of
  // a read or probe that has a message, 1 where its writer has sent data with it.
  std::atomic<std::uint32_t> departure_or_data;
};
static_assert(sizeof(Operation) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The times of a traced program's operation: when K stored Phase::begun, or of a get its first progress, and
// Phase::done, in nanoseconds of CLOCK_MONOTONIC; 0: it has not. P stores 0 before the request. Relaxed; the
// state's order is theirs.
struct Times {
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> done;
};

inline constexpr std::uint64_t state_word(std::uint64_t generation, Phase phase) {
  return generation << 8 | static_cast<std::uint64_t>(phase);
}
inline constexpr Phase phase_of(std::uint64_t state) {
  return static_cast<Phase>(state & 0xff);
}

// Counters of messages to and from neighbours. P writes them, relaxed, for onlookers.
struct alignas(64) NeighbourCounters {
  std::atomic<std::uint64_t> messages;   // published
  std::atomic<std::uint64_t> bytes;      // of these, short or long
  std::atomic<std::uint64_t> taken;      // posted reads of neighbours that this program's messages took
  std::atomic<std::uint64_t> interrupts; // signals of senders that this program has handled
  std::atomic<std::uint64_t> received;   // published by others, and drained here
  std::atomic<std::uint64_t> received_bytes;
};

// Counts in a word that has one writer at a time: needs no locked instruction.
inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t more = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// Counters of waits. P writes them, relaxed, for onlookers.
struct alignas(64) WaitCounters {
  std::atomic<std::uint64_t> waits;       // that polling did not end
  std::atomic<std::uint64_t> released;    // that returned early
  std::atomic<std::uint64_t> faults;      // touches of guarded pages
  std::atomic<std::uint64_t> late_faults; // of these: the page had arrived and was only to be opened
  std::atomic<std::uint64_t> openings;    // calls of mprotect that opened pages
};
// Counters of messages and operations that stand in the program. P writes them, relaxed, for onlookers. Bytes
// are of the memory that they take.
struct alignas(64) BacklogCounters {
  std::atomic<std::uint64_t> to_neighbours; // messages to neighbours that no cell is free for
  std::atomic<std::uint64_t> to_neighbours_bytes;
  std::atomic<std::uint64_t> from_neighbours; // messages from neighbours, kept here, that no read has taken
  std::atomic<std::uint64_t> from_neighbours_bytes;
  std::atomic<std::uint64_t> put_off; // operations that have not been started, as parc_set_put_off says
};
// A core and whether a thread rests there, in one word; 0: not known.
inline constexpr std::uint32_t core_word(int core, bool rests) {
  return static_cast<std::uint32_t>(core + 1) << 1 | (rests ? 1U : 0U);
}
inline constexpr int core_in(std::uint32_t word) {
  return static_cast<int>(word >> 1) - 1;
}
inline constexpr bool rests_in(std::uint32_t word) {
  return word % 2 != 0;
}

// Whether K reaches all of P's memory through the system, and why not.
enum class CrossMemory : std::uint32_t {
  no_neighbours, // P has no letterbox, so that no message may stay where it is
  reached,
  refused, // by the system
  off,     // slower than the copies that it spares, or not wanted
  lost,    // some of it could not be reached: P copies what is under way, and names no more of it
};

// One copy between P's memory and `bytes`, or an operation on a word of it, which K asks P for where it does
// not reach that memory. K asks for the next when P has answered, which P does whenever it next looks, and
// its thread that sleeps on `bell` at once.
struct Bounce {
  enum class What : std::uint32_t {
    fetch,   // from P's memory into `bytes`
    store,   // back
    operate, // a protocol::Atomic in `bytes`; P leaves Operated there
  };
  struct Operated {
    std::uint64_t before; // what was there
    std::uint64_t made;   // 0: there is no such word, or it may not be stored into
  };
  // K, release: the number of the copy and whether it is wanted. A copy that is wanted no more is answered,
  // too, but not made: its memory may be gone.
  alignas(64) std::atomic<std::uint64_t> asked;
  std::atomic<std::uint64_t> address;  // K: in P
  std::atomic<std::uint32_t> length;   // K
  std::atomic<What> what;              // K
  std::atomic<std::uint32_t> bell;     // K, release: +1 with each that is asked for; a futex of both
  std::atomic<std::uint32_t> sleepers; // P, relaxed: threads that sleep on that, or are about to
  alignas(64) std::atomic<std::uint64_t> answered;    // P, release: the number of the last copy that is over
  alignas(64) std::byte bytes[std::size_t{64} << 10]; // who copies into them
};
inline constexpr std::uint64_t asked_word(std::uint64_t number, bool wanted) {
  return number << 1 | (wanted ? 1U : 0U);
}
inline constexpr std::uint64_t number_asked(std::uint64_t word) {
  return word >> 1;
}
inline constexpr bool is_wanted(std::uint64_t word) {
  return word % 2 != 0;
}

// A window of a neighbour, which P reaches itself. K opens an entry that is free, and closes it when the
// window is taken back: that is over when nobody is inside. Dekker's handshake, all of it seq_cst: a thread
// of P counts itself inside, then looks whether the entry is open; K closes it, then looks who is inside. So
// either P sees that it is closed, or K that somebody is inside, who says so when it leaves (leave_window).
struct AttachedWindow {
  enum class Stage : std::uint32_t { free, open, closed };
  std::atomic<Stage> stage;          // K
  std::atomic<std::uint32_t> inside; // P: threads
  // K, before it opens the entry, relaxed.
  std::atomic<std::int32_t> segment;                        // System V's id
  std::atomic<std::uint32_t> rights;                        // PARC_MAY_*
  std::atomic<std::uint64_t> segment_bytes, offset, length; // where in it the window lies
};
inline constexpr std::size_t most_attached_windows = 32;

struct ControlHeader {
  // P writes these once; version last, with release, when everything else is in place.
  std::uint64_t magic;
  std::atomic<std::uint32_t> version;
  std::uint32_t request_slots;
  std::uint32_t read_slots;
  std::uint32_t write_slots;
  std::uint64_t segment_bytes;
  std::uint64_t address;                 // of this header, in P
  std::atomic<CrossMemory> cross_memory; // K, before its welcome; relaxed: lost, later
  std::atomic<std::uint64_t> proof; // K: a random number, by which K knows P's memory when it reads there

  // P's line. tail: release after filling requests. asleep and spinning: see doorbell.hpp.
  alignas(64) std::atomic<std::uint64_t> request_tail;
  std::atomic<std::uint32_t> program_asleep; // seq_cst: somebody sleeps on the kernel's pipe
  std::atomic<std::uint32_t>
      program_spinning; // relaxed: threads that poll; the kernel polls only while this is not 0
  // seq_cst: threads that wait for a part of a message, or for its beginning. While there are any, what
  // begins and what progresses counts as a completion.
  std::atomic<std::uint32_t> program_watching;
  // relaxed, a core_word: where a thread last began or ended a rest, and whether it rests. The kernel would
  // rather copy where programs rest than where they compute.
  std::atomic<std::uint32_t> program_core;
  std::atomic<std::uint32_t> program_tracing; // relaxed, before the first request: K keeps Times
  // relaxed: changes with every few looks at the completion queue that find nothing. A program that looks
  // again and again polls, too, with other things in between.
  std::atomic<std::uint32_t> program_looks;

  NeighbourCounters neighbours; // P's
  WaitCounters waits;           // P's
  BacklogCounters backlog;      // P's

  // K's line.
  alignas(64) std::atomic<std::uint64_t> request_head; // release, after requests have been handled
  std::atomic<std::uint64_t> completions;   // release; +1 per operation that finished or was handed over,
                                            // and for what a watching program waits for
  std::atomic<std::uint32_t> kernel_asleep; // seq_cst, a Sleep: ring its pipe after publishing; it sleeps
                                            // lightly while a new read could have an answer
  // For onlookers, relaxed, written before the kernel sleeps and now and then: writes of P that are held in
  // the kernel, as their receivers have no place for more unread messages.
  std::atomic<std::uint64_t> kernel_held;
  // relaxed, before the kernel stores the end of anything that comes later: unexpected messages for P. P asks
  // for no look (a probe that does not wait) while there are none.
  std::atomic<std::uint64_t> kernel_unread;
};
static_assert(offsetof(ControlHeader, request_tail) == 64);
static_assert(offsetof(ControlHeader, request_head) == 320);

struct Control {
  ControlHeader header;
  // A bit for each queued operation that is done: K sets it after the state (release), P takes whole words
  // (acquire). One that is set for an operation that was let go says nothing.
  alignas(64) std::atomic<std::uint64_t> finished[(operation_slots + 63) / 64];
  // A bit for each block behind the first one in which such bits are set, by its number: shm/tables.hpp.
  std::atomic<std::uint64_t> finished_blocks;
  // P, for onlookers: how many blocks there are behind the first (release), their segments, and how many
  // slots of each block's reads and writes have ever been used, from its first on (relaxed).
  std::atomic<std::uint32_t> blocks;
  std::atomic<std::int32_t> block_segments[most_blocks];
  std::atomic<std::uint32_t> used[most_blocks][2];
  alignas(64) Request requests[request_slots];
  Operation operations[operation_slots];
  Times times[operation_slots];
  alignas(64) AttachedWindow windows[most_attached_windows];
  std::atomic<std::uint32_t> windows_freed; // K, relaxed: +1 with each that is free again
  Bounce bounce;
};
static_assert(offsetof(Control, finished) == 384);
static_assert(offsetof(Control, requests) % 64 == 0);

// ---- The pipes: the first message each way; after them, every 8 bytes are a doorbell whose value means
// nothing.

inline constexpr std::uint64_t attach_magic = 0x6863747463726170; // "parcttch"

struct Attach { // program to kernel
  std::uint64_t magic;
  std::uint32_t version; // layout_version of the library
  std::int32_t shmid;    // of the control segment, already marked for removal
  std::uint64_t bytes;
  std::int32_t pid;
  std::uint32_t neighbours; // 1: it exchanges messages with neighbours, by letterbox
};
static_assert(sizeof(Attach) == 32);

struct Welcome { // kernel to program
  std::uint64_t magic;
  std::uint32_t version; // layout_version of the kernel
  std::int32_t error;    // PARC_OK, or PARC_EVERSION and the like; nothing else is valid then
  std::uint64_t job;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t kernel_pid;
  std::uint32_t
      copy_ns_per_kib; // what a memcpy costs here: how long a wait for a write may wait instead of copying
  std::int32_t area;   // the segment that its letterbox is in, below 0: it has none
  std::uint32_t letterbox; // its number among those of all areas
  char host[64];           // name of this host, zero terminated
};
static_assert(sizeof(Welcome) == 112);

} // namespace parc::shm
