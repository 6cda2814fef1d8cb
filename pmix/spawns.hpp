// SPDX-License-Identifier: BSD-3-Clause
// What ranks spawn: the kernel is asked for each such job, and says what has become of it.
//
//   spawn TOKEN BYTES RANKS ARGUMENTS VARIABLES ...   three numbers a program, and behind the line so many
//                         bytes: texts with a zero behind each, namely of each program the hosts (or
//                         nothing), as many arguments, the directory, as many variables
//   spawned TOKEN JOB     all ranks run
//   unspawned TOKEN       they do not, nor will they; parc run says why
//
// Threads: that of the messenger.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace parc::pmix {

struct SpawnedProgram {
  std::uint32_t ranks = 0;
  std::string hosts; // as parc run --hosts has them; empty: those of its job
  std::vector<std::string> arguments;
  std::string directory;
  std::vector<std::string> variables;
};

class Spawns {
public:
  using Answer = std::function<void(int status, const std::string& job)>; // status of PMIx, and its name

  void spawn(const std::vector<SpawnedProgram>& programs, Answer answer);
  void spawned(std::uint64_t token, const std::string& job);
  void not_spawned(std::uint64_t token);

private:
  std::map<std::uint64_t, Answer> answers_; // by token
  std::uint64_t last_token_ = 0;
};

// A line to the kernel, and what belongs to it, at once. Threads: any.
void say(std::string_view text);

} // namespace parc::pmix
