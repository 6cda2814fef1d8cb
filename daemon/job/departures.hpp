// SPDX-License-Identifier: BSD-3-Clause
// In which order the ranks of a job departed, as its origin can tell. Messages of several hosts overtake each
// other on their way to it, so each host says which departures it knew of when a rank of its own departed:
// those came before, whatever is heard first. (What follows from what is Lamport's "happened before".)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace parc::daemon {

class Departures {
public:
  Departures() = default;
  explicit Departures(std::vector<std::uint32_t> host_of_rank);

  // Its host, which may be wrong about anything, said so of this rank of the job, and that those of other
  // hosts had departed before: which it had not named yet.
  void heard(std::uint32_t rank, std::span<const std::uint64_t> known);

  // Of the ranks that failed, one that knew of no other: the first that was heard of or, where it knew of
  // others, the one it all began with. None: none has failed.
  using Failed = std::function<bool(std::uint32_t rank)>;
  [[nodiscard]] std::optional<std::uint32_t> first(const Failed& failed) const;

private:
  static constexpr std::size_t none = SIZE_MAX;
  [[nodiscard]] std::optional<std::uint32_t> before(std::uint32_t rank, const Failed& failed) const;

  std::vector<std::uint32_t> host_;               // of each rank
  std::vector<std::vector<std::uint32_t>> known_; // to each host, in its order: its own and others
  std::vector<std::vector<bool>> named_;          // by each host: these ranks
  std::vector<std::size_t> place_;                // of each rank in that of its own host; none: it is there
  std::vector<std::uint32_t> heard_;              // in the order in which the origin heard of them
};

} // namespace parc::daemon
