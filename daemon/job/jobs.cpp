// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/jobs.hpp"

#include "control/exit_status.hpp"
#include "daemon/base/control.hpp"
#include "daemon/job/job_messages.hpp"
#include "daemon/link/peers.hpp"
#include "daemon/tool/known_hosts.hpp"
#include "system/frames.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <iterator>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

constexpr double farewell_s = 0.05; // for the last words to leave

template <class Table> auto find_in(const Table& table, std::uint64_t job) {
  const auto found = table.find(job);
  return found == table.end() ? nullptr : found->second.get();
}

JobState state_of(const JobPart& part) {
  if (part.ending()) return JobState::Ending;
  return part.running() ? JobState::Running : JobState::Starting;
}

} // namespace

// Whoever started the kernel may have ignored SIGCHLD, and then no exit status would be kept.
Jobs::Jobs(Loop& loop, protocol::Engine& engine, Peers& peers, Sessions& sessions, Control& control,
           const RuntimeDir& runtime_dir, const Config& config, const Processes& processes,
           std::function<void()> stopped)
    : loop_(loop), engine_(engine), peers_(peers), sessions_(sessions), control_(control),
      runtime_dir_(runtime_dir), processes_(processes), stopped_(std::move(stopped)),
      ids_(peers.self().identity), joins_(loop, engine, peers, sessions, *this, config) {
  std::signal(SIGCHLD, SIG_DFL);
}

Jobs::~Jobs() = default;

JobOrigin* Jobs::origin(std::uint64_t job) const {
  return find_in(origins_, job);
}

JobPart* Jobs::part(std::uint64_t job) const {
  return find_in(parts_, job);
}

void Jobs::forget_tool(std::uint64_t number) {
  loop_.after_step([this, number] {
    tools_.erase(number);
    stop_when_empty();
  });
}

void Jobs::forget_origin(std::uint64_t job) {
  loop_.after_step([this, job] {
    origins_.erase(job);
    stop_when_empty();
  });
}

void Jobs::forget_part(std::uint64_t job) {
  loop_.after_step([this, job] {
    parts_.erase(job);
    stop_when_empty();
  });
}

std::uint64_t Jobs::new_job() {
  std::uint64_t job = 0;
  while (job == 0 || tools_.contains(job) || origins_.contains(job) || parts_.contains(job)) job = ids_();
  return job;
}

void Jobs::tool_connected(Fd socket) {
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  const std::uint64_t number = new_job();
  tools_.emplace(number, std::make_unique<ToolSession>(loop_, peers_, *this, number, std::move(socket)));
}

void Jobs::begin(std::uint64_t job, std::shared_ptr<JobDoor> tool, Frame frame) {
  auto& origin = origins_[job] =
      std::make_unique<JobOrigin>(loop_, engine_, peers_, *this, job, std::move(tool), std::nullopt);
  origin->asked(std::move(frame));
}

ToolSession* Jobs::tool(const nlohmann::json& message) const {
  return find_in(tools_, number_in(message, "token", UINT64_MAX).value_or(0));
}

void Jobs::tell(std::int32_t host, nlohmann::json message, std::string bytes) {
  if (host != this_host) return control_.send(static_cast<std::uint32_t>(host), message, bytes);
  loop_.after_step([this, message = std::move(message), bytes = std::move(bytes)]() mutable {
    deliver(this_host, message, std::move(bytes));
  });
}

bool Jobs::reaches(std::int32_t host) const {
  return host == this_host || engine_.link(static_cast<std::uint32_t>(host)).open;
}

void Jobs::received(std::uint32_t link, nlohmann::json message, std::string bytes) {
  deliver(static_cast<std::int32_t>(link), message, std::move(bytes));
}

