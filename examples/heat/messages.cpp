// SPDX-License-Identifier: BSD-3-Clause
// The exchange over parc: implementations I.1, I.2 and I.3 of section 3.2. Every rank runs the same code in
// the same order; the kernel sees to it that no order of reads and writes can block two neighbours.
#include "examples/heat/messages.hpp"

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
    PARC_TRY(checked(
        parc_write(parc, strip.neighbour(side), tag_to(side), strip.border(side), strip.column_bytes())));
  }
  return success();
}

Result<void> read_ghosts(parc_context* parc, Strip& strip) {
  for (const Side side : sides) {
    if (!strip.has_neighbour(side)) continue;
    PARC_TRY(checked(parc_read(parc, strip.neighbour(side), tag_from(side), strip.ghost(side),
                               strip.column_bytes(), nullptr)));
  }
  return success();
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

// I.3: both ways are started, and travel during the rest. Reads first: a message that finds its read is
// placed where it belongs without a copy.
Result<void> hidden(parc_context* parc, Strip& strip) {
  parc_op operations[4] = {PARC_OP_NULL, PARC_OP_NULL, PARC_OP_NULL, PARC_OP_NULL};
  parc_op* next = operations;

  strip.calculate_borders();
  for (const Side side : sides) {
    if (!strip.has_neighbour(side)) continue;
    *next =
        parc_initread(parc, strip.neighbour(side), tag_from(side), strip.ghost(side), strip.column_bytes());
    PARC_TRY(checked(*next++));
  }
  for (const Side side : sides) {
    if (!strip.has_neighbour(side)) continue;
    *next =
        parc_initwrite(parc, strip.neighbour(side), tag_to(side), strip.border(side), strip.column_bytes());
    PARC_TRY(checked(*next++));
  }
  strip.calculate_interior();
  return checked(parc_waitall(parc, 4, operations, nullptr));
}

} // namespace parc::heat
