// SPDX-License-Identifier: BSD-3-Clause
// Where programs of one host exchange short messages without their kernel: plain structures of fixed size,
// and the few lines that publish into them. The program's view is client/local/, the kernel's
// daemon/program/letterboxes.
//
//   area:       Letterbox[area_letterboxes]; a segment of the kernel's, mostly never touched
//   Letterbox:  of one endpoint: OfKernel | OfAll | OfOwner, each on pages of its own
//
// Who writes: K the kernel, P the program whose letterbox it is, N its neighbours. A program maps the areas
// of others to be read only. One writer a word, but claim words, which change by compare-and-swap. Neighbours
// trust each other no further than the kernel trusts them: every index is masked, and each word is read once.
//
// A message: each pair that talks has a queue, a chain of P's cells. Its last cell is empty, and N looks at
// it alone. P fills it, with the number of the empty cell that comes next, and stamps it (release) with the
// number of the queue and the count of its messages, which no cell has ever had before. N sees the stamp
// (acquire), copies, goes on to the next cell, and counts up `drained` of its own letterbox (release), behind
// which P may fill those cells again. One cache line moves for a message that fits into its cell. Who dies in
// the middle has stamped nothing.
#pragma once

#include "shm/slots.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace parc::shm {

inline constexpr std::uint32_t area_letterboxes = 16;
inline constexpr std::uint32_t most_published = 1024; // of a program, and not drained; others wait for that
inline constexpr std::uint32_t max_neighbours = 1024; // that a program sends to, and that send to it
// Peers with higher numbers are written to through the kernel.
inline constexpr std::int32_t most_neighbour_rows = std::int32_t{1} << 16;
inline constexpr std::uint32_t letterbox_cells = most_published + max_neighbours; // with an empty one of each
inline constexpr std::uint64_t cell_bytes = 32;                                   // of a message, in its cell
inline constexpr std::uint64_t small_body = 512;                                  // bytes of a body
inline constexpr std::uint32_t most_offers = 1U << 17; // announced writes of a program that have not ended
inline constexpr std::uint64_t short_message = 8192;   // bytes, at most; of a large body
// Longer ones, up to this, are published where a body is free at once, and announced where none is.
inline constexpr std::uint64_t huge_body = std::uint64_t{64} << 10;
inline constexpr std::uint32_t most_huge = 32; // of a program: few, so that they stay in the cache
inline constexpr std::uint64_t fragment_bytes = std::uint64_t{32} << 10; // of a long message

// Who brings a long message on while its receiver computes: the setting `local`.
enum class Progress : std::uint32_t {
  sender,   // takes the read that is posted, without the receiver
  receiver, // in a signal's handler; the sender signals one that has armed it (Kumar et al. 2008, section 4)
  nobody,   // before the receiver's next call
};

enum class CellKind : std::uint8_t {
  whole,      // the message is here
  rendezvous, // its bytes are the kernel's business: Rendezvous lies in the cell
  fragment,   // a part of a message for a read that its sender has taken: Fragment lies in the cell
};

struct Cell {
  std::uint64_t tag;
  std::uint64_t data;
  std::uint32_t length : 17; // of a whole message
  std::uint32_t body : 10;   // of a whole message that does not fit here: its number
  CellKind kind : 2;
  protocol::Space space : 3;
  std::uint16_t next; // the cell of its queue that comes then
  MessageFlags flags; // those that travel
  std::byte bytes[cell_bytes];
};
static_assert(sizeof(Cell) == 56 && most_published <= 1U << 10 && huge_body < 1U << 17);

// Copied once: its owner may change it, and is trusted in nothing. All that is read of the copy is in its
// range: a kind that there is not would be whole for one reader and none for another.
inline Cell copy_of(const Cell& cell) {
  Cell copy;
  std::memcpy(&copy, &cell, sizeof copy);
  if (copy.length > huge_body) copy.length = huge_body;
  if (copy.kind != CellKind::whole && copy.kind != CellKind::fragment) copy.kind = CellKind::rendezvous;
  return copy;
}

struct alignas(64) StampedCell {
  std::atomic<std::uint64_t> stamp;
  Cell cell;
};
static_assert(sizeof(StampedCell) == 64);

struct Rendezvous {
  std::uint64_t length; // of the message
  std::uint64_t write;  // the operation, by which sender and receiver name the message to the kernel
};
static_assert(sizeof(Rendezvous) <= cell_bytes);

