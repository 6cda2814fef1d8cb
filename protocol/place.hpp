// SPDX-License-Identifier: BSD-3-Clause
// Of a window, which is memory that an endpoint has exposed under a number of its choice: what somebody gets
// from there, or puts there.
#pragma once

#include "protocol/pieces.hpp"
#include "protocol/progress.hpp"
#include "protocol/wire.hpp"

#include <cstdint>
#include <optional>

namespace parc::protocol {

struct Place {
  std::uint64_t window = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;   // of what is got or put
  bool put = false;           // else somebody gets it
  const Rows* rows = nullptr; // none: its bytes lie together
};

// What of the window the place lies in, from its first byte to its last; none: that is before its beginning,
// or beyond what can be addressed.
[[nodiscard]] std::optional<Span> span_of(const Place& place);

// Appends the memory of the place, whose span is `span`. False: its rows overlap, and any number of them may
// lie in two of the span's parts.
[[nodiscard]] bool append_place(Pieces& memory, const Pieces& span, const Place& place);

} // namespace parc::protocol
