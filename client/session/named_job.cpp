// SPDX-License-Identifier: BSD-3-Clause
#include "client/session/named_job.hpp"

#include "parc/parc.h"
#include "system/environment.hpp"
#include "system/job_name.hpp"
#include "system/quote.hpp"
#include "system/slurm_lists.hpp"

#include <charconv>
#include <cstdint>
#include <string_view>

namespace parc::client {
namespace {

// What launchers say of a process.
struct Launcher {
  const char *name, *rank, *size;
};
constexpr Launcher by_srun{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};
constexpr Launcher by_mpirun{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
constexpr Launcher by_mpiexec{"mpiexec", "PMI_RANK", "PMI_SIZE"};

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

struct LauncherRank {
  const char* launcher = nullptr; // none has said where it is
  int rank = 0, size = 1;
};

Result<LauncherRank> rank_by(const Launcher& launcher, const Variables& variable) {
  PARC_TRY(rank, whole_number(variable, launcher.rank, 0));
  PARC_TRY(size, whole_number(variable, launcher.size, 1));
  return rank && size ? LauncherRank{launcher.name, *rank, *size} : LauncherRank{};
}

// A launcher that was itself started in a step of Slurm leaves the variables of that to what it starts; srun
// speaks as mpiexec does, too, where it is told to (--mpi=pmi2).
Result<LauncherRank> rank_by_launcher(const Variables& variable) {
  PARC_TRY(of_mpirun, rank_by(by_mpirun, variable));
  if (of_mpirun.launcher != nullptr) return of_mpirun;
  PARC_TRY(of_step, variable("SLURM_STEP_ID") != nullptr ? rank_by(by_srun, variable) : LauncherRank{});
  PARC_TRY(of_mpiexec, rank_by(by_mpiexec, variable));
  const bool same = of_step.rank == of_mpiexec.rank && of_step.size == of_mpiexec.size;
  return of_mpiexec.launcher == nullptr || (of_step.launcher != nullptr && same) ? of_step : of_mpiexec;
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
Result<NamedJob> job_of_step(const char* job, const char* step, const char* list, const LauncherRank& place) {
  auto nodes = expand_node_list(list);
  if (!nodes) {
    nodes.error().code = PARC_EINVAL;
    return std::move(nodes).error().in("cannot tell the nodes of this step of Slurm (SLURM_STEP_NODELIST)");
  }
  return checked({.name = fmt::format("slurm-{}.{}", job, step),
                  .host = nodes.value().front(),
                  .rank = place.rank,
                  .size = place.size});
}

// Where PARC_RANK does not say the rank, it is the launcher's, behind those of other launchers.
Result<NamedJob> job_named_in_environment(const char* name, const LauncherRank& place,
                                          const Variables& variable) {
  PARC_TRY(own_rank, whole_number(variable, env_rank, 0));
  PARC_TRY(own_size, whole_number(variable, env_size, 1));
  PARC_TRY(first, whole_number(variable, env_first_rank, 0));
  if (place.launcher == nullptr && (!own_rank || !own_size))
    return error(PARC_EINVAL,
                 "{}={} in the environment says which job this program joins, and nothing says "
                 "its {}: set {} and {}",
                 env_job, name, own_rank ? "size" : "rank", env_rank, env_size);
  const int size = own_size.value_or(place.size);
  const std::int64_t rank = own_rank ? *own_rank : std::int64_t{place.rank} + first.value_or(0);
  if (rank >= size)
    return error(
        PARC_EINVAL, "there is no rank {} in a job of {}{}", rank, size,
        own_rank || !first ? "" : fmt::format(" ({}={} and rank {})", env_first_rank, *first, place.rank));
  return named_job(name, static_cast<int>(rank), size);
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
  if (variable(env_kernel) != nullptr) return std::optional<NamedJob>();
  PARC_TRY(place, rank_by_launcher(variable));
  if (const char* const name = variable(env_job)) {
    PARC_TRY(job, job_named_in_environment(name, place, variable));
    return std::optional(std::move(job));
  }
  for (const char* const ours : {env_rank, env_size, env_first_rank})
    if (variable(ours) != nullptr)
      return error(PARC_EINVAL,
                   "{} is set in the environment, and nothing says of which job: set {}=NAME@HOST for all "
                   "its ranks, or unset {}",
                   ours, env_job, ours);
  if (place.size == 1) return std::optional<NamedJob>();
  const char *const job_id = variable("SLURM_JOB_ID"), *const step = variable("SLURM_STEP_ID"),
                    *const nodes = variable("SLURM_STEP_NODELIST");
  if (place.launcher == by_srun.name && step != nullptr && job_id != nullptr && nodes != nullptr) {
    PARC_TRY(job, job_of_step(job_id, step, nodes, place));
    return std::optional(std::move(job));
  }
  return error(PARC_EINVAL,
               "{} has started this program as rank {} of {}, and nothing says which job they form: set "
               "{}=NAME@HOST for all of them, or start them with parc run",
               place.launcher, place.rank, place.size, env_job);
}

} // namespace parc::client
