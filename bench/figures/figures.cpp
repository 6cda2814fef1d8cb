// SPDX-License-Identifier: BSD-3-Clause
#include "bench/figures/figures.hpp"

#include "system/columns.hpp"
#include "system/observe/machine.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>

namespace parc::bench {

namespace {

Json machine(const Network& network, double load_before) {
  const Machine machine = this_machine();
  return {{"cores", machine.cores},
          {"processor", machine.processor},
          {"memory", machine.memory},
          {"system", machine.system},
          {"load_before", load_before},
          {"congestion_control", network.congestion_control},
          {"slow_start_after_idle", network.slow_start_after_idle}};
}

// Three digits that count, and no more decimals than a person reads.
std::string digits(const Json& value) {
  if (value.is_null()) return "";
  const double number = value.get<double>();
  if (number == 0) return "0";
  const double size = std::abs(number);
  if (size < 0.001) return fmt::format("{:.1e}", number);
  return fmt::format("{:.{}f}", number, size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4);
}

std::string words(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "met" : "NOT MET";
  return value.is_string() ? value.get<std::string>() : "";
}

void print_table(const Text& text) {
  std::vector<Texts> lines(1);
  std::vector<bool> numbers;
  for (const auto& [title, number] : text.header) {
    lines[0].push_back(title);
    numbers.push_back(number);
  }
  lines.insert(lines.end(), text.lines.begin(), text.lines.end());
  std::cout << in_columns(lines, numbers); // wide: never cut to the terminal
}

} // namespace

double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

bool meets(std::string_view goal, double value) {
  std::istringstream text{std::string(goal)};
  std::string sign, conjunction;
  double bound = 0;
  bool met = true;
  do {
    text >> sign >> bound;
    met = met && text && (sign == "<=" ? value <= bound : value >= bound);
  } while (text >> conjunction);
  return met;
}

void to_json(Json& json, const Row& row) {
  const double ours = median(row.parc);
  json = {{"case", row.name},
          {"metric", row.metric},
          {"unit", row.unit},
          {"parc", ours},
          {"peer", nullptr},
          {"peer_name", nullptr},
          {"ratio", nullptr},
          {"min", std::ranges::min(row.parc)},
          {"max", std::ranges::max(row.parc)},
          {"repeats", row.parc.size()},
          {"goal", nullptr},
          {"met", nullptr}};
  const bool compared = !row.peer.empty();
  const double theirs = median(row.peer);
  if (compared) {
    json["peer"] = theirs;
    json["peer_name"] = row.peer_name;
    json["ratio"] = ours / theirs;
  }
  if (row.goal.empty()) return;
  json["goal"] = row.goal;
  json["met"] = meets(row.goal, compared ? ours / theirs : ours);
}

Text to_text(const Json& rows) {
  Text text;
  for (const char* title : {"case", "metric", "unit"}) text.header.push_back({title});
  for (const char* title : {"parc", "min", "max"}) text.header.push_back({title, true});
  text.header.push_back({"beside"});
  for (const char* title : {"", "ratio"}) text.header.push_back({title, true});
  for (const char* title : {"goal", ""}) text.header.push_back({title});
  text.header.push_back({"repeats", true});
  for (const Json& row : rows)
    text.lines.push_back({words(row.at("case")), words(row.at("metric")), words(row.at("unit")),
                          digits(row.at("parc")), digits(row.at("min")), digits(row.at("max")),
                          words(row.at("peer_name")), digits(row.at("peer")), digits(row.at("ratio")),
                          words(row.at("goal")), words(row.at("met")), row.at("repeats").dump()});
  return text;
}

void describe(CLI::App& app, Options& options) {
  options.load_before = load_average();
  app.add_option("--json", options.json, "Write the figures to this file")->option_text("FILE");
  app.add_option("--repeats", options.repeats, "Interleaved repeats; medians are shown")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

Result<void> show(std::string_view bench, const Options& options, const Network& network,
                  const std::vector<Row>& rows) {
  const Json lines = rows;
  print_table(to_text(lines));
  if (options.json.empty()) return success();
  std::ofstream file(options.json);
  file << Json{{"bench", bench}, {"machine", machine(network, options.load_before)}, {"rows", lines}}.dump(2)
       << '\n';
  file.close();
  if (!file) return system_error("cannot write {}", options.json);
  return success();
}

std::string size_text(std::size_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} bytes", bytes);
}

} // namespace parc::bench
