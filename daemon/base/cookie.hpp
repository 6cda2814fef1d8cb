// SPDX-License-Identifier: BSD-3-Clause
// What the engine knows an operation by: whose it is, and which of its owner's.
//
//   63      56 55            40 39        19 18                        0
//   +---------+----------------+------------+---------------------------+
//   |  owner  |    session     |    slot    | generation, its low bits  |
//   |         |         link that control reads from                    |
//   |         |         number of control's write                       |
//   +---------+----------------+------------+---------------------------+
#pragma once

#include "shm/layout.hpp"

#include <cassert>
#include <cstdint>

namespace parc::daemon {

class Cookie {
public:
  enum class Owner : std::uint8_t { session = 1, control_read, control_write };

  static Cookie of_session(std::uint32_t session, std::uint64_t slot, std::uint64_t generation) {
    assert(session < most_sessions && slot < std::uint64_t{1} << shm::slot_bits);
    return {Owner::session,
            std::uint64_t{session} << session_at | slot << slot_at | (generation & generation_mask)};
  }
  static Cookie of_control_read(std::uint32_t link) { return {Owner::control_read, link}; }
  static Cookie of_control_write(std::uint64_t number) { return {Owner::control_write, number}; }

  explicit Cookie(std::uint64_t word) : word_(word) {}
  [[nodiscard]] std::uint64_t word() const { return word_; }
  [[nodiscard]] Owner owner() const { return static_cast<Owner>(word_ >> owner_at); }

  [[nodiscard]] std::uint32_t session() const {
    assert(owner() == Owner::session);
    return static_cast<std::uint32_t>(rest() >> session_at);
  }
  [[nodiscard]] std::uint64_t slot() const { return shm::slot_of(word_ >> slot_at); }
  [[nodiscard]] bool is_of(std::uint64_t generation) const {
    return (word_ & generation_mask) == (generation & generation_mask);
  }
  [[nodiscard]] std::uint32_t link() const {
    assert(owner() == Owner::control_read);
    return static_cast<std::uint32_t>(rest());
  }
  [[nodiscard]] std::uint64_t write() const {
    assert(owner() == Owner::control_write);
    return rest();
  }

private:
  static constexpr unsigned owner_at = 56, session_at = 40, slot_at = session_at - shm::slot_bits;
  static_assert(slot_at >= 16); // of the generation: what an engine says late is told from its slot's next
  static constexpr std::uint64_t most_sessions = std::uint64_t{1} << (owner_at - session_at);
  static constexpr std::uint64_t generation_mask = (std::uint64_t{1} << slot_at) - 1;

  Cookie(Owner owner, std::uint64_t rest) : word_(static_cast<std::uint64_t>(owner) << owner_at | rest) {
    assert(rest >> owner_at == 0);
  }
  [[nodiscard]] std::uint64_t rest() const { return word_ & ((std::uint64_t{1} << owner_at) - 1); }

  std::uint64_t word_;
};

} // namespace parc::daemon
