// SPDX-License-Identifier: BSD-3-Clause
// parc probe: what a message costs between this host and another, and a fault and a guard here, beside the
// machines of the papers. The messages are those of a job of two ranks (tools/probe), so they take the way
// that every program's take.
#include "jobs/installed.hpp"
#include "jobs/placement.hpp"
#include "shm/guarded_pages.hpp"
#include "system/environment.hpp"
#include "system/identity.hpp"
#include "tools/parc/hosts/ask_hosts.hpp"
#include "tools/parc/hosts/up_hosts.hpp"
#include "tools/parc/probe/commands.hpp"
#include "tools/parc/probe/probe_papers.hpp"
#include "tools/parc/screen/table.hpp"
#include "tools/parc/talk/children.hpp"
#include "tools/parc/talk/json_fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fmt/ranges.h>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace parc::tools {
namespace {

struct ProbeOptions {
  std::string host;
  bool json = false;
  std::string runtime_dir;
};

std::string wrong_with_one_host(const std::string& text) {
  const auto host = parse_host(text);
  if (host && host.value().slots == 1 && text.find(',') == text.npos) return {};
  return fmt::format("\"{}\" is no name of one host", text);
}

constexpr int probe_schema = 1;
constexpr int patience_s = 120; // with a job that takes some seconds where the link is any good
constexpr std::size_t guard_bytes = 4 << 10;

struct Figure {
  std::string_view name, unit;
  std::vector<double> samples; // sorted, at least one

  [[nodiscard]] double median() const {
    const std::size_t middle = samples.size() / 2;
    return samples.size() % 2 != 0 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  }
  // At most one in ten is less than this, or more than that.
  [[nodiscard]] double low() const { return samples[(samples.size() - 1) / 10]; }
  [[nodiscard]] double high() const { return samples[samples.size() - 1 - (samples.size() - 1) / 10]; }
};

constexpr std::string_view us = "us", mb_s = "MB/s";

Figure make_figure(std::string_view name, std::string_view unit, std::vector<double> samples) {
  std::ranges::sort(samples);
  return {name, unit, std::move(samples)};
}

struct Probed {
  std::string from, to; // hosts
  Figure round_trip, startup, there, back, fault, guard;

