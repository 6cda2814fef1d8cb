// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/job_part.hpp"

#include "control/exit_status.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/job/rank_program.hpp"
#include "daemon/link/peers.hpp"
#include "daemon/program/sessions.hpp"
#include "include/parc/parc.h"
#include "jobs/installed.hpp"
#include "shm/layout.hpp"
#include "shm/segment.hpp"
#include "system/environment.hpp"
#include "system/identity.hpp"
#include "system/limits.hpp"
#include "system/orphans.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace parc::daemon {
namespace {

constexpr double grace_s = 2;

std::uint32_t low_half(std::uint64_t identity) {
  return static_cast<std::uint32_t>(identity);
}

// The last of those that stop and continue counts.
void keep_early(std::vector<int>& signals, int number) {
  if (only_stops(number)) std::erase_if(signals, only_stops);
  if (std::ranges::find(signals, number) == signals.end()) signals.push_back(number);
}

// What every rank takes of something that this system has only so much of: better no job than the beginning
// of one.
Result<void> check_room(const Program& program, std::size_t ranks) {
  const std::size_t limit = descriptor_limit();
  const std::size_t taken = descriptors_open() + descriptors_to_start;
  const std::size_t each = descriptors_of(program);
  const std::size_t ranks_with_descriptors = (limit - std::min(taken, limit)) / each;
  if (ranks > ranks_with_descriptors)
    return error(EMFILE, "its parcd has descriptors for {} more, {} each{}", ranks_with_descriptors, each,
                 descriptor_advice(EMFILE));
  const std::size_t segments = shm::most_segments();
  if (ranks > segments)
    return error(ENOSPC,
                 "each has a shared-memory segment, of which the system allows {} "
                 "(/proc/sys/kernel/shmmni): raise that with sysctl kernel.shmmni, or use more hosts",
                 segments);
  return success();
}

// Where libparc is, if nobody looks there by themselves.
std::string own_libraries() {
  const std::string library = installed_library("libparc.so.0");
  if (library.empty() || library.starts_with("/usr/") || library.starts_with("/lib")) return {};
  return library.substr(0, library.rfind('/'));
}

} // namespace

JobPart::JobPart(const Needs& needs, JobPlan plan)
    : needs_(needs), plan_(std::move(plan)), links_(plan_.hosts.size(), this_host),
      start_timer_(needs.loop, [this] { start_next(); }),
      grace_timer_(needs.loop, [this] { grace_is_over(); }) {
  const auto host_of_rank = plan_.host_of_rank();
  for (std::uint32_t rank = 0; rank < plan_.size; ++rank)
    if (host_of_rank[rank] == plan_.self) mine_.push_back(rank);
  hosts_ = plan_.hosts_in_words();
  const auto own = own_environment();
  const std::string libraries = own_libraries();
  for (const std::uint32_t rank : mine_) {
    const std::size_t app = plan_.program.app_of(rank);
    if (!programs_.contains(app))
      programs_.emplace(
          app, program_of_ranks(plan_.program.of_app(app), plan_.self == plan_.origin_place, own, libraries));
  }
}

JobPart::~JobPart() {
  needs_.cores.give_back(cores_);
  protocol::Engine& engine = needs_.engine;
  engine.drop_group(group_);
  for (std::size_t local = 0; group_ == 0 && prepared_yet() && local < mine_.size(); ++local)
    engine.kill(first_endpoint_ + local);
  if (group_of_servers_ != 0)
    engine.drop_group(group_of_servers_);
  else if (prepared_yet() && has_server())
    engine.kill(endpoint_of_server());
}

// ---- Getting ready: a link to every other host of the job.

void JobPart::prepare() {
  if (plan_.program.binds) {
    auto taken = needs_.cores.take(mine_.size());
    if (!taken)
      return fail(status_failed, fmt::format("host {} cannot run {} ranks of a job: {}",
                                             plan_.hosts[plan_.self].name, mine_.size(), taken.error().text));
    cores_ = std::move(taken).value();
  }
  // A server has descriptors for more than one rank.
  if (auto room = check_room(plan_.program, mine_.size() + (has_server() ? 2 : 0)); !room)
    return fail(status_failed, fmt::format("host {} cannot run {} ranks of a job: {}",
                                           plan_.hosts[plan_.self].name, mine_.size(), room.error().text));
  if (auto ready = prepare_for_mpi(); !ready)
    return fail(status_failed, fmt::format("host {} cannot run ranks of MPI: {}",
                                           plan_.hosts[plan_.self].name, ready.error().text));
  unreached_ = plan_.hosts.size();
  for (std::size_t host = 0; host < plan_.hosts.size(); ++host) {
    const auto answer = [self = std::weak_ptr(self_), host](Result<std::int32_t> link) {
      if (const auto part = self.lock()) (*part)->reached(host, std::move(link));
    };
    if (host == plan_.self)
      answer(this_host);
    else if (host == plan_.origin_place)
      answer(plan_.origin);
    else
      needs_.peers.connect(plan_.hosts[host].name, plan_.hosts[host].address, answer);
  }
}

