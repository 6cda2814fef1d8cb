// SPDX-License-Identifier: BSD-3-Clause
// A System V shared-memory segment, attached. Its creator marks it for removal before anybody else knows of
// it, so that it goes with the last process that has it; Linux lets the other side attach by id all the same.
// Invariant: a Segment that owns anything is attached at data() for size() bytes, 0600, of this user.
#pragma once

#include "system/error.hpp"

#include <boost/interprocess/mapped_region.hpp>
#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace parc::shm {

// The keys that a process gives its segments: these and no others, so that one that it left can be told from
// what anybody else has made (shm/leftovers.hpp). No two processes have one in common.
inline constexpr std::uint32_t keys_of_process = 64;
[[nodiscard]] constexpr std::uint32_t key_of(pid_t creator, std::uint32_t number) {
  // A process number has 22 bits at most. What follows is one to one (the end of MurmurHash3), so that keys
  // lie anywhere, and where ftok's do only by chance.
  std::uint32_t key = (static_cast<std::uint32_t>(creator) * keys_of_process + number) ^ 0x70617263; // "parc"
  key = (key ^ key >> 16) * 0x85ebca6b;
  key = (key ^ key >> 13) * 0xc2b2ae35;
  return key ^ key >> 16;
}

// How many segments the system allows (shmmni); the largest number where it does not say.
[[nodiscard]] std::size_t most_segments();

class Segment {
public:
  Segment() = default;
  Segment(Segment&&) noexcept = default;
  Segment& operator=(Segment&&) noexcept = default;

  // A new segment, all zeros. Errors name the system's limit that was met and how to raise it.
  [[nodiscard]] static Result<Segment> create(std::size_t bytes);
  // A new segment for which no memory is set aside: most of it will never be touched.
  [[nodiscard]] static Result<Segment> create_sparse(std::size_t bytes);

  // Attaches all of the other side's segment. One that is not this user's, has fewer bytes or is open to
  // others is refused.
  [[nodiscard]] static Result<Segment> attach(int id, std::size_t bytes);
  // Attaches it to be read only: a store there raises SIGSEGV.
  [[nodiscard]] static Result<Segment> attach_to_read(int id, std::size_t bytes);

  [[nodiscard]] int id() const { return id_; }
  // The process that made a segment, as this process's PID namespace numbers it; 0: none that it sees, or no
  // such segment.
  [[nodiscard]] static pid_t maker(int id);
  // How often it is attached, by whomever; 0: there is no such segment.
  [[nodiscard]] static std::size_t attachments(int id);
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(region_.get_address()); }
  [[nodiscard]] std::size_t size() const { return region_.get_size(); }
  explicit operator bool() const { return size() != 0; }

private:
  [[nodiscard]] static Result<Segment> create(std::size_t bytes, int flags);
  enum class For : std::uint8_t { reading, writing };
  [[nodiscard]] static Result<Segment> attach_checked(int id, For what);
  [[nodiscard]] static Result<Segment> attach(int id, std::size_t bytes, For what);

  int id_ = -1;
  boost::interprocess::mapped_region region_; // attaches, detaches, moves
};

} // namespace parc::shm
