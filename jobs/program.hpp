// SPDX-License-Identifier: BSD-3-Clause
// What `parc run` asks to be run, by all ranks or, where there are several programs, by the first of them.
// Invariant: each program has a name, its directory is absolute or in the home of each host's own ("~/..."),
// and no text holds a zero byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parc {

inline constexpr std::size_t most_apps = 1024; // programs of one job

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
  // One of several programs of a job (mpirun's ":", MPI_Comm_spawn_multiple).
  struct App {
    std::uint32_t first_rank = 0; // its ranks are those from this on, up to the next one's
    std::vector<std::string> arguments;
    std::string directory = {};              // empty: the job's
    std::vector<std::string> variables = {}; // over those of the job
  };
  std::vector<App> apps = {}; // where there are several: all, in the order of their ranks, the first is 0
  [[nodiscard]] std::size_t app_of(std::uint32_t rank) const; // its place among them
  [[nodiscard]] Program of_app(std::size_t app) const;        // that alone
  [[nodiscard]] std::string name() const {                    // without the way to it
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
