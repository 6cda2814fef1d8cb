// SPDX-License-Identifier: BSD-3-Clause
// The heat equation on two emulated hosts 20 ms apart, its borders exchanged behind the calculation (I.3):
// does a step take no longer than the longer of both, and what does the calculation pay for it? The demo's
// measurement with its scenes for these questions; the bench starts itself over inside the emulation.
#include "bench/figures/bench.hpp"
#include "bench/heat/measure.hpp"

#include <iostream>

namespace parc::bench {
namespace {

constexpr char hidden[] = "I.3";
constexpr std::size_t columns = 64; // a border is a small part of the calculation

struct Selection : Options {
  std::vector<std::size_t> halos = {800000, 80000, 8000};
};

// One halo: a long one at the granularity that hides it well, short ones at several, and in both classes.
heat::demo::Scene scene_of(std::size_t halo, int repeats) {
  heat::demo::Scene scene;
  scene.variants = {"I.1", hidden}; // the demo's rows stand beside I.1
  scene.repeats = repeats;
  const std::size_t points = halo / sizeof(double);
  if (halo >= 800000) {
    scene.granularities.push_back({points, columns, 1.65, false}); // t_calc about 130 ms
  } else {
    for (const double gamma : {0.25, 0.5, 1.0, 1.6, 4.0})
      scene.granularities.push_back({points, columns, gamma, true});
  }
  return scene;
}

std::string describe(const heat::demo::Row& row) {
  return fmt::format("wan, {} bytes, t_calc {:.1f} ms, t_com {:.1f} ms, {} kernels{}", row.halo_bytes,
                     row.t_calc_ms, row.t_com_ms, *row.realtime ? "real-time" : "normal",
                     row.relay_late == true ? ", relay late" : "");
}

void append_rows(const heat::demo::Row& row, std::vector<Row>& rows) {
  const bool is_long = row.halo_bytes >= 800000;
  const std::string name = describe(row);
  rows.push_back({name,
                  "step of I.3",
                  "ms",
                  "max(t_calc beside, t_com)",
                  is_long         ? "<= 1.04"
                  : *row.realtime ? "<= 1.05"
                                  : "<= 1.12",
                  row.steps_ms,
                  {std::max(row.t_calc_beside_ms, row.t_com_ms)}});
  rows.push_back({name,
                  "t_calc beside the exchange",
                  "ms",
                  "t_calc alone",
                  is_long ? "<= 1.06" : "",
                  row.calculations_ms,
                  {row.t_calc_ms}});
}

Result<std::vector<Row>> measure(const Hosts& hosts, const Selection& options) {
  std::vector<Row> rows;
  for (const std::size_t halo : options.halos) {
    heat::demo::Progress progress;
    PARC_TRY(results, heat::demo::measure(scene_of(halo, options.repeats), hosts, progress));
    progress.clear();
    std::cerr << results.note;
    for (const heat::demo::Row& row : results.rows) {
      if (!row.correct) return error(EDOM, "{}: {} is not right", describe(row), row.variant);
      if (row.variant == hidden) append_rows(row, rows);
    }
    rows.push_back({.name = fmt::format("wan, {} bytes", halo),
                    .metric = "relay while jobs ran",
                    .unit = "cores",
                    .parc = {results.relay_cpu}});
  }
  return rows;
}

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench("bench-wan",
              "Communication hidden behind calculation on an emulated link of 20 ms and 100 Mbit/s.");
  Selection options;
  describe(bench, options);
  bench.add_option("--halo", options.halos, "Only this halo, in bytes; may be repeated")
      ->capture_default_str();
  bench.begin(argc, argv);
  return bench.measure({.preset = "wan", .kernels = false}, options,
                       [&](const Hosts& hosts) { return measure(hosts, options); });
}
