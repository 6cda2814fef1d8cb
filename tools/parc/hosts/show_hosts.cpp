// SPDX-License-Identifier: BSD-3-Clause
// parc hosts: which kernels are up, where, in which version, and how far away.
#include "tools/parc/hosts/ask_hosts.hpp"
#include "tools/parc/hosts/commands.hpp"
#include "tools/parc/screen/table.hpp"
#include "tools/parc/screen/units.hpp"

#include <algorithm>
#include <iostream>
#include <memory>

namespace parc::tools {
namespace {

constexpr int hosts_schema = 1;

std::uint64_t ranks_of(const AskedHost& answer) {
  std::uint64_t ranks = 0;
  for (const control::JobRow& job : answer.said.jobs) ranks += job.ranks;
  return ranks;
}

void print(const std::vector<AskedHost>& answers) {
  Table table{{{.title = "HOST", .name = true},
               {"STATE"},
               {.title = "ADDRESS", .name = true},
               {"WAY"},
               {"VERSION"},
               {"RTT", true},
               {"JOBS", true},
               {"RANKS", true},
               {"KEY"}},
              {}};
  for (const AskedHost& answer : answers) {
    if (answer.relays)
      table.rows.push_back({answer.host, "relay", "-", way_text(answer.way, answer.encrypted), "-",
                            answer.rtt_us == 0 ? "-" : round_trip_text(answer.rtt_us), "-", "-", "-"});
    else if (answer.up())
      table.rows.push_back({answer.host, "up", answer.address.empty() ? "-" : answer.address,
                            answer.way.empty() ? "-" : way_text(answer.way, answer.encrypted, answer.streams),
                            answer.said.version, answer.rtt_us == 0 ? "-" : round_trip_text(answer.rtt_us),
                            fmt::to_string(answer.said.jobs.size()), fmt::to_string(ranks_of(answer)),
                            fmt::to_string(fmt::join(answer.said.keys, " +"))});
    else
      table.rows.emplace_back(
          std::vector<std::string>{answer.host, "down", "-", "-", "-", "-", "-", "-", "-"}, Style::bad);
  }
  show(table_lines(table, display_of(stdout)), stdout);
}

void print_json(const std::vector<AskedHost>& answers) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const AskedHost& answer : answers) {
    auto& row = hosts.emplace_back(nlohmann::json{{"host", answer.host}, {"up", answer.up()}});
    if (answer.up()) {
      row["address"] = answer.address.empty() ? nlohmann::json() : nlohmann::json(answer.address);
      row["way"] = answer.way.empty() ? nlohmann::json() : nlohmann::json(answer.way);
      if (!answer.way.empty()) row["encrypted"] = answer.encrypted;
      if (answer.streams != 0) row["streams"] = answer.streams;
      row["rtt_us"] = answer.rtt_us == 0 ? nlohmann::json() : nlohmann::json(answer.rtt_us);
      row["relays"] = answer.relays;
      if (answer.relays) continue;
      row["keys"] = answer.said.keys;
      row["version"] = answer.said.version;
      row["jobs"] = answer.said.jobs.size();
      row["ranks"] = ranks_of(answer);
    } else {
      row["why"] = answer.why;
    }
  }
  std::cout << nlohmann::json{{"schema", hosts_schema}, {"hosts", hosts}}.dump(
                   2, ' ', false, nlohmann::json::error_handler_t::replace)
            << '\n';
}

Result<int> ask_and_print(const HostOptions& options) {
  PARC_TRY(hosts, hosts_to_ask(options));
  PARC_TRY(answers, ask_hosts(options.runtime_dir, hosts, {}, false));
  if (options.json) {
    print_json(answers);
  } else {
    print(answers);
    complain(answers);
  }
  return std::ranges::all_of(answers, &AskedHost::up) ? 0 : status_failure;
}

} // namespace

Command hosts_command() {
  const auto options = std::make_shared<HostOptions>();
  return {.name = "hosts",
          .help = "Show which kernels are up, and how far away",
          .options = [options](CLI::App& app) { add_options(app, *options); },
          .run = [options] { return end_with(ask_and_print(*options)); }};
}

} // namespace parc::tools
