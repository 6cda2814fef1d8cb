// SPDX-License-Identifier: BSD-3-Clause
// What `parc run` asks to be run: the same for all ranks. Invariant: it has a name, a directory that is
// absolute or in the home of each host's own ("~/..."), and no text in it holds a zero byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parc {

struct Program {
  struct Limit { // of setrlimit
    std::uint32_t resource;
    std::uint64_t soft;
    std::uint64_t hard;
  };
  std::vector<std::string> arguments; // the first is the program's name
  std::vector<std::string> environment;
  std::vector<std::string> here = {}; // what besides holds on the host alone that it is started on
  std::string directory;
  std::string directory_otherwise = {}; // where that one is not there; empty: there is no other
  std::uint32_t umask = 022;
  std::vector<Limit> limits;
  bool binds = false; // each rank to a core of its own
  bool mpi = false;   // of MPI: a PMIx server on each host answers its ranks
  static constexpr std::uint64_t usual_slack_ns = 50'000;
  // By which timers of its ranks may be late: their host's, which it alone knows.
  std::uint64_t timer_slack_ns = usual_slack_ns;
  // Who reads what `parc run` does: a rank, no rank, or all.
  std::uint64_t input = no_rank;
  static constexpr std::uint64_t no_rank = UINT32_MAX, all_ranks = UINT32_MAX - 1;
  [[nodiscard]] std::string name() const { // without the way to it
    return arguments.empty() ? std::string() : arguments[0].substr(arguments[0].rfind('/') + 1);
  }
  [[nodiscard]] bool reads_input(std::uint64_t rank) const { return input == rank || input == all_ranks; }
};

// What its kernel has open for a rank (a trace, or input that all ranks read, is one more each), and beside
// that while it starts one.
inline constexpr std::size_t descriptors_of_rank = 6, descriptors_to_start = 48;

[[nodiscard]] bool is_variable(std::string_view text); // NAME=VALUE
[[nodiscard]] std::string_view name_of_variable(std::string_view variable);
// In place of those of the same names.
void set_variables(std::vector<std::string>& environment, const std::vector<std::string>& variables);

// Whether ranks get this variable of the environment that their job is started in: on all hosts, or on that
// one alone, for others have their own.
[[nodiscard]] bool is_given_to_ranks(std::string_view name);
[[nodiscard]] bool is_of_site(std::string_view name);

} // namespace parc
