// SPDX-License-Identifier: BSD-3-Clause
// Early release (erMPI 2005): what guarding pages costs (table 2), and what the paper's three programs gain
// by it (figure 4) on an emulated link, beside the same programs blocking and beside what their data
// dependences and the causality gate allow. The bench starts itself over inside an emulation of as many hosts
// as there are ranks.
#include "bench/early_release/programs.hpp"
#include "system/standard_streams.hpp"

#include <filesystem>

int main(int argc, char** argv) {
  parc::open_standard_streams();
  using namespace parc::bench;
  CLI::App app("Early release: the cost of guards, and the gain of erMPI's programs on an emulated link.",
               "bench-early-release");
  Options options;
  std::string preset = "wan";
  std::size_t ranks = 2;
  describe(app, options);
  app.add_option("--preset", preset, "The link, as in wanlink(1)")
      ->check(CLI::IsMember({"metro", "wan", "gigabit"}))
      ->capture_default_str();
  app.add_option("--ranks", ranks, "Ranks, each on a host of its own")
      ->check(CLI::Range(2, 8))
      ->capture_default_str();
  std::string picture;
  app.add_option("--picture", picture, "Draw the programs' rows to this SVG file");
  CLI11_PARSE(app, argc, argv);
  constexpr auto bench = "bench-early-release";
  if (const auto entered = enter_emulation(preset, argv, ranks); !entered) return end(bench, entered);
  catch_interrupts();
  const auto measured = [&]() -> parc::Result<void> {
    PARC_TRY(hosts, Hosts::of_emulation(ranks));
    PARC_TRY(network, network_of(hosts));
    PARC_TRY(kernels, Kernels::start(hosts, {}));
    [[maybe_unused]] const auto& running = kernels;
    PARC_TRY(rows, measure_guards(options.repeats));
    PARC_TRY(programs, measure_programs(hosts, preset, options.repeats));
    if (!picture.empty()) {
      PARC_TRY(draw_programs(programs, std::filesystem::absolute(picture).string()));
    }
    rows.insert(rows.end(), programs.begin(), programs.end());
    return show("early release", options, network, rows);
  };
  return end(bench, measured());
}
