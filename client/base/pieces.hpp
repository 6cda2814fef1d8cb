// SPDX-License-Identifier: BSD-3-Clause
// Copying between a list of pieces, which follow each other in a message, and one block. Async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/uio.h>

namespace parc::client {

// Bytes [offset, offset + bytes) of the message to `to`. The pieces have them all.
void gather(std::byte* to, std::span<const iovec> pieces, std::uint64_t offset, std::uint64_t bytes);

// The message's `bytes` from `from` to where they are in the pieces, which have room for them all.
void scatter(std::span<const iovec> pieces, const void* from, std::uint64_t bytes, std::uint64_t offset = 0);

} // namespace parc::client
