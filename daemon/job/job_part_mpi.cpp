// SPDX-License-Identifier: BSD-3-Clause
// The PMIx servers of a job of MPI: one on each host that has ranks, in a group of their own.
#include "control/exit_status.hpp"
#include "control/words/host_words.hpp"
#include "daemon/job/job_part.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/job/rank_program.hpp"
#include "daemon/link/peers.hpp"
#include "daemon/program/sessions.hpp"
#include "daemon/program/spawn_request.hpp"
#include "jobs/installed.hpp"
#include "system/environment.hpp"
#include "system/limits.hpp"
#include "system/orphans.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <unistd.h>

namespace parc::daemon {
namespace {

// What libfabric loads for MPI, where it does not look by itself.
Result<void> find_provider(Program& program) {
  constexpr const char* path = "FI_PROVIDER_PATH";
  const auto& set = program.environment;
  if (std::ranges::find(set, path, name_of_variable) != set.end()) return success();
  PARC_TRY(provider, provider_path());
  if (!provider.empty()) program.environment.push_back(fmt::format("{}={}", path, provider));
  return success();
}

// In MPI_Init, ranks of Open MPI that wait for the others look again every 100 us, and many of them leave the
// others no core. Until they are through with that (the provider sets it back), so many of them look that it
// takes a tenth of the cores.
void wait_with_patience(Program& program, std::size_t ranks) {
  constexpr std::uint64_t look_ns = 10'000, most_ns = 5'000'000;
  const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1u);
  if (ranks <= cores) return;
  program.timer_slack_ns = std::min(most_ns, 10 * look_ns * ranks / cores);
  set_variables(program.environment, {fmt::format("{}={}", env_timer_slack, Program::usual_slack_ns)});
}

// Of its apps; empty: there is one.
std::vector<std::uint32_t> first_ranks(const Program& program) {
  std::vector<std::uint32_t> all;
  for (const Program::App& app : program.apps) all.push_back(app.first_rank);
  return all;
}

// Not what parcd itself was told, nor what the launcher told it that has started it.
std::vector<std::string> environment_of_server() {
  std::vector<std::string> all = own_environment();
  std::erase_if(all, [](const std::string& variable) {
    return std::ranges::any_of(std::array{"PARC_", "PMIX_", "OMPI_"},
                               [&](const char* prefix) { return variable.starts_with(prefix); });
  });
  return all;
}

} // namespace

Result<void> JobPart::prepare_for_mpi() {
  if (!has_server()) return success();
  for (auto& [app, program] : programs_) {
    wait_with_patience(program, mine_.size());
    PARC_TRY(find_provider(program));
  }
  return success();
}

Result<void> JobPart::make_group_of_servers(const kernel::Start& start) {
  std::vector<std::uint64_t> ranks(plan_.hosts.size());
  for (const std::uint32_t host : plan_.host_of_rank()) ++ranks[host];
  std::vector<protocol::Address> members;
  for (const std::size_t host : plan_.hosts_with_ranks())
    members.push_back(
        {links_[host] == this_host ? protocol::here : links_[host], start.endpoints[host] + ranks[host]});
  group_of_servers_ = needs_.engine.add_group(members);
  if (group_of_servers_ == protocol::Engine::no_group)
    return error(EPROTO, "the PMIx servers of the job make no group");
  return success();
}

