// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/options.hpp"
#include "bench/heat/hosts.hpp"

#include <filesystem>

namespace parc::heat::demo {

namespace {

constexpr std::size_t usual_columns = 64; // a border is a small part of the calculation
constexpr double quick_seconds = 45;      // leaves a few for the pictures

const std::vector<std::string> all_variants = {"I.1", "I.2", "I.2-nocopy", "I.1-early", "I.1-early-towards",
                                               "I.3"};
const std::vector<std::string> quick_variants = {"I.1", "I.2", "I.1-early", "I.1-early-towards", "I.3"};

Scene scene_of(const Options& options, std::string preset, std::vector<std::string> variants) {
  Scene scene;
  scene.preset = std::move(preset);
  scene.rtt = options.rtt;
  scene.rate = options.rate;
  scene.ranks = options.ranks;
  scene.steps = options.steps;
  scene.variants = std::move(variants);
  scene.asleep = options.asleep;
  return scene;
}

void add(Scene& scene, const Options& options, std::size_t points, const std::vector<double>& gammas,
         bool both_classes) {
  const std::size_t columns = options.columns ? options.columns : usual_columns;
  for (const double gamma : gammas) scene.granularities.push_back({points, columns, gamma, both_classes});
}

Scene usual_scene(const Options& options) {
  Scene scene = scene_of(options, options.preset, all_variants);
  const std::vector<double> gammas = {0.1, 0.25, 0.5, 1, 1.6, 4};
  if (options.points) {
    add(scene, options, options.points, gammas, true);
  } else {
    add(scene, options, 1000, gammas, true);
    add(scene, options, 10000, gammas, true);
    add(scene, options, 100000, gammas, false);
  }
  return scene;
}

Scene quick_scene(const Options& options) {
  Scene scene = scene_of(options, options.preset, quick_variants);
  scene.repeats = 1;
  scene.seconds = quick_seconds;
  if (options.points) {
    add(scene, options, options.points, {0.25, 1, 4}, false);
  } else {
    add(scene, options, 10000, {0.25, 1, 4}, false);
    add(scene, options, 100000, {1.6}, false);
  }
  return scene;
}

// The software granularity of the paper is the number of columns of a processor over `unit`. Its machines had
// t_calc = t_com somewhere in the middle of the figures; so do we, by the work.
Scene paper_scene(const Options& options, const std::string& preset, std::size_t points, int socket_buffer,
                  std::size_t unit, const std::vector<std::size_t>& granularities, std::size_t middle,
                  std::vector<std::string> variants) {
  Scene scene = scene_of(options, preset, std::move(variants));
  scene.socket_buffer = socket_buffer;
  if (!scene.steps) scene.steps = 16; // thrice: the spread is worth more than longer runs
  for (const std::size_t granularity : granularities)
    scene.granularities.push_back(
        {points, unit * granularity, static_cast<double>(granularity) / static_cast<double>(middle), false});
  return scene;
}

} // namespace

void describe(CLI::App& app, Options& options) {
  options.directory = std::filesystem::path(program("../../demo")).lexically_normal(); // build/demo
  auto* quick = app.add_flag("--quick", options.quick, "A few cases, within a minute");
  app.add_flag("--paper", options.paper, "The settings of figures 21 to 23 of the paper; takes about an hour")
      ->excludes(quick);
  app.add_option("--preset", options.preset, "Link between the hosts, as in wanlink(1)")
      ->capture_default_str();
  app.add_option("--rtt", options.rtt, "Round trip in place of the preset's, such as 50ms");
  app.add_option("--rate", options.rate, "Rate in place of the preset's, such as 10mbit");
  app.add_option("--nx", options.columns, "Columns of each rank")->check(CLI::Range(2, 1 << 20));
  app.add_option("--ny", options.points, "Points of a column: a halo is 8 times as many bytes")
      ->check(CLI::Range(3, 1 << 26));
  app.add_option("--steps", options.steps, "Timed steps of each run")->check(CLI::Range(1, 1 << 20));
  app.add_option("--ranks", options.ranks, "Ranks, each on a host of its own")
      ->check(CLI::Range(2, 26))
      ->capture_default_str();
  app.add_flag("--asleep", options.asleep,
               "Ranks sleep for as long as they would calculate: where cores are shared with others");
  app.add_option("--json", options.json, "Write every figure to this file");
  app.add_option("--out", options.directory, "Directory for the table of all cases and the pictures")
      ->capture_default_str();
  app.add_option("--scene", options.scene_file)->group("");
  app.add_option("--results", options.results_file)->group("");
}

std::vector<Scene> make_scenes(const Options& options) {
  if (!options.paper) return {options.quick ? quick_scene(options) : usual_scene(options)};
  const std::vector<std::size_t> internet = {5, 10, 20, 30, 60, 120};
  const std::vector<std::string> hiding = {"I.1", "I.3"};
  return {paper_scene(options, "internet-1994", 500, 4 << 10, 5, internet, 30, all_variants),
          paper_scene(options, "internet-1994", 1000, 4 << 10, 5, internet, 30, all_variants),
          paper_scene(options, "ethernet-1994", 100000, 32 << 10, 3, {1, 2, 3, 4, 5}, 3, hiding)};
}

} // namespace parc::heat::demo
