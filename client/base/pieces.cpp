// SPDX-License-Identifier: BSD-3-Clause
#include "client/base/pieces.hpp"

#include <algorithm>
#include <cstring>

namespace parc::client {

void gather(std::byte* to, std::span<const iovec> pieces, std::uint64_t offset, std::uint64_t bytes) {
  for (const auto& piece : pieces) {
    if (bytes == 0) return;
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const std::uint64_t part = std::min<std::uint64_t>(piece.iov_len - offset, bytes);
    std::memcpy(to, static_cast<const std::byte*>(piece.iov_base) + offset, part);
    to += part;
    bytes -= part;
    offset = 0;
  }
}

void scatter(std::span<const iovec> pieces, const void* from, std::uint64_t bytes, std::uint64_t offset) {
  const auto* next = static_cast<const std::byte*>(from);
  for (const auto& piece : pieces) {
    if (bytes == 0) return;
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const std::uint64_t part = std::min<std::uint64_t>(piece.iov_len - offset, bytes);
    std::memcpy(static_cast<std::byte*>(piece.iov_base) + offset, next, part);
    next += part;
    bytes -= part;
    offset = 0;
  }
}

} // namespace parc::client
