// SPDX-License-Identifier: BSD-3-Clause
// Is the emulated link what it says? One-way delay of small messages, rate of bulk TCP both ways at once, and
// the share of a core that the relay takes, each against what is configured or allowed.
//
// One program in three roles: the bench starts `wanlink run` for every case; inside that, it is the script
// that starts probes on the hosts; on the hosts, it is the probe.
#include "bench/figures/bench.hpp"
#include "bench/wanlink/probe.hpp"

#include <array>
#include <cmath>
#include <iostream>
#include <sstream>
#include <thread>

namespace parc::bench {
namespace {

struct Case {
  std::string_view name; // of the preset
  double delay_ms;       // one way
  double rate_mbit;
  double cpu_allowed; // share of a core with both ways full
};
constexpr std::array cases{
    Case{"wan", 10, 100, 0.03},      Case{"metro", 1, 1000, 0.30},       Case{"gigabit", 0, 1000, 0.30},
    Case{"fddi-1994", 0, 100, 0.03}, Case{"ethernet-1994", 0, 10, 0.03},
};

constexpr double allowed_median_ms = 0.2;
constexpr double allowed_p99_ms = 1;
// Of 1500 bytes on the wire TCP with timestamps carries 1448.
constexpr double payload_share = 1448.0 / 1500;

constexpr double warm_up_seconds = 2; // past slow start, with the queue full

Result<Json> relay_counters() {
  PARC_TRY(text, output_of({program("wanlink"), "status", "--json"}));
  return Json::parse(text)["relay"];
}

// Inside `wanlink run`: measures and prints one JSON object.
Result<void> measure(double seconds, int messages) {
  PARC_TRY(hosts, Hosts::of_emulation(2));
  PARC_TRY(network, network_of(hosts));
  const std::string length = std::to_string(seconds);
  const auto probe = [&hosts = hosts](std::size_t host, const Command& words) {
    Command command = {self_path(), "--probe"};
    command.insert(command.end(), words.begin(), words.end());
    return hosts.on(host, command);
  };
  const Command stamps[] = {probe(1, {"receive-stamps"}),
                            probe(0, {"send-stamps", "--messages", std::to_string(messages)})};
  PARC_TRY(delays, output_of_all(stamps));
  Json result = {{"delays_ms", Json::parse(delays)},
                 {"congestion_control", network.congestion_control},
                 {"slow_start_after_idle", network.slow_start_after_idle}};
  for (const auto& [direction, a_sends, b_sends] :
       {std::tuple{"forth", true, false}, {"back", false, true}, {"both", true, true}}) {
    Command floods[] = {probe(1, {"flood-accept", "--seconds", length}),
                        probe(0, {"flood-connect", "--seconds", length})};
    if (!b_sends) floods[0].push_back("--quiet");
    if (!a_sends) floods[1].push_back("--quiet");
    Result<std::string> rates = success(std::string());
    std::thread running([&] { rates = output_of_all(floods); });
    // The relay's share is taken in the middle of the flood.
    std::this_thread::sleep_for(std::chrono::duration<double>(warm_up_seconds));
    auto before = relay_counters();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    auto after = relay_counters();
    running.join();
    PARC_TRY(both, rates);
    PARC_TRY(first, before);
    PARC_TRY(last, after);
    const auto grown = [&first = first, &last = last](const char* counter) {
      return last[counter].get<double>() - first[counter].get<double>();
    };
    std::istringstream lines(both);
    double at_b = 0, at_a = 0;
    lines >> at_b >> at_a;
    result[direction] = {{"mbit", {at_b, at_a}},
                         {"cpu", grown("cpu_s") / grown("elapsed_s")},
                         {"late", grown("late_over_1ms") / grown("packets")}};
  }
  std::cout << result.dump() << '\n';
  return success();
}

Result<Json> run_case(const Case& which, const std::string& extra, double seconds, int messages) {
  Command command = {program("wanlink"), "run", "--preset", std::string(which.name)};
  std::istringstream more(extra);
  for (std::string word; more >> word;) command.push_back(word);
  command.insert(command.end(), {"--", self_path(), "--inside", "--seconds", std::to_string(seconds),
                                 "--messages", std::to_string(messages)});
  PARC_TRY(text, output_of(command));
  return Json::parse(text);
}

struct Measured {
  std::vector<double> median_error_ms;
  std::vector<double> p99_error_ms;
  std::vector<double> mbit_forth;
  std::vector<double> mbit_back;
  std::vector<double> mbit_both;
  std::vector<double> cpu_forth;
  std::vector<double> cpu;
  std::vector<double> late_share;

