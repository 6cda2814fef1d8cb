// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/server.hpp"

#include "pmix/callbacks.hpp"
#include "pmix/events.hpp"
#include "pmix/infos.hpp"
#include "pmix/registration.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <pmix.h>
#include <utility>

namespace parc::pmix {
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

// The next word of a line, which it leaves behind.
std::string_view word_of(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(word.size() + 1, line.size()));
  return word;
}

} // namespace

std::string name_of_job(std::string_view number) {
  return fmt::format("parc-{}", number);
}

Server::Server(const Job& job, const std::string& directory, parc_context* parc)
    : directory_(directory), messenger_(parc), jobs_(job),
      exchange_(messenger_, jobs_,
                [this](std::uint32_t rank, Exchange::Answer then) {
                  ask_local(jobs_.own().name, rank, std::move(then));
                }),
      names_(messenger_, jobs_) {
  messenger_.on(Kind::know,
                [this](int, std::string_view body, const Messenger::Answer& answer) { learn(body, answer); });
  messenger_.on(Kind::event,
                [](int, std::string_view body, const Messenger::Answer&) { deliver_event(body); });
  messenger_.on_lost([this](int server) { server_lost(server); });
}

Server::~Server() {
  PMIx_server_finalize();
}

Result<std::unique_ptr<Server>> Server::start(const Job& job, const std::string& directory,
                                              parc_context* parc) {
  std::unique_ptr<Server> server(new Server(job, directory, parc));
  PARC_TRY(server->begin());
  return server;
}

Result<void> Server::begin() {
  static pmix_server_module_t callbacks = callbacks_of(*this);
  Infos infos;
  infos.add(PMIX_SERVER_TMPDIR, directory_);
  infos.add(PMIX_SYSTEM_TMPDIR, directory_);
  infos.add(PMIX_TCP_DISABLE_IPV6, true); // owner_of_peer() has IPv4
  PARC_TRY(checked(PMIx_server_init(&callbacks, infos.data(), infos.size()), "start"));
  PARC_TRY(register_own_job(jobs_.own(), static_cast<std::uint32_t>(messenger_.self()), directory_));
  return set_variables();
}

// Those of one rank are those of all but for its number, which its kernel knows.
Result<void> Server::set_variables() {
  const auto places = jobs_.own().server_of_rank();
  const auto first = std::ranges::find(places, static_cast<std::uint32_t>(messenger_.self()));
  pmix_proc_t proc{};
  PMIX_LOAD_PROCID(&proc, jobs_.own().name.c_str(), static_cast<pmix_rank_t>(first - places.begin()));
  char** made = nullptr;
  PARC_TRY(checked(PMIx_server_setup_fork(&proc, &made), "prepare ranks"));
  for (char** each = made; each != nullptr && *each != nullptr; ++each) {
    const std::string variable = *each;
    if (!variable.starts_with("PMIX_RANK=")) variables_.push_back(variable);
    free(*each);
  }
  free(made);
  // Open MPI 4 takes what it was not started by itself for a program that runs alone, unless it knows the
  // launcher: this is the least of those that it knows.
  variables_.insert(variables_.end(), {"JSM_VERSION=1", "OMPI_MCA_schizo=jsm"});
  // And has the memory of its windows in files, which would stay in /dev/shm where ranks are killed.
  for (const char* const kind : {"sm", "rdma"})
    variables_.push_back(fmt::format("OMPI_MCA_osc_{}_backing_directory={}", kind, directory_));
  return success();
}

// ---- What the kernel says (pmix/spawns.hpp, and "job NUMBER ADDRESS": another one has begun).

void Server::hear(const std::string& text) {
  messenger_.post([this, text] {
    std::string_view line = text;
    const std::string_view what = word_of(line);
    const std::string_view which = word_of(line);
    if (what == "job") return names_.job_begins(name_of_job(which), std::string(word_of(line)));
    std::uint64_t token = 0;
    std::from_chars(which.data(), which.data() + which.size(), token);
    if (what == "spawned") return spawns_.spawned(token, name_of_job(word_of(line)));
    if (what == "unspawned") return spawns_.not_spawned(token);
  });
}

// ---- Other jobs.

// Whoever says that waits until this server can be asked about them.
void Server::learn(std::string_view body, const Messenger::Answer& answer) {
  Reader reader(body);
  const std::vector<std::string> needed = reader.texts(); // of these jobs
  std::vector<Job> jobs(reader.count());
  for (Job& each : jobs) each = read_job(reader);
  if (!reader.good()) return answer(PMIX_ERR_BAD_PARAM, {});
  struct Learning {
    std::vector<Job> jobs;
    std::vector<std::vector<int>> peers;
    std::size_t left = 1;
  };
  const auto learning = std::make_shared<Learning>(Learning{std::move(jobs), {}});
  const auto one_done = [this, learning, needed, answer] {
    if (--learning->left != 0) return;
    for (std::size_t job = 0; job < learning->jobs.size(); ++job)
      reached(learning->jobs[job], std::move(learning->peers[job]));
    const bool all =
        std::ranges::all_of(needed, [this](const std::string& name) { return jobs_.knows(name); });
    answer(all ? PMIX_SUCCESS : PMIX_ERR_UNREACH, {});
  };
  for (std::size_t job = 0; job < learning->jobs.size(); ++job) {
    const Job& each = learning->jobs[job];
    learning->peers.emplace_back(each.servers.size(), -1);
    if (jobs_.knows(each.name)) continue;
    learning->left += each.servers.size();
    for (std::size_t i = 0; i < each.servers.size(); ++i)
      messenger_.reach(each.servers[i], [learning, job, i, one_done](std::optional<int> peer) {
        learning->peers[job][i] = peer.value_or(-1);
        one_done();
      });
  }
  one_done();
}

// Some may have gone meanwhile.
void Server::reached(const Job& job, std::vector<int> peers) {
  if (jobs_.knows(job.name)) return;
  for (int& peer : peers)
    if (!messenger_.is_watched(peer)) peer = -1;
  if (std::ranges::all_of(peers, [](int peer) { return peer < 0; })) return;
  if (register_other_job(job)) jobs_.add(job, std::move(peers));
}

void Server::tell_of_event(const std::string& event) {
  for (std::size_t server = 0; server < jobs_.own().servers.size(); ++server)
    if (const auto peer = static_cast<int>(server); peer != messenger_.self())
      messenger_.tell(peer, Kind::event, event);
}

void Server::server_lost(int server) {
  names_.server_lost(server);
  exchange_.server_lost(server);
  for (const std::string& job : jobs_.lost(server)) {
    exchange_.forget(job);
    names_.forget(job);
    PMIx_server_deregister_nspace(job.c_str(), nullptr, nullptr);
  }
}

} // namespace parc::pmix
