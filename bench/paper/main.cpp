// SPDX-License-Identifier: BSD-3-Clause
// The measurements of the report of 1994 (sections 3.1, 3.2.2 and 4.1), beside what its machines needed: on
// two hosts on loopback, or on those of an emulated network. Started by hand it starts itself in the roles
// that measure.
#include "bench/paper/table.hpp"

#include <algorithm>
#include <iostream>

namespace parc::bench {
namespace {

struct Part {
  std::string name;
  Result<void> (*measure)(const Setting&, Table&);
  bool of_network = true; // else of one host, whichever network there is
};
const Part parts[] = {{"table1", measure_table_1, false}, {"figure16", measure_figure_16, false},
                      {"figure10", measure_figure_10},    {"figure11", measure_figure_11},
                      {"stalls", measure_stalls},         {"figure18", measure_figure_18},
                      {"table2", measure_table_2},        {"figure19", measure_figure_19},
                      {"overhead", measure_overhead}};

struct Selection : Options {
  std::vector<std::string> only;
  std::string preset;
  std::string role; // of those below
  Sizes sizes;
  Endpoint where;
  pid_t kernel = 0;
};

Result<Figures> measure_as(const Selection& options) {
  const std::string& role = options.role;
  if (role == "synchronizations") return synchronizations(options.sizes);
  if (role == "context-switch") return context_switch();
  if (role == "direct") return direct(options.sizes, options.where);
  if (role == "buffering") return buffering(options.where);
  if (role == "fragmentation") return fragmentation(options.where);
  if (role == "delayed-writes") return delayed_writes(options.where);
  if (role == "zero-window") return zero_window(options.where);
  if (role == "lathide") return lathide(options.sizes);
  if (role == "hiding" && options.sizes.size() == 1) return hiding(options.sizes[0], options.kernel);
  return error(EINVAL, "there is no role \"{}\"", role);
}

Result<void> be(const Selection& options) {
  PARC_TRY(figures, measure_as(options));
  if (!figures.empty()) std::cout << Json(figures).dump() << '\n';
  return success();
}

bool selected(const Part& part, const Selection& options) {
  if (options.only.empty()) return part.of_network || options.preset.empty();
  return std::ranges::find(options.only, part.name) != options.only.end();
}

Result<std::vector<Row>> measure(const Hosts& hosts, const Selection& options) {
  const Setting setting{hosts, options.preset.empty() ? "loopback" : options.preset};
  Table table;
  for (int repeat = 0; repeat < options.repeats; ++repeat)
    for (const Part& part : parts) {
      if (!selected(part, options)) continue;
      std::cerr << fmt::format("{}, repeat {} of {}\n", part.name, repeat + 1, options.repeats);
      PARC_TRY(part.measure(setting, table));
    }
  return table.rows();
}

std::vector<std::string> names_of_parts() {
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.name);
  return names;
}

void describe_roles(Bench& bench, Selection& options) {
  bench.add_option("--role", options.role)->group("");
  bench.add_option("--sizes", options.sizes)->delimiter(',')->group("");
  bench.add_option("--port", options.where.port)->group("");
  bench.add_option("--peer", options.where.peer)->group("");
  bench.add_option("--kernel", options.kernel)->group("");
}

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench("bench-paper",
              "The measurements of the report of 1994 on this machine, beside those of its machines.");
  Selection options;
  describe(bench, options);
  bench.add_option("--only", options.only, "Only this table, figure or section; may be repeated")
      ->check(CLI::IsMember(names_of_parts()));
  bench.add_option("--preset", options.preset, "On an emulated network of wanlink's, not on loopback")
      ->option_text("NAME");
  describe_roles(bench, options);
  bench.begin(argc, argv);
  if (!options.role.empty()) return bench.end(be(options));
  return bench.measure({.preset = options.preset, .kernels = false}, options,
                       [&](const Hosts& hosts) { return measure(hosts, options); });
}
