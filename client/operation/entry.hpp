// SPDX-License-Identifier: BSD-3-Clause
// The private half of an operation: who of the program owns it, and what it is about. Its life is told in
// operations.hpp.
#pragma once

#include "client/memory/adopted.hpp"
#include "parc/parc.h"
#include "shm/letterbox.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <sys/uio.h>

namespace parc::client {

using protocol::MessageFlags;

using Slot = std::uint32_t;

constexpr Slot slot_of(parc_op id) {
  return static_cast<Slot>(shm::slot_of(static_cast<std::uint64_t>(id)));
}

// In which a program touches what it has read: parc_set_order.
enum class Order : std::uint8_t { any = PARC_ORDER_ANY, up = PARC_ORDER_UP, down = PARC_ORDER_DOWN };

enum class Use : std::uint8_t { free, live, loose, held, taken, detached, spent };

constexpr std::uint64_t tag_of(std::uint64_t generation, Use use) {
  return generation << 8 | static_cast<std::uint64_t>(use);
}
constexpr Use use_of(std::uint64_t tag) {
  return static_cast<Use>(tag & 0xff);
}
constexpr std::uint64_t generation_in(std::uint64_t tag) {
  return tag >> 8;
}

// The program's memory, in the order of a message: mostly one piece, which lies here.
class PieceList {
public:
  void assign(std::span<const iovec> pieces) {
    count_ = static_cast<std::uint32_t>(pieces.size());
    if (count_ <= 1) {
      many_.reset();
      if (count_ == 1) one_ = pieces[0];
      return;
    }
    many_ = std::make_unique_for_overwrite<iovec[]>(count_);
    std::ranges::copy(pieces, many_.get());
  }
  [[nodiscard]] const iovec* begin() const { return many_ ? many_.get() : &one_; }
  [[nodiscard]] const iovec* end() const { return begin() + count_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] const iovec& operator[](std::size_t index) const { return begin()[index]; }

private:
  iovec one_{};
  std::unique_ptr<iovec[]> many_;
  std::uint32_t count_ = 0;
};

// Memory that is all zeros is one that is free. Those who have not taken it may read what is atomic alone.
struct Entry {
  std::atomic<std::uint64_t> tag = 0;     // generation << 8 | Use
  std::atomic<std::uint64_t> bounced = 0; // bytes of a message in `block`: anybody may ask
  Slot next = 0;                          // of a stack of slots
  std::uint32_t thread = 0;               // where there is a trace: whose
  parc_envelope envelope{};
  std::uint64_t length = 0;
  PieceList pieces;
  void* block = nullptr;
  void* list = nullptr;
  std::uint64_t held = 0;
  std::unique_ptr<Adopted> adopted;                     // none: it uses no adopted memory
  std::atomic<MessageFlags> flags = MessageFlags::none; // these two: also read of one that may just be spent
  std::atomic<bool> late = false;                       // a read that has no memory yet: late_reads.hpp
  Order order = Order::any;
  shm::RequestKind kind = shm::RequestKind::none;
  bool pays = true;
  bool pinned = false;                 // handed over: the segments of pieces stay until the kernel is done
  bool local = false;                  // also of a write: the kernel does not know it
  bool given_up = false;               // there was no memory for its message
  bool own_memory = false;             // the kernel names the program's memory as that has it
  bool straight = false;               // neighbours' bytes may come to its pieces at once
  std::atomic<bool> fragments = false; // of its message come: a thread may be copying one
  bool placed = false;                 // all of it lies in the pieces
  // Of long messages alone, so that who finishes a short read need not ask what other threads are at.
  [[nodiscard]] bool takes_fragments() const { return straight && length > shm::short_message; }
  [[nodiscard]] bool is(MessageFlags any_of) const {
    return has(flags.load(std::memory_order_relaxed), any_of);
  }
  void set_block(void* memory, std::uint64_t bytes) {
    block = memory;
    bounced.store(memory != nullptr && has_message() ? bytes : 0, std::memory_order_relaxed);
  }
  [[nodiscard]] void* take_block() {
    bounced.store(0, std::memory_order_relaxed);
    return std::exchange(block, nullptr);
  }
  // Or it is a question to the kernel.
  [[nodiscard]] bool has_message() const { return shm::is_message(kind); }
  std::uint64_t posted = 0;   // when: where there is a trace, and of gets
  std::uint64_t released = 0; // where there is a trace: when its wait returned early
  std::uint64_t site = 0;     // where in the program it was started
};

} // namespace parc::client
