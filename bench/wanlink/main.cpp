// SPDX-License-Identifier: BSD-3-Clause
// Is the emulated link what it says? One-way delay of small messages, rate of bulk TCP both ways at once, and
// the share of a core that the relay takes, each against what is configured or allowed.
//
// One program in three roles: the bench starts `wanlink run` for every case; inside that, it is the script
// that starts probes on the hosts; on the hosts, it is the probe.
#include "bench/wanlink/probe.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <thread>

namespace parc::bench {
namespace {

using Json = nlohmann::json;

struct Case {
  std::string_view name;
  std::string_view options; // of wanlink run
  double delay_ms;          // one way
  double rate_mbit;
  double cpu_allowed; // share of a core with both ways full
};
constexpr std::array cases{
    Case{"wan", "--preset wan", 10, 100, 0.03},
    Case{"metro", "--preset metro", 1, 1000, 0.30},
    Case{"gigabit", "--preset gigabit", 0, 1000, 0.30},
    Case{"fddi-1994", "--preset fddi-1994", 0, 100, 0.03},
    Case{"ethernet-1994", "--preset ethernet-1994", 0, 10, 0.03},
};

constexpr double allowed_median_ms = 0.2;
constexpr double allowed_p99_ms = 1;
// Of 1500 bytes on the wire TCP with timestamps carries 1448.
constexpr double payload_share = 1448.0 / 1500;

constexpr double warm_up_seconds = 2; // past slow start, with the queue full

std::string self_path() {
  return std::filesystem::read_symlink("/proc/self/exe");
}
std::string wanlink_path() {
  return std::filesystem::path(self_path()).parent_path() / "wanlink";
}

// The standard output of a shell command that succeeds.
Result<std::string> output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return system_error("cannot run {}", command);
  std::string text;
  std::array<char, 4096> buffer;
  while (const std::size_t length = fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), length);
  if (const int status = pclose(pipe); status != 0)
    return error(EIO, "{} failed (wait status {})", command, status);
  return text;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::nan("");
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

Result<Json> relay_counters() {
  PARC_TRY(text, output_of("wanlink status --json"));
  return Json::parse(text)["relay"];
}

// Inside `wanlink run`: measures and prints one JSON object.
Result<void> measure(double seconds, int messages) {
  const std::string self = self_path();
  const auto on = [&](const char* host, const std::string& probe) {
    return output_of(fmt::format("wanlink exec {} {} --probe {}", host, self, probe));
  };
  Json result;
  {
    Result<std::string> received = success(std::string());
    std::thread receiver([&] { received = on("b", "receive-stamps"); });
    auto sent = on("a", fmt::format("send-stamps --messages {}", messages));
    receiver.join();
    PARC_TRY(sent);
    PARC_TRY(delays, received);
    result["delays_ms"] = Json::parse(delays);
  }
  for (const auto& [direction, senders] : {std::pair{"forth", "a"}, {"back", "b"}, {"both", "ab"}}) {
    const auto options = [seconds, sending = std::string_view(senders)](const char* host) {
      return fmt::format("--seconds {}{}", seconds, sending.find(host) == sending.npos ? " --quiet" : "");
    };
    Result<std::string> at_b = success(std::string());
    std::thread other([&] { at_b = on("b", "flood-accept " + options("b")); });
    Result<std::string> at_a = success(std::string());
    std::thread one([&] { at_a = on("a", "flood-connect " + options("a")); });
    // The relay's share is taken in the middle of the flood.
    std::this_thread::sleep_for(std::chrono::duration<double>(warm_up_seconds));
    auto before = relay_counters();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    auto after = relay_counters();
    other.join();
    one.join();
    PARC_TRY(rate_at_a, at_a);
    PARC_TRY(rate_at_b, at_b);
    PARC_TRY(first, before);
    PARC_TRY(last, after);
    const auto grown = [&first = first, &last = last](const char* counter) {
      return last[counter].get<double>() - first[counter].get<double>();
    };
    result[direction] = {{"mbit", {Json::parse(rate_at_b), Json::parse(rate_at_a)}},
                         {"cpu", grown("cpu_s") / grown("elapsed_s")},
                         {"late", grown("late_over_1ms") / grown("packets")}};
  }
  std::cout << result.dump() << '\n';
  return success();
}

Result<Json> run_case(const Case& which, const std::string& extra, double seconds, int messages) {
  PARC_TRY(text,
           output_of(fmt::format("{} run {} {} -- {} --inside --seconds {} --messages {}", wanlink_path(),
                                 which.options, extra, self_path(), seconds, messages)));
  return Json::parse(text);
}

// A measured figure against what is configured or allowed, over all repeats.
Json row(std::string_view name, std::string_view metric, std::string_view unit,
         const std::vector<double>& measured, double against, std::string_view against_name, double low,
         double high) {
  const double ratio = quantile(measured, 0.5) / against;
  const std::string goal = low > 0 ? fmt::format(">= {} and <= {}", low, high) : fmt::format("<= {}", high);
  return {{"case", name},
          {"metric", metric},
          {"unit", unit},
          {"parc", quantile(measured, 0.5)},
          {"peer", against},
          {"peer_name", against_name},
          {"ratio", ratio},
          {"min", quantile(measured, 0)},
          {"max", quantile(measured, 1)},
          {"repeats", measured.size()},
          {"goal", goal},
          {"met", ratio >= low && ratio <= high}};
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
  void append_rows(const Case& which, Json& rows) const {
    const auto add = [&](std::string_view metric, std::string_view unit, const std::vector<double>& values,
                         double against, std::string_view against_name, double low, double high) {
      rows.push_back(row(which.name, metric, unit, values, against, against_name, low, high));
    };
    add("one-way delay, error of the median", "ms", median_error_ms, allowed_median_ms, "allowed", 0, 1);
    add("one-way delay, error of the 99th percentile", "ms", p99_error_ms, allowed_p99_ms, "allowed", 0, 1);
    add("rate a to b", "Mbit/s", mbit_forth, which.rate_mbit, "configured", 0.98, 1.02);
    add("rate b to a", "Mbit/s", mbit_back, which.rate_mbit, "configured", 0.98, 1.02);
    // With both ways full, acknowledgements wait behind data, and TCP leaves one way or the other idle at
    // times.
    add("rate both ways at once", "Mbit/s", mbit_both, 2 * which.rate_mbit, "configured", 0.9, 1.02);
    add("relay, one way full", "cores", cpu_forth, which.cpu_allowed, "allowed", 0, 1);
    add("relay, both ways full", "cores", cpu, which.cpu_allowed, "allowed", 0, 1);
    add("packets more than 1 ms late", "share", late_share, 0.01, "allowed", 0, 1);
  }
};

std::string first_line(const char* path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

Json machine() {
  utsname system{};
  uname(&system);
  return {{"cores", std::thread::hardware_concurrency()},
          {"kernel", system.release},
          {"congestion_control", "cubic"}, // wanlink sets it
          {"slow_start_after_idle", first_line("/proc/sys/net/ipv4/tcp_slow_start_after_idle") == "1"}};
}

struct Options {
  std::string json;
  std::string only;
  std::string extra;
  std::string probe;
  std::string peer = "b";
  bool inside = false;
  bool quiet = false;
  double seconds = 4;
  int messages = 400;
  int repeats = 3;
};

Result<void> bench(const Options& options) {
  std::array<Measured, cases.size()> measured;
  for (int repeat = 0; repeat < options.repeats; ++repeat)
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (!options.only.empty() && options.only != cases[i].name) continue;
      PARC_TRY(result, run_case(cases[i], options.extra, options.seconds, options.messages));
      measured[i].add(cases[i], result);
    }
  Json rows = Json::array();
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (!measured[i].cpu.empty()) measured[i].append_rows(cases[i], rows);
  for (const Json& line : rows)
    std::cout << fmt::format("{:14} {:44} {:9.4f} {:7} {:10} {:<9g} {:22} {}\n",
                             line["case"].get<std::string>(), line["metric"].get<std::string>(),
                             line["parc"].get<double>(), line["unit"].get<std::string>(),
                             line["peer_name"].get<std::string>(), line["peer"].get<double>(),
                             line["goal"].get<std::string>(), line["met"].get<bool>() ? "met" : "NOT MET");
  if (options.json.empty()) return success();
  std::ofstream file(options.json);
  file << Json{{"bench", "wanlink"}, {"machine", machine()}, {"rows", rows}}.dump(2) << '\n';
  if (!file) return error(EIO, "cannot write {}", options.json);
  return success();
}

Result<void> probe(const Options& options) {
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
  CLI::App app("Measures wanlink with plain sockets: delay, rate and the relay's share of a core.",
               "bench-wanlink");
  Options options;
  app.add_option("--json", options.json, "Write the figures to this file");
  app.add_option("--case", options.only, "Only this case");
  app.add_option("--options", options.extra, "More options for wanlink run");
  app.add_option("--seconds", options.seconds, "Length of each flood")->capture_default_str();
  app.add_option("--messages", options.messages, "Messages whose delay is taken")->capture_default_str();
  app.add_option("--repeats", options.repeats, "Interleaved repeats")->capture_default_str();
  app.add_option("--probe", options.probe)->group("");
  app.add_flag("--quiet", options.quiet)->group("");
  app.add_flag("--inside", options.inside)->group("");
  CLI11_PARSE(app, argc, argv);
  auto done = !options.probe.empty() ? probe(options)
              : options.inside       ? measure(options.seconds, options.messages)
                                     : bench(options);
  if (done) return 0;
  std::cerr << "bench-wanlink: " << done.error().text << '\n';
  return 1;
}
