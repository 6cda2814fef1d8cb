// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/view/view.hpp"

#include "include/parc/parc.h"
#include "shm/onlooker.hpp"
#include "system/identity.hpp"
#include "system/runtime_dir.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>

namespace parc::tools {

Result<CounterReader> open_counters(const std::string& runtime_dir) {
  PARC_TRY(dir, find_runtime_dir(runtime_dir));
  return CounterReader::open(dir);
}

MachineView look_at_machine() {
  return {.machine = this_machine(), .load = load_average()};
}

KernelView look_at_kernel(const CounterReader& counters) {
  KernelView view{.kernel = counters.read_from_outside(), .programs = {}};
  for (const auto& counted : view.kernel.sessions) {
    ProgramView program{
        counted, {.rank = counted.rank, .process = counted.pid, .host = view.kernel.host, .operations = {}}};
    program.seen.program = program_of(static_cast<pid_t>(counted.pid));
    (void)shm::look_at_segment(static_cast<int>(counted.segment), most_unfinished, program.seen);
    view.programs.push_back(std::move(program));
  }
  std::ranges::sort(view.programs, {},
                    [](const ProgramView& each) { return std::pair(each.counted.job, each.counted.rank); });
  return view;
}

std::string job_name(std::uint64_t id) {
  return fmt::format("{:x}", id);
}

// Exit statuses are numbers.
std::string code_name(const CounterSnapshot::Error& error) {
  constexpr std::array of_parc{std::pair{PARC_EINVAL, "PARC_EINVAL"}, std::pair{PARC_ENOMEM, "PARC_ENOMEM"},
                               std::pair{PARC_ETRUNCATE, "PARC_ETRUNCATE"},
                               std::pair{PARC_EPEER, "PARC_EPEER"},
                               std::pair{PARC_EVERSION, "PARC_EVERSION"}};
  const bool of_process = error.kind == ErrorKind::Program || error.kind == ErrorKind::Job;
  if (error.code < 0) {
    const auto* const found =
        std::ranges::find(of_parc, error.code, [](const auto& each) { return each.first; });
    if (found != of_parc.end()) return found->second;
  } else if (const char* name = strerrorname_np(static_cast<int>(error.code));
             name != nullptr && !of_process) {
    return name;
  }
  return fmt::to_string(error.code);
}

} // namespace parc::tools
