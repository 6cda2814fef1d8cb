// SPDX-License-Identifier: BSD-3-Clause
#include "examples/steps/steps.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

namespace parc::examples {
namespace {

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void describe_presets(CLI::App& app, Options& options, const Program& program) {
  std::vector<std::string> names;
  for (const Preset& preset : program.presets) names.push_back(preset.name);
  app.add_option_function<std::string>(
         "--preset",
         [&options, &program](const std::string& name) {
           const auto wanted = std::ranges::find(program.presets, name, &Preset::name);
           program.sizes.front().value = wanted->size;
           options.steps = wanted->steps;
         },
         "Size and steps of table 1 of the paper: A, B, C; or small")
      ->check(CLI::IsMember(names));
}

void describe(CLI::App& app, Options& options, const Program& program) {
  for (const Size& size : program.sizes)
    app.add_option(size.option, size.value, size.help)
        ->check(CLI::Range(size.least, size.most))
        ->capture_default_str();
  for (const Flag& flag : program.flags) app.add_flag(flag.option, flag.value, flag.help);
  for (const Numbers& numbers : program.numbers)
    app.add_option(numbers.option, numbers.values, numbers.help)
        ->delimiter(',')
        ->expected(numbers.count)
        ->check(CLI::Range(0.0, 1e9));
  if (!program.presets.empty()) describe_presets(app, options, program);
  app.add_option("--steps", options.steps, "Timed steps")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--warm-up", options.warm_up, "Steps before them")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--work", options.work, "Calculate everything so many times")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--uneven", options.uneven,
                 "Per cent of it that every second rank does more in one step and less in the next")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app.add_flag("--alone", options.alone, "Only calculate: what a step takes without its messages");
  app.add_flag("--only-messages", options.only_messages, "Do not calculate: what the messages take")
      ->excludes(app.get_option("--alone"));
  app.add_flag("--check", options.check, "Compare with a sequential run, bit for bit")
      ->excludes(app.get_option("--alone"))
      ->excludes(app.get_option("--only-messages"));
  app.add_flag("--json", options.json, "Say it as one line of JSON");
}

} // namespace

Timing time_steps(Context& parc, const Options& options, const std::function<void(int)>& step) {
  int number = 0;
  while (number < options.warm_up) step(number++);
  parc.settle(); // what was released in there is not part of what is timed
  parc.barrier();
  const double begin = parc_clock(), processor = processor_seconds();
  while (number < options.warm_up + options.steps) step(number++);
  parc.settle();
  const double steps = options.steps;
  return {(parc_clock() - begin) * 1e3 / steps, (processor_seconds() - processor) * 1e3 / steps};
}

int run_program(const Program& program, Options& options, int count, char** arguments,
                const std::function<int()>& run) {
  CLI::App app(program.purpose, program.name);
  try {
    describe(app, options, program);
    app.parse(count, arguments);
    return run();
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  } catch (const Failure& failure) {
    std::cerr << fmt::format("{}: {}\n", app.get_name(), failure.what());
    return 1;
  }
}

int say(const std::string& program, Context& parc, const Options& options, const Timing& timing,
        bool correct) {
  if (options.json) {
    nlohmann::json line{{"schema", 1},           {"program", program},        {"rank", parc.rank()},
                        {"ranks", parc.size()},  {"step_ms", timing.step_ms}, {"cpu_ms", timing.cpu_ms},
                        {"steps", options.steps}};
    for (const Part& part : timing.parts) line[std::string(part.name) + "_ms"] = part.ms;
    if (options.check) line["correct"] = correct;
    std::cout << line.dump() + "\n" << std::flush;
  } else {
    std::string parts;
    for (const Part& part : timing.parts) parts += fmt::format(", {:.3f} {}", part.ms, part.name);
    std::cout << fmt::format("rank {} of {}: {:.3f} ms per step{}{}\n", parc.rank(), parc.size(),
                             timing.step_ms, parts,
                             !options.check ? ""
                             : correct      ? "; equal to the sequential run bit for bit"
                                            : "; WRONG")
              << std::flush;
  }
  return options.check && !correct ? 1 : 0;
}

} // namespace parc::examples