inline Rendezvous rendezvous_in(const Cell& cell) {
  Rendezvous named;
  std::memcpy(&named, cell.bytes, sizeof named);
  return named;
}

struct Fragment {
  std::uint64_t read; // the operation, which is the sender's by its owner word
  std::uint64_t offset;
  std::uint64_t total; // of the message
};
static_assert(sizeof(Fragment) <= cell_bytes);

inline Fragment fragment_in(const Cell& cell) {
  Fragment fragment;
  std::memcpy(&fragment, cell.bytes, sizeof fragment);
  return fragment;
}
inline std::uint64_t length_of(const Cell& cell) { // of its message, or of what is here of that
  return cell.kind == CellKind::rendezvous ? rendezvous_in(cell).length : cell.length;
}
inline bool has_body(const Cell& cell) {
  return cell.kind == CellKind::fragment || (cell.kind == CellKind::whole && cell.length > cell_bytes);
}

// Of the count'th message of a queue, from 0; empty cells have others.
inline constexpr std::uint64_t stamp_of(std::uint32_t queue, std::uint64_t count) {
  return std::uint64_t{queue} << 48 | (count + 1);
}

// Of the messages of a queue: how many, and the cell that comes then.
inline constexpr std::uint64_t drained_word(std::uint64_t count, std::uint32_t cell) {
  return count << 16 | cell;
}
inline constexpr std::uint64_t count_in(std::uint64_t drained) {
  return drained >> 16;
}
inline constexpr std::uint32_t cell_in(std::uint64_t drained) {
  return static_cast<std::uint32_t>(drained & 0xffff) % letterbox_cells;
}

// Where a letterbox is. K fills it before who reads it can know of it.
struct LetterboxLocation {
  std::uint32_t number; // area_letterboxes to an area
  std::int32_t area;    // the segment's id
};

// Somebody who sends to P. K fills it before it counts it in OfKernel::senders.
struct SenderEntry {
  LetterboxLocation at;
  std::uint32_t queue; // of that letterbox
  std::int32_t row;    // of the sender, for P
  // K: a protocol::Departure, when the sender has departed and nothing follows (release).
  std::atomic<std::uint32_t> departed;
};

// Somebody whom P sends to: whose queue it is. K fills it before it answers P's request for it.
struct ReceiverEntry {
  LetterboxLocation at;
  std::uint32_t sender;                // P's number among the senders of that letterbox
  std::atomic<std::uint32_t> departed; // K: a protocol::Departure (release)
};

// A read that P has posted, for neighbours who look whether a message of theirs is for it. P writes it
// (relaxed) before it counts it in OfOwner::posts, and counts up OfOwner::first (relaxed, and a release
// fence) before it writes over it; a neighbour reads it, makes an acquire fence, and looks whether `first`
// has passed it meanwhile: then what it has read means nothing. Whose the read is says its claim word alone.
struct alignas(64) PostedRead {
  std::atomic<std::uint64_t> id;
  std::atomic<std::uint64_t> tag, ignore;
  std::atomic<std::int32_t> row; // of the sender; -1: any
  std::atomic<protocol::Space> space;
  std::atomic<MessageFlags> flags; // as in a request, with what follows, which the kernel resolves when it is
  std::atomic<std::uint16_t> pieces;   // asked to
  std::atomic<std::uint8_t> fragments; // 1: its message may come in fragments
  std::atomic<std::uint64_t> address, length;
};
static_assert(sizeof(PostedRead) == 64);

inline constexpr std::uint64_t interrupt_word(std::int32_t process, std::int32_t thread) {
  return std::uint64_t{static_cast<std::uint32_t>(process)} << 32 | static_cast<std::uint32_t>(thread);
}

// What `drained` says when P will not look at that queue again.
inline constexpr std::uint64_t drained_for_good = UINT64_MAX;