  [[nodiscard]] std::array<const Figure*, 6> figures() const {
    return {&round_trip, &startup, &there, &back, &fault, &guard};
  }
};

// ---- Between the hosts

// That the kernels of both are up; a job would start those that are missing.
Result<void> ask_whether_up(const std::string& host, const std::string& runtime_dir) {
  PARC_TRY(answers, ask_hosts(runtime_dir, {{.name = host}}, {}, false));
  for (const AskedHost& answer : answers)
    if (!answer.up()) return error(EHOSTUNREACH, "host {} does not answer: {}", answer.host, answer.why);
  return success();
}

Result<nlohmann::json> run_ranks(const std::string& host, const std::string& runtime_dir) {
  const std::string ranks = installed_program("probe");
  if (ranks.empty())
    return error(ENOENT, "libexec/parc/probe, which parc probe runs on both hosts, is not installed beside "
                         "parc; install all of parc");
  std::error_code failure;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return error(failure.value(), "cannot tell where parc is: {}", failure.message());
  setenv(env_autostart, "off", 1);
  std::vector<std::string> words{
      self.string(), "run", "-n", "2", "--stdin", "none", "--early-release=off", "--timeout",
      fmt::to_string(patience_s),
      // An address has colons of its own.
      "--hosts", fmt::format("localhost,{}", host.find(':') == host.npos ? host : "[" + host + "]")};
  if (!runtime_dir.empty()) words.insert(words.end(), {"--runtime-dir", runtime_dir});
  words.insert(words.end(), {"--", ranks});
  std::vector<Child> job(1);
  job[0].command = std::move(words);
  run_all(job, std::chrono::seconds(patience_s) + patience_with_children); // it has a time-out of its own
  if (job[0].status != 0) {
    std::cerr << job[0].errors;
    return error(EIO, "host {} was not measured: the job of two ranks ended with status {}", host,
                 job[0].status);
  }
  auto said = nlohmann::json::parse(job[0].output, nullptr, false);
  if (!said.is_object())
    return error(EPROTO, "{} said what is not understood; is it of another version?", ranks);
  return said;
}

Result<std::vector<double>> samples_in(const nlohmann::json& said, const char* key, double factor) {
  std::vector<double> samples;
  if (const auto found = said.find(key); found != said.end() && found->is_array())
    for (const auto& each : *found)
      if (each.is_number()) samples.push_back(each.get<double>() * factor);
  if (samples.empty()) return error(EPROTO, "the ranks of the job have measured no {}", key);
  return samples;
}

// ---- Here

Result<void> measure_guards(Probed& probed) {
  constexpr int times = 1000, uncounted = 100;
  PARC_TRY(pages, shm::GuardedPages::make(guard_bytes));
  using Clock = std::chrono::steady_clock;
  using Microseconds = std::chrono::duration<double, std::micro>;
  std::vector<double> guards, faults;
  for (int i = -uncounted; i < times; ++i) {
    const auto begin = Clock::now();
    if (!pages.close() || !pages.open()) return system_error("cannot protect pages");
    const Microseconds guard = Clock::now() - begin;
    if (!pages.close()) return system_error("cannot protect pages");
    const Microseconds fault = pages.time_fault();
    if (i < 0) continue;
    guards.push_back(guard.count());
    faults.push_back(fault.count());
  }
  probed.fault = make_figure("fault", us, std::move(faults));
  probed.guard = make_figure("guard", us, std::move(guards));
  return success();
}

Result<Probed> measure(const ProbeOptions& options) {
  PARC_TRY(host, parse_host(options.host));
  PARC_TRY(ask_whether_up(host.name, options.runtime_dir));
  PARC_TRY(said, run_ranks(host.name, options.runtime_dir));
  PARC_TRY(round_trips, samples_in(said, "round_trip_us", 1));
  PARC_TRY(one_ways, samples_in(said, "round_trip_us", 0.5));
  PARC_TRY(there, samples_in(said, "there_bytes_per_s", 1e-6));
  PARC_TRY(back, samples_in(said, "back_bytes_per_s", 1e-6));
  Probed probed{.from = text_in(said, "from"),
                .to = text_in(said, "to"),
                .round_trip = make_figure("round trip", us, std::move(round_trips)),
                .startup = make_figure("startup", us, std::move(one_ways)),
                .there = make_figure("bandwidth there", mb_s, std::move(there)),
                .back = make_figure("bandwidth back", mb_s, std::move(back)),
                .fault = {},
                .guard = {}};
  PARC_TRY(measure_guards(probed));
  return probed;
}

// ---- For people and programs

std::string digits(double value) { // three that count
  const int whole = static_cast<int>(std::floor(std::log10(value))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(3 - whole, 0, 4));
}

std::string digits_of(const std::optional<double>& value) {
  return value ? digits(*value) : "-";
}

void print(const Probed& probed) {
  if (probed.from == probed.to)
    std::cout << fmt::format("between two programs of host {}, whose messages take no network\n\n",
                             probed.from);
  else
    std::cout << fmt::format("between host {} and host {}\n\n", probed.from, probed.to);
  std::vector<Row> rows;
  for (const Figure* figure : probed.figures())
    rows.push_back({std::string(figure->name), digits(figure->median()), digits(figure->low()),
                    digits(figure->high()), std::string(figure->unit),
                    fmt::to_string(figure->samples.size())});
  print_table({{"FIGURE", false},
               {"MEDIAN", true},
               {"10 %", true},
               {"90 %", true},
               {"UNIT", false},
               {"SAMPLES", true}},
              rows);

  rows = {{probed.from == probed.to ? probed.from : fmt::format("{} and {}", probed.from, probed.to),
           digits(probed.round_trip.median()), digits(probed.startup.median()), digits(probed.there.median()),
           digits(probed.fault.median()), digits(probed.guard.median()), "-"}};
  for (const PaperMachine& machine : paper_machines)
    rows.push_back({std::string(machine.name), digits_of(machine.round_trip_us),
                    digits_of(machine.startup_us), digits_of(machine.bandwidth_mb_s),
                    digits_of(machine.fault_us), digits_of(machine.guard_us), std::string(machine.paper)});
  std::cout << '\n';
  print_table({{"MACHINES", false},
               {"ROUND TRIP", true},
               {"STARTUP", true},
               {"MB/S", true},
               {"FAULT", true},
               {"GUARD", true},
               {"PAPER", false}},
              rows);
}

nlohmann::json to_json(const Probed& probed) {
  nlohmann::json json{{"schema", probe_schema},
                      {"from", probed.from},
                      {"to", probed.to},
                      {"figures", nlohmann::json::array()},
                      {"papers", nlohmann::json::array()}};
  for (const Figure* figure : probed.figures())
    json["figures"].push_back({{"figure", figure->name},
                               {"unit", figure->unit},
                               {"median", figure->median()},
                               {"low", figure->low()},
                               {"high", figure->high()},
                               {"samples", figure->samples.size()}});
  const auto or_null = [](const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
  };
  for (const PaperMachine& machine : paper_machines)
    json["papers"].push_back({{"machine", machine.name},
                              {"paper", machine.paper},
                              {"round_trip_us", or_null(machine.round_trip_us)},
                              {"startup_us", or_null(machine.startup_us)},
                              {"bandwidth_mb_s", or_null(machine.bandwidth_mb_s)},
                              {"fault_us", or_null(machine.fault_us)},
                              {"guard_us", or_null(machine.guard_us)}});
  return json;
}

// The one that is named, or the only other one of parc up.
Result<std::string> other_host(const ProbeOptions& options) {
  if (!options.host.empty()) return options.host;
  std::vector<std::string> names;
  for (const HostSlots& host : up_hosts(options.runtime_dir))
    if (!means_this_host(host.name)) names.push_back(host.name);
  if (names.size() == 1) return names.front();
  if (names.empty()) return error(EINVAL, "name the other host: parc probe HOST");
  return error(EINVAL, "name one of the hosts of parc up: {}", fmt::join(names, ", "));
}

int probe(ProbeOptions options) {
  auto host = other_host(options);
  if (!host) {
    std::cerr << "parc: " << host.error().text << '\n';
    return status_usage;
  }
  options.host = std::move(host).value();
  const auto probed = measure(options);
  if (!probed) {
    std::cerr << "parc: " << probed.error().text << '\n';
    return status_failure;
  }
  if (options.json)
    std::cout << to_json(probed.value()).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << '\n';
  else
    print(probed.value());
  return 0;
}

} // namespace

// Measures messages between this host and another.
Command probe_command() {
  const auto options = std::make_shared<ProbeOptions>();
  return {.name = "probe",
          .help = "Measure messages between this host and another, and faults here",
          .options =
              [options](CLI::App& app) {
                app.add_option("HOST", options->host,
                               "The other host, as parc hosts names it; default: the one of parc up")
                    ->check(wrong_with_one_host, "", "");
                add_json(app, options->json);
                add_runtime_dir(app, options->runtime_dir);
              },
          .run = [options] { return probe(*options); }};
}

} // namespace parc::tools