void Jobs::deliver(std::int32_t from, const nlohmann::json& message, std::string bytes) {
  const std::string kind = text_in(message, "kind");
  const std::uint64_t job = number_in(message, "job", UINT64_MAX).value_or(0);
  if (kind == "prepare") return prepare(from, message, bytes);
  if (of_spawns(from, kind, message) || joins_.received(from, kind, message, bytes)) return;
  if (kind == "look") return look(from, message);
  if (kind == "seen") {
    if (ToolSession* at = tool(message)) at->seen(from, message);
    return;
  }
  if (kind == "question")
    return tell(from, {{"kind", "answer"},
                       {"token", number_in(message, "token", UINT64_MAX).value_or(0)},
                       {"place", number_in(message, "place", UINT32_MAX).value_or(0)},
                       {"answer", answer(from, message.value("question", nlohmann::json()))}});
  if (kind == "answer") {
    if (ToolSession* at = tool(message)) at->answered(from, message);
    return;
  }
  if (kind == "kill_job") {
    if (JobOrigin* at = origin(job))
      at->killed(static_cast<std::uint32_t>(number_in(message, "signal", NSIG - 1).value_or(SIGTERM)));
    return;
  }
  // A part's messages say which host of the job they come from.
  if (message.contains("host")) {
    if (JobOrigin* at = origin(job)) at->received(from, kind, message, std::move(bytes));
  } else if (JobPart* at = part(job); at != nullptr && at->plan().origin == from) {
    at->received(kind, message, bytes);
  }
}

void Jobs::prepare(std::int32_t from, const nlohmann::json& message, const std::string& bytes) {
  if (!reaches(from)) return; // nobody waits for an answer
  auto plan = decode_plan(message, bytes, from);
  if (plan && parts_.contains(plan.value().job)) plan = error(EEXIST, "that job runs already");
  if (stopping_) plan = error(ESHUTDOWN, "the kernel of host {} is stopping", peers_.self().name);
  if (plan) {
    const std::uint64_t job = plan.value().job;
    auto& made = parts_[job] = std::make_unique<JobPart>(
        JobPart::Uses{loop_, engine_, peers_, sessions_, runtime_dir_, processes_, cores_, *this},
        std::move(plan).value());
    return made->prepare();
  }
  spdlog::warn("refused a job: {}", plan.error().text);
  loop_.errors().note(ErrorKind::Job, status_failed, "refused a job: " + plan.error().text);
  tell(from, {{"kind", "failed"},
              {"job", number_in(message, "job", UINT64_MAX).value_or(0)},
              {"host", number_in(message, "self", UINT32_MAX).value_or(0)},
              {"status", status_failed},
              {"text", plan.error().text}});
}

std::vector<std::uint64_t> Jobs::known() const {
  std::vector<std::uint64_t> all;
  for (const auto& [job, at] : parts_) all.push_back(job);
  for (const auto& [job, at] : origins_)
    if (!at->hosts().empty() && !parts_.contains(job)) all.push_back(job);
  std::ranges::copy(joins_.jobs().numbers(), std::back_inserter(all));
  return all;
}

std::vector<std::pair<std::string, std::int32_t>> Jobs::hosts_of(std::uint64_t job) const {
  if (const JobPart* at = part(job)) return at->hosts();
  const JobOrigin* at = origin(job);
  return at != nullptr ? at->hosts() : joins_.hosts_of(job);
}

// A kernel that may ask is one of this user's: it has the key.
void Jobs::look(std::int32_t from, const nlohmann::json& message) {
  const std::uint64_t job = number_in(message, "job", UINT64_MAX).value_or(0);
  const JobPart* at = part(job);
  nlohmann::json ranks = at != nullptr ? at->look() : joins_.jobs().look(job, peers_.self().name);
  tell(from, {{"kind", "seen"},
              {"token", number_in(message, "token", UINT64_MAX).value_or(0)},
              {"place", number_in(message, "place", UINT32_MAX).value_or(0)},
              {"ranks", std::move(ranks)}});
}

// What HostSearch asks: which jobs are here, and with a signal that one of them be ended; or it tells of
// hosts.
nlohmann::json Jobs::answer(std::int32_t from, const nlohmann::json& question) {
  nlohmann::json said{{"version", PARC_VERSION}, {"jobs", list()}, {"waiting", joins_.waiting()}};
  if (!question.is_object()) return said;
  if (const auto hosts = question.find("hosts"); hosts != question.end()) learn_hosts(peers_, from, *hosts);
  if (const auto signal = number_in(question, "signal", NSIG - 1))
    said["killed"] =
        kill(number_in(question, "job", UINT64_MAX).value_or(0), static_cast<std::uint32_t>(*signal));
  return said;
}

