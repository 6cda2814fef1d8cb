// SPDX-License-Identifier: BSD-3-Clause
// One run of one variant of the heat program: a process per rank, started on the hosts as a user would.
#pragma once

#include "bench/heat/hosts.hpp"
#include "bench/heat/samples.hpp"
#include "system/error.hpp"

namespace parc::heat::demo {

// Such a variant is a job of the kernels; the others are plain processes.
[[nodiscard]] bool over_parc(const std::string& variant);

constexpr int usual_warm_up = 2;

struct Run {
  std::string variant;
  std::size_t points, columns;
  int work = 1;
  int steps = 10;
  int warm_up = usual_warm_up;
  double column_ms = 0;   // that ranks sleep in place of calculating
  std::string field = {}; // file for the temperatures; empty: none
};

class Runner {
public:
  Runner(const Hosts& hosts, std::size_t ranks, int socket_buffer)
      : hosts_(hosts), ranks_(ranks), socket_buffer_(socket_buffer) {}

  // A wrong result is a figure; a rank that says nothing is an error.
  [[nodiscard]] Result<Sample> run(const Run& what);

  // Cores that the relay of the emulation used while variants over parc ran.
  [[nodiscard]] double relay_cpu() const {
    return relay_seconds_ > 0 ? relay_cpu_seconds_ / relay_seconds_ : 0;
  }

private:
  [[nodiscard]] std::vector<Command> commands(const Run& what) const;
  [[nodiscard]] Result<Sample> read_output(const Run& what, const std::vector<Ended>& ended) const;

  const Hosts& hosts_;
  std::size_t ranks_;
  int socket_buffer_;
  double relay_cpu_seconds_ = 0, relay_seconds_ = 0;
};

} // namespace parc::heat::demo
