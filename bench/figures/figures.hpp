// SPDX-License-Identifier: BSD-3-Clause
// What every bench shows: rows that put parc beside a peer, as a table and as JSON. Invariant: a figure is
// the median of its samples, and whether a goal is met follows from the figures shown.
#pragma once

#include "system/error.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace parc::bench {

using Json = nlohmann::json;

struct Row {
  std::string name; // the case
  std::string metric;
  std::string unit;
  std::string peer_name = {}; // empty: parc alone
  // Bounds of parc over peer, or of parc where there is no peer: "<= 2", ">= 0.98 and <= 1.02". Empty: none.
  std::string goal = {};
  std::vector<double> parc = {}; // a sample of each repeat
  std::vector<double> peer = {};

  void add(double ours, double theirs) {
    parc.push_back(ours);
    peer.push_back(theirs);
  }
};

[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] double quantile(std::vector<double> values, double q);
[[nodiscard]] bool meets(std::string_view goal, double value);

// {"case", "metric", "unit", "parc", "peer", "peer_name", "ratio", "min", "max", "repeats", "goal", "met"};
// what a row has not is null.
void to_json(Json& json, const Row& row);

// A header and a line for each row of the JSON form.
struct Text {
  struct Column {
    std::string title;
    bool number = false;
  };
  std::vector<Column> header;
  std::vector<std::vector<std::string>> lines;
};
[[nodiscard]] Text to_text(const Json& rows);

// What a network is like that figures were taken on; together with the machine it stands beside them.
struct Network {
  std::string congestion_control;
  bool slow_start_after_idle = true;
};

struct Options {
  std::string json;
  int repeats = 3;
  double load_before = -1; // of the machine
};
void describe(CLI::App& app, Options& options);

// Prints the table; writes {"bench", "machine", "rows"} where the options say so.
[[nodiscard]] Result<void> show(std::string_view bench, const Options& options, const Network& network,
                                const std::vector<Row>& rows);

// "8 bytes", "64 KiB", "16 MiB"
[[nodiscard]] std::string size_text(std::size_t bytes);

} // namespace parc::bench