  void add(const Case& which, const Json& result) {
    // A message of 8 bytes crosses the wire as 60 bytes.
    const double expected = which.delay_ms + 60 * 8 / (which.rate_mbit * 1e3);
    const auto delays = result["delays_ms"].get<std::vector<double>>();
    median_error_ms.push_back(std::abs(quantile(delays, 0.5) - expected));
    p99_error_ms.push_back(std::abs(quantile(delays, 0.99) - expected));
    mbit_forth.push_back(result["forth"]["mbit"][0].get<double>() / payload_share);
    mbit_back.push_back(result["back"]["mbit"][1].get<double>() / payload_share);
    cpu_forth.push_back(result["forth"]["cpu"]);
    const Json& both = result["both"];
    mbit_both.push_back((both["mbit"][0].get<double>() + both["mbit"][1].get<double>()) / payload_share);
    cpu.push_back(both["cpu"]);
    late_share.push_back(both["late"]);
  }
  void append_rows(const Case& which, std::vector<Row>& rows) const {
    const auto add = [&](const char* metric, const char* unit, const std::vector<double>& values,
                         double against, const char* against_name, const char* goal) {
      rows.push_back({std::string(which.name), metric, unit, against_name, goal, values, {against}});
    };
    add("one-way delay, error of the median", "ms", median_error_ms, allowed_median_ms, "allowed", "<= 1");
    add("one-way delay, error of the 99th percentile", "ms", p99_error_ms, allowed_p99_ms, "allowed", "<= 1");
    add("rate a to b", "Mbit/s", mbit_forth, which.rate_mbit, "configured", ">= 0.98 and <= 1.02");
    add("rate b to a", "Mbit/s", mbit_back, which.rate_mbit, "configured", ">= 0.98 and <= 1.02");
    // With both ways full, acknowledgements wait behind data, and TCP leaves one way or the other idle at
    // times.
    add("rate both ways at once", "Mbit/s", mbit_both, 2 * which.rate_mbit, "configured",
        ">= 0.9 and <= 1.02");
    add("relay, one way full", "cores", cpu_forth, which.cpu_allowed, "allowed", "<= 1");
    add("relay, both ways full", "cores", cpu, which.cpu_allowed, "allowed", "<= 1");
    add("packets more than 1 ms late", "share", late_share, 0.01, "allowed", "<= 1");
  }
};

struct Roles : Options {
  std::string only;
  std::string extra;
  std::string probe;
  std::string peer = "b";
  bool inside = false;
  bool quiet = false;
  double seconds = 4;
  int messages = 400;
};

Result<void> measure_cases(const Roles& options) {
  std::array<Measured, cases.size()> measured;
  Network network;
  for (int repeat = 0; repeat < options.repeats; ++repeat)
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (!options.only.empty() && options.only != cases[i].name) continue;
      PARC_TRY(result, run_case(cases[i], options.extra, options.seconds, options.messages));
      measured[i].add(cases[i], result);
      network = {result["congestion_control"], result["slow_start_after_idle"]};
    }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (!measured[i].cpu.empty()) measured[i].append_rows(cases[i], rows);
  return show("wanlink", options, network, rows);
}

Result<void> probe(const Roles& options) {
  if (options.probe == "send-stamps") return send_stamps(options.peer, options.messages);
  if (options.probe == "receive-stamps") {
    PARC_TRY(delays, receive_stamps());
    std::cout << Json(delays).dump() << '\n';
    return success();
  }
  const std::string peer = options.probe == "flood-accept" ? "" : options.peer;
  const Flood what{peer, !options.quiet, warm_up_seconds, options.seconds};
  PARC_TRY(rate, flood(what));
  std::cout << Json(rate).dump() << '\n';
  return success();
}

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench("bench-wanlink",
              "Measures wanlink with plain sockets: delay, rate and the relay's share of a core.");
  Roles options;
  describe(bench, options);
  bench.add_option("--case", options.only, "Only this case");
  bench.add_option("--options", options.extra, "More options for wanlink run");
  bench.add_option("--seconds", options.seconds, "Length of each flood")->capture_default_str();
  bench.add_option("--messages", options.messages, "Messages whose delay is taken")->capture_default_str();
  bench.add_option("--probe", options.probe)->group("");
  bench.add_flag("--quiet", options.quiet)->group("");
  bench.add_flag("--inside", options.inside)->group("");
  bench.begin(argc, argv);
  if (!options.probe.empty()) return bench.end(probe(options));
  catch_interrupts();
  return bench.end(options.inside ? measure(options.seconds, options.messages) : measure_cases(options));
}
