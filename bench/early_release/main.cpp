// SPDX-License-Identifier: BSD-3-Clause
// Early release (erMPI 2005): what guarding pages costs (table 2), and what the paper's three programs gain
// by it (figure 4) on an emulated link, beside the same programs blocking and beside what their data
// dependences and the causality gate allow. The bench starts itself over inside an emulation of as many hosts
// as there are ranks.
#include "bench/early_release/programs.hpp"
#include "bench/figures/bench.hpp"

#include <filesystem>

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench("bench-early-release",
              "Early release: the cost of guards, and the gain of erMPI's programs on an emulated link.");
  Options options;
  std::string preset = "wan";
  std::size_t ranks = 2;
  describe(bench, options);
  bench.add_option("--preset", preset, "The link, as in wanlink(1)")
      ->check(CLI::IsMember({"metro", "wan", "gigabit"}))
      ->capture_default_str();
  bench.add_option("--ranks", ranks, "Ranks, each on a host of its own")
      ->check(CLI::Range(2, 8))
      ->capture_default_str();
  std::string picture;
  bench.add_option("--picture", picture, "Draw the programs' rows to this SVG file");
  bench.begin(argc, argv);
  const auto measure = [&](const Hosts& hosts) -> parc::Result<std::vector<Row>> {
    PARC_TRY(rows, measure_guards(options.repeats));
    PARC_TRY(programs, measure_programs(hosts, preset, options.repeats));
    if (!picture.empty()) {
      PARC_TRY(draw_programs(programs, std::filesystem::absolute(picture).string()));
    }
    rows.insert(rows.end(), programs.begin(), programs.end());
    return rows;
  };
  return bench.measure({.preset = preset, .hosts = ranks}, options, measure);
}
