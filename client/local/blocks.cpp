// SPDX-License-Identifier: BSD-3-Clause
#include "client/local/blocks.hpp"

#include <bit>

namespace parc::client {

Blocks::~Blocks() {
  while (Chunk* const chunk = chunks_) {
    chunks_ = chunk->next;
    unmap_own(chunk, chunk_bytes);
  }
}

std::size_t Blocks::kind_for(std::uint64_t bytes) {
  return bytes <= least ? 0 : static_cast<std::size_t>(std::bit_width((bytes - 1) / least));
}

void* Blocks::take(std::uint64_t wanted) {
  const std::size_t kind = kind_for(wanted);
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

void Blocks::give(void* block, std::uint64_t bytes) {
  const std::size_t kind = kind_for(bytes);
  free_[kind] = new (block) Free{free_[kind]};
}

} // namespace parc::client
