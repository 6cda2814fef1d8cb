// SPDX-License-Identifier: BSD-3-Clause
// What a step of a traced run would take otherwise. Pure.
#pragma once

#include "tools/parc/advice/traced_run.hpp"
#include "tools/parc/model/links.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace parc::tools {

struct Prediction {
  std::string key;  // of JSON
  std::string what; // for people
  double step;      // s
};

struct LinePrediction {
  std::uint32_t place;
  double step; // where this one's waits alone stand at the first touches
};

enum class Limit : std::uint8_t { calculation, latency, bandwidth };

struct Predictions {
  double replayed = 0; // the run as it was: what the replay takes for a step
  bool stuck = false;  // and it did not come to its end
  double hidden = 0, released = 0, best = 0, calculation = 0, messages = 0;
  std::vector<Prediction> others;    // streams, links
  std::vector<LinePrediction> lines; // the one that brings the most first
  Limit limit = Limit::calculation;
  double without_limit = 0; // a step, if that were not
};

// When early release lets a wait return: at once, or when its message has begun, as MPI's are.
enum class ReleaseAt : std::uint8_t { once, beginning };

[[nodiscard]] Predictions predict(const TracedRun& traced, const std::vector<NamedLink>& links, ReleaseAt at);

} // namespace parc::tools