Result<void> JobPart::check_host(std::size_t host, std::int32_t link) const {
  const JobPlan::Host& expected = plan_.hosts[host];
  const std::uint32_t found = link == this_host ? low_half(needs_.peers.self().identity)
                                                : needs_.engine.link(static_cast<std::uint32_t>(link)).peer;
  if (found == expected.identity) return success();
  return error(EINVAL,
               "host {} reaches another kernel under the name {} than the host of parc run does; "
               "make [hosts] of parcd.toml agree on all hosts",
               plan_.hosts[plan_.self].name, expected.name);
}

void JobPart::reached(std::size_t host, Result<std::int32_t> link) {
  if (ending()) return;
  if (link && !needs_.post.reaches(link.value())) return tell(kernel::Parted{.other = host});
  Result<void> good = link ? check_host(host, link.value())
                           : Result<void>(std::move(link).error().in(
                                 fmt::format("host {} cannot join the job", plan_.hosts[plan_.self].name)));
  if (!good) return fail(status_failed, good.error().text);
  links_[host] = link.value();
  if (--unreached_ == 0) prepared();
}

void JobPart::prepared() {
  for (std::size_t local = 0; local < mine_.size(); ++local) {
    const std::uint64_t endpoint = needs_.engine.add_endpoint();
    if (local == 0) first_endpoint_ = endpoint;
  }
  if (has_server()) needs_.engine.add_endpoint(); // behind those of its ranks
  prepared_ = true;
  enter(Stage::prepared);
  tell(kernel::Prepared{.endpoint = first_endpoint_});
}

// Each host has said where the numbers of its ranks begin.
Result<void> JobPart::make_group(const kernel::Start& start) {
  auto next = start.endpoints;
  const auto malformed = [] {
    return error(EPROTO, "the kernel of parc run's host says that the job starts, but not who is in it");
  };
  if (next.size() != plan_.hosts.size() || next[plan_.self] != first_endpoint_) return malformed();
  std::vector<protocol::Address> members;
  for (const std::uint32_t host : plan_.host_of_rank()) {
    if (next[host] == protocol::kernel_endpoint || next[host] == UINT64_MAX) return malformed();
    members.push_back({links_[host] == this_host ? protocol::here : links_[host], next[host]++});
  }
  auto sorted = members;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return malformed();
  group_ = needs_.engine.add_group(members);
  if (group_ == protocol::Engine::no_group) return malformed();
  if (plan_.program.mpi) return make_group_of_servers(start);
  return success();
}

// ---- Starting, one process a turn: a fork takes its time.

void JobPart::start_next() {
  if (ending() || all_started()) return;
  if (auto started = start_rank(static_cast<std::uint32_t>(ranks_.size())); !started) {
    const Program& program = program_for(mine_[ranks_.size()]);
    fail(status_failed,
         fmt::format("cannot start {} on host {}: {}{}", program.arguments[0], plan_.hosts[plan_.self].name,
                     started.error().text, descriptor_advice(started.error().code)));
    return;
  }
  start_timer_.set(0);
}

std::string JobPart::job_variable() const {
  return fmt::format("{}={:x}", env_job, plan_.job);
}

