// SPDX-License-Identifier: BSD-3-Clause
#include "client/named_job.hpp"

#include "parc/parc.h"
#include "system/job_name.hpp"
#include "system/quote.hpp"
#include "system/slurm_lists.hpp"

#include <array>
#include <charconv>
#include <string_view>

namespace parc::client {
namespace {

// What launchers say of a process, in the order in which they are asked. A step of Slurm has a number.
struct Launcher {
  const char *name, *rank, *size;
  const char* only_with; // else nullptr
};
constexpr std::array<Launcher, 3> launchers{
    {{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
     {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
     {"mpiexec", "PMI_RANK", "PMI_SIZE", nullptr}}};

// None: it is not set.
Result<std::optional<int>> whole_number(const Variables& variable, const char* name, int least) {
  const char* const text = variable(name);
  if (text == nullptr) return std::optional<int>();
  const std::string_view all = text;
  int number = 0;
  const auto [end, problem] = std::from_chars(all.data(), all.data() + all.size(), number);
  if (problem != std::errc() || end != all.data() + all.size() || number < least)
    return error(PARC_EINVAL, "{}={} in the environment is no number from {} on", name, all, least);
  return std::optional(number);
}

struct Place {
  const char* launcher = nullptr;
  std::optional<int> rank, size;
};

Result<Place> place_by_launcher(const Variables& variable) {
  for (const Launcher& each : launchers) {
    if (each.only_with != nullptr && variable(each.only_with) == nullptr) continue;
    PARC_TRY(rank, whole_number(variable, each.rank, 0));
    PARC_TRY(size, whole_number(variable, each.size, 1));
    if (rank && size) return Place{each.name, rank, size};
  }
  return Place{};
}

Result<NamedJob> checked(NamedJob job) {
  if (!is_job_name(job.name))
    return error(PARC_EINVAL, "{} names no job: {}", quote(job.name), job_name_rule);
  if (job.host.size() > longest_host_name)
    return error(PARC_EINVAL, "{} names no host: a host's name has at most {} characters", quote(job.host),
                 longest_host_name);
  if (job.size < 1 || job.rank < 0 || job.rank >= job.size)
    return error(PARC_EINVAL, "there is no rank {} in a job of {}", job.rank, job.size);
  return job;
}

// The ranks of a step of Slurm's meet at the first of its nodes.
Result<NamedJob> job_of_step(const char* job, const char* step, const char* list, const Place& place) {
  auto nodes = expand_node_list(list);
  if (!nodes) {
    nodes.error().code = PARC_EINVAL;
    return std::move(nodes).error().in("cannot tell the nodes of this step of Slurm (SLURM_STEP_NODELIST)");
  }
  return checked({.name = fmt::format("slurm-{}.{}", job, step),
                  .host = nodes.value().front(),
                  .rank = *place.rank,
                  .size = *place.size});
}

} // namespace

Result<NamedJob> named_job(std::string_view text, int rank, int size) {
  NamedJob job{.name = std::string(text.substr(0, text.find('@'))), .host = {}, .rank = rank, .size = size};
  if (text.find('@') != text.npos) job.host = text.substr(text.find('@') + 1);
  if (job.name.empty() || (text.find('@') != text.npos && job.host.empty()))
    return error(PARC_EINVAL, "{} names no job: write NAME, or NAME@HOST", quote(text));
  return checked(std::move(job));
}

Result<std::optional<NamedJob>> job_in_environment(const Variables& variable) {
  // What a rank of parc run starts has its variables and is no rank.
  if (variable("PARC_KERNEL") != nullptr) return std::optional<NamedJob>();
  PARC_TRY(place, place_by_launcher(variable));
  PARC_TRY(own_rank, whole_number(variable, "PARC_RANK", 0));
  PARC_TRY(own_size, whole_number(variable, "PARC_SIZE", 1));
  PARC_TRY(first, whole_number(variable, "PARC_FIRST_RANK", 0));
  const char* const name = variable("PARC_JOB");
  if (name != nullptr) {
    const auto rank = own_rank ? own_rank : place.rank;
    const auto size = own_size ? own_size : place.size;
    if (!rank || !size)
      return error(PARC_EINVAL,
                   "PARC_JOB={} in the environment says which job this program joins, and nothing says "
                   "its {}: set PARC_RANK and PARC_SIZE",
                   name, rank ? "size" : "rank");
    PARC_TRY(job, named_job(name, *rank + (own_rank ? 0 : first.value_or(0)), *size));
    return std::optional(std::move(job));
  }
  if (!place.rank || *place.size == 1) return std::optional<NamedJob>();
  const char *const job_id = variable("SLURM_JOB_ID"), *const step = variable("SLURM_STEP_ID"),
                    *const nodes = variable("SLURM_STEP_NODELIST");
  if (step != nullptr && job_id != nullptr && nodes != nullptr) {
    PARC_TRY(job, job_of_step(job_id, step, nodes, place));
    return std::optional(std::move(job));
  }
  return error(PARC_EINVAL,
               "{} has started this program as rank {} of {}, and nothing says which job they form: set "
               "PARC_JOB=NAME@HOST for all of them, or start them with parc run",
               place.launcher, *place.rank, *place.size);
}

} // namespace parc::client
