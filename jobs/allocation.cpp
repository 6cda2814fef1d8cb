// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/allocation.hpp"

#include "jobs/hostfile.hpp"
#include "system/quote.hpp"
#include "system/slurm_lists.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace parc {
namespace {

const char* either(const Lookup& variable, const char* first, const char* second) {
  const char* const value = variable(first);
  return value != nullptr ? value : variable(second);
}

// A node has as many slots as Slurm would start tasks there. In a step of fewer nodes Slurm says that of the
// step's, beside the list of the whole job's: then it has as many as it has processors.
Result<std::vector<std::uint32_t>> slots_of_slurm(const Lookup& variable, const char* list,
                                                  std::size_t nodes) {
  std::vector<std::uint32_t> slots(nodes, 1);
  for (const char* const name : {"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"}) {
    const char* const counts = variable(name);
    if (counts == nullptr) continue;
    PARC_TRY(counted, expand_counts(counts));
    slots = std::move(counted);
    if (slots.size() == nodes) return slots;
  }
  if (slots.size() != nodes)
    return error(EINVAL,
                 "SLURM_JOB_NODELIST={} names {} nodes, and neither SLURM_TASKS_PER_NODE nor "
                 "SLURM_JOB_CPUS_PER_NODE has a number for each; name the hosts with --hosts",
                 quote(list), nodes);
  return slots;
}

Result<std::vector<HostSlots>> nodes_of_slurm(const Lookup& variable) {
  const char* const list = either(variable, "SLURM_JOB_NODELIST", "SLURM_NODELIST");
  if (list == nullptr) return error(EINVAL, "SLURM_JOB_NODELIST is not set; --hosts names them");
  PARC_TRY(names, expand_node_list(list));
  PARC_TRY(slots, slots_of_slurm(variable, list, names.size()));
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

const Launcher* way_to(const Allocation& allocation, std::span<const std::string> hosts) {
  const auto is_of_it = [&](const std::string& host) {
    return std::ranges::find(allocation.hosts, host, &HostSlots::name) != allocation.hosts.end();
  };
  return allocation.launcher && std::ranges::all_of(hosts, is_of_it) ? &*allocation.launcher : nullptr;
}

} // namespace parc
