// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/place.hpp"

#include <algorithm>

namespace parc::protocol {
namespace {

__extension__ using Wide = __int128;

// Rows from the one at `first` on, `stride` from each to the next, that lie in a part of so many bytes.
std::uint64_t rows_within(std::uint64_t first, std::uint64_t part, const Rows& rows) {
  if (rows.row > part - first) return 0;
  if (rows.stride == 0) return UINT64_MAX;
  const auto stride = static_cast<std::uint64_t>(rows.stride);
  return rows.stride > 0 ? (part - first - rows.row) / stride + 1 : first / (0 - stride) + 1;
}

} // namespace

std::optional<Span> span_of(const Place& place) {
  Wide low = place.offset, high = low + place.length;
  if (place.rows != nullptr) {
    const Wide last = low + Wide{place.rows->stride} * (place.length / place.rows->row - 1);
    high = std::max(low, last) + place.rows->row;
    low = std::min(low, last);
  }
  if (low < 0 || high > UINT64_MAX) return {};
  return Span{static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)};
}

// A row that lies in two parts is cut.
bool append_place(Pieces& memory, const Pieces& span, const Place& place) {
  if (place.rows == nullptr) {
    span.each_piece(0, place.length, [&](const Piece& piece) { memory.append(piece); });
    return true;
  }
  const Rows& rows = *place.rows;
  const auto stride = static_cast<std::uint64_t>(rows.stride);
  if (span.count() > 1 && place.length != rows.row && std::min(stride, 0 - stride) < rows.row) return false;
  std::uint64_t at = place.offset - span_of(place)->low;
  for (std::uint64_t left = place.length / rows.row; left != 0;) {
    std::uint64_t start = 0;
    const Piece part = span.part_at(at, start);
    const std::uint64_t together = std::min(left, rows_within(at - start, part.length, rows));
    if (together != 0)
      memory.append_rows({part.base + (at - start), rows.row, part.of}, together, rows.stride);
    else
      span.each_piece(at, rows.row, [&](const Piece& piece) { memory.append(piece); });
    const std::uint64_t done = std::max<std::uint64_t>(together, 1);
    left -= done;
    at += done * stride; // modulo 2^64
  }
  return true;
}

} // namespace parc::protocol
