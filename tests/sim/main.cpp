// SPDX-License-Identifier: BSD-3-Clause
// sim: runs seeds of the simulation. A failing seed is printed and replays exactly with --seed.
#include "tests/sim/world.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fmt/core.h>

int main(int argc, char** argv) {
  parc::sim::Options options;
  std::uint64_t from = 1, seeds = 1000, seed = 0, failed = 0, seconds = 0;
  bool keep_going = false;
  CLI::App app("Several protocol engines with simulated programs over a simulated network, from one seed.");
  app.add_option("--seed", seed, "Replay this one, and say what happens");
  app.add_option("--from", from, "The first seed");
  app.add_option("--seeds", seeds, "How many");
  app.add_option("--new-for", seconds, "Seeds that nobody has run yet, for so many seconds");
  app.add_option("--steps", options.steps, "Turns of a kernel per seed");
  app.add_flag("--keep-going", keep_going, "Run the others when one has failed");
  app.add_flag("--hostile", options.hostile, "One host's trains are changed on their way");
  CLI11_PARSE(app, argc, argv);
  options.trace = seed != 0;
  if (seed != 0) from = seed, seeds = 1;

  const auto begin = std::chrono::steady_clock::now();
  if (seconds != 0) {
    from = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    seeds = ~std::uint64_t{0} - from;
    fmt::print("seeds from {}\n", from);
  }
  parc::sim::Tally sum;
  std::uint64_t done = 0;
  for (options.seed = from; options.seed < from + seeds; ++options.seed, ++done) {
    if (seconds != 0 && std::chrono::steady_clock::now() - begin >= std::chrono::seconds(seconds)) break;
    try {
      parc::sim::World world(options);
      world.run();
      const parc::sim::Tally& t = world.tally();
      sum.messages += t.messages, sum.bytes += t.bytes, sum.matched += t.matched,
          sum.truncated += t.truncated;
      sum.canceled += t.canceled, sum.lost += t.lost, sum.refusals += t.refusals;
      sum.gated += t.gated, sum.claimed += t.claimed, sum.carriers += t.carriers;
    } catch (const parc::sim::Violation& violation) {
      fmt::print(stderr, "seed {} failed: {}\nreplay it with: sim --seed {} --steps {}{}\n", options.seed,
                 violation.what(), options.seed, options.steps, options.hostile ? " --hostile" : "");
      ++failed;
      if (!keep_going) break;
    }
  }
  if (failed != 0) return 1;
  fmt::print(
      "{} seeds: {} messages, {} matched ({} behind a gate, {} claimed), {} bytes compared, {} truncated, {} "
      "canceled, {} lost to departures, {} carriers followed others, {} refusals\n",
      done, sum.messages, sum.matched, sum.gated, sum.claimed, sum.bytes, sum.truncated, sum.canceled,
      sum.lost, sum.carriers, sum.refusals);
  const bool covered = sum.matched != 0 && sum.bytes != 0 &&
                       (done < 100 || (sum.canceled != 0 && sum.lost != 0 && sum.gated != 0 &&
                                       sum.claimed != 0 && sum.carriers != 0)) &&
                       (!options.hostile || done < 100 || sum.refusals != 0);
  if (!covered) fmt::print(stderr, "the seeds did not cover what they are for\n");
  return covered ? 0 : 1;
}
