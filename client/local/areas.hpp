// SPDX-License-Identifier: BSD-3-Clause
// The areas that letterboxes lie in, attached when they are first needed. Only this program's own letterbox
// can be written, but for what the kernel writes there. Threads: one at a time. Async-signal-safe, as far as
// shmat is.
#pragma once

#include "shm/letterbox.hpp"
#include "shm/segment.hpp"
#include "system/process_barrier.hpp"

#include <array>

namespace parc::client {

class Areas {
public:
  // Errors: as shm::Segment::attach.
  [[nodiscard]] Result<void> open(const shm::LetterboxLocation& own);
  [[nodiscard]] shm::Letterbox* own() const { return own_; }
  // Whether this process has joined those that make process barriers, and that one, too.
  [[nodiscard]] bool joined() const { return joined_; }
  [[nodiscard]] bool both_joined(const shm::Letterbox& other) const {
    return joined_ && other.owner.joined.load(std::memory_order_relaxed) != 0;
  }
  // Before a sleep, in place of the fence of those who may wake it.
  void barrier() const {
    if (joined_)
      process_barrier();
    else
      std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  [[nodiscard]] std::uint32_t own_number() const { return own_number_; } // among the host's letterboxes
  // Somebody else's; nullptr: it cannot be attached.
  [[nodiscard]] const shm::Letterbox* at(const shm::LetterboxLocation& place);
  // Of a letterbox that is attached: what everybody may write. False: it stays as it is.
  [[nodiscard]] static bool open_owner_words(const shm::Letterbox& of);

private:
  static constexpr std::size_t most_areas = 256;
  [[nodiscard]] Result<std::byte*> attach(const shm::LetterboxLocation& place);
  std::array<shm::Segment, most_areas> areas_;
  shm::Letterbox* own_ = nullptr;
  std::uint32_t own_number_ = 0;
  const bool joined_ = join_process_barriers();
};

} // namespace parc::client
