// SPDX-License-Identifier: BSD-3-Clause
// The memory that one program shares with the kernel: segments by the addresses they have in the program.
// Invariants: every address a program names is resolved here or refused; a segment stays attached while an
// operation uses it.
#pragma once

#include "protocol/pieces.hpp"
#include "shm/layout.hpp"
#include "shm/segment.hpp"
#include "system/error.hpp"

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>

namespace parc::daemon {

class Extents {
public:
  using Used = std::bitset<shm::max_segments>; // which segments an operation uses

  // Attaches the segment that the program has at `address`.
  Result<void> map(std::uint64_t address, std::uint64_t length, int shmid);
  // Detaches the segment at `address` at once, or when its last use ends. False: there is none.
  bool unmap(std::uint64_t address);
  [[nodiscard]] bool mapped(std::uint64_t address) const;

  [[nodiscard]] std::uint64_t bytes() const; // of all that is attached

  // Appends the kernel's addresses of [address, address + length) to `pieces`. False: some of it is not
  // shared.
  bool resolve(std::uint64_t address, std::uint64_t length, protocol::Pieces& pieces, Used& used) const;
  // The list of pieces that a request names, copied out and resolved; their lengths must add up to `length`.
  bool resolve_list(std::uint64_t address, std::uint16_t count, std::uint64_t length,
                    protocol::Pieces& pieces, Used& used) const;
  // Where [address, address + length) lies, all of it in one segment; none: it does not.
  struct InSegment {
    int segment;
    std::uint64_t bytes, offset;
  };
  [[nodiscard]] std::optional<InSegment> in_one_segment(std::uint64_t address, std::uint64_t length) const;
  void hold(const Used& used);
  void drop(const Used& used);
  // Lets go of the page-table entries of segments that no operation uses and none has since the last call:
  // the bytes stay, in the program's memory, and this process does not look as large as all its programs
  // together. True: there are others, which may go with a next call.
  bool let_go();

private:
  struct Extent {
    std::uint64_t address = 0;
    std::uint64_t length = 0; // 0: free
    std::uint32_t uses = 0;
    enum class Pages : std::uint8_t { gone, idle, used } pages = Pages::gone; // as let_go() knows them
    bool leaving = false;
    shm::Segment segment;
  };
  std::array<Extent, shm::max_segments> extents_;
};

} // namespace parc::daemon
