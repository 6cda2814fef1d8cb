// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/stored.hpp"

#include <bit>
#include <new>

namespace parc::client {

StoredMessages::~StoredMessages() {
  while (Chunk* const chunk = chunks_) {
    chunks_ = chunk->next;
    unmap_own(chunk, chunk_bytes);
  }
}

std::size_t StoredMessages::kind_for(std::uint64_t bytes) {
  return bytes <= least ? 0 : static_cast<std::size_t>(std::bit_width((bytes - 1) / least));
}

void* StoredMessages::take(std::size_t kind) {
  if (Free* const block = free_[kind]) {
    free_[kind] = block->next;
    return block;
  }
  const std::size_t bytes = least << kind;
  if (static_cast<std::size_t>(end_ - next_) < bytes) {
    void* memory = nullptr;
    try {
      memory = map_own(chunk_bytes);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    chunks_ = new (memory) Chunk{chunks_};
    next_ = static_cast<std::byte*>(memory) + least;
    end_ = static_cast<std::byte*>(memory) + chunk_bytes;
  }
  void* const block = next_;
  next_ += bytes;
  return block;
}

void StoredMessages::give(void* block, std::size_t kind) {
  free_[kind] = new (block) Free{free_[kind]};
}

Stored* StoredMessages::make(std::uint64_t body) {
  void* const memory = take(kind_for(of_message));
  if (memory == nullptr) return nullptr;
  void* const bytes = body != 0 ? take(kind_for(body)) : nullptr;
  if (body != 0 && bytes == nullptr) {
    give(memory, kind_for(of_message));
    return nullptr;
  }
  auto* const message = new (memory) Stored;
  message->body = static_cast<std::byte*>(bytes);
  return message;
}

void StoredMessages::drop(Stored& message) {
  if (message.body != nullptr) give(message.body, kind_for(message.cell.length));
  message.~Stored();
  give(&message, kind_for(of_message));
}

} // namespace parc::client
