// SPDX-License-Identifier: BSD-3-Clause
// sim_kernels: runs seeds of the simulation of whole kernels and their jobs.
#include "tests/sim/kernels.hpp"
#include "tests/sim/seeds.hpp"

#include <csignal>
#include <spdlog/spdlog.h>

int main(int argc, char** argv) {
  CLI::App app("Several kernels with jobs whose ranks are played, over a simulated network, from one seed.");
  parc::sim::Seeds seeds(app);
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(seeds.one() ? spdlog::level::info
                                : spdlog::level::off); // outages are what this is made of
  std::signal(SIGPIPE, SIG_IGN);

  parc::sim::KernelsTally sum;
  const bool good = seeds.run("sim_kernels", [&](std::uint64_t seed) {
    parc::sim::Kernels kernels(seed, seeds.one(), sum);
    kernels.run();
  });
  if (!good) return 1;
  fmt::print(
      "{} seeds: {} jobs ({} ended well, {} failed; {} were in trouble), {} dumps, {} ranks, {} messages, "
      "{} bytes of output; {} connections broke, hosts were apart {} times, {} kernels died, {} stopped, "
      "{} sessions were lost\n",
      seeds.done(), sum.jobs, sum.good, sum.failed, sum.troubled, sum.dumps, sum.ranks, sum.messages,
      sum.output, sum.breaks, sum.partings, sum.deaths, sum.stops, sum.sessions_lost);
  const bool covered =
      seeds.done() < 100 || (sum.good != 0 && sum.failed != 0 && sum.troubled != 0 && sum.dumps != 0 &&
                             sum.messages != 0 && sum.output != 0 && sum.breaks != 0 && sum.partings != 0 &&
                             sum.deaths != 0 && sum.stops != 0 && sum.sessions_lost != 0);
  if (!covered) fmt::print(stderr, "the seeds did not cover what they are for\n");
  return covered ? 0 : 1;
}
