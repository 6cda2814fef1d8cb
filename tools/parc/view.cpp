// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/view.hpp"

#include "shm/onlooker.hpp"
#include "system/identity.hpp"
#include "system/runtime_dir.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace parc::tools {

Result<CounterReader> open_counters(const std::string& runtime_dir) {
  PARC_TRY(dir, find_runtime_dir(runtime_dir));
  return CounterReader::open(dir);
}

KernelView look_at_kernel(const CounterReader& counters) {
  KernelView view{.kernel = counters.read(), .programs = {}};
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

} // namespace parc::tools
