// SPDX-License-Identifier: BSD-3-Clause
// Memory for messages of neighbours that wait: at their receiver, as no read has asked for them yet, or at
// their sender, as no cell is free. Never the heap's, as a signal handler may be the one who drains.
// Threads: one at a time. Async-signal-safe.
#pragma once

#include "client/base/own_memory.hpp"
#include "shm/letterbox.hpp"

#include <array>
#include <new>

namespace parc::client {

class Blocks {
public:
  Blocks() = default;
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks();

  // nullptr: the system has no memory.
  [[nodiscard]] void* take(std::uint64_t bytes);
  void give(void* block, std::uint64_t bytes);
  // What a block of so many bytes takes.
  [[nodiscard]] static std::uint64_t size_of(std::uint64_t bytes) { return least << kind_for(bytes); }

private:
  struct Free {
    Free* next;
  };
  struct Chunk {
    Chunk* next;
  };
  static constexpr std::size_t least = 64, kinds = 11; // bytes of a block: 64 to 65536
  static_assert(least << (kinds - 1) == shm::huge_body);
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10;

  [[nodiscard]] static std::size_t kind_for(std::uint64_t bytes);

  std::array<Free*, kinds> free_{};
  Chunk* chunks_ = nullptr;
  std::byte *next_ = nullptr, *end_ = nullptr; // of the last chunk
};

// Messages that have a `cell`, as their sender says it, and a `body` for bytes that do not fit into that.
template <class Message> class MessagesIn {
public:
  // With room for a body of so many bytes, 0 for none. nullptr: the system has no memory.
  [[nodiscard]] Message* make(std::uint64_t body) {
    void* const memory = blocks_.take(sizeof(Message));
    if (memory == nullptr) return nullptr;
    void* const bytes = body != 0 ? blocks_.take(body) : nullptr;
    if (body != 0 && bytes == nullptr) {
      blocks_.give(memory, sizeof(Message));
      return nullptr;
    }
    auto* const message = new (memory) Message;
    message->body = static_cast<std::byte*>(bytes);
    return message;
  }
  void drop(Message& message) { // its hooks unlink it
    if (message.body != nullptr) blocks_.give(message.body, message.cell.length);
    message.~Message();
    blocks_.give(&message, sizeof(Message));
  }
  // The memory that it takes.
  [[nodiscard]] static std::uint64_t cost(const Message& message) {
    return Blocks::size_of(sizeof(Message)) +
           (message.body != nullptr ? Blocks::size_of(message.cell.length) : 0);
  }

private:
  Blocks blocks_;
};

} // namespace parc::client