std::vector<std::string> JobPart::variables(std::uint32_t local) const {
  std::vector<std::string> all{fmt::format("{}={}", env_rank, mine_[local]),
                               fmt::format("{}={}", env_size, plan_.size),
                               fmt::format("{}={}", env_local_rank, local),
                               job_variable(),
                               fmt::format("{}={}", env_runtime_dir, needs_.runtime_dir.path()),
                               kernel_variable(getpid()),
                               fmt::format("{}={}", env_hosts, hosts_)};
  if (!plan_.program.mpi) {
    if (!plan_.parent.empty()) all.push_back(fmt::format("{}={}", env_parent, plan_.parent));
    return all;
  }
  const auto& asked = program_for(mine_[local]).environment;
  for (const std::string& variable : mpi_variables_) { // Open MPI's parameters are the caller's to set
    const auto name = name_of_variable(variable);
    if (!name.starts_with("OMPI_MCA_") || std::ranges::find(asked, name, name_of_variable) == asked.end())
      all.push_back(variable);
  }
  all.push_back(fmt::format("PMIX_RANK={}", mine_[local]));
  // As mpirun has them, for what looks there before MPI is begun (h5py, scripts that choose a device).
  for (const auto& [name, value] : {std::pair<const char*, std::size_t>{"RANK", mine_[local]},
                                    {"SIZE", plan_.size},
                                    {"LOCAL_RANK", local},
                                    {"LOCAL_SIZE", mine_.size()},
                                    {"NODE_RANK", local}})
    all.push_back(fmt::format("OMPI_COMM_WORLD_{}={}", name, value));
  return all;
}

Result<void> JobPart::start_rank(std::uint32_t local) {
  const std::uint32_t rank = mine_[local];
  const Processors* const processors =
      local < cores_.size() ? &needs_.cores.processors(cores_[local]) : nullptr;
  PARC_TRY(process, needs_.processes.start(program_for(rank), variables(local),
                                           plan_.program.reads_input(rank), processors));
  ranks_.push_back(std::make_unique<Rank>(*this, needs_.loop.events(), needs_.processes, rank, process,
                                          kernel::output_credit(plan_.size)));
  const Sessions::Member member{plan_.job, static_cast<std::int32_t>(rank),
                                static_cast<std::int32_t>(plan_.size), first_endpoint_ + local};
  const auto session_ended = [&jobs = needs_.jobs, job = plan_.job, rank](Sessions::End) {
    jobs.rank_departs(job, static_cast<std::int32_t>(rank));
  };
  needs_.sessions.add(member, std::move(process.from_program), std::move(process.to_program), session_ended);
  give_early_signals(*ranks_.back());
  if (RankInput* const input = ranks_.back()->input()) {
    input->add(input_.waiting);
    if (input_.ended) input->end();
  }
  if (all_started()) input_.waiting.clear();
  return success();
}

// Those that start later read it from its beginning, too.
void JobPart::give_input(std::string_view bytes, bool end) {
  if (bytes.size() > kernel::input_window - (input_.given - input_.told))
    return fail(status_failed, fmt::format("host {} was sent more input than it has room for",
                                           plan_.hosts[plan_.self].name));
  input_.given += bytes.size();
  input_.ended = end;
  if (!all_started()) input_.waiting += bytes;
  for (const auto& rank : ranks_) {
    RankInput* const input = rank->input();
    if (input == nullptr) continue;
    input->add(bytes);
    if (end) input->end();
  }
}

// In quarters of the window, or when there is nothing left.
void JobPart::input_taken() {
  std::uint64_t taken = all_started() ? input_.given : 0;
  for (const auto& rank : ranks_)
    if (rank->input() != nullptr) taken = std::min(taken, rank->input()->taken());
  if (taken == input_.told || (taken != input_.given && taken - input_.told < kernel::input_window / 4))
    return;
  input_.told = taken;
  tell(kernel::InputTaken{.taken = taken});
}

// ---- From the ranks.

Rank* JobPart::find(std::uint64_t number) {
  const auto place = std::ranges::lower_bound(mine_, number);
  const auto index = static_cast<std::size_t>(place - mine_.begin());
  return place != mine_.end() && *place == number && index < ranks_.size() ? ranks_[index].get() : nullptr;
}

std::uint64_t JobPart::endpoint_of(const Rank& rank) const {
  return first_endpoint_ +
         static_cast<std::uint64_t>(std::ranges::lower_bound(mine_, rank.number()) - mine_.begin());
}

void JobPart::peer_departed(const protocol::Address& peer) {
  const std::int32_t row = needs_.engine.row_in_group(group_, peer);
  if (row < 0) return;
  const auto rank = static_cast<std::uint32_t>(row);
  if (known_departures_.all.insert(rank).second) known_departures_.untold.push_back(rank);
}

// The origin is told what the rank can have known of (Departures).
void JobPart::departs(std::uint32_t number) {
  Rank* rank = find(number);
  if (rank == nullptr || rank->departed) return;
  rank->departed = true;
  tell(kernel::Departed{.rank = number, .known = std::exchange(known_departures_.untold, {})});
}

