// SPDX-License-Identifier: BSD-3-Clause
// What the user of the demo can choose, and the scenes that follow from it.
#pragma once

#include "bench/heat/scene.hpp"

#include <CLI/CLI.hpp>

namespace parc::heat::demo {

struct Options {
  bool quick = false;
  bool paper = false;
  bool asleep = false; // ranks, for as long as they would calculate
  std::string preset = "wan";
  std::string rtt, rate;
  std::size_t columns = 0; // 0: as the scenes have it
  std::size_t points = 0;
  int steps = 0;
  std::size_t ranks = 2;
  std::string json;
  std::string directory; // for the pictures

  // The part that runs inside an emulation: measures this scene and writes its results.
  std::string scene_file, results_file;
};

void describe(CLI::App& app, Options& options);
[[nodiscard]] std::vector<Scene> make_scenes(const Options& options);

} // namespace parc::heat::demo
