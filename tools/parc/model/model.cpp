// SPDX-License-Identifier: BSD-3-Clause
// parc model: what hiding brings a program, on which link or machine, with which granularity and on how many
// processors (1994, sections 2.1 to 2.3.3).
#include "system/quantity.hpp"
#include "tools/parc/model/commands.hpp"
#include "tools/parc/model/links.hpp"
#include "tools/parc/model/reproduce.hpp"
#include "tools/parc/screen/table.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

namespace parc::tools {
namespace {

using Json = nlohmann::ordered_json;

struct ModelOptions {
  std::string calculation, alone, bytes, messages = "1"; // as written
  std::vector<std::string> links, probes, machines;
  std::string granularity;
  model::Hiding hiding;
  double wanted = 1.1; // gain
  double efficiency = 0.5;
  std::uint64_t processors = 2;
  bool reproduce = false;
  std::string pictures;
  bool json = false;
};

constexpr int model_schema = 1;
constexpr double longest_s = 1e6;
constexpr Quantity calculation_quantity{"--calculation", time_units, longest_s, "70ms"};
constexpr Quantity alone_quantity{"--alone", time_units, longest_s, "2s"};
constexpr Quantity bytes_quantity{"--bytes", size_units, 1e15, "800000 or 64KiB"};
constexpr std::uint64_t most_processors = 100'000;

std::string four_digits(double value) {  // four that count
  if (!std::isfinite(value)) return "-"; // no limit
  if (value == 0) return "0";
  const int whole = static_cast<int>(std::floor(std::log10(value))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(4 - whole, 0, 6));
}

// A table and the same as JSON: each cell once.
struct Report {
  std::vector<Column> columns;
  std::vector<const char*> keys;
  std::vector<Row> rows;
  Json json = Json::array();