Result<void> JobPart::try_to_start_server() {
  const std::vector<std::size_t> servers = plan_.hosts_with_ranks();
  std::vector<std::uint32_t> numbers(servers.size());
  std::vector<std::string> names;
  std::uint32_t self = 0;
  for (std::uint32_t i = 0; i < servers.size(); ++i) {
    numbers[i] = i;
    names.push_back(plan_.hosts[servers[i]].name);
    if (servers[i] == plan_.self) self = i;
  }
  const std::string file = installed_program("pmix");
  if (file.empty())
    return error(ENOENT,
                 "parc's PMIx server (libexec/parc/pmix) is not installed there; install libparc-fabric1");
  Program program{.arguments = {file},
                  .environment = environment_of_server(),
                  .directory = needs_.runtime_dir.path(),
                  .limits = plan_.program.limits};
  MpiServer::Job job{.variables = {fmt::format("{}={}", env_rank, self),
                                   fmt::format("{}={}", env_size, servers.size()), job_variable(),
                                   fmt::format("{}={}", env_runtime_dir, needs_.runtime_dir.path()),
                                   kernel_variable(getpid()),
                                   fmt::format("{}={}", env_hosts, control::host_words(numbers, names))},
                     .ranks = plan_.size,
                     .apps = first_ranks(plan_.program),
                     .hosts = hosts_,
                     .host = plan_.hosts[plan_.self].name};
  MpiServer::Events events{
      .ready = [this](std::vector<std::string> variables) { server_ready(std::move(variables)); },
      .aborted = [this](std::int32_t rank, int status) { abort(rank, status); },
      .spawn = [this](const MpiServer::Spawn& wanted) { spawn(wanted); },
      .ended = [this](const std::string& why) { server_ended(why); }};
  PARC_TRY(started,
           MpiServer::start(needs_.loop.events(), needs_.processes, std::move(program),
                            needs_.runtime_dir.job_directory(plan_.job), std::move(job), std::move(events)));
  server_ = std::move(started.server);
  server_->tell(early_lines_);
  needs_.sessions.add({~plan_.job, static_cast<std::int32_t>(self), static_cast<std::int32_t>(servers.size()),
                       endpoint_of_server()},
                      std::move(started.from_program), std::move(started.to_program), [](Sessions::End) {});
  return success();
}

void JobPart::server_ready(std::vector<std::string> variables) {
  mpi_variables_ = std::move(variables);
  start_timer_.set(0);
}

void JobPart::server_ended(const std::string& why) {
  needs_.sessions.process_died(endpoint_of_server());
  killed_.push_back(server_->id());
  if (orphaned()) return go_when_empty();
  fail(status_failed, fmt::format("the PMIx server of host {} has ended{}{}", plan_.hosts[plan_.self].name,
                                  why.empty() ? "" : ": ", why));
}

// ---- What it is told, and asks.

void JobPart::heard(const kernel::MpiJob& message) {
  if (parse_endpoint_address(message.address)) // else it need not be one line
    tell_server(fmt::format("job {:x} {}\n", message.other, message.address));
}

void JobPart::tell_server(std::string_view line) {
  if (server_)
    server_->tell(line);
  else
    early_lines_ += line;
}

// As by parc_spawn, in the name of its server.
void JobPart::spawn(const MpiServer::Spawn& wanted) {
  const auto say = [self = std::weak_ptr(self_)](const std::string& line) {
    if (const auto part = self.lock()) (*part)->tell_server(line);
  };
  auto request = parse_mpi_spawn(wanted.texts, wanted.apps);
  if (!request) return say(fmt::format("unspawned {}\n", wanted.token));
  const Program& ours = programs_.begin()->second; // it has a server, so it has ranks
  // Where the job itself runs: other hosts may have that elsewhere.
  for (SpawnRequest::App& app : request->apps)
    if (app.directory == ours.directory || app.directory == ours.directory_otherwise) app.directory.clear();
  request->parent = to_text(needs_.peers.describe({protocol::here, endpoint_of_server()}));
  const auto job = std::make_shared<std::uint64_t>(0);
  SpawnListener listener{
      .prepared =
          [job](std::uint64_t number, const std::vector<EndpointAddress>&,
                const SpawnListener::Ready& ready) {
            *job = number;
            ready(success());
          },
      .started =
          [job, say, token = wanted.token](const Result<void>& started) { // if not, parc run says why
            say(started ? fmt::format("spawned {} {:x}\n", token, *job)
                        : fmt::format("unspawned {}\n", token));
          },
      .exited = [](std::uint32_t, std::uint32_t) {}};
  needs_.jobs.ask_to_spawn({plan_.job, 0, static_cast<std::int32_t>(plan_.size), endpoint_of_server()},
                           *request, std::move(listener));
}

// Nobody else would end a job whose others wait in MPI_Finalize.
void JobPart::check_end_of_mpi(const Rank& rank, const RankExit& how) {
  if (!server_ || rank.ordered || how.status != 0 || how.signal != 0) return;
  if (server_->is_missed(static_cast<std::int32_t>(rank.number())))
    fail(1, fmt::format("rank {} on host {} has ended without MPI_Finalize", rank.number(),
                        plan_.hosts[plan_.self].name));
}

void JobPart::start_server() {
  if (auto started = try_to_start_server(); !started)
    fail(status_failed,
         fmt::format("cannot start the PMIx server of host {}: {}{}", plan_.hosts[plan_.self].name,
                     started.error().text, descriptor_advice(started.error().code)));
}

} // namespace parc::daemon
