// SPDX-License-Identifier: BSD-3-Clause
// Messages of neighbours that no read has asked for yet, copied out of their senders' cells, and the memory
// for them: never the heap's, as a signal handler may be the one who drains. Threads: one at a time.
// Async-signal-safe.
#pragma once

#include "client/own_memory.hpp"
#include "protocol/posted_reads.hpp"
#include "shm/letterbox.hpp"

#include <array>

namespace parc::client {

struct Neighbour;

struct Stored : protocol::hook::Hook<protocol::hook::Queue>, protocol::hook::Hook<protocol::hook::Arrivals> {
  Neighbour* from = nullptr;
  shm::Cell cell{};             // what its sender's said
  std::byte* body = nullptr;    // of a whole message that does not fit into it
  bool taken = false;           // of a rendezvous: its writer cannot give it up any more
  std::uint64_t claimed_by = 0; // a probe, whose id names the message
};

class StoredMessages {
public:
  StoredMessages() = default;
  StoredMessages(const StoredMessages&) = delete;
  StoredMessages& operator=(const StoredMessages&) = delete;
  ~StoredMessages();

  // With room for a body of so many bytes, 0 for none. nullptr: the system has no memory.
  [[nodiscard]] Stored* make(std::uint64_t body);
  void drop(Stored& message);

private:
  struct Free {
    Free* next;
  };
  struct Chunk {
    Chunk* next;
  };
  static constexpr std::size_t least = 64, kinds = 8; // bytes of a block: 64 to 8192
  static_assert(least << (kinds - 1) == shm::short_message);
  static constexpr std::size_t of_message = 256; // holds a Stored
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10;
  static_assert(sizeof(Stored) <= of_message);

  [[nodiscard]] static std::size_t kind_for(std::uint64_t bytes);
  [[nodiscard]] void* take(std::size_t kind);
  void give(void* block, std::size_t kind);

  std::array<Free*, kinds> free_{};
  Chunk* chunks_ = nullptr;
  std::byte *next_ = nullptr, *end_ = nullptr; // of the last chunk
};

} // namespace parc::client
