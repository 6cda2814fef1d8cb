// SPDX-License-Identifier: BSD-3-Clause
// What one program has exposed to gets and puts (protocol/gets.cpp, puts.cpp). Invariant: a window that is
// exposed lies in segments that are mapped, which stay attached while one of these holds it, or in memory
// that the program does not share, and then whether it is there shows when it is used; one that was taken
// back is held by no new one.
#pragma once

#include "daemon/program/extents.hpp"
#include "protocol/engine.hpp"
#include "shm/layout.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace parc::daemon {

class Windows {
public:
  // A program of this host that reaches a window itself, by an entry of its own (shm::AttachedWindow).
  struct Neighbour {
    std::uint32_t session;
    std::uint32_t entry;
    bool operator==(const Neighbour&) const = default;
  };
  // Closes that entry. True: somebody is inside, and says so when it leaves; the window waits for that. Not
  // where its program has `ended`.
  using Close = std::function<bool(const Neighbour&, bool ended)>;

  Windows(Extents& memory, Close close) : memory_(memory), close_(std::move(close)) {}

  // [address, address + length) of the program, as RequestKind::expose says; with its error. `own`: what
  // reaches that where it is not shared.
  [[nodiscard]] std::int32_t expose(const shm::Request& request, protocol::CrossMemory* own);
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

  // Where a window lies that a neighbour may reach itself from here on, until its entry is closed. None:
  // there is none, or it is not in one segment.
  struct Attached {
    std::size_t index;
    Extents::InSegment where;
    std::uint64_t length, rights;
  };
  [[nodiscard]] std::optional<Attached> attach(std::uint64_t number, const Neighbour& neighbour);
  // It does so no more: as let_go.
  std::optional<std::uint64_t> detach(std::size_t index, const Neighbour& neighbour);
  // The program ends: nobody reaches its windows, or waits for who does.
  void close_all();

private:
  struct Window {
    std::size_t index = 0;
    enum class Stage : std::uint8_t { free, exposed, taken_back } stage = Stage::free;
    std::uint64_t number = 0;
    std::uint64_t address = 0, length = 0; // in the program
    protocol::CrossMemory* own = nullptr;  // none: it is shared
    std::uint64_t rights = 0;
    std::uint64_t uses = 0;                  // by gets and puts
    Extents::Used used;                      // by each of these
    std::optional<std::uint64_t> awaited_by; // where it was taken back
    std::vector<Neighbour> attached;         // they are among the uses
  };
  [[nodiscard]] Window* find(std::uint64_t number);
  void add(Window window);
  void close(Window& window);
  void take_back(Window& window);
  void forget_if_over(Window& window);
  [[nodiscard]] bool resolve(const Window& window, std::uint64_t offset, std::uint64_t length,
                             protocol::Pieces& memory, Extents::Used& used) const;
  [[nodiscard]] bool resolve_place(const Window& window, const protocol::Place& place,
                                   protocol::Pieces& memory) const;

  Extents& memory_;
  Close close_;
  std::deque<Window> windows_; // by index, which holds name
  std::vector<std::size_t> free_;
  std::unordered_map<std::uint64_t, std::size_t> by_number_; // those that are exposed
};

} // namespace parc::daemon
