// SPDX-License-Identifier: BSD-3-Clause
// The PMIx server of a job of MPI programs on this host (pmix/): started before the ranks, which get from it
// what they need in their environment, and ended behind the last of them. It is a program of parc itself, in
// a job of all hosts' servers.
//
// It says on its standard output what it has to say to its kernel, a line each: variables NAME=VALUE, an
// empty line when ranks may start, and then "in RANK" when one is one of MPI's, "out RANK" when it is none
// any more, "abort RANK STATUS" when one wants the job to end so, and "spawn" (pmix/spawns.hpp), with texts
// behind the line. What its kernel tells it are lines, too. Invariant: its directory is there as long as this
// is.
#pragma once

#include "daemon/base/event.hpp"
#include "daemon/job/rank_input.hpp"
#include "daemon/process/start_process.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace parc::daemon {

class MpiServer {
public:
  struct Spawn {
    std::int32_t token;
    std::vector<std::uint64_t> apps; // as parse_mpi_spawn() takes them, and
    std::string texts;
  };
  struct Events { // it may go in none of them
    std::function<void(std::vector<std::string> variables)> ready;
    std::function<void(std::int32_t rank, int status)> aborted;
    std::function<void(const Spawn&)> spawn;
    std::function<void(std::string why)> ended; // its process has, whoever ended it
  };
  // What it is told: the variables of a rank among servers, and which ranks the job has where.
  struct Job {
    std::vector<std::string> variables;
    std::size_t ranks;
    std::vector<std::uint32_t> apps = {}; // where there are several: their first ranks
    std::string hosts;                    // of the ranks (control/words/host_words.hpp)
    std::string host;                     // this one
  };

  // `directory`: to be made. The ends of its session's pipes are left to the caller.
  struct Started {
    std::unique_ptr<MpiServer> server;
    Fd from_program, to_program;
  };
  [[nodiscard]] static Result<Started> start(event_base* loop, const Processes& processes, Program program,
                                             const std::string& directory, Job job, Events events);
  MpiServer(event_base* loop, const Processes& processes, Program program, StartedProcess& process,
            std::string directory, std::string host, Events events);
  MpiServer(const MpiServer&) = delete;
  MpiServer& operator=(const MpiServer&) = delete;
  ~MpiServer();

  [[nodiscard]] bool alive() const { return static_cast<bool>(process_); }
  [[nodiscard]] pid_t id() const { return id_; }
  void kill();
  void tell(std::string_view lines);
  // Has begun with MPI, and not finished with it: the others would wait for it for ever. Of a rank that has
  // ended.
  [[nodiscard]] bool is_missed(std::int32_t rank);

private:
  void process_ended();
  bool read_output(); // whether there was anything
  bool read_errors();
  bool hear_next(); // whether there was something whole
  void hear(std::string_view line);

  const Processes& processes_;
  const pid_t id_;
  const std::string directory_, host_;
  const Events events_;
  Fd process_, report_, output_, errors_;
  const Program program_; // as it was started: why it was not
  Event ended_, said_, complained_;
  RankInput input_;
  std::string line_; // that is not whole yet
  struct SpawnLine {
    Spawn spawn;
    std::size_t bytes; // that follow it
  };
  std::optional<SpawnLine> spawn_;
  std::vector<std::string> variables_; // until it is ready
  bool ready_ = false;
  std::set<std::int32_t> in_mpi_; // ranks
  std::string complaints_;        // the last of them
};

} // namespace parc::daemon