struct Letterbox {
  struct alignas(4096) OfKernel {
    std::atomic<std::uint32_t> senders; // release
    std::atomic<std::uint32_t> changes; // release: somebody has departed, a read was given up, or K must know
    // 1: P's reads that it may answer, or must fail; until then it need not hear of them. Before the change.
    std::atomic<std::uint32_t> must_know;
    Progress progress; // before P knows of it
    SenderEntry from[max_neighbours];
    ReceiverEntry to[max_neighbours];
  } kernel;
  struct alignas(4096) OfAll {
    // Of reads that K may take for a message of another host, and P for one of a neighbour: by their slots.
    // Those of reads behind the tables' first block lie beside them (shm/tables.hpp): no neighbour looks for
    // them, as only reads of the first block are published.
    std::atomic<std::uint64_t> owners[read_slots];
    // Of writes that P has announced, by index_of their slots: who takes its message, and P who gives it up,
    // changes it.
    std::atomic<std::uint64_t> offers[most_offers];
    // A thread of P that computes while reads of its are posted, which a sender may interrupt: 0, or an
    // interrupt_word. Who makes it 0 again does, once.
    alignas(64) std::atomic<std::uint64_t> armed;
  } all;
  struct alignas(4096) OfOwner {
    // 1: P makes process barriers when it goes to sleep or waits for cells (system/process_barrier.hpp), so
    // that who has joined them need not fence. Stored before it ever does either.
    std::atomic<std::uint32_t> joined;
    std::atomic<std::uint32_t> sleeps; // odd: P sleeps, and wants a bell for what is published from then on
    // 1: a thread of P sleeps, and messages wait for cells: it wants a bell when something is drained.
    std::atomic<std::uint32_t> wants_cells;
    // Threads of P that wait in the library, counted while there are published reads: what is for them comes
    // faster through the queue. Relaxed: a wrong guess costs time.
    std::atomic<std::uint32_t> attending;
    std::atomic<std::uint32_t> called; // the same of who posts and looks: coarse_ms() of the last time
    alignas(64) std::atomic<std::uint32_t> looks; // in the library: who sees it move sees P wait. Relaxed
    std::atomic<std::uint32_t> core; // on which P last polled for long, from 1 on; 0: unknown. Relaxed
    alignas(64) std::atomic<std::uint64_t> posts; // published reads so far; release
    std::atomic<std::uint64_t> first;             // of those that may still be open
    PostedRead posted[read_slots];
    alignas(
        64) std::atomic<std::uint64_t> drained[max_neighbours]; // a drained_word of each sender's; release
    // Of each receiver that has departed: P will not touch its letterbox again (release).
    std::atomic<std::uint8_t> left[max_neighbours];
    std::atomic<std::uint16_t> first_cells[max_neighbours]; // cell of each queue, from 1 on; release
    alignas(4096) StampedCell cells[letterbox_cells];
    std::byte small_bodies[most_published][small_body];
    std::byte large_bodies[most_published][short_message];
    std::byte huge_bodies[most_huge][huge_body];
  } owner;
};
static_assert(sizeof(Letterbox) % 4096 == 0);
// Of what does not fit into its cell; the owner's to write.
template <class Side> auto* body_in(Side& side, const Cell& cell) {
  if (cell.length > short_message) return &side.huge_bodies[cell.body % most_huge][0];
  const auto number = cell.body % most_published;
  return cell.length <= small_body ? &side.small_bodies[number][0] : &side.large_bodies[number][0];
}
inline constexpr std::size_t area_bytes = sizeof(Letterbox) * area_letterboxes;

// What has become of a write that was announced, below the operation's generation.
enum class Offer : std::uint64_t {
  open = 1,  // P: whoever matches it may take it
  taken,     // N: it will be read
  withdrawn, // P: it is as if it had never been
};
inline constexpr std::uint64_t offer_word(std::uint64_t generation, Offer offer) {
  return generation << 8 | static_cast<std::uint64_t>(offer);
}
// Of the write that a cell announces; the slot is masked, the rest is checked by its value.
inline const std::atomic<std::uint64_t>& offer_of(const Cell& cell,
                                                  const std::atomic<std::uint64_t>* offers) {
  return offers[index_of(slot_of(rendezvous_in(cell).write)) % most_offers];
}

// An owner word: whose the read is, above the operation's generation.
enum class Owner : std::uint64_t {
  nobody = 1, // P: whoever comes first may take it
  library,    // P has it
  kernel,     // K has it
  given_up,  // K: nothing comes from other hosts any more; P may still take it. Beside: a protocol::Departure
  neighbour, // N has it. Beside: its place among P's senders
};
inline constexpr std::uint64_t owner_word(std::uint64_t generation, Owner owner, std::uint32_t place = 0) {
  return generation << 16 | place << 4 | static_cast<std::uint64_t>(owner);
}
static_assert(max_neighbours <= 1U << 12);
inline constexpr std::uint32_t place_in(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 4 & 0xfff);
}
// Whether it is this generation's, and in whose hands.
inline constexpr bool is(std::uint64_t word, std::uint64_t generation, Owner owner) {
  return word >> 16 == generation && (word & 0xf) == static_cast<std::uint64_t>(owner);
}

} // namespace parc::shm
