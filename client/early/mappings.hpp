// SPDX-License-Identifier: BSD-3-Clause
// What the system has mapped where, in this process: asked with PROCMAP_QUERY (Linux 6.11), or read from
// /proc/self/maps. Nothing is remembered between two questions but an open file. Threads: one at a time.
#pragma once

#include "system/fd.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace parc::client {

struct Mapping {
  std::uintptr_t begin, end;
  std::uint64_t offset; // in its file or segment
  std::uint64_t inode;  // of a System V segment: its id; 0: no file
  std::uint64_t device;
  bool read, write, execute, shared;
  bool heap;  // what brk() gives
  bool stack; // of the process
};

class Mappings {
public:
  // The mapping that an address lies in.
  [[nodiscard]] std::optional<Mapping> find(std::uintptr_t address);
  // The same from the text alone.
  [[nodiscard]] std::optional<Mapping> find_in_text(std::uintptr_t address);

  // The system can be asked: before it has been, that takes a file descriptor.
  [[nodiscard]] bool ready();
  // In a forked child: the open file is about its parent.
  void forget() { maps_.reset(); }

private:
  Fd maps_;
  bool answers_ = true;         // the query; older systems do not know it
  std::array<char, 8192> text_; // longer than any line; a signal stack may have no room for it
};

} // namespace parc::client
