// SPDX-License-Identifier: BSD-3-Clause
// A real kernel and two of its programs, whose rings, segments and pipes hold what an input says; a third
// rank of their job lives on another host. Used by the fuzz target and by the program that makes its corpus.
//
// An input is a sequence of records. The first byte of each says what it is (low bits) and whose (top bit);
// the kernel goes round after it, unless the record says that more comes at once (second bit):
//   request   64 bytes: the next one of the ring; the segment that a map or grow names is an index of
//             segment_id()
//   tail      8 bytes: the ring's tail
//   data      offset (2), length (1) and bytes for the first data segment
//   control   offset (4), length (1) and bytes for the control segment
//   pipe      length (1) and bytes for the pipe to the kernel; a hello's segment is an index as well
//   turn      the kernel goes round
//   end       the pipe is closed
//   peer      tag and length (1 each): the rank on the other host reads (even) or writes (odd)
#pragma once

#include "daemon/kernel.hpp"
#include "include/parc/parc.h"
#include "shm/segment.hpp"
#include "shm/tables.hpp"
#include "system/fd.hpp"
#include "tests/sim/pipe.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace parc::fuzz {

enum class Record : std::uint8_t { request, tail, data, control, pipe, turn, end, peer };
inline constexpr std::uint8_t second_program = 0x80, more_at_once = 0x40;

// Where the programs have their data segments: one behind the other.
inline constexpr std::uint64_t data_address = 0x1000'0000;
inline constexpr std::size_t data_bytes = 65'536, more_bytes = 4096;
inline constexpr std::uint64_t more_address = data_address + data_bytes;

// What outlives an input: the kernel, the kernel of the other host, and the programs' segments.
class Host : protocol::Listener {
public:
  static constexpr std::uint64_t job = 7;
  static constexpr std::uint32_t ranks = 3; // the last one is on the other host

  Host();

  daemon::Kernel& kernel() { return *kernel_; }
  protocol::Engine& peer() { return peer_; }
  bool go_round(); // both kernels; false when nothing moved
  std::byte* data() { return data_.data(); }
  shm::Control& control(std::size_t program) {
    return *reinterpret_cast<shm::Control*>(controls_[program].data());
  }
  // By index: data, more data, the program's own control segment, the other one's, a block of its tables;
  // else none.
  [[nodiscard]] int segment_id(std::size_t program, std::uint64_t index) const;
  void clear();           // before an input
  void check_forgotten(); // after it: the kernel keeps nothing of it
  void start_job();
  [[nodiscard]] std::uint64_t endpoint(std::size_t program) const { return endpoints_[program]; }
  void drop_job();
  void write_from_peer(std::uint8_t tag, std::size_t length);
  void read_at_peer(std::uint8_t tag, std::size_t length);

private:
  void begun(std::uint64_t, const protocol::Outcome&) override {}
  void progressed(std::uint64_t, const protocol::Progress&) override {}
  void finished(std::uint64_t, const protocol::Outcome&) override {}
  void drained(std::uint64_t) override {}

  std::unique_ptr<daemon::Kernel> kernel_;
  protocol::Engine peer_;
  std::uint32_t link_ = 0, peer_link_ = 0; // the two ends
  std::array<std::uint64_t, ranks - 1> endpoints_{};
  std::uint64_t peer_endpoint_ = 0;
  std::uint64_t group_ = 0, peer_group_ = 0;
  sim::Pipe there_, back_;
  shm::Segment data_, more_;
  std::array<shm::Segment, 2> controls_;
  std::array<shm::Segment, 2> blocks_;
  std::array<std::byte, 4096> peer_memory_{};
};

// One input's worth of programs.
class Programs {
public:
  explicit Programs(Host& host);
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  ~Programs(); // both go; the kernel must forget them

  // Takes one record off the input.
  void play(std::span<const std::uint8_t>& input);

private:
  struct Program {
    Fd to_kernel, from_kernel;
    int ended = 0;
    bool touched = false; // by the input: nothing can be said of it any more
  };

  void start(std::size_t number);
  void request(std::size_t number, shm::Request request);
  void check_unharmed(std::size_t number);

  Host& host_;
  std::array<Program, 2> programs_;
};

} // namespace parc::fuzz
