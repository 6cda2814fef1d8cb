// SPDX-License-Identifier: BSD-3-Clause
// Jobs that programs of a job spawn: each has an origin of its own beside that of the job that it belongs to,
// which is over when all of them are.
#include "control/exit_status.hpp"
#include "daemon/job/job_origin.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/link/peers.hpp"
#include "daemon/program/spawn_request.hpp"
#include "system/environment.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace parc::daemon {
namespace {
constexpr std::size_t most_warnings = 5;
// Of what spawned ranks have printed and parc run has not taken: nothing more is spawned meanwhile. (The
// credit of each job is its own, and a job is over before its output is read.)
constexpr std::uint64_t most_untaken = 8 << 20;
} // namespace

// ---- Of the job that they belong to

// Some rank of this job, or of one that it has spawned, wants another.
void JobOrigin::heard(Host& host, kernel::Spawn message) {
  JobOrigin* const root = spawner_ ? jobs_.origin(spawner_->root) : this;
  spawn_wishes_.push_back({*host.link, std::move(message)});
  if (root == nullptr || root->spawned_untaken_ <= most_untaken) grant_wishes();
}

void JobOrigin::grant_wishes() {
  for (; !spawn_wishes_.empty(); spawn_wishes_.pop_front()) spawn_now(spawn_wishes_.front());
}

// Where nothing else is asked for, hosts take turns.
Result<RanksOfApps> JobOrigin::places_of(const SpawnRequest& request) {
  RanksOfApps all;
  std::size_t by_turns = 0;
  std::vector<HostSlots>& turns = all.lists.emplace_back();
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    turns.push_back({hosts_[(next_host_ + i) % hosts_.size()].name, 1});
  for (const SpawnRequest::App& app : request.apps) {
    all.ranks.push_back({app.hosts.empty() ? 0 : all.lists.size(), app.ranks});
    if (app.hosts.empty()) {
      by_turns += app.ranks;
    } else {
      PARC_TRY(named, parse_hosts(app.hosts));
      all.lists.push_back(std::move(named));
    }
  }
  for (auto& list : all.lists)
    for (HostSlots& host : list) // what is theirs in this job is so in that one
      if (const auto known = std::ranges::find(hosts_, host.name, &Host::name); known != hosts_.end())
        host.place = known->place;
  next_host_ = (next_host_ + by_turns) % hosts_.size();
  return all;
}

Program JobOrigin::program_of(SpawnRequest request) const {
  Program program = plan_.program;
  program.apps.clear();
  program.input = Program::no_rank;
  program.binds = false; // the cores belong to those that were started first
  program.mpi = request.mpi;
  program.arguments = request.apps.front().arguments;
  const auto is_trace = [](const std::string& variable) { return name_of_variable(variable) == env_trace; };
  std::erase_if(program.environment, is_trace); // nobody gathers their traces
  if (!request.mpi) return program;
  for (std::uint32_t next = 0; SpawnRequest::App & app : request.apps) {
    std::erase_if(app.variables, is_trace);
    program.apps.push_back({.first_rank = std::exchange(next, next + app.ranks),
                            .arguments = std::move(app.arguments),
                            .directory = std::move(app.directory),
                            .variables = std::move(app.variables)});
  }
  return program;
}

void JobOrigin::spawn_now(const SpawnWish& wish) {
  const auto& [from, message] = wish;
  auto request = message.apps ? parse_mpi_spawn(message.payload, *message.apps)
                              : parse_spawn(message.payload, message.count);
  JobOrigin* const root = spawner_ ? jobs_.origin(spawner_->root) : this;
  Result<RanksOfApps> places = error(EPROTO, "the request makes no sense");
  if (stage_ != Stage::running || (root != nullptr && root->stage_ != Stage::running))
    places = error(ECANCELED, "the job is ending");
  else if (request && request->ranks() == message.count)
    places = places_of(*request);
  if (!places) {
    if (message.apps && root != nullptr && places.error().code != ECANCELED)
      root->warn_of_spawned(places.error().text); // MPI would not say it
    return post_.send(from, kernel::SpawnFailed{.token = message.token, .text = places.error().text});
  }
  const std::uint64_t root_id = root == nullptr ? 0 : root->id_;
  const std::uint32_t first = root == nullptr ? 0 : root->add_numbers(message.count);
  const std::uint64_t job = jobs_.spawn({from, message.token, root_id, message.parent}, first,
                                        program_of(std::move(*request)), places.value());
  if (root != nullptr) root->child_jobs_.push_back({job, first, message.count});
}

// As `parc run` knows the ranks of jobs that belong to this one.
std::uint32_t JobOrigin::add_numbers(std::uint32_t count) {
  if (next_number_ == 0) next_number_ = static_cast<std::uint32_t>(ranks_.size());
  return std::exchange(next_number_, next_number_ + count);
}

JobOrigin* JobOrigin::spawned_with(std::uint32_t& number) {
  for (const ChildJob& each : child_jobs_) {
    if (number < each.first || number - each.first >= each.size) continue;
    number -= each.first;
    return jobs_.origin(each.job);
  }
  return nullptr;
}

