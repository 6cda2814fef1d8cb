// SPDX-License-Identifier: BSD-3-Clause
// The exchange over parc: implementations I.1, I.2 and I.3 of section 3.2. Every rank runs the same code in
// the same order; the kernel sees to it that no order of reads and writes can block two neighbours.
#include "examples/heat/messages.hpp"

#include <array>

namespace parc::heat {

namespace {

// A border's tag says which way it goes, so that a rank with one neighbour on either side cannot mix them up.
constexpr int tag_from(Side side) {
  return side == Side::Left ? 1 : 2;
} // it comes from the rank on `side`
constexpr int tag_to(Side side) {
  return side == Side::Left ? 2 : 1;
}

Result<void> checked(std::int64_t result) {
  if (result >= 0) return success();
  return error(static_cast<int>(result), "{}", parc_error_detail());
}

Result<void> write_borders(parc_context* parc, Strip& strip) {
  for (const Side side : sides) {
    if (!strip.has_neighbour(side)) continue;
    const int peer = strip.neighbour(side);
    PARC_TRY(checked(parc_write(parc, peer, tag_to(side), strip.border(side), strip.column_bytes())));
  }
  return success();
}

Result<void> read_ghosts(parc_context* parc, Strip& strip) {
  for (const Side side : sides) {
    if (!strip.has_neighbour(side)) continue;
    const int peer = strip.neighbour(side);
    PARC_TRY(
        checked(parc_read(parc, peer, tag_from(side), strip.ghost(side), strip.column_bytes(), nullptr)));
  }
  return success();
}

// The operations of one time step: a read and a write for each neighbour. Waits ignore those that are not
// there.
using Operations = std::array<parc_op, 4>;

Result<void> start_reads(parc_context* parc, Strip& strip, Operations& operations) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Side side = sides[i];
    if (!strip.has_neighbour(side)) continue;
    const int peer = strip.neighbour(side);
    operations[i] = parc_initread(parc, peer, tag_from(side), strip.ghost(side), strip.column_bytes());
    PARC_TRY(checked(operations[i]));
  }
  return success();
}

Result<void> start_writes(parc_context* parc, Strip& strip, Operations& operations) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Side side = sides[i];
    if (!strip.has_neighbour(side)) continue;
    const int peer = strip.neighbour(side);
    operations[2 + i] = parc_initwrite(parc, peer, tag_to(side), strip.border(side), strip.column_bytes());
    PARC_TRY(checked(operations[2 + i]));
  }
  return success();
}

Result<void> wait_for(parc_context* parc, Operations& operations) {
  return checked(parc_waitall(parc, static_cast<int>(operations.size()), operations.data(), nullptr));
}

} // namespace

// I.1: calculate, then communicate. With sockets this blocks for ever when a border does not fit their
// buffers.
Result<void> simultaneous(parc_context* parc, Strip& strip) {
  strip.calculate_all();
  PARC_TRY(write_borders(parc, strip));
  return read_ghosts(parc, strip);
}

// I.2: what the neighbours need first, so that it travels during the rest, once the write has returned.
Result<void> borders_first(parc_context* parc, Strip& strip) {
  strip.calculate_borders();
  PARC_TRY(write_borders(parc, strip));
  strip.calculate_interior();
  return read_ghosts(parc, strip);
}

// I.2 where a write waits until the network has taken it. Its neighbour must have a place for it by then, or
// both would wait for each other's read: so reads are started first.
Result<void> borders_first_uncopied(parc_context* parc, Strip& strip) {
  Operations reads{};
  strip.calculate_borders();
  PARC_TRY(start_reads(parc, strip, reads));
  PARC_TRY(write_borders(parc, strip));
  strip.calculate_interior();
  return wait_for(parc, reads);
}

// I.3: both ways are started, and travel during the rest. Reads first: a message that finds its read is
// placed where it belongs without a copy.
Result<void> hidden(parc_context* parc, Strip& strip) {
  Operations operations{};
  strip.calculate_borders();
  PARC_TRY(start_reads(parc, strip, operations));
  PARC_TRY(start_writes(parc, strip, operations));
  strip.calculate_interior();
  return wait_for(parc, operations);
}

} // namespace parc::heat