// The first ones are described, the rest counted.
void JobPart::unread(std::uint64_t endpoint, const protocol::Address& from,
                     const protocol::Outcome& message) {
  if (message.space != protocol::Space::programs || ++unread_ > kernel::unread_told) return;
  unread_messages_.push_back(
      {mine_[endpoint - first_endpoint_], from, shm::tag_in(message.tag), message.total});
}

// Who spawned them waits for that.
void JobPart::started() {
  if (++run_ == mine_.size() && !plan_.parent.empty()) tell(kernel::Started{});
}

void JobPart::not_started(Rank& rank, const StartReport& why) {
  rank.ordered = true; // that it exits is no news
  const StartFailure failure = explain(program_for(rank.number()), why, plan_.hosts[plan_.self].name);
  fail(failure.status, failure.text);
}

void JobPart::output(Rank& rank, std::size_t stream, std::string bytes) {
  tell(kernel::Output{
      .rank = rank.number(), .stream = static_cast<std::uint32_t>(stream), .payload = std::move(bytes)});
}

// A signal that was forwarded is no failure.
void JobPart::note(const Rank& rank, RankExit how) {
  if (how.status == 0 && (how.signal == 0 || how.signal == forwarded_)) return;
  const auto status = how.signal == 0 ? how.status : status_signal + how.signal;
  const std::string end =
      how.signal == 0 ? fmt::format("ended with exit status {}", how.status)
                      : fmt::format("was killed by signal {} ({}){}", how.signal,
                                    strsignal(static_cast<int>(how.signal)), how.no_memory ? no_memory : "");
  needs_.loop.errors().note(ErrorKind::Program, status,
                            fmt::format("{} {}", program_for(rank.number()).name(), end));
}

void JobPart::died(Rank& rank, RankExit how) {
  if (!rank.ordered) note(rank, how);
  check_end_of_mpi(rank, how);
  needs_.sessions.process_died(endpoint_of(rank));
  if (how.signal != 0) killed_.push_back(rank.id());
  departs(rank.number());
  kernel::Exited exit{
      .rank = rank.number(), .status = how.status, .signal = how.signal, .ordered = rank.ordered};
  if (how.no_memory) exit.no_memory = true;
  tell(exit);
}

void JobPart::ended(Rank& rank) {
  std::vector<kernel::UnreadMessage> messages;
  for (const Unread& each : unread_messages_)
    messages.push_back({.to = each.rank,
                        .from = std::max(needs_.engine.row_in_group(group_, each.from), -1),
                        .tag = each.tag,
                        .bytes = each.bytes});
  tell(kernel::Ended{.rank = rank.number(), .unread = unread_, .messages = std::move(messages)});
  if (stopping_) go_when_stopped();
  if (orphaned()) go_when_empty();
}

// ---- From the origin, and when it is lost.

void JobPart::heard(const kernel::Start& message) {
  if (stage_ != Stage::prepared) return;
  if (mine_.empty()) return enter(Stage::started); // it is there for what is spawned
  if (auto made = make_group(message); !made) return fail(status_failed, made.error().text);
  enter(Stage::started);
  if (!has_server()) return start_timer_.set(0);
  start_server();
}

void JobPart::heard(const kernel::Taken& message) {
  if (Rank* const rank = find(message.rank)) rank->add_credit(message.bytes);
}

void JobPart::heard(const kernel::Input& message) {
  if (!ending()) give_input(message.payload, message.end == 1);
}

void JobPart::heard(const kernel::Signal& message) {
  const auto number = static_cast<int>(message.signal);
  if (message.rank)
    signal(*message.rank, number);
  else
    signal(number);
}

void JobPart::heard(const kernel::Kill&) {
  end();
  kill();
}

void JobPart::heard(const kernel::Finish&) {
  orphan();
  kill();
}

// Whoever has not started gets it when it has.
void JobPart::signal(int number) {
  if (!only_stops(number)) forwarded_ = static_cast<std::uint32_t>(number);
  for (const std::uint32_t rank : mine_) signal(rank, number);
}

void JobPart::signal(std::uint64_t rank, int number) {
  if (Rank* const started = find(rank))
    started->signal(number);
  else if (!all_started() && !ending() && std::ranges::binary_search(mine_, rank))
    keep_early(early_signals_[static_cast<std::uint32_t>(rank)], number);
}