void JobOrigin::spawned_output(std::uint32_t number, std::uint32_t stream, std::string bytes) {
  const std::size_t size = bytes.size();
  spawned_untaken_ += size;
  if (client_->open()) return client_->send_output(number, stream, std::move(bytes));
  credit(number, size);
}

void JobOrigin::credit_spawned(std::uint32_t number, std::uint64_t bytes) {
  const bool waited_for = spawned_untaken_ > most_untaken;
  spawned_untaken_ -= std::min(bytes, spawned_untaken_);
  if (JobOrigin* const spawned = spawned_with(number)) spawned->credit(number, bytes);
  if (!waited_for || spawned_untaken_ > most_untaken) return;
  loop_.after_step([&jobs = jobs_, id = id_] {
    if (JobOrigin* const origin = jobs.origin(id)) origin->grant_all_wishes();
  });
}

void JobOrigin::grant_all_wishes() {
  grant_wishes();
  for (std::size_t i = 0; i < child_jobs_.size(); ++i) // which grows meanwhile
    if (JobOrigin* const at = jobs_.origin(child_jobs_[i].job)) at->grant_wishes();
}

// Its spawner has heard how each has ended, and may have expected it; who started the job is told.
void JobOrigin::spawned_over(std::uint64_t job, const std::string& text) {
  const auto found = std::ranges::find(child_jobs_, job, &ChildJob::job);
  if (found == child_jobs_.end()) return;
  warn_of_spawned(text);
  child_jobs_.erase(found);
  check_over();
}

void JobOrigin::warn_of_spawned(const std::string& text) {
  const bool is_known = verdict_ && verdict_->text.ends_with(text);
  if (!text.empty() && !is_known && spawned_warnings_.size() < most_warnings)
    spawned_warnings_.push_back("of the programs that were spawned, " + text);
}

// Ranks of MPI are connected with those that spawned them, which wait for them as for each other.
void JobOrigin::fail_spawner(const Verdict& verdict) {
  const bool ended_well = verdict.status == 0 && verdict.text.empty(); // MPI_Abort may say 0
  if (!plan_.program.mpi || ended_well || !spawner_ || !spawner_->answered) return;
  loop_.after_step([&jobs = jobs_, root = spawner_->root, verdict] {
    JobOrigin* const at = jobs.origin(root);
    if (at == nullptr || at->stage_ != Stage::running) return;
    at->decide(verdict.status,
               verdict.text.empty() ? "" : "of the programs that were spawned, " + verdict.text);
  });
}

void JobOrigin::end_spawned() {
  grant_wishes(); // none: the job is ending
  for (const ChildJob& each : child_jobs_)
    if (JobOrigin* const at = jobs_.origin(each.job)) at->decide(status_failed, {});
}

// ---- Of a job that was spawned

// Before any of them runs, whoever spawned them knows them: they may write to it at once.
void JobOrigin::tell_spawner_prepared() {
  kernel::SpawnPrepared message{.token = spawner_->token, .spawned = id_};
  for (const Host& host : hosts_)
    message.addresses.push_back(
        to_text(peers_.describe({*host.link == this_host ? protocol::here : *host.link, host.endpoint})));
  for (const Run& run : plan_.runs) message.runs.insert(message.runs.end(), {run.host, run.ranks});
  post_.send(spawner_->link, std::move(message));
}

void JobOrigin::spawner_knows(std::int32_t from, const kernel::SpawnKnown& message) {
  if (!spawner_ || spawner_->link != from || stage_ != Stage::preparing || !all_prepared()) return;
  if (!message.text.empty()) return decide(status_failed, message.text);
  start();
}

void JobOrigin::heard(Host& host, const kernel::Started&) {
  if (host.stage != Host::Stage::prepared) return;
  enter(host, Host::Stage::started);
  // While it runs, a host that is lost had started, and was through.
  if (stage_ != Stage::running || !all_are(Host::Stage::started)) return;
  if (!spawner_ || spawner_->answered) return;
  spawner_->answered = true;
  post_.send(spawner_->link, kernel::SpawnStarted{.token = spawner_->token});
}

void JobOrigin::tell_exit(const RankState& rank) {
  if (!spawner_) return;
  const auto status = rank.exit.signal != 0 ? status_signal + rank.exit.signal : rank.exit.status;
  post_.send(spawner_->link, kernel::SpawnExit{.token = spawner_->token,
                                               .rank = static_cast<std::uint32_t>(&rank - ranks_.data()),
                                               .status = static_cast<std::uint32_t>(status)});
}

void JobOrigin::signal_rank(std::uint32_t rank, std::uint32_t signal) {
  if (stage_ != Stage::running || rank >= ranks_.size()) return;
  tell(hosts_[ranks_[rank].host], kernel::Signal{.signal = signal, .rank = rank});
}

void JobOrigin::spawner_killed(std::int32_t from) {
  if (spawner_ && spawner_->link == from) decide(status_failed, {});
}

} // namespace parc::daemon
