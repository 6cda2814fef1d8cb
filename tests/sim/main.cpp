// SPDX-License-Identifier: BSD-3-Clause
// sim: runs seeds of the simulation of engines.
#include "tests/sim/seeds.hpp"
#include "tests/sim/world.hpp"

int main(int argc, char** argv) {
  parc::sim::Options options;
  CLI::App app("Several protocol engines with simulated programs over a simulated network, from one seed.");
  parc::sim::Seeds seeds(app);
  app.add_option("--steps", options.steps, "Turns of a kernel per seed");
  app.add_flag("--hostile", options.hostile, "One host's trains are changed on their way");
  CLI11_PARSE(app, argc, argv);
  options.trace = seeds.one();

  parc::sim::Tally sum;
  const std::string replay =
      fmt::format("sim --steps {}{}", options.steps, options.hostile ? " --hostile" : "");
  const bool good = seeds.run(replay, [&](std::uint64_t seed) {
    options.seed = seed;
    parc::sim::World world(options);
    world.run();
    const parc::sim::Tally& t = world.tally();
    sum.messages += t.messages, sum.bytes += t.bytes, sum.matched += t.matched, sum.truncated += t.truncated;
    sum.canceled += t.canceled, sum.lost += t.lost, sum.refusals += t.refusals;
    sum.gated += t.gated, sum.claimed += t.claimed, sum.taken += t.taken, sum.carriers += t.carriers,
        sum.held += t.held, sum.late += t.late, sum.subflows += t.subflows, sum.doubted += t.doubted;
    sum.gets += t.gets, sum.bytes_got += t.bytes_got, sum.places_refused += t.places_refused;
    sum.adds += t.adds, sum.puts += t.puts, sum.bytes_put += t.bytes_put, sum.between += t.between;
  });
  if (!good) return 1;
  fmt::print(
      "{} seeds: {} messages, {} matched ({} behind a gate, {} claimed), {} bytes compared, {} truncated, {} "
      "canceled, {} reads taken by libraries, {} lost to departures, {} carriers followed others, {} looks "
      "at writes without a place, {} late writes, {} subflows ended, {} doubted, {} times bytes between "
      "others, {} gets of {} bytes, {} puts of {}, {} of them all refused, {} additions, {} refusals\n",
      seeds.done(), sum.messages, sum.matched, sum.gated, sum.claimed, sum.bytes, sum.truncated, sum.canceled,
      sum.taken, sum.lost, sum.carriers, sum.held, sum.late, sum.subflows, sum.doubted, sum.between, sum.gets,
      sum.bytes_got, sum.puts, sum.bytes_put, sum.places_refused, sum.adds, sum.refusals);
  const bool few = seeds.done() < 100;
  const bool covered =
      sum.matched != 0 && sum.bytes != 0 &&
      (few || (sum.canceled != 0 && sum.lost != 0 && sum.gated != 0 && sum.claimed != 0 && sum.taken != 0 &&
               sum.carriers != 0 && sum.held != 0 && sum.late != 0 && sum.subflows != 0 && sum.doubted != 0 &&
               sum.between != 0 && sum.bytes_got != 0 && sum.bytes_put != 0 && sum.places_refused != 0)) &&
      (!options.hostile || few || sum.refusals != 0);
  if (!covered) fmt::print(stderr, "the seeds did not cover what they are for\n");
  return covered ? 0 : 1;
}