void JobPart::give_early_signals(Rank& rank) {
  const auto found = early_signals_.find(rank.number());
  if (found == early_signals_.end()) return;
  for (const int each : found->second) rank.signal(each);
  early_signals_.erase(found);
}

void JobPart::order(Rank& rank, int signal) {
  if (!rank.alive()) return;
  rank.ordered = true;
  rank.signal(signal);
  if (signal == SIGTERM) rank.signal(SIGCONT); // or who is stopped could not do anything about it
}

void JobPart::end() {
  if (ending()) return;
  enter(Stage::ending);
  order_all();
}

// A rank whose session has ended is on its way out, and its own exit status may be why the job ends.
void JobPart::order_all() {
  for (const auto& rank : ranks_)
    if (!rank->departed) order(*rank, SIGTERM);
  for (std::size_t never = ranks_.size(); prepared_yet() && never < mine_.size(); ++never) {
    tell(kernel::Exited{.rank = mine_[never], .ordered = true});
    tell(kernel::Ended{.rank = mine_[never]});
  }
  if (std::ranges::any_of(ranks_, [](const auto& rank) { return rank->alive(); })) grace_timer_.set(grace_s);
}

// Who was on its way out has had its time, and is asked like the others before.
void JobPart::grace_is_over() {
  bool asked = false;
  for (const auto& rank : ranks_) {
    const bool first = rank->alive() && !rank->ordered;
    order(*rank, first ? SIGTERM : SIGKILL);
    asked |= first;
  }
  if (asked) grace_timer_.set(grace_s);
}

void JobPart::kill() {
  for (const auto& rank : ranks_) order(*rank, SIGKILL);
}

// Nobody hears of it any more; it goes with its last process.
void JobPart::orphan() {
  if (orphaned()) return;
  const bool was_ending = ending();
  enter(Stage::orphaned);
  if (!was_ending) order_all();
  for (const auto& rank : ranks_) rank->discard_output();
  go_when_empty();
}

void JobPart::go_when_empty() {
  if (stage_ == Stage::gone || !std::ranges::all_of(ranks_, [](const auto& rank) { return rank->ended(); }))
    return;
  if (server_ && server_->alive()) return server_->kill();
  enter(Stage::gone);
  if (!killed_.empty()) needs_.processes.clean_up_after(killed_);
  if (!ranks_.empty()) needs_.processes.end_strays(job_variable());
  needs_.jobs.forget_part(plan_.job);
}

std::vector<std::pair<std::string, std::int32_t>> JobPart::hosts() const {
  std::vector<std::pair<std::string, std::int32_t>> all;
  if (prepared_yet())
    for (std::size_t host = 0; host < links_.size(); ++host)
      all.emplace_back(plan_.hosts[host].name, links_[host]);
  return all;
}

std::vector<RankState> JobPart::look() const {
  std::vector<RankState> all;
  const std::size_t most = unfinished_of_each(ranks_.size());
  for (const auto& rank : ranks_) {
    RankState state{.rank = rank->number(),
                    .process = static_cast<std::uint64_t>(rank->id()),
                    .host = plan_.hosts[plan_.self].name,
                    .program = rank->alive() ? program_of(rank->id()) : std::string(),
                    .operations = {}};
    needs_.sessions.look_at(endpoint_of(*rank), most, state);
    all.push_back(std::move(state));
  }
  return all;
}

void JobPart::link_lost(std::uint32_t link) {
  const auto index = static_cast<std::int32_t>(link);
  if (plan_.origin == index) {
    if (!orphaned())
      spdlog::warn("job {:x}: lost the host of its parc run; its {} ranks here end", plan_.job, mine_.size());
    return orphan();
  }
  for (std::size_t host = 0; host < links_.size(); ++host)
    if (links_[host] == index) tell(kernel::Parted{.other = host});
}

void JobPart::abort(std::int32_t rank, int status) {
  tell(kernel::Abort{.rank = static_cast<std::uint32_t>(rank),
                     .status = static_cast<std::uint32_t>(status & 0xff)});
}

// Its ranks get their time, and the origin hears how they end.
void JobPart::shutting_down() {
  tell(kernel::Stopping{});
  stopping_ = true;
  end();
  go_when_stopped();
}

void JobPart::go_when_stopped() {
  if (std::ranges::all_of(ranks_, [](const auto& rank) { return rank->ended(); })) orphan();
}

void JobPart::fail(int status, const std::string& text) {
  tell(kernel::Failed{.status = static_cast<std::uint32_t>(status), .text = text});
}

} // namespace parc::daemon
