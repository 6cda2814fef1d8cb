// SPDX-License-Identifier: BSD-3-Clause
// What one program has exposed to gets and puts (protocol/gets.cpp, puts.cpp). Invariant: a window that is
// exposed lies in segments that are mapped, and its memory stays attached while one of these holds it; one
// that was taken back is held by no new one.
#pragma once

#include "daemon/program/extents.hpp"
#include "protocol/engine.hpp"
#include "shm/layout.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace parc::daemon {

class Windows {
public:
  explicit Windows(Extents& memory) : memory_(memory) {}

  // [address, address + length) of the program, as RequestKind::expose says; with its error.
  [[nodiscard]] std::int32_t expose(const shm::Request& request);
  // Takes it back for `operation`. False: there is no such number. Whether it is over says let_go, or this:
  // `over`, where nobody holds it.
  [[nodiscard]] bool unexpose(std::uint64_t number, std::uint64_t operation, bool& over);
  // A segment is not mapped any more: windows over it are as if they were taken back.
  void memory_went();

  // Where a place lies, and the index of its window, which is held once more. None: it is not there, or not
  // for who asks.
  [[nodiscard]] std::optional<std::size_t> hold(const protocol::Place& place, bool acquainted,
                                                protocol::Pieces& memory);
  // The operation that has waited for that; none: nobody has, or others hold it still.
  std::optional<std::uint64_t> let_go(std::size_t index);

private:
  struct Window {
    enum class Stage : std::uint8_t { free, exposed, taken_back } stage = Stage::free;
    std::uint64_t number = 0;
    std::uint64_t address = 0, length = 0; // in the program
    std::uint64_t rights = 0;
    std::uint64_t uses = 0;                  // by gets and puts
    Extents::Used used;                      // by each of these
    std::optional<std::uint64_t> awaited_by; // where it was taken back
  };
  [[nodiscard]] Window* find(std::uint64_t number);
  void forget_if_over(Window& window);

  Extents& memory_;
  std::array<Window, shm::most_windows> windows_;
};

} // namespace parc::daemon
