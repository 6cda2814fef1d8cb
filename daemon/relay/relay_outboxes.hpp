// SPDX-License-Identifier: BSD-3-Clause
// What is relayed leaves over each link in the order in which it came, and no more of it is under way than
// the other kernel has room for at once: what finds none would be asked for piece by piece, a round trip
// each, and nothing else could be said in between.
//
// Invariants: a connection's end leaves behind its bytes, and waits for nothing else; a connection of which
// nothing waits may always say something.
#pragma once

#include "control/link_messages.hpp"
#include "daemon/base/post.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <variant>

namespace parc::daemon {

class RelayOutboxes {
public:
  explicit RelayOutboxes(Post& post) : post_(post) {}

  void send(std::int32_t link, kernel::RelayBytes message);
  void send(std::int32_t link, const kernel::RelayClose& message);
  void drop(std::int32_t link, std::uint64_t stream, bool begun_here); // nobody takes what waits of it
  void link_lost(std::int32_t link);

  // More of this connection may be said now, and else when the loop has gone round.
  [[nodiscard]] bool takes(std::int32_t link, std::uint64_t stream, bool begun_here);
  // By the cost of all that waits or is under way, on all links.
  [[nodiscard]] std::uint64_t kept() const { return kept_; }

private:
  struct Stream {
    std::uint64_t number;
    bool begun_here;
    auto operator<=>(const Stream&) const = default;
  };
  struct Outbox {
    std::uint64_t under_way = 0; // by its cost
    std::deque<std::variant<kernel::RelayBytes, kernel::RelayClose>> waiting;
    std::map<Stream, std::size_t> of_each; // of those that wait, but for ends
  };
  [[nodiscard]] bool has_room(std::int32_t link, const Outbox& outbox);
  void pump(std::int32_t link);
  void taken(std::int32_t link, std::uint64_t cost);

  Post& post_;
  std::map<std::int32_t, Outbox> all_; // by link
  std::uint64_t kept_ = 0;
};

} // namespace parc::daemon
