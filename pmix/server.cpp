// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/server.hpp"

#include "pmix/infos.hpp"
#include "pmix/peer_owner.hpp"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <fmt/ranges.h>
#include <future>
#include <pmix.h>
#include <unistd.h>
#include <utility>

namespace parc::pmix {
namespace {

Server* the_server = nullptr; // PMIx hands its callbacks no argument of ours

Result<void> checked(pmix_status_t status, std::string_view what) {
  if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED) return success();
  return error(EIO, "libpmix cannot {}: {}", what, PMIx_Error_string(status));
}

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

// Answers what asks for data, and frees it when that has been taken.
void answer(pmix_modex_cbfunc_t answer, void* argument, int status, std::string data) {
  auto kept = std::make_unique<std::string>(std::move(data));
  const auto release = [](void* text) { delete static_cast<std::string*>(text); };
  const char* const bytes = kept->empty() ? nullptr : kept->data();
  const std::size_t size = kept->size();
  answer(status, bytes, size, argument, release, kept.release());
}

} // namespace

std::vector<std::string> Job::hosts() const {
  std::vector<std::string> all;
  for (const std::string& host : host_of_rank)
    if (std::ranges::find(all, host) == all.end()) all.push_back(host);
  return all;
}

std::vector<std::uint32_t> Job::server_of_rank() const {
  const std::vector<std::string> all = hosts();
  std::vector<std::uint32_t> servers;
  for (const std::string& host : host_of_rank)
    servers.push_back(static_cast<std::uint32_t>(std::ranges::find(all, host) - all.begin()));
  return servers;
}

// ---- What libpmix asks, on its thread.

struct Callbacks {
  // A rank that calls waits for these: what is said here comes before its end.
  static pmix_status_t connected(const pmix_proc_t* proc, void*, pmix_info_t*, std::size_t, pmix_op_cbfunc_t,
                                 void*) {
    if (!peers_are_checked()) return PMIX_ERR_NOT_SUPPORTED;
    say(fmt::format("in {}\n", proc->rank));
    return PMIX_OPERATION_SUCCEEDED;
  }
  static pmix_status_t finalized(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t, void*) {
    say(fmt::format("out {}\n", proc->rank));
    return PMIX_OPERATION_SUCCEEDED;
  }

  static pmix_status_t abort(const pmix_proc_t* proc, void*, int status, const char*, pmix_proc_t*,
                             std::size_t, pmix_op_cbfunc_t, void*) {
    say(fmt::format("abort {} {}\n", proc->rank, status));
    return PMIX_OPERATION_SUCCEEDED;
  }

  static pmix_status_t fence(const pmix_proc_t* procs, std::size_t count, const pmix_info_t*, std::size_t,
                             char* data, std::size_t bytes, pmix_modex_cbfunc_t end, void* argument) {
    std::set<std::uint32_t> ranks;
    for (std::size_t i = 0; i < count; ++i) {
      if (procs[i].nspace != the_server->job_.name) return PMIX_ERR_NOT_SUPPORTED;
      if (procs[i].rank == PMIX_RANK_WILDCARD) {
        ranks.clear();
        break;
      }
      ranks.insert(procs[i].rank);
    }
    the_server->exchange_.post([ranks = std::move(ranks),
                                contribution = std::string(data ? data : "", data ? bytes : 0), end,
                                argument] {
      the_server->exchange_.fence(ranks, contribution, [end, argument](int status, std::string all) {
        answer(end, argument, status, std::move(all));
      });
    });
    return PMIX_SUCCESS;
  }

  static pmix_status_t modex(const pmix_proc_t* proc, const pmix_info_t*, std::size_t,
                             pmix_modex_cbfunc_t end, void* argument) {
    if (proc->nspace != the_server->job_.name) return PMIX_ERR_NOT_FOUND;
    the_server->exchange_.post([rank = proc->rank, end, argument] {
      the_server->exchange_.modex(rank, [end, argument](int status, std::string data) {
        answer(end, argument, status, std::move(data));
      });
    });
    return PMIX_SUCCESS;
  }

