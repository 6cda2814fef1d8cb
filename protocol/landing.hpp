// SPDX-License-Identifier: BSD-3-Clause
// Where payload goes. Decided when its header is here, before a byte of it is read, by the stage of its
// message:
//   waits for a read    a block of the pool: stored when it is whole, or copied if a read has come meanwhile
//   matched             the memory of the read, in place, as far as that has room; the rest to the sink.
//                       Where that is another process's, or in short rows: a block, copied when it is whole
//   over or unwanted    the sink
//   not known           the sink: a late copy of what another subflow has brought
// What has been counted is its program's: a second copy of it goes to the sink, too. A read may end before
// its payload is here: its memory is not named any more, and the sink gets the rest. A block is kept to its
// end, whatever becomes of the message.
#pragma once

#include "protocol/messages.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace parc::protocol {

class Landing {
public:
  // `used`: counts what a block takes.
  Landing(Incoming& message, std::uint64_t& used, std::uint64_t offset, std::uint32_t length)
      : message_(&message) {
    if (message.waits() || (message.matched() && message.read->apart)) block_ = Block(used, offset, length);
  }
  Landing(Incoming* message, Block block) : message_(message), block_(std::move(block)) {}

  [[nodiscard]] Incoming* message() const { return message_; } // none: it is no more
  void forget_message() { message_ = nullptr; }
  [[nodiscard]] bool pooled() const { return static_cast<bool>(block_); }
  [[nodiscard]] const Block& block() const { return block_; }
  // It is to be stored with its message.
  [[nodiscard]] bool stores() const { return pooled() && message_ != nullptr && message_->waits(); }
  [[nodiscard]] Block take_block() { return std::move(block_); }

  // Calls use(base, n) for each stretch of memory behind [offset, offset + length) of the message, in order;
  // with no base for what goes to the sink.
  template <class Use> void each(std::uint64_t offset, std::uint64_t length, Use use) const {
    if (pooled()) return use(block_.at(offset), length);
    const bool in_memory = message_ != nullptr && message_->matched() && offset < message_->limit;
    const std::uint64_t wanted = in_memory ? std::min(length, message_->limit - offset) : 0;
    if (in_memory)
      message_->progress.each(offset, wanted, message_->limit,
                              [&](std::uint64_t from, std::uint64_t n, bool counted) {
                                if (counted)
                                  use(static_cast<std::byte*>(nullptr), n);
                                else
                                  message_->read->memory.each(from, n, use);
                              });
    if (wanted != length) use(static_cast<std::byte*>(nullptr), length - wanted);
  }

private:
  Incoming* message_;
  Block block_;
};

// A run of fragments that is still due on a carrier, in the order of the stream.
struct Due {
  Landing landing;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint32_t done = 0; // of its payload
  bool eager = false;     // counts against the credit we granted
  bool from_end = false;

  // Of so many bytes of its payload, those that make whole fragments.
  [[nodiscard]] std::uint32_t whole(std::uint32_t bytes, std::uint32_t fragment) const {
    return bytes == length ? length : bytes / fragment * fragment;
  }
  // As Landing::each, for bytes [from, from + bytes) of its payload.
  template <class Use>
  void each(std::uint32_t from, std::uint32_t bytes, std::uint32_t fragment, Use use) const {
    if (!from_end) return landing.each(offset + from, bytes, use);
    while (bytes != 0) {
      const std::uint32_t high = length - from / fragment * fragment;
      const std::uint32_t low = high > fragment ? high - fragment : 0;
      const std::uint32_t within = from % fragment;
      const std::uint32_t n = std::min(bytes, high - low - within);
      landing.each(offset + low + within, n, use);
      from += n;
      bytes -= n;
    }
  }
};

} // namespace parc::protocol
