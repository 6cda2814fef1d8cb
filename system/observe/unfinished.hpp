// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a job have begun and not finished, as parc status and parc dump show it: plain values
// (control/rank_state.hpp: how they travel), and which ranks wait for each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parc {

struct Unfinished {
  std::int32_t peer = -1; // -1: any
  std::int32_t tag = -1;
  std::uint32_t context = 0;
  std::uint64_t bytes = 0;    // of the message where it has begun, or else of the memory for it
  std::uint64_t in_place = 0; // of these: arrived (read) or acknowledged (write)
  std::uint64_t age_ms = 0;   // since the call that began it
  bool writes = false;        // else it reads
  bool probes = false;        // it is a probe: waits to be told of a message
  bool one_sided = false;     // a get, put or atomic, which kernels serve: the context and tag are its window
  bool atomic = false;        // it is one
  bool begun = false;         // a read whose message has been matched
  bool operator==(const Unfinished&) const = default;
};

struct RankState {
  std::uint64_t rank = 0;
  std::uint64_t process = 0;
  std::string host = {};
  std::string program = {};
  bool joined = false;  // parc_open has been called, and parc_close has not
  bool resting = false; // a thread of it waits in libparc
  std::vector<Unfinished> operations = {};
  std::uint64_t more = 0; // further operations, not among those
  struct Neighbours {     // messages with ranks of its host that passed no kernel, so far
    std::uint64_t messages = 0, bytes = 0, taken = 0, interrupts = 0, received = 0, received_bytes = 0;
    std::string_view memory; // in words: whether the kernel copies straight from and to its own memory
    bool operator==(const Neighbours&) const = default;
  } neighbours = {};
  struct Waits { // so far: waits that rested, waits released early, touches of guarded pages, and those of
                 // them whose page had arrived
    std::uint64_t rested = 0, released = 0, faults = 0, late_faults = 0;
    bool operator==(const Waits&) const = default;
  } waits = {};
  struct Backlog { // messages that wait in it, or for it in its kernel; bytes of the memory that they take
    std::uint64_t to_neighbours = 0,
                  to_neighbours_bytes = 0; // messages to neighbours that no cell is free for
    std::uint64_t from_neighbours = 0, from_neighbours_bytes = 0; // from neighbours: kept for a read to come
    std::uint64_t put_off = 0;       // operations that a library has not started, for want of memory
    std::uint64_t kernel_held = 0;   // writes in the kernel whose receivers have no place for more
    std::uint64_t kernel_unread = 0; // messages in the kernel, kept for a read to come
    bool operator==(const Backlog&) const = default;
  } backlog = {};
  bool operator==(const RankState&) const = default;
};

inline constexpr std::size_t most_unfinished = 10; // operations that are shown of a rank: the oldest
// How many operations are shown of each rank, where so many ranks go to a tool in one frame.
constexpr std::size_t unfinished_of_each(std::size_t ranks) {
  return std::clamp<std::size_t>(4000 / std::max<std::size_t>(ranks, 1), 1, most_unfinished);
}

// A cycle of ranks, of which each waits for the next one and the last for the first; empty: there is none. A
// rank waits for another when both rest and it has a read from it that has not begun and that no write of the
// other's would answer; or, where it has no read under way at all, a write to it.
[[nodiscard]] std::vector<std::uint64_t> find_cycle(std::span<const RankState> ranks);

} // namespace parc
