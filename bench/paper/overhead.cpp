// SPDX-License-Identifier: BSD-3-Clause
// Section 4.1: the overhead of equation (4) by its sources.
#include "bench/paper/paper_figures.hpp"
#include "bench/paper/table.hpp"

#include <fmt/ranges.h>

namespace parc::bench {

namespace {

constexpr std::size_t hidden_sizes[] = {8, 64 << 10};

struct Sources {
  double calls, switches, kernel, rest, whole; // seconds of one calculation
};

// What the calculation takes longer by itself is switches (a wait's delays no calculation; what interrupts
// one goes away and comes back) and the rest: interrupts of the network, and what it finds no more in its
// caches.
Sources split(const Figures& figures, const Figures& switched) {
  const double context_switch = switched.at("pipe message") - switched.at("its calls");
  Sources sources{.calls = figures.at("calls"),
                  .switches = 2 * figures.at("involuntary") * context_switch,
                  .kernel = figures.at("kernel"),
                  .rest = 0,
                  .whole = figures.at("calculation") + figures.at("calls") + figures.at("kernel")};
  sources.rest = figures.at("calculation") - sources.switches;
  return sources;
}

} // namespace

Result<void> measure_overhead(const Setting& setting, Table& table) {
  PARC_TRY(switched, by_one(setting, {"--role", "context-switch"}));
  PARC_TRY(kernels, start_kernels(setting));
  for (const std::size_t bytes : hidden_sizes) {
    PARC_TRY(figures, by_ranks(setting, {"--role", "hiding", "--sizes", std::to_string(bytes), "--kernel",
                                         std::to_string(kernels.process(0))}));
    const Sources sources = split(figures, switched);
    const std::string name =
        fmt::format("section 4.1, {}: {} each way, hidden", setting.network, size_text(bytes));
    const auto add = [&](const std::string& metric, const char* unit, double value) {
      table.add({name, metric, unit}, value);
    };
    add("t_calc", "ms", figures.at("t_calc") * 1e3);
    add("Omega: overhead of t_calc", "", sources.whole / figures.at("t_calc"));
    table.add({name, "overhead", "us", "SPARCstations, 1994"}, sources.whole * 1e6, paper_overhead_ms * 1e3);
    add("of it calls of the library", "us", sources.calls * 1e6);
    add("of it context switches", "us", sources.switches * 1e6);
    add("of it the kernel process (TCP, fragments)", "us", sources.kernel * 1e6);
    add("of it the rest", "us", sources.rest * 1e6);
    add("voluntary context switches", "", figures.at("voluntary"));
    add("involuntary context switches", "", figures.at("involuntary"));
  }
  kernels.stop();
  return success();
}

} // namespace parc::bench
