// SPDX-License-Identifier: BSD-3-Clause
// Links and machines as people name them to the model, or as parc probe has measured them.
#pragma once

#include "model/gain.hpp"
#include "system/error.hpp"

#include <string>

namespace parc::tools {

struct NamedLink {
  std::string name;
  model::Link link;
};
// NAME=ROUND-TRIP,RATE or ROUND-TRIP,RATE, as "wan=20ms,100mbit"; the rate may be unlimited. A message's
// startup is half a round trip.
[[nodiscard]] Result<NamedLink> parse_link(const std::string& text);
// What parc probe --json has printed.
[[nodiscard]] Result<NamedLink> read_probed_link(const std::string& file);

struct ModelMachine {
  std::string name;
  double gamma_h, omega;
};
// NAME=GAMMA,OMEGA or GAMMA,OMEGA, as "H1=5,0.2".
[[nodiscard]] Result<ModelMachine> parse_machine(const std::string& text);

struct GranularityRange {
  double least, most;
};
// 5, or 2:10.
[[nodiscard]] Result<GranularityRange> parse_granularity(const std::string& text);

// How many messages of a task follow one another: a number, sqrt (of the processors) or p (as many as they).
[[nodiscard]] Result<model::Messages> parse_messages(const std::string& text);

} // namespace parc::tools
