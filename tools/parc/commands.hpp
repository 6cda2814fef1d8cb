// SPDX-License-Identifier: BSD-3-Clause
// The commands of parc, each given its options checked. All return an exit status, and have said why when it
// is not 0.
#pragma once

#include "control/exit_status.hpp"
#include "jobs/placement.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parc::tools {

struct RunOptions {
  std::optional<std::uint32_t> ranks;
  std::string hosts;
  std::string hostfile;
  std::optional<std::uint32_t> ranks_per_host;
  std::string directory;
  std::vector<std::string> environment; // NAME or NAME=VALUE
  std::string input = "0";              // the rank that reads our stdin, all or none
  std::optional<double> timeout_s;
  bool tag_output = false;
  bool keep_going = false;
  std::string bind = "none"; // or "core"
  std::string trace;         // file; empty: none
  std::string early_release; // a level of parc_set_release; empty: as the environment says
  std::string runtime_dir;
  std::vector<std::string> command;
};
[[nodiscard]] int run(const RunOptions& options);

struct MpiOptions {
  std::string early_release;      // a level of parc_set_release; empty: none
  std::string trace;              // file; empty: none
  std::vector<std::string> words; // mpirun's
};
// How many words behind that option of Open MPI's mpirun are its values.
[[nodiscard]] std::size_t values_of_mpiruns_option(std::string_view option);
// With no words: prints how MPI programs are run over parc. Else runs mpirun so, with these words.
[[nodiscard]] int mpi(const MpiOptions& options);

struct StatusOptions {
  bool json = false;
  bool verbose = false; // the counters too
  std::string runtime_dir;
};
[[nodiscard]] int status(const StatusOptions& options);

// Prints the same for Prometheus.
[[nodiscard]] int metrics(const std::string& runtime_dir);

struct ErrorsOptions {
  bool json = false;
  std::string runtime_dir;
};
[[nodiscard]] int errors(const ErrorsOptions& options);

struct TopOptions {
  double interval_s = 1;
  bool batch = false;      // tables instead of a screen
  std::uint64_t count = 0; // so many times; 0: without end
  std::string sort = "rank";
  std::string runtime_dir;
};
[[nodiscard]] int top(const TopOptions& options);

struct DumpOptions {
  std::string job; // hexadecimal; empty: the only one
  bool json = false;
  std::string runtime_dir;
};
[[nodiscard]] int dump(const DumpOptions& options);

// Prints what the waits of a traced job cost.
[[nodiscard]] int show_trace(const std::string& file);

struct HostOptions {
  std::string hosts;
  std::string hostfile;
  std::string runtime_dir; // of this host's kernel
  bool json = false;
};
[[nodiscard]] int show_hosts(const HostOptions& options);
[[nodiscard]] int ps(const HostOptions& options); // their jobs

struct KillOptions {
  HostOptions where;
  std::string signal = "TERM";
  std::vector<std::string> jobs;
};
[[nodiscard]] int kill_jobs(const KillOptions& options);

// How to get to other hosts, as PARC_SSH says; empty: it says nothing.
[[nodiscard]] std::string asked_ssh();

struct UpOptions {
  HostOptions where;
  std::string ssh = asked_ssh();     // and its options; empty: as the batch job does, or ssh
  std::vector<std::string> of_parcd; // options of the kernels that are started
};
// Starts the kernels of hosts, and ends them.
[[nodiscard]] int up(const UpOptions& options);
[[nodiscard]] int down(const UpOptions& options);

struct DoctorOptions {
  bool json = false;
  std::string hosts;
  std::string hostfile;
  std::vector<std::string> at; // NAME=ADDRESS:PORT
  std::string ssh;             // and its options; empty: ssh, and only where hosts are named
  std::string runtime_dir;
};
[[nodiscard]] int doctor(const DoctorOptions& options);

struct ProbeOptions {
  std::string host;
  bool json = false;
  std::string runtime_dir;
};
// Measures messages between this host and another.
[[nodiscard]] int probe(const ProbeOptions& options);

// The kernel of this host; that none runs is no failure.
[[nodiscard]] int stop(const std::string& runtime_dir);

[[nodiscard]] int clean(const std::string& runtime_dir);

// The text of an error, and where this process itself has too little of something, how it gets more.
[[nodiscard]] std::string in_words(const Error& error);
// For commands: the status that it ended with; or its error is told.
[[nodiscard]] int end_with(const Result<int>& status);
// As parc status, ps and PARC_JOB name one.
[[nodiscard]] Result<std::uint64_t> parse_job(const std::string& text);
[[nodiscard]] Result<int> parse_signal(const std::string& text); // SIGTERM, TERM, term or 15

} // namespace parc::tools