  static pmix_status_t register_events(pmix_status_t*, std::size_t, const pmix_info_t*, std::size_t,
                                       pmix_op_cbfunc_t, void*) {
    return PMIX_OPERATION_SUCCEEDED;
  }
  static pmix_status_t deregister_events(pmix_status_t*, std::size_t, pmix_op_cbfunc_t, void*) {
    return PMIX_OPERATION_SUCCEEDED;
  }
  static pmix_status_t notify(pmix_status_t, const pmix_proc_t*, pmix_data_range_t, pmix_info_t*, std::size_t,
                              pmix_op_cbfunc_t, void*) {
    return PMIX_OPERATION_SUCCEEDED;
  }
};

namespace {

// A rank of this host has for others what it has committed.
void ask_local(const std::string& name, std::uint32_t rank, Exchange::Answer then) {
  pmix_proc_t proc{};
  PMIX_LOAD_PROCID(&proc, name.c_str(), rank);
  auto kept = std::make_unique<Exchange::Answer>(std::move(then));
  const pmix_dmodex_response_fn_t end = [](pmix_status_t status, char* data, std::size_t bytes,
                                           void* argument) {
    const std::unique_ptr<Exchange::Answer> asked(static_cast<Exchange::Answer*>(argument));
    (*asked)(status, std::string(data ? data : "", data ? bytes : 0));
  };
  if (const pmix_status_t status = PMIx_server_dmodex_request(&proc, end, kept.get()); status != PMIX_SUCCESS)
    return (*kept)(status, {});
  (void)kept.release(); // the callback has it
}

pmix_server_module_t all_callbacks() {
  pmix_server_module_t all{};
  all.client_connected2 = Callbacks::connected;
  all.client_finalized = Callbacks::finalized;
  all.abort = Callbacks::abort;
  all.fence_nb = Callbacks::fence;
  all.direct_modex = Callbacks::modex;
  all.register_events = Callbacks::register_events;
  all.deregister_events = Callbacks::deregister_events;
  all.notify_event = Callbacks::notify;
  return all;
}

} // namespace

Server::Server(const Job& job, parc_context* parc)
    : job_(job), hosts_(job.hosts()), server_of_rank_(job.server_of_rank()),
      self_(static_cast<std::uint32_t>(parc_rank(parc))),
      exchange_(parc, server_of_rank_, [this](std::uint32_t rank, Exchange::Answer then) {
        ask_local(job_.name, rank, std::move(then));
      }) {
  assert(the_server == nullptr);
  the_server = this;
}

Server::~Server() {
  PMIx_server_finalize();
  the_server = nullptr;
}

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout); // which is locked for that
  std::fflush(stdout);
}

Result<std::unique_ptr<Server>> Server::start(const Job& job, parc_context* parc) {
  static pmix_server_module_t callbacks = all_callbacks();
  Infos infos;
  infos.add(PMIX_SERVER_TMPDIR, job.directory);
  infos.add(PMIX_SYSTEM_TMPDIR, job.directory);
  infos.add(PMIX_TCP_DISABLE_IPV6, true); // owner_of_peer() has IPv4
  std::unique_ptr<Server> server(new Server(job, parc));
  PARC_TRY(checked(PMIx_server_init(&callbacks, infos.data(), infos.size()), "start"));
  PARC_TRY(server->register_job());
  return server;
}

