// SPDX-License-Identifier: BSD-3-Clause
#include "system/observe/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>

namespace parc {
namespace {

std::string processor_name() {
  std::ifstream about("/proc/cpuinfo");
  for (std::string line; std::getline(about, line);)
    if (const auto colon = line.find(": "); line.starts_with("model name") && colon != line.npos)
      return line.substr(colon + 2);
  return {};
}

std::uint64_t from_system(int what) {
  return static_cast<std::uint64_t>(std::max(sysconf(what), 0L));
}

} // namespace

Machine this_machine() {
  utsname system{};
  uname(&system);
  return {.processor = processor_name(),
          .cores = std::thread::hardware_concurrency(),
          .memory = from_system(_SC_PHYS_PAGES) * from_system(_SC_PAGESIZE),
          .system = fmt::format("{} {}", system.sysname, system.release)};
}

std::string text_of(const Machine& machine) {
  const std::string cores = machine.cores == 1 ? "1 core" : fmt::format("{} cores", machine.cores);
  const std::string of = machine.processor.empty() ? "" : fmt::format(" ({})", machine.processor);
  constexpr double gib = 1 << 30;
  return fmt::format("{}{}, {:.0f} GiB, {}", cores, of, static_cast<double>(machine.memory) / gib,
                     machine.system);
}

double load_average() {
  double load = -1;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

std::optional<CoreTimes> core_times() {
  std::ifstream file("/proc/stat");
  std::string name;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, waits = 0, interrupts = 0, soft = 0, stolen = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> waits >> interrupts >> soft >> stolen)) return {};
  const std::uint64_t tick_ns = 1'000'000'000 / std::max<std::uint64_t>(from_system(_SC_CLK_TCK), 1);
  return CoreTimes{.worked = std::chrono::nanoseconds((user + nice + system + interrupts + soft) * tick_ns),
                   .stolen = std::chrono::nanoseconds(stolen * tick_ns)};
}

} // namespace parc
