// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/allocation.hpp"

#include "jobs/hostfile.hpp"
#include "system/quote.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

namespace parc {
namespace {

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

Error no_list(std::string_view text) {
  return error(EINVAL, "{} is no list of nodes as Slurm writes them", quote(text));
}

// The words between commas that stand in no brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    } else {
      depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
    }
  }
  return parts;
}

// "1", or "08-11", whose numbers have as many digits as the first.
Result<void> expand_range(std::string_view range, std::vector<std::string>& numbers) {
  const auto dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const auto from = number(low), to = number(dash == range.npos ? low : range.substr(dash + 1));
  if (!from || !to || *to < *from || *to - *from >= max_ranks) return no_list(range);
  for (std::uint32_t i = *from; i <= *to; ++i) numbers.push_back(fmt::format("{:0{}}", i, low.size()));
  return success();
}

// The first pair of brackets, and what follows by itself.
Result<void> expand_node(std::string_view node, const std::string& before, std::vector<std::string>& names) {
  const auto open = node.find('[');
  if (open == node.npos) {
    const std::string name = before + std::string(node);
    if (name.empty() || names.size() == max_ranks) return no_list(node);
    names.push_back(name);
    return success();
  }
  const auto close = node.find(']', open);
  if (close == node.npos) return no_list(node);
  std::vector<std::string> numbers;
  for (const std::string_view range : split(node.substr(open + 1, close - open - 1))) {
    PARC_TRY(expand_range(range, numbers));
  }
  for (const std::string& each : numbers) {
    PARC_TRY(expand_node(node.substr(close + 1), before + std::string(node.substr(0, open)) + each, names));
  }
  return success();
}

const char* either(const Lookup& variable, const char* first, const char* second) {
  const char* const value = variable(first);
  return value != nullptr ? value : variable(second);
}

// A node has as many slots as Slurm would start tasks there.
Result<std::vector<HostSlots>> nodes_of_slurm(const Lookup& variable) {
  const char* const list = either(variable, "SLURM_JOB_NODELIST", "SLURM_NODELIST");
  const char* const counts = either(variable, "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE");
  if (list == nullptr) return error(EINVAL, "SLURM_JOB_NODELIST is not set");
  PARC_TRY(names, expand_node_list(list));
  PARC_TRY(slots, expand_counts(counts != nullptr ? counts : fmt::format("1(x{})", names.size())));
  if (slots.size() != names.size())
    return error(EINVAL, "{} names {} nodes, and {} has numbers for {}", quote(list), names.size(),
                 quote(counts), slots.size());
  HostList hosts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    PARC_TRY(host, parse_host(names[i]));
    host.slots = std::clamp(slots[i], 1U, max_slots);
    hosts.add(std::move(host));
  }
  return std::move(hosts).take();
}

Result<std::string> file_named_by(const char* name, const Lookup& variable) {
  const std::string file = variable(name);
  if (file.empty()) return error(EINVAL, "{} is set, and empty; unset it outside of batch jobs", name);
  return file;
}

Result<std::vector<HostSlots>> nodes_of_pbs(const Lookup& variable) {
  PARC_TRY(file, file_named_by("PBS_NODEFILE", variable));
  return read_hostfile(file);
}

Result<std::vector<HostSlots>> nodes_of_grid_engine(const Lookup& variable) {
  PARC_TRY(file, file_named_by("PE_HOSTFILE", variable));
  return read_grid_engine_hostfile(file);
}

struct Source {
  const char* name;
  const char* known_by; // a variable that is set in its jobs alone
  const char* job;      // the variable that names the job
  Result<std::vector<HostSlots>> (*hosts)(const Lookup& variable);
  Launcher (*launcher)(); // perhaps none
};
constexpr std::array<Source, 3> sources{
    {{"Slurm", "SLURM_JOB_ID", "SLURM_JOB_ID", nodes_of_slurm, by_srun},
     {"PBS", "PBS_NODEFILE", "PBS_JOBID", nodes_of_pbs, nullptr},
     {"Grid Engine", "PE_HOSTFILE", "JOB_ID", nodes_of_grid_engine, nullptr}}};

} // namespace

Result<std::vector<std::string>> expand_node_list(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view node : split(text)) {
    PARC_TRY(expand_node(node, {}, names));
  }
  return names;
}

Result<std::vector<std::uint32_t>> expand_counts(std::string_view text) {
  std::vector<std::uint32_t> counts;
  for (const std::string_view part : split(text)) {
    const auto times = part.find("(x");
    const bool repeats = times != part.npos && part.back() == ')';
    const auto count = number(part.substr(0, times));
    const auto repeated =
        repeats ? number(part.substr(times + 2, part.size() - times - 3)) : std::optional<std::uint32_t>(1);
    if (!count || !repeated || (times != part.npos && !repeats) || *repeated > max_ranks - counts.size())
      return error(EINVAL, "{} is no list of numbers as Slurm writes them", quote(text));
    counts.insert(counts.end(), *repeated, *count);
  }
  return counts;
}

Result<std::optional<Allocation>> find_allocation(const Lookup& variable) {
  for (const Source& source : sources) {
    if (variable(source.known_by) == nullptr) continue;
    const char* const job = variable(source.job);
    std::string name = job != nullptr ? fmt::format("job {} of {}", job, source.name)
                                      : fmt::format("a job of {}", source.name);
    auto hosts = source.hosts(variable);
    if (!hosts) return std::move(hosts).error().in(fmt::format("cannot tell the hosts of {}", name));
    return std::optional(
        Allocation{.source = std::move(name),
                   .hosts = std::move(hosts).value(),
                   .launcher = source.launcher != nullptr ? std::optional(source.launcher()) : std::nullopt});
  }
  return std::optional<Allocation>();
}

} // namespace parc