// What every rank is told: as much as it would ask for otherwise.
Result<void> Server::register_job() {
  const auto size = static_cast<std::uint32_t>(server_of_rank_.size());
  std::vector<std::vector<std::string>> ranks_of_host(hosts_.size());
  for (std::uint32_t rank = 0; rank < size; ++rank)
    ranks_of_host[server_of_rank_[rank]].push_back(std::to_string(rank));
  const std::vector<std::string>& here = ranks_of_host[self_];
  std::vector<std::string> lists;
  lists.reserve(ranks_of_host.size());
  for (const auto& ranks : ranks_of_host) lists.push_back(fmt::format("{}", fmt::join(ranks, ",")));
  char *node_map = nullptr, *rank_map = nullptr;
  PARC_TRY(checked(PMIx_generate_regex(fmt::format("{}", fmt::join(hosts_, ",")).c_str(), &node_map),
                   "describe the hosts"));
  PARC_TRY(checked(PMIx_generate_ppn(fmt::format("{}", fmt::join(lists, ";")).c_str(), &rank_map),
                   "describe the ranks"));

  Infos infos;
  infos.add(PMIX_NODE_MAP, node_map);
  infos.add(PMIX_PROC_MAP, rank_map);
  free(node_map);
  free(rank_map);
  infos.add(PMIX_JOBID, job_.name);
  infos.add(PMIX_UNIV_SIZE, size);
  infos.add(PMIX_MAX_PROCS, size);
  infos.add(PMIX_JOB_SIZE, size);
  infos.add(PMIX_JOB_NUM_APPS, std::uint32_t{1});
  infos.add(PMIX_NUM_NODES, static_cast<std::uint32_t>(hosts_.size()));
  infos.add(PMIX_LOCAL_SIZE, static_cast<std::uint32_t>(here.size()));
  infos.add(PMIX_NODE_SIZE, static_cast<std::uint32_t>(here.size()));
  infos.add(PMIX_LOCAL_PEERS, fmt::format("{}", fmt::join(here, ",")));
  infos.add_rank(PMIX_LOCALLDR, static_cast<pmix_rank_t>(std::stoul(here.front())));
  infos.add(PMIX_TMPDIR, job_.directory);
  infos.add(PMIX_NSDIR, job_.directory);
  infos.add(PMIX_TDIR_RMCLEAN, true);
  std::vector<std::uint16_t> next_on_host(hosts_.size(), 0);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const std::uint32_t host = server_of_rank_[rank];
    Infos one;
    one.add_rank(PMIX_RANK, rank);
    one.add(PMIX_APPNUM, std::uint32_t{0});
    one.add_rank(PMIX_GLOBAL_RANK, rank);
    one.add_rank(PMIX_APP_RANK, rank);
    one.add(PMIX_LOCAL_RANK, next_on_host[host]);
    one.add(PMIX_NODE_RANK, next_on_host[host]++);
    one.add(PMIX_NODEID, host);
    one.add(PMIX_HOSTNAME, hosts_[host]);
    infos.add(PMIX_PROC_DATA, one);
  }
  PARC_TRY(and_wait("register the job", [&](pmix_op_cbfunc_t end, void* argument) {
    return PMIx_server_register_nspace(job_.name.c_str(), static_cast<int>(here.size()), infos.data(),
                                       infos.size(), end, argument);
  }));
  for (const std::string& rank : here) {
    pmix_proc_t proc{};
    PMIX_LOAD_PROCID(&proc, job_.name.c_str(), static_cast<pmix_rank_t>(std::stoul(rank)));
    PARC_TRY(and_wait("register a rank", [&](pmix_op_cbfunc_t end, void* argument) {
      return PMIx_server_register_client(&proc, getuid(), getgid(), nullptr, end, argument);
    }));
  }
  return success();
}

// Those of one rank are those of all but for its number, which its kernel knows.
Result<std::vector<std::string>> Server::variables() const {
  pmix_proc_t proc{};
  const auto first = std::ranges::find(server_of_rank_, self_) - server_of_rank_.begin();
  PMIX_LOAD_PROCID(&proc, job_.name.c_str(), static_cast<pmix_rank_t>(first));
  char** made = nullptr;
  PARC_TRY(checked(PMIx_server_setup_fork(&proc, &made), "prepare ranks"));
  std::vector<std::string> all;
  for (char** each = made; each != nullptr && *each != nullptr; ++each) {
    const std::string variable = *each;
    if (!variable.starts_with("PMIX_RANK=")) all.push_back(variable);
    free(*each);
  }
  free(made);
  // Open MPI 4 takes what it was not started by itself for a program that runs alone, unless it knows the
  // launcher: this is the least of those that it knows.
  all.insert(all.end(), {"JSM_VERSION=1", "OMPI_MCA_schizo=jsm"});
  // And has the memory of its windows in files, which would stay in /dev/shm where ranks are killed.
  for (const char* const kind : {"sm", "rdma"})
    all.push_back(fmt::format("OMPI_MCA_osc_{}_backing_directory={}", kind, job_.directory));
  return all;
}

} // namespace parc::pmix
