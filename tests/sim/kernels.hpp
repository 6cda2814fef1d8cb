// SPDX-License-Identifier: BSD-3-Clause
// Some hosts with their whole kernels, in one process and in virtual time: jobs are asked for, their ranks
// are played, connections break at random bytes, hosts are kept apart for a moment or until they are given
// up, and kernels die, stop and come back. The same seed gives the same run.
//
// The oracle: a session is lost only where hosts were apart for long or a kernel ended; each job ends, with a
// status that its ranks, its tool and what was lost allow; where nothing was lost, what its ranks have
// written is there to the last byte. When everything rests, nothing is left of any job.
#pragma once

#include "daemon/kernel.hpp"
#include "tests/sim/faulty_network.hpp"
#include "tests/sim/played_rank.hpp"
#include "tests/sim/played_tool.hpp"
#include "tests/sim/random.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace parc::sim {

struct KernelsTally { // what the runs have covered
  std::uint64_t jobs = 0, good = 0, failed = 0, troubled = 0, dumps = 0, ranks = 0, messages = 0, output = 0;
  std::uint64_t breaks = 0, partings = 0, deaths = 0, stops = 0, sessions_lost = 0;
};

class Kernels {
public:
  Kernels(std::uint64_t seed, bool trace, KernelsTally& tally);
  ~Kernels();
  void run(); // throws Violation

private:
  using Pair = std::pair<std::size_t, std::size_t>; // of hosts, the smaller one first
  struct Link {                                     // of a kernel, as long as it is open
    std::size_t host;                               // to this one
    std::uint32_t identity;                         // of its kernel, the low half
    Loop::Time since;
  };
  struct Host {
    std::string name;
    daemon::Address address;
    std::uint64_t identity = 0;
    Predecessors predecessors{};
    std::unique_ptr<daemon::Kernel> kernel; // none: it is down
    bool stopping = false;
    std::map<std::uint32_t, Link> links; // by index
  };

  // How the world goes on.
  bool go_round();
  bool go_round(std::size_t host);
  void see_links(std::size_t host);
  void wait();
  void plan(std::uint64_t at_most_us, std::function<void()> what);
  void say(const std::string& what) const;

  // What happens.
  void start_kernel(std::size_t host);
  void kernel_ended(std::size_t host);
  void end_kernel();
  void part_hosts();
  void ask_for_job();
  void ask_for_dump();
  void tool_acts(PlayedTool& tool);
  [[nodiscard]] Part any_part(bool nice, unsigned rounds);
  Result<daemon::StartedProcess> start_process(std::size_t host, const Program& program,
                                               const std::vector<std::string>& variables);

  // The oracle.
  void excuse(std::size_t a, std::size_t b); // that they lose each other from here on
  void trouble(std::size_t a, std::size_t b);
  [[nodiscard]] bool of_one_mind(std::size_t a, std::size_t b) const; // whether they have a session
  [[nodiscard]] bool linked(std::size_t from, std::size_t to) const;
  void judge(const PlayedTool& tool);
  void judge_output(const PlayedTool& tool);
  [[nodiscard]] std::set<int> failures(const PlayedTool& tool) const; // that are its ranks' own
  [[nodiscard]] std::string what_is_left();

  std::uint64_t seed_;
  bool trace_;
  KernelsTally& tally_;
  Random random_;
  FaultyNetwork network_;
  std::vector<Host> hosts_;
  std::map<std::uint32_t, std::size_t> identities_; // low halves of all that there were
  std::set<Pair> apart_for_long_;
  std::map<Pair, Loop::Time> excused_;             // last
  std::vector<std::unique_ptr<PlayedRank>> ranks_; // by process number, from first_process on
  std::vector<std::unique_ptr<PlayedTool>> tools_;
  std::multimap<Loop::Time, std::function<void()>> events_;
};

} // namespace parc::sim
