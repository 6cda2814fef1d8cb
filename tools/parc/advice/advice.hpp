// SPDX-License-Identifier: BSD-3-Clause
// What a traced run says of hiding (parc run --advise, parc mpi --advise): what a step would take otherwise,
// what limits it, and which line to change. The run is played again; what is said is what was measured, times
// the ratio of two replays.
#pragma once

#include "system/error.hpp"
#include "tools/parc/advice/predictions.hpp"
#include "tools/parc/talk/command.hpp"
#include "tools/parc/trace/trace.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace parc::tools {

struct AdviceOptions {
  std::string form;               // "text" or "json"; empty: no advice is asked for
  std::vector<std::string> links; // others, as for parc model --link

  [[nodiscard]] bool any() const { return !form.empty(); }
};

// What is wrong with them is known before anything runs.
[[nodiscard]] Result<void> check(const AdviceOptions& options);
void add_advice(CLI::App& app, AdviceOptions& options);

// On stderr: stdout is the program's. `at`: when early release would let waits return.
[[nodiscard]] Result<void> advise(const std::map<std::uint64_t, RankTrace>& ranks,
                                  const AdviceOptions& options, ReleaseAt at);

} // namespace parc::tools
