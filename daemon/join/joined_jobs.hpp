// SPDX-License-Identifier: BSD-3-Clause
// The jobs that programs of this host have joined by name (daemon/join/joins.hpp), while they run: what parc
// ps, kill, dump, status and stop know of them. There is no origin: each kernel knows its own programs and
// which hosts have the others.
//
// Invariants: a job is known from its beginning here to the end of its last program here. A process is
// signalled by its pidfd alone, so never a later one of that number.
#pragma once

#include "control/host_answer.hpp"
#include "daemon/link/endpoint_address.hpp"
#include "system/fd.hpp"
#include "system/observe/unfinished.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace parc::daemon {

class Sessions;

class JoinedJobs {
public:
  struct Host {
    std::string name;
    EndpointAddress kernel; // that of one of its programs
    std::int32_t link;      // to that when the job began, or this_host
  };
  struct Job {
    std::uint64_t number = 0;
    std::string name;
    std::string met_at;
    std::uint32_t size = 0;
    std::vector<Host> hosts;
  };

  explicit JoinedJobs(const Sessions& sessions) : sessions_(sessions) {}

  // By the engine's number of its group. Between these two it stays, though it has no program.
  void begin(std::uint64_t group, Job job);
  // True: none of its programs is here; it is forgotten.
  [[nodiscard]] bool begun(std::uint64_t group);
  struct Process {
    pid_t id = 0; // 0: it is in another PID namespace
    Fd handle;    // pidfd
  };
  // Who has just connected, as the system says, not as it does itself.
  [[nodiscard]] static Process at_other_end(const Fd& socket);
  void add(std::uint64_t group, std::uint32_t rank, std::uint64_t endpoint, Process process);
  // True: it was the last; the job is forgotten.
  [[nodiscard]] bool remove(std::uint64_t group, std::uint64_t endpoint);
  [[nodiscard]] std::vector<std::uint64_t> groups() const;

  // By the job's number.
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;
  [[nodiscard]] bool knows(std::uint64_t job) const { return find(job) != nullptr; }
  [[nodiscard]] std::size_t ranks_here(std::uint64_t job) const;
  [[nodiscard]] std::vector<Host> hosts_of(std::uint64_t job) const;
  [[nodiscard]] std::vector<RankState> look(std::uint64_t job, const std::string& here) const; // as JobPart's
  void signal(std::uint64_t job, int number) const;        // its programs here
  [[nodiscard]] std::vector<control::JobRow> list() const; // as Jobs'

private:
  struct Program {
    std::uint32_t rank;
    std::uint64_t endpoint;
    Process process;
  };
  struct Running {
    Job job;
    std::uint64_t since_s;
    bool beginning = true;
    std::vector<Program> programs = {};
  };
  [[nodiscard]] const Running* find(std::uint64_t job) const;
  bool forget_if_over(std::uint64_t group);

  const Sessions& sessions_;
  std::map<std::uint64_t, Running> running_; // by group
};

} // namespace parc::daemon
