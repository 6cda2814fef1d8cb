// SPDX-License-Identifier: BSD-3-Clause
// bench-report FILE...: what benches wrote with --json, as one Markdown table, and under it the machines that
// it was measured on.
#include "bench/figures/bench.hpp"
#include "system/observe/machine.hpp"

#include <fmt/ranges.h>
#include <fstream>
#include <iostream>

namespace parc::bench {
namespace {

Result<Json> read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return system_error("cannot open {}", path);
  Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("machine") || !json.contains("rows"))
    return error(EINVAL, "{} is not what a bench writes with --json", path);
  return json;
}

std::string escaped(std::string cell) {
  for (std::size_t at = 0; (at = cell.find('|', at)) != cell.npos; at += 2) cell.insert(at, "\\");
  return cell;
}

std::string line(const std::vector<std::string>& cells) {
  return fmt::format("| {} |", fmt::join(cells, " | "));
}

std::string describe(const Json& machine) {
  return fmt::format("{}, {}{}, load {:.1f} before it",
                     text_of(Machine{.processor = machine.value("processor", ""),
                                     .cores = machine.value("cores", 0u),
                                     .memory = machine.value("memory", std::uint64_t{0}),
                                     .system = machine.value("system", "Linux")}),
                     machine.value("congestion_control", "unknown"),
                     machine.value("slow_start_after_idle", true) ? "" : " without slow start after idle",
                     machine.value("load_before", -1.0));
}

Result<void> report(const std::vector<std::string>& paths, bool goals_only) {
  Json rows = Json::array();
  std::vector<std::string> machines;
  for (const std::string& path : paths) {
    PARC_TRY(file, read(path));
    for (const Json& row : file.at("rows"))
      if (!goals_only || row.at("goal").is_string()) rows.push_back(row);
    const std::string machine = describe(file.at("machine"));
    if (std::ranges::find(machines, machine) == machines.end()) machines.push_back(machine);
  }
  const Text text = to_text(rows);
  std::vector<std::string> titles, rules;
  for (const auto& [title, number] : text.header) {
    titles.push_back(title);
    rules.push_back(number ? "--:" : "---");
  }
  std::cout << line(titles) << '\n' << line(rules) << '\n';
  for (auto cells : text.lines) {
    for (std::string& cell : cells) cell = escaped(cell);
    std::cout << line(cells) << '\n';
  }
  std::cout << fmt::format("\nMedians. {}.\n", fmt::join(machines, "; "));
  return success();
}

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench("bench-report", "Prints what benches wrote with --json as one Markdown table.");
  std::vector<std::string> paths;
  bool goals_only = false;
  bench.add_option("file", paths, "What benches wrote")->required();
  bench.add_flag("--goals", goals_only, "Only rows that have a goal");
  bench.begin(argc, argv);
  try {
    return bench.end(report(paths, goals_only));
  } catch (const Json::exception& wrong) {
    std::cerr << "bench-report: a row is not as benches write it: " << wrong.what() << '\n';
    return 1;
  }
}