nlohmann::json Jobs::list() const {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [job, at] : parts_) {
    const JobPlan& plan = at->plan();
    all.push_back({{"job", job},
                   {"program", plan.program.arguments[0]},
                   {"size", plan.size},
                   {"ranks", at->ranks_here()},
                   {"state", name(state_of(*at))},
                   {"since", at->since()},
                   {"origin", peers_.name_of(plan.origin)}});
  }
  joins_.jobs().list(all);
  return all;
}

// Its origin does that, wherever that is, as long as it knows the job; each kernel for its own of a job that
// programs have joined.
bool Jobs::kill(std::uint64_t job, std::uint32_t signal) {
  if (JobOrigin* at = origin(job); at != nullptr && at->killed(signal)) return true;
  JobPart* const at = part(job);
  if (at == nullptr) return joins_.signal(job, signal);
  if (at->orphaned())
    at->signal(static_cast<int>(signal));
  else
    tell(at->plan().origin, {{"kind", "kill_job"}, {"job", job}, {"signal", signal}});
  return true;
}

void Jobs::link_lost(std::uint32_t link) {
  spawners_.link_lost(link);
  joins_.link_lost(link);
  for (const auto& [job, at] : origins_) at->link_lost(link);
  for (const auto& [job, at] : parts_) at->link_lost(link);
}

void Jobs::abort(std::uint64_t job, std::int32_t rank, int status) {
  if (JobPart* at = part(job)) at->abort(rank, status);
}

void Jobs::rank_departs(std::uint64_t job, std::int32_t rank) {
  if (JobPart* at = part(job)) at->departs(static_cast<std::uint32_t>(rank));
}

void Jobs::peer_departed(const protocol::Address& peer) {
  for (const auto& [job, at] : parts_) at->peer_departed(peer);
}

void Jobs::unread(std::uint64_t endpoint, const protocol::Address& from, const protocol::Outcome& message) {
  for (const auto& [job, at] : parts_)
    if (at->has(endpoint)) return at->unread(endpoint, from, message);
}

void Jobs::shutting_down() {
  stopping_ = true;
  joins_.stop();
  if (tools_.empty() && origins_.empty() && parts_.empty()) return stopped_();
  farewell_.emplace(loop_, [this] { stopped_(); });
  for (const auto& [job, at] : parts_) at->shutting_down();
  for (const auto& [job, at] : origins_) at->shutting_down();
  for (const auto& [number, at] : tools_) at->shutting_down();
}

void Jobs::stop_when_empty() {
  if (farewell_ && tools_.empty() && origins_.empty() && parts_.empty()) farewell_->set(farewell_s);
}

void Jobs::publish(Counters& counters) {
  const JoinedJobs& joined = joins_.jobs();
  std::erase_if(rows_,
                [&](const auto& row) { return !parts_.contains(row.first) && !joined.knows(row.first); });
  for (const std::uint64_t job : joined.numbers()) {
    auto row = rows_.find(job);
    if (row == rows_.end())
      row = rows_.emplace(job, counters.job(job, joined.ranks_here(job), JobState::Running)).first;
    row->second->ranks.set(joined.ranks_here(job)); // they end one by one
  }
  for (const auto& [job, at] : parts_) {
    const JobState state = state_of(*at);
    auto row = rows_.find(job);
    if (row == rows_.end()) row = rows_.emplace(job, counters.job(job, at->ranks_here(), state)).first;
    row->second->state.set(static_cast<std::uint64_t>(state));
  }
  std::size_t held = 0;
  for (const auto& [job, at] : origins_) held += at->held_spawns();
  counters.set(Counter::SpawnsHeld, held);
  counters.set(Counter::Jobs, parts_.size() + joined.numbers().size());
}

} // namespace parc::daemon
