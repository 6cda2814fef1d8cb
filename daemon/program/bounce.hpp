// SPDX-License-Identifier: BSD-3-Clause
// The kernel's end of shm::Bounce: what it cannot reach of a program's memory the program copies itself, one
// piece after the other. The kernel trusts it with nothing but its own messages: a number that was not asked
// for is no answer, and what is said to be copied is what the program sends, or all that it gets.
//
// Invariant: what is asked for stays as it is until the program has answered, wanted or not, as it may be at
// it at any moment. What is not wanted any more is taken back before anybody hears that its memory is free.
#pragma once

#include "protocol/pieces.hpp"
#include "protocol/wire.hpp"
#include "shm/layout.hpp"

#include <cstddef>
#include <cstdint>

namespace parc::daemon {

class Bounce {
public:
  static constexpr std::size_t most = sizeof(shm::Bounce::bytes);

  explicit Bounce(shm::Bounce& shared) : shared_(shared) {}

  // As those of protocol::CrossMemory. `asks`: the program is to be told.
  [[nodiscard]] bool read(std::byte* to, std::uint64_t from, std::uint32_t length, std::uint64_t name,
                          bool& asks);
  [[nodiscard]] bool write(std::uint64_t to, const std::byte* from, std::uint32_t length, std::uint64_t name,
                           bool& asks);
  [[nodiscard]] protocol::Operated operate(std::uint64_t word, const protocol::Atomic& atomic,
                                           std::uint64_t name, std::uint64_t& before, bool& asks);
  [[nodiscard]] bool busy(std::uint64_t name) const { return state_ != State::idle && name_ != name; }
  void forget(std::uint64_t name);

  // The program has answered, which has not been looked at yet.
  [[nodiscard]] bool is_answered() const;
  void look();

private:
  enum class State : std::uint8_t {
    idle,
    asked,    // of the program
    answered, // by it; whoever has asked has not looked yet
    unwanted, // asked, and nobody waits for it
  };
  void enter(State next);
  void ask(std::uint64_t address, std::uint32_t length, std::uint64_t name, shm::Bounce::What what);
  [[nodiscard]] bool take(std::uint64_t name, shm::Bounce::What what);

  shm::Bounce& shared_;
  State state_ = State::idle;
  std::uint64_t number_ = 0; // of the last copy that was asked for
  std::uint64_t name_ = 0;
  shm::Bounce::What what_ = shm::Bounce::What::fetch;
};

} // namespace parc::daemon
