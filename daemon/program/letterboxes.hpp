// SPDX-License-Identifier: BSD-3-Clause
// The letterboxes of this host's endpoints (shm/letterbox.hpp), and who has a queue for whom. Messages
// between neighbours do not pass here; the kernel makes their way once, and says when one of them has gone.
// Invariants: a letterbox that somebody may still read is given to nobody else; a place among somebody's
// senders or receivers is given once.
#pragma once

#include "protocol/wire.hpp"
#include "shm/letterbox.hpp"
#include "shm/segment.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace parc::daemon {

class Letterboxes {
public:
  // None: programs exchange their messages through the kernel.
  explicit Letterboxes(std::optional<shm::Progress> progress) : progress_(progress) {}

  struct Box {
    shm::LetterboxLocation place{};
    shm::Letterbox* memory = nullptr;
  };
  // Of an endpoint that is here, made now if need be. None: they are not wanted, or there is no room.
  const Box* open(std::uint64_t endpoint);
  [[nodiscard]] const Box* find(std::uint64_t endpoint) const;
  // Which queue of the sender's is for that receiver, who knows the sender by `row`; -1: there is none.
  std::int32_t connect(std::uint64_t sender, std::uint64_t receiver, std::int32_t row);
  // What its neighbours have published for it and it has not drained.
  using Unread = std::function<void(std::uint64_t sender, protocol::Space space, std::uint64_t tag,
                                    std::uint64_t length)>;
  void each_unread(std::uint64_t endpoint, const Unread& of) const;
  // It sends nothing more and reads nothing more. `tell` is called with each endpoint for which that is news.
  void departed(std::uint64_t endpoint, protocol::Departure how,
                const std::function<void(std::uint64_t)>& tell);

  // Its program has gone, or there has never been one.
  void released(std::uint64_t endpoint);

private:
  struct QueueEnd { // a queue, as one of its ends knows it
    std::uint64_t other;
    std::uint32_t place; // among the senders or receivers of the other
  };
  struct Owned : Box {
    std::uint64_t endpoint = 0;
    std::vector<QueueEnd> senders, receivers; // by their places here
    bool departed = false;
    bool released = false;
  };
  [[nodiscard]] Owned* owned(std::uint64_t endpoint) const;
  [[nodiscard]] bool add_area();
  void free_drained();
  void clear();
  [[nodiscard]] bool is_drained(const Owned& box) const;

  const std::optional<shm::Progress> progress_;
  bool full_ = false; // no area could be made
  std::vector<shm::Segment> areas_;
  std::vector<Box> free_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Owned>> boxes_; // by endpoint
  std::vector<std::uint64_t> departed_;                             // whose letterboxes may still be read
};

} // namespace parc::daemon