  void add(const std::vector<Json>& values) {
    Row row;
    Json object;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Json& value = values[i];
      object[keys[i]] = value.is_number_float() && !std::isfinite(value.get<double>()) ? Json() : value;
      row.texts.push_back(value.is_string()         ? value.get<std::string>()
                          : value.is_number_float() ? four_digits(value.get<double>())
                          : value.is_null()         ? "-"
                                                    : value.dump());
    }
    rows.push_back(std::move(row));
    json.push_back(std::move(object));
  }
};

// ---- Links: times

struct Task {
  double calculation; // s a step, of a task
  double bytes;
  model::Messages messages;
};

Result<std::vector<NamedLink>> named_links(const ModelOptions& options) {
  std::vector<NamedLink> links;
  for (const std::string& text : options.links) {
    PARC_TRY(link, parse_link(text));
    links.push_back(std::move(link));
  }
  for (const std::string& file : options.probes) {
    PARC_TRY(link, read_probed_link(file));
    links.push_back(std::move(link));
  }
  return links;
}

// What a step takes on each link, and with which calculation there is most to gain.
void add_links(const ModelOptions& options, const Task& task, const std::vector<NamedLink>& links, Json& all,
               std::vector<std::pair<std::string, Report>>& reports) {
  Report steps{{{"LINK"},
                {"T_COM ms", true},
                {"GAMMA", true},
                {"BLOCKING ms", true},
                {"HIDDEN ms", true},
                {"GAIN", true}},
               {"link", "communication_ms", "gamma", "blocking_ms", "hidden_ms", "gain"},
               {}};
  Report advice{
      {{"LINK"},
       {"MOST GAIN", true},
       {"AT T_CALC ms", true},
       {fmt::format("GAIN {:g} FROM ms", options.wanted), true},
       {"TO ms", true},
       {"LOSES ABOVE ms", true}},
      {"link", "largest_gain", "calculation_ms", "wanted_from_ms", "wanted_to_ms", "loses_above_ms"},
      {}};
  const NamedLink* best = nullptr;
  double shortest = 0;
  for (const NamedLink& each : links) {
    const double t_com =
        task.messages(static_cast<double>(options.processors)) * model::transfer_time(task.bytes, each.link);
    const double x = t_com / task.calculation;
    const double blocking = task.calculation * model::blocking_time(x),
                 hidden = task.calculation * model::hidden_time(x, options.hiding);
    steps.add({each.name, t_com * 1e3, 1 / x, blocking * 1e3, hidden * 1e3, blocking / hidden});
    const auto range = model::range_of_x(options.wanted, options.hiding);
    const auto calculation_at = [&](double at) { return Json(t_com / at * 1e3); };
    advice.add({each.name, model::largest_gain(options.hiding), calculation_at(model::best_x(options.hiding)),
                range ? calculation_at(range->most) : Json(), range ? calculation_at(range->least) : Json(),
                calculation_at(model::least_x(options.hiding))});
    if (best == nullptr || hidden < shortest) {
      best = &each;
      shortest = hidden;
    }
  }
  all["links"] = steps.json;
  all["granularities"] = advice.json;
  all["fastest"] = best->name;
  reports.emplace_back(fmt::format("a step whose tasks calculate {} ms", four_digits(task.calculation * 1e3)),
                       std::move(steps));
  reports.emplace_back("how long a task should calculate for its messages", std::move(advice));
}

// ---- Processors

void add_processors(const ModelOptions& options, double alone, const Task& task, const NamedLink& link,
                    Json& all, std::vector<std::pair<std::string, Report>>& reports) {
  const model::Program program{
      .alone = alone, .message = model::transfer_time(task.bytes, link.link), .messages = task.messages};
  const auto s = [&](double p) { return p == 1 ? 1 : model::speedup(program, p); };
  const auto s_lh = [&](double p) { return p == 1 ? 1 : model::speedup(program, p, options.hiding); };
  const auto blocking = model::largest(options.processors, s),
             hidden = model::largest(options.processors, s_lh);
  std::vector<std::uint64_t> shown{blocking.p, hidden.p, options.processors};
  for (std::uint64_t p = 1; p < options.processors; p *= 2) shown.push_back(p);
  std::ranges::sort(shown);
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  Report report{{{"P", true},
                 {"BLOCKING ms", true},
                 {"S", true},
                 {"E", true},
                 {"HIDDEN ms", true},
                 {"S_LH", true},
                 {"E_LH", true},
                 {"GAIN", true}},
                {"processors", "blocking_ms", "speedup", "efficiency", "hidden_ms", "hidden_speedup",
                 "hidden_efficiency", "gain"},
                {}};
  for (const std::uint64_t number : shown) {
    const auto p = static_cast<double>(number);
    report.add({number, alone / s(p) * 1e3, s(p), s(p) / p, alone / s_lh(p) * 1e3, s_lh(p), s_lh(p) / p,
                s_lh(p) / s(p)});
  }
  const auto up_to = [&](const auto& speed) {
    return model::most_with_efficiency(options.processors, options.efficiency, speed).value_or(1);
  };
  Report ends{{{"CALLS"},
               {"FASTEST P", true},
               {"SPEEDUP", true},
               {fmt::format("EFFICIENCY {:g} UP TO P", options.efficiency), true}},
              {"calls", "fastest_processors", "speedup", "efficient_processors"},
              {}};
  ends.add({"blocking", blocking.p, blocking.value, up_to(s)});
  ends.add({"hidden", hidden.p, hidden.value, up_to(s_lh)});
  all["processors"].push_back({{"link", link.name}, {"steps", report.json}, {"best", ends.json}});
  reports.emplace_back(fmt::format("{}: processors, with {} ms on one", link.name, four_digits(alone * 1e3)),
                       std::move(report));
  reports.emplace_back(fmt::format("{}: for speed, and for efficiency", link.name), std::move(ends));
}

// ---- Machines: granularities without units

Result<void> add_machines(const ModelOptions& options, Json& all,
                          std::vector<std::pair<std::string, Report>>& reports) {
  PARC_TRY(range, parse_granularity(options.granularity));
  PARC_TRY(messages, parse_messages(options.messages));
  const double q = messages(static_cast<double>(options.processors));
  const bool one = range.least == range.most;
  Report report{{{"MACHINE"},
                 {"GAMMA_H", true},
                 {"OMEGA", true},
                 {one ? "GAIN" : "LEAST GAIN", true},
                 {"GAINS"},
                 {"MOST GAIN", true},
                 {"AT GAMMA_S", true}},
                {"machine", "gamma_h", "omega", "gain", "gains", "largest_gain", "gamma_s"},
                {}};
  for (const std::string& text : options.machines) {
    PARC_TRY(machine, parse_machine(text));
    const model::Hiding hiding{options.hiding.f, machine.omega};
    const auto gain_at = [&](double gamma_s) { return model::gain(q * machine.gamma_h / gamma_s, hiding); };
    const double lowest = std::min(gain_at(range.least), gain_at(range.most)); // it rises once, and falls
    report.add({machine.name, machine.gamma_h, machine.omega, lowest,
                lowest > 1   ? "yes"
                : lowest < 1 ? "no"
                             : "nothing",
                model::largest_gain(hiding), q * machine.gamma_h / model::best_x(hiding)});
  }
  all["machines"] = report.json;
  reports.emplace_back(
      one ? fmt::format("a program of software granularity {:g}", range.least)
          : fmt::format("programs of software granularities from {:g} to {:g}", range.least, range.most),
      std::move(report));
  Report hardware{
      {{"OMEGA", true}, {"MOST GAIN", true}, {"AT GAMMA_H", true}}, {"omega", "largest_gain", "gamma_h"}, {}};
  for (const std::string& text : options.machines) {
    PARC_TRY(machine, parse_machine(text));
    const model::Hiding hiding{options.hiding.f, machine.omega};
    hardware.add({machine.omega, model::largest_gain(hiding), model::best_x(hiding) * range.least / q});
  }
  all["hardware"] = hardware.json;
  reports.emplace_back(
      fmt::format("the hardware granularity with the most to gain for software of {:g}", range.least),
      std::move(hardware));
  return success();
}

// ---- The command

Result<void> answer(const ModelOptions& options, Json& all,
                    std::vector<std::pair<std::string, Report>>& reports) {
  if (!options.machines.empty()) return add_machines(options, all, reports);
  PARC_TRY(links, named_links(options));
  if (options.bytes.empty() || (options.calculation.empty() && options.alone.empty()))
    return error(EINVAL, "say what a step is: --calculation 70ms (or --alone 2s) and --bytes 800000");
  PARC_TRY(bytes, parse_quantity(options.bytes, bytes_quantity));
  PARC_TRY(messages, parse_messages(options.messages));
  PARC_TRY(alone,
           options.alone.empty() ? Result<double>(0.0) : parse_quantity(options.alone, alone_quantity));
  PARC_TRY(calculation, options.calculation.empty()
                            ? Result<double>(alone / static_cast<double>(options.processors))
                            : parse_quantity(options.calculation, calculation_quantity));
  if (calculation <= 0) return error(EINVAL, "a step without calculation has nothing to hide behind");
  const Task task{calculation, bytes, std::move(messages)};
  add_links(options, task, links, all, reports);
  if (alone > 0)
    for (const NamedLink& link : links) add_processors(options, alone, task, link, all, reports);
  return success();
}

int run_model(const ModelOptions& options) {
  const auto fail = [](const Error& problem, int status) {
    std::cerr << "parc: " << problem.text << '\n';
    return status;
  };
  if (options.reproduce) {
    const int status = print_examples();
    if (options.pictures.empty()) return status;
    if (const auto drawn = draw_figures(options.pictures); !drawn) return fail(drawn.error(), status_failure);
    std::cout << fmt::format("\nFigures 3 to 9 and 24: {}/figure-*.svg\n", options.pictures);
    return status;
  }
  if (options.links.empty() && options.probes.empty() && options.machines.empty())
    return fail(error(EINVAL,
                      "name a link: --link wan=20ms,100mbit, or --probe FILE of parc probe --json; or a "
                      "machine: --machine H1=5,0.2"),
                status_usage);
  Json all{{"schema", model_schema}};
  std::vector<std::pair<std::string, Report>> reports;
  if (const auto answered = answer(options, all, reports); !answered)
    return fail(answered.error(), status_usage);
  if (options.json) {
    std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    return 0;
  }
  for (const auto& [heading, report] : reports) {
    std::cout << (&heading == &reports.front().first ? "" : "\n") << heading << '\n';
    print_table(report.columns, report.rows);
  }
  if (all.contains("fastest") && options.links.size() + options.probes.size() > 1)
    std::cout << fmt::format("\nHidden, a step is shortest on {}.\n", all.at("fastest").get<std::string>());
  return 0;
}

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--link", options.links,
                 "A link: NAME=ROUND-TRIP,RATE, as wan=20ms,100mbit; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--probe", options.probes,
                 "A link as parc probe --json has printed it into this file; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--calculation", options.calculation, "How long a task calculates in a step, as 70ms");
  auto* const alone = app.add_option(
      "--alone", options.alone, "How long a step takes on one processor, as 2s; in place of --calculation");
  alone->excludes("--calculation");
  app.add_option("--bytes", options.bytes, "Bytes of a message");
  app.add_option(
      "--messages", options.messages,
      "Messages of a task that follow one another in a step: a number, sqrt (of the processors), or p (1)");
  app.add_option("--processors", options.processors, "Processors, at most (2)")
      ->check(number_from(std::uint64_t{1}, most_processors));
  app.add_option("--hidden", options.hiding.f,
                 "The part of the calculation behind which messages can be hidden, 0 to 1 (1)")
      ->check(number_from(0.0, 1.0));
  app.add_option("--overhead", options.hiding.omega,
                 "What hiding costs, Omega, as a part of the calculation (0)")
      ->check(number_from(0.0, 1000.0));
  app.add_option("--gain", options.wanted, "The gain that should be reached (1.1)")
      ->check(number_from(1.0, 2.0));
  app.add_option("--efficiency", options.efficiency, "The efficiency that processors should have (0.5)")
      ->check(number_from(0.001, 1.0));
  auto* const machine =
      app.add_option("--machine", options.machines,
                     "A machine without units: NAME=GAMMA_H,OMEGA, as H1=5,0.2; may be repeated");
  machine->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->excludes("--link", "--probe");
  auto* const granularity = app.add_option("--granularity", options.granularity,
                                           "Software granularity of programs on these machines: 5, or 2:10");
  machine->needs(granularity);
  granularity->needs(machine);
  auto* const reproduce = app.add_flag("--reproduce", options.reproduce,
                                       "Print the worked examples of the report of 1994, beside its figures");
  app.add_option("--pictures", options.pictures,
                 "And draw its figures 3 to 9 and 24 into this directory, by gnuplot")
      ->needs(reproduce);
  add_json(app, options.json);
}

} // namespace

Command model_command() {
  const auto options = std::make_shared<ModelOptions>();
  return {
      .name = "model",
      .help =
          "Say what hiding messages behind calculation brings, on which link and with how many processors",
      .options = [options](CLI::App& app) { add_model_options(app, *options); },
      .run = [options] { return run_model(*options); }};
}

} // namespace parc::tools
