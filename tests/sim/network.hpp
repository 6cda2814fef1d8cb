// SPDX-License-Identifier: BSD-3-Clause
// The simulated network: one Wire for each direction of each link, with room, delay and an end; all
// randomness comes from one generator. A wire may belong to a hostile host: then headers are changed on their
// way.
#pragma once

#include "protocol/engine.hpp"
#include "tests/sim/pipe.hpp"
#include "tests/sim/random.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace parc::sim {

class Wire {
public:
  Wire() = default;
  Wire(std::size_t room, std::uint64_t delay, bool hostile) : delay_(delay), hostile_(hostile), pipe_(room) {}

  // From the sender's engine; returns how many bytes.
  std::size_t send(protocol::Engine& engine, std::uint32_t link, std::size_t most, std::uint64_t now,
                   Random& random, std::uint32_t subflow = 0) {
    const auto plan = engine.plan_write(link, subflow);
    const std::size_t header = hostile_ && !plan.empty() ? header_of(plan.front()) : 0;
    const std::size_t n = pipe_.fill(engine, link, most, subflow);
    if (n == 0) return 0;
    flight_.push_back({now + delay_ + random.below(delay_ + 1), n});
    if (flight_.size() > 1)
      flight_.back().due = std::max(flight_.back().due, flight_[flight_.size() - 2].due);
    if (header != 0 && random.one_in(mutate_one_in)) mutate(n, std::min(header, n), random);
    return n;
  }

  // To the receiver's engine.
  std::size_t receive(protocol::Engine& engine, std::uint32_t link, std::size_t most, std::size_t iovecs,
                      std::uint64_t now, protocol::Refusal& refusal, std::uint32_t subflow = 0) {
    for (; !flight_.empty() && flight_.front().due <= now; flight_.pop_front())
      arrived_ += flight_.front().bytes;
    const std::size_t n = pipe_.drain(engine, link, std::min(most, arrived_), iovecs, refusal, subflow);
    arrived_ -= n;
    return n;
  }

  // Only so many more bytes will come, then the end.
  void cut(std::size_t keep) {
    ended_ = true;
    arrived_ = std::min(keep, pipe_.size());
    flight_.clear();
  }
  [[nodiscard]] bool at_end() const { return ended_ && arrived_ == 0; }
  // When the next bytes that are on their way will be there; never: there are none.
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  [[nodiscard]] std::uint64_t next_due() const { return flight_.empty() ? never : flight_.front().due; }

private:
  static constexpr std::uint64_t mutate_one_in = 20; // of a hostile host's trains
  struct Flight {
    std::uint64_t due;
    std::size_t bytes;
  };

  static std::size_t header_of(const iovec& part) {
    std::uint32_t magic = 0;
    if (part.iov_len < sizeof(protocol::Statement)) return 0;
    std::memcpy(&magic, part.iov_base, sizeof magic);
    return magic == protocol::train_magic || magic == protocol::statement_magic ? part.iov_len : 0;
  }
  void mutate(std::size_t added, std::size_t header, Random& random);

  std::uint64_t delay_ = 0;
  bool hostile_ = false;
  bool ended_ = false;
  Pipe pipe_;
  std::deque<Flight> flight_;
  std::size_t arrived_ = 0;
  std::deque<std::vector<std::byte>> headers_; // seen before, to be said again
};

} // namespace parc::sim
