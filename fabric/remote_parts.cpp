// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/remote_parts.hpp"

#include <algorithm>

namespace parc::fabric {
namespace {

// From one to the next; 0: they are no rows.
std::int64_t stride_between(const fi_rma_iov& first, const fi_rma_iov& second, bool stores) {
  if (first.key != second.key || first.len != second.len) return 0;
  const std::uint64_t step = second.addr - first.addr; // modulo 2^64
  const std::uint64_t apart = step >> 63 == 0 ? step : 0 - step;
  return stores && apart < first.len ? 0 : static_cast<std::int64_t>(step);
}

} // namespace

std::vector<RemotePart> parts_of(std::span<const fi_rma_iov> places, bool stores) {
  std::vector<RemotePart> parts;
  const fi_rma_iov* last = nullptr; // the last row of the last part
  for (const fi_rma_iov& place : places) {
    if (place.len == 0) continue;
    if (last != nullptr) {
      RemotePart& part = parts.back();
      if (part.stride == 0 && part.window == place.key && part.offset + part.length == place.addr) {
        part.row = part.length += place.len; // one behind the other: no rows
        last = &place;
        continue;
      }
      const std::int64_t stride = part.row == last->len ? stride_between(*last, place, stores) : 0;
      if (stride != 0 && (part.stride == 0 || part.stride == stride)) {
        part.stride = stride;
        part.length += place.len;
        last = &place;
        continue;
      }
    }
    parts.push_back({.window = place.key, .offset = place.addr, .length = place.len, .row = place.len});
    last = &place;
  }
  return parts;
}

std::vector<iovec> LocalPieces::next(std::uint64_t bytes) {
  std::vector<iovec> pieces;
  while (bytes != 0) {
    const iovec& piece = rest_.front();
    const std::size_t length = std::min<std::uint64_t>(piece.iov_len - used_, bytes);
    if (length != 0) pieces.push_back({static_cast<char*>(piece.iov_base) + used_, length});
    bytes -= length;
    used_ += length;
    if (used_ != piece.iov_len) continue;
    rest_ = rest_.subspan(1);
    used_ = 0;
  }
  return pieces;
}

} // namespace parc::fabric
