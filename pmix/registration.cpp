// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/registration.hpp"

#include "pmix/infos.hpp"

#include <cerrno>
#include <cstdlib>
#include <fmt/ranges.h>
#include <future>
#include <pmix.h>
#include <unistd.h>

namespace parc::pmix {
namespace {

// Runs a call of PMIx that ends on its thread.
template <class Start> Result<void> and_wait(std::string_view what, const Start& start) {
  std::promise<pmix_status_t> ended;
  const pmix_op_cbfunc_t end = [](pmix_status_t status, void* promise) {
    static_cast<std::promise<pmix_status_t>*>(promise)->set_value(status);
  };
  const pmix_status_t status = start(end, &ended);
  if (status != PMIX_SUCCESS) return checked(status, what);
  return checked(ended.get_future().get(), what);
}

// Numbers of the ranks of each host, in digits.
std::vector<std::vector<std::string>> ranks_of_hosts(const Job& job) {
  std::vector<std::vector<std::string>> all(job.hosts().size());
  std::uint32_t rank = 0;
  for (const std::uint32_t host : job.server_of_rank()) all[host].push_back(std::to_string(rank++));
  return all;
}

// What every rank is told: as much as it would ask for otherwise.
Result<void> add_map(Infos& infos, const Job& job) {
  const std::vector<std::string> hosts = job.hosts();
  std::vector<std::string> lists;
  for (const auto& ranks : ranks_of_hosts(job)) lists.push_back(fmt::format("{}", fmt::join(ranks, ",")));
  char *node_map = nullptr, *rank_map = nullptr;
  PARC_TRY(checked(PMIx_generate_regex(fmt::format("{}", fmt::join(hosts, ",")).c_str(), &node_map),
                   "describe the hosts"));
  PARC_TRY(checked(PMIx_generate_ppn(fmt::format("{}", fmt::join(lists, ";")).c_str(), &rank_map),
                   "describe the ranks"));
  infos.add(PMIX_NODE_MAP, node_map);
  infos.add(PMIX_PROC_MAP, rank_map);
  free(node_map);
  free(rank_map);
  const auto size = static_cast<std::uint32_t>(job.host_of_rank.size());
  infos.add(PMIX_JOBID, job.name);
  infos.add(PMIX_UNIV_SIZE, size);
  infos.add(PMIX_MAX_PROCS, size);
  infos.add(PMIX_JOB_SIZE, size);
  infos.add(PMIX_JOB_NUM_APPS, static_cast<std::uint32_t>(job.apps.size()));
  infos.add(PMIX_NUM_NODES, static_cast<std::uint32_t>(hosts.size()));
  return success();
}

void add_ranks(Infos& infos, const Job& job) {
  std::vector<std::uint16_t> next_on_host(job.hosts().size(), 0);
  std::uint32_t rank = 0;
  for (const std::uint32_t host : job.server_of_rank()) {
    Infos one;
    one.add_rank(PMIX_RANK, rank);
    const Job::App app = job.app_of(rank);
    one.add(PMIX_APPNUM, app.number);
    one.add_rank(PMIX_GLOBAL_RANK, rank);
    one.add_rank(PMIX_APP_RANK, app.rank);
    one.add(PMIX_LOCAL_RANK, next_on_host[host]);
    one.add(PMIX_NODE_RANK, next_on_host[host]++);
    one.add(PMIX_NODEID, host);
    one.add(PMIX_HOSTNAME, job.host_of_rank[rank++]);
    infos.add(PMIX_PROC_DATA, one);
  }
}

Result<void> add_job(const Job& job, std::size_t ranks_here, Infos& infos) {
  return and_wait("register a job", [&](pmix_op_cbfunc_t end, void* argument) {
    return PMIx_server_register_nspace(job.name.c_str(), static_cast<int>(ranks_here), infos.data(),
                                       infos.size(), end, argument);
  });
}

} // namespace

Result<void> checked(int status, std::string_view what) {
  if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED) return success();
  return error(EIO, "libpmix cannot {}: {}", what, PMIx_Error_string(status));
}

Result<void> register_own_job(const Job& job, std::uint32_t self, const std::string& directory) {
  const std::vector<std::string> here = ranks_of_hosts(job)[self];
  Infos infos;
  PARC_TRY(add_map(infos, job));
  infos.add(PMIX_LOCAL_SIZE, static_cast<std::uint32_t>(here.size()));
  infos.add(PMIX_NODE_SIZE, static_cast<std::uint32_t>(here.size()));
  infos.add(PMIX_LOCAL_PEERS, fmt::format("{}", fmt::join(here, ",")));
  infos.add_rank(PMIX_LOCALLDR, static_cast<pmix_rank_t>(std::stoul(here.front())));
  infos.add(PMIX_TMPDIR, directory);
  infos.add(PMIX_NSDIR, directory);
  infos.add(PMIX_TDIR_RMCLEAN, true);
  add_ranks(infos, job);
  PARC_TRY(add_job(job, here.size(), infos));
  for (const std::string& rank : here) {
    pmix_proc_t proc{};
    PMIX_LOAD_PROCID(&proc, job.name.c_str(), static_cast<pmix_rank_t>(std::stoul(rank)));
    PARC_TRY(and_wait("register a rank", [&](pmix_op_cbfunc_t end, void* argument) {
      return PMIx_server_register_client(&proc, getuid(), getgid(), nullptr, end, argument);
    }));
  }
  return success();
}

Result<void> register_other_job(const Job& job) {
  Infos infos;
  PARC_TRY(add_map(infos, job));
  add_ranks(infos, job);
  return add_job(job, 0, infos);
}

} // namespace parc::pmix
