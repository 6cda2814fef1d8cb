// SPDX-License-Identifier: BSD-3-Clause
// parc errors: the distinct errors that a kernel has met, from its counters. It is not asked and may be dead.
#include "tools/parc/screen/table.hpp"
#include "tools/parc/view/commands.hpp"
#include "tools/parc/view/view.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

namespace parc::tools {
namespace {

struct ErrorsOptions {
  bool json = false;
  std::string runtime_dir;
};

constexpr int errors_schema = 1;

void print(const CounterSnapshot& kernel) {
  if (!kernel.alive)
    std::cout << fmt::format("the kernel of host {} {}; these are the errors until then\n", kernel.host,
                             kernel.ended ? "has ended" : "is DEAD");
  std::vector<Row> rows;
  for (const auto& error : kernel.errors)
    rows.push_back({std::string(name(error.kind)), code_name(error), fmt::to_string(error.count),
                    local_time(error.first_s), local_time(error.last_s), error.text});
  if (rows.empty()) return void(std::cout << "no errors\n");
  print_table({{"KIND", false},
               {"CODE", false},
               {"COUNT", true},
               {"FIRST", false},
               {"LAST", false},
               {"ERROR", false}},
              rows);
  if (kernel.other_errors != 0)
    std::cout << fmt::format("and {} older ones, for which there was no room\n", kernel.other_errors);
}

nlohmann::json to_json(const CounterSnapshot& kernel) {
  nlohmann::json json{{"schema", errors_schema},
                      {"kernel", {{"alive", kernel.alive}, {"ended", kernel.ended}, {"host", kernel.host}}},
                      {"errors", nlohmann::json::array()},
                      {"others", kernel.other_errors}};
  for (const auto& error : kernel.errors)
    json["errors"].push_back({{"kind", name(error.kind)},
                              {"code", error.code},
                              {"name", code_name(error)},
                              {"count", error.count},
                              {"first", error.first_s},
                              {"last", error.last_s},
                              {"text", error.text}});
  return json;
}

int errors(const ErrorsOptions& options) {
  const auto counters = open_counters(options.runtime_dir);
  if (!counters) {
    std::cerr << "parc: " << counters.error().text << '\n';
    return status_failure;
  }
  CounterSnapshot kernel = counters.value().read_from_outside();
  std::ranges::stable_sort(kernel.errors, {},
                           &CounterSnapshot::Error::last_s); // the last one last, as in a log
  if (options.json)
    std::cout << to_json(kernel).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  else
    print(kernel);
  return 0;
}

} // namespace

Command errors_command() {
  const auto options = std::make_shared<ErrorsOptions>();
  return {.name = "errors",
          .help = "Show the distinct errors that this host's kernel has met",
          .options =
              [options](CLI::App& app) {
                add_json(app, options->json);
                add_runtime_dir(app, options->runtime_dir);
              },
          .run = [options] { return errors(*options); }};
}

} // namespace parc::tools
