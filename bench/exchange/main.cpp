// SPDX-License-Identifier: BSD-3-Clause
// Two hosts send each other messages at the same time (figure 20 of the paper): does parc use both directions
// of the link, as a program over plain sockets does only when it interleaves them by hand? And what do the
// lengths of fragments and socket buffers do to it (figures 11 and 20), and a large message to a small one?
//
// The bench starts itself over inside an emulation; on its hosts it is the two sides of each pattern.
#include "bench/exchange/patterns.hpp"
#include "bench/exchange/tables.hpp"
#include "bench/figures/bench.hpp"

#include <iostream>

namespace parc::bench {
namespace {

struct Roles : Options {
  std::vector<std::string> parts = {"exchange", "sweep", "interference"};
  std::string pattern;
  Sizes sizes;
  Times times;
  Endpoint where;
};

Result<void> be_a_side(const Roles& roles) {
  if (roles.pattern.starts_with("small-beside-bulk")) {
    const std::size_t bulk = roles.sizes.at(0);
    PARC_TRY(delays, roles.pattern.ends_with("-plain") ? small_beside_bulk(bulk, roles.where)
                                                       : small_beside_bulk(bulk));
    if (!delays.alone.empty()) std::cout << Json(delays).dump() << '\n';
    return success();
  }
  PARC_TRY(seconds, roles.pattern == "exchange"    ? exchange(roles.sizes, roles.times)
                    : roles.pattern == "one-way"   ? one_way(roles.sizes, roles.times)
                    : roles.pattern == "ping-pong" ? ping_pong(roles.sizes, roles.times, roles.where)
                                                   : full_duplex(roles.sizes, roles.times, roles.where));
  std::cout << Json(seconds).dump() << '\n';
  return success();
}

Result<std::vector<Row>> measure(const Hosts& hosts, const Roles& options) {
  std::vector<Row> all;
  for (const std::string& part : options.parts) {
    PARC_TRY(rows, part == "exchange" ? measure_exchange(hosts, options.repeats)
                   : part == "sweep"  ? measure_sweep(hosts, options.repeats)
                                      : measure_interference(hosts, options.repeats));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench(
      "bench-exchange",
      "Messages both ways at once on an emulated link of 1 Gbit/s, over parc and over plain sockets.");
  Roles options;
  describe(bench, options);
  bench
      .add_option("--part", options.parts, "Only this part: exchange, sweep or interference; may be repeated")
      ->check(CLI::IsMember({"exchange", "sweep", "interference"}));
  bench.add_option("--pattern", options.pattern)->group("");
  bench.add_option("--sizes", options.sizes)->delimiter(',')->group("");
  bench.add_option("--volume", options.times.volume)->group("");
  bench.add_option("--buffer", options.where.buffer)->group("");
  bench.add_option("--peer", options.where.peer)->group("");
  bench.begin(argc, argv);
  if (!options.pattern.empty()) return bench.end(be_a_side(options));
  return bench.measure({.preset = "gigabit", .kernels = false}, options,
                       [&](const Hosts& hosts) { return measure(hosts, options); });
}
