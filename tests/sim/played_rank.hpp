// SPDX-License-Identifier: BSD-3-Clause
// A rank of a job that is played in place of a process: it has the pipes and the control segment of one, asks
// its kernel for what libparc asks for, writes output, gets signals and ends, all in virtual time.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/process/start_process.hpp"
#include "shm/layout.hpp"
#include "shm/segment.hpp"
#include "tests/sim/random.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace parc::sim {

using daemon::Loop;

// What the rank is to do, in this order.
struct Part {
  enum class Start { good, no_process, no_program };
  enum class End { leaves, exits, aborts, stays }; // `exits`: without parc_close; `stays`: until a signal
  Start start = Start::good;
  bool attaches = true;
  unsigned rounds = 0;    // in each of which it writes to the next rank and reads from the one before
  std::size_t output = 0; // bytes
  End end = End::leaves;
  int status = 0; // of its exit, or its parc_abort
  int fault = 0;  // a signal that it dies of instead
  bool ignores_term = false;
  std::uint64_t slowest_us = 1000; // between two of its steps
};

class PlayedRank {
public:
  struct Place {
    std::uint64_t job;
    std::uint32_t rank, size;
  };
  PlayedRank(const Part& part, const Place& place, std::size_t host, const Loop::Time& time,
             std::uint64_t seed);

  daemon::StartedProcess give_ends(pid_t id); // to its kernel
  void signal(int number);
  bool step(); // false: it waits for something
  // When it does more if nothing else happens; none: it waits for others.
  [[nodiscard]] std::optional<Loop::Time> wakes() const;

  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] const Part& part() const { return part_; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] std::size_t host() const { return host_; }
  [[nodiscard]] const daemon::RankExit& exit() const { return exit_; } // once it is dead
  [[nodiscard]] bool signaled() const { return signaled_; }
  [[nodiscard]] bool aborted() const { return aborted_; }
  [[nodiscard]] bool saw_error() const { return saw_error_; } // an operation failed
  [[nodiscard]] unsigned rounds_done() const { return round_; }
  [[nodiscard]] const std::string& written() const { return written_; } // to its output
  // Whether its kernel still has its memory.
  [[nodiscard]] bool attached_by_kernel() const;
  static std::string name(const Place& place);
  [[nodiscard]] std::string state() const; // in words

private:
  enum class Stage { starting, greeting, mapping, talking, leaving, ending, staying };
  static constexpr std::uint64_t data_at = 0x1000'0000;
  static constexpr std::size_t longest = 100'000; // message
  static constexpr std::uint32_t generation_of_map = 1, generation_of_leave = 2;

  void go_on();
  void start();
  void hear_welcome();
  void talk();
  void write_output();
  void end();
  void die(std::uint32_t status, std::uint32_t signal);
  void enter(Stage next) { stage_ = next; }
  shm::Control& control() { return *reinterpret_cast<shm::Control*>(segment_.data()); }
  std::byte* data() { return segment_.data() + sizeof(shm::Control); }
  struct Asked { // of the kernel
    shm::RequestKind kind;
    std::uint64_t id = 0;
    std::uint32_t peer = 0;
    std::uint64_t address = 0, length = 0;
    std::uint64_t number = 0; // a message's tag, a segment's id, an exit status
  };
  void request(const Asked& asked);
  [[nodiscard]] bool done(std::uint64_t slot, std::uint64_t generation);
  [[nodiscard]] static std::size_t length(const Place& from, unsigned round);
  static void fill(std::byte* to, const Place& from, unsigned round);

  Part part_;
  Place place_;
  std::size_t host_;
  const Loop::Time& time_;
  Random random_;
  Stage stage_ = Stage::starting;
  bool alive_ = true, waits_ = false, signaled_ = false, aborted_ = false, saw_error_ = false;
  bool asked_ = false; // the operations of this round
  Loop::Time next_;
  unsigned round_ = 0;
  std::string written_;
  daemon::RankExit exit_;
  shm::Segment segment_;
  std::size_t welcome_length_ = 0;
  std::array<std::byte, sizeof(shm::Welcome)> welcome_{};
  Fd process_, output_, errors_, report_, to_kernel_, from_kernel_; // ours
  daemon::StartedProcess ends_;                                     // the kernel's
};

} // namespace parc::sim
