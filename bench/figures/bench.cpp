// SPDX-License-Identifier: BSD-3-Clause
#include "bench/figures/bench.hpp"

#include "system/standard_streams.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <unistd.h>

namespace parc::bench {
namespace {

// Names the emulation that a bench has started itself in: WANLINK_DIR alone may be somebody else's.
constexpr char inside[] = "PARC_BENCH_INSIDE";

// Inside `wanlink run --preset PRESET` it returns at once; outside, this process becomes that.
Result<void> enter_emulation(std::string_view preset, char** arguments, std::size_t hosts) {
  if (const char* where = std::getenv(inside); where != nullptr && where == preset) return success();
  setenv(inside, std::string(preset).c_str(), 1);
  Command command = {program("wanlink"),    "run", "--preset", std::string(preset), "--hosts",
                     std::to_string(hosts), "--",  self_path()};
  for (char** argument = arguments + 1; *argument != nullptr; ++argument) command.push_back(*argument);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  execv(words[0], words.data());
  return system_error("cannot execute {}", command[0]);
}

// Only one bench at a time may be on them; what a killed one left there the next removes.
Result<Hosts> loopback_hosts() {
  return Hosts::on_loopback(2, fmt::format("/tmp/parc-bench-{}", getuid()));
}

} // namespace

Bench::Bench(const char* name, const char* about) : App(about, name) {
  open_standard_streams();
}

void Bench::begin(int count, char** arguments) {
  arguments_ = arguments;
  try {
    parse(count, arguments);
  } catch (const CLI::ParseError& problem) {
    std::exit(exit(problem));
  }
}

int Bench::end(const Result<void>& result) const {
  if (!result) std::cerr << get_name() << ": " << result.error().text << '\n';
  return end_of_output(get_name().c_str(), result ? 0 : 1, 1);
}

int Bench::run(const Place& place, const std::function<Result<void>(const Hosts&)>& use) const {
  const bool emulated = !place.preset.empty();
  if (emulated)
    if (const auto entered = enter_emulation(place.preset, arguments_, place.hosts); !entered)
      return end(entered);
  catch_interrupts();
  const auto used = [&]() -> Result<void> {
    PARC_TRY(hosts, emulated ? Hosts::of_emulation(place.hosts) : loopback_hosts());
    if (!place.kernels) return use(hosts);
    PARC_TRY(kernels, Kernels::start(hosts, {}));
    [[maybe_unused]] const auto& running = kernels;
    return use(hosts);
  };
  return end(used());
}

int Bench::measure(const Place& place, const Options& options,
                   const std::function<Result<std::vector<Row>>(const Hosts&)>& rows) const {
  std::string title = get_name().substr(std::string_view("bench-").size());
  std::ranges::replace(title, '-', ' ');
  return run(place, [&](const Hosts& hosts) -> Result<void> {
    PARC_TRY(network, network_of(hosts));
    PARC_TRY(measured, rows(hosts));
    return show(title, options, network, measured);
  });
}

} // namespace parc::bench
