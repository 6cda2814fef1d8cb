// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/jobs.hpp"

#include "control/exit_status.hpp"
#include "daemon/job/spawn_client.hpp"
#include "daemon/link/endpoint_address.hpp"
#include "daemon/link/peers.hpp"

#include <cassert>
#include <cerrno>
#include <csignal>
#include <set>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

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
Jobs::Jobs(Loop& loop, protocol::Engine& engine, Peers& peers, Sessions& sessions, Post& post,
           const RuntimeDir& runtime_dir, const Processes& processes, std::function<void()> emptied)
    : loop_(loop), engine_(engine), peers_(peers), sessions_(sessions), post_(post),
      runtime_dir_(runtime_dir), processes_(processes), emptied_(std::move(emptied)),
      ids_(peers.self().identity) {
  std::signal(SIGCHLD, SIG_DFL);
  post_.on<kernel::Prepare>(
      [this](std::int32_t from, const kernel::Prepare& message) { prepare(from, message); });
  take_from_parts<kernel::Prepared, kernel::Failed, kernel::Output, kernel::InputTaken, kernel::Departed,
                  kernel::Exited, kernel::Ended, kernel::Abort, kernel::Parted, kernel::Stopping,
                  kernel::Started, kernel::Spawn>();
  take_from_origins<kernel::Start, kernel::Taken, kernel::Input, kernel::Signal, kernel::MpiJob, kernel::End,
                    kernel::Kill, kernel::Finish>();
  post_.on<kernel::MpiBegins>(
      [this](std::int32_t from, const kernel::MpiBegins& message) { mpi_begins(from, message); });
  post_.on<kernel::SpawnKnown>([this](std::int32_t from, const kernel::SpawnKnown& message) {
    if (JobOrigin* const at = origin(message.job)) at->spawner_knows(from, message);
  });
  post_.on<kernel::EndSpawned>([this](std::int32_t from, const kernel::EndSpawned& message) {
    if (JobOrigin* const at = origin(message.job)) at->spawner_killed(from);
  });
  post_.on<kernel::SignalRank>([this](std::int32_t, const kernel::SignalRank& message) {
    if (JobOrigin* const at = origin(message.job)) at->signal_rank(message.rank, message.signal);
  });
  post_.on<kernel::KillJob>([this](std::int32_t, const kernel::KillJob& message) {
    if (JobOrigin* const at = origin(message.job)) at->killed(message.signal);
  });
}

Jobs::~Jobs() = default;

template <class... Messages> void Jobs::take_from_parts() {
  (post_.on<Messages>([this](std::int32_t from, Messages message) {
    if (JobOrigin* const at = origin(message.job)) at->received(from, std::move(message));
  }),
   ...);
}

template <class... Messages> void Jobs::take_from_origins() {
  (post_.on<Messages>([this](std::int32_t from, const Messages& message) {
    if (JobPart* const at = part(message.job); at != nullptr && at->plan().origin == from) at->heard(message);
  }),
   ...);
}

JobOrigin* Jobs::origin(std::uint64_t job) const {
  return find_in(origins_, job);
}

JobPart* Jobs::part(std::uint64_t job) const {
  return find_in(parts_, job);
}

void Jobs::forget_origin(std::uint64_t job) {
  loop_.after_step([this, job] {
    origins_.erase(job);
    if (none()) emptied_();
  });
}

void Jobs::forget_part(std::uint64_t job) {
  loop_.after_step([this, job] {
    parts_.erase(job);
    if (none()) emptied_();
  });
}

// ---- They begin

std::uint64_t Jobs::new_job() {
  std::uint64_t job = 0;
  while (job == 0 || origins_.contains(job) || parts_.contains(job)) job = ids_();
  return job;
}

JobOrigin& Jobs::make_origin(std::uint64_t job, std::shared_ptr<JobClient> client,
                             std::optional<JobOrigin::Spawner> spawner) {
  assert(!origins_.contains(job));
  auto& made = origins_[job] = std::make_unique<JobOrigin>(loop_, engine_, peers_, post_, *this, job,
                                                           std::move(client), std::move(spawner));
  return *made;
}

void Jobs::begin(std::uint64_t job, std::shared_ptr<JobClient> client, const tool::Run& run) {
  make_origin(job, std::move(client), std::nullopt).begin(run);
}

std::uint64_t Jobs::spawn(const JobOrigin::Spawner& spawner, std::uint32_t first, const Program& program,
                          const RanksOfApps& ranks) {
  const std::uint64_t job = new_job();
  tool::Run run{.keep_going = program.mpi ? 0u : 1u};
  auto& places = run.places.emplace();
  run.payload = control::encode_program(program, run.program);
  const Placement placement = place_all(ranks);
  for (const HostSlots& host : placement.hosts) {
    run.hosts.push_back(host.name);
    places.push_back({.wdir = host.place.wdir, .env = host.place.env});
  }
  for (const Run& each : placement.runs) run.runs.insert(run.runs.end(), {each.host, each.ranks});
  make_origin(job, std::make_shared<SpawnClient>(*this, job, spawner.root, first), spawner).begin(run);
  return job;
}

void Jobs::spawned_over(std::uint64_t job, std::uint64_t root, const std::string& text) {
  loop_.after_step([this, job, root, text] {
    if (JobOrigin* const at = origin(root)) at->spawned_over(job, text);
  });
  forget_origin(job);
}

void Jobs::introduce(JobOrigin& begins) {
  for (const auto& [job, at] : origins_) {
    if (at.get() == &begins || !at->runs_mpi()) continue;
    at->tell_of(begins.as_other());
    begins.tell_of(at->as_other());
  }
  std::set<std::int32_t> links; // a kernel has as many names as people call it by
  for (const auto& kernel : peers_.linked())
    if (kernel.link != this_host && links.insert(kernel.link).second)
      post_.send(kernel.link, begins.as_other());
}

void Jobs::link_up(std::uint32_t link) {
  for (const auto& [job, at] : origins_) {
    if (!at->runs_mpi()) continue;
    kernel::MpiBegins message = at->as_other();
    message.is_answer = true;
    post_.send(static_cast<std::int32_t>(link), std::move(message));
  }
}

void Jobs::mpi_begins(std::int32_t from, const kernel::MpiBegins& message) {
  if (!parse_endpoint_address(message.address)) return;
  for (const auto& [job, at] : origins_)
    if (at->runs_mpi()) at->tell_of(message);
  if (!message.is_answer) link_up(static_cast<std::uint32_t>(from));
}

void Jobs::prepare(std::int32_t from, const kernel::Prepare& message) {
  if (!post_.reaches(from)) return; // nobody waits for an answer
  auto plan = decode_plan(message, from);
  if (plan && parts_.contains(plan.value().job)) plan = error(EEXIST, "that job runs already");
  if (stopping_) plan = error(ESHUTDOWN, "the kernel of host {} is stopping", peers_.self().name);
  if (plan) {
    const std::uint64_t job = plan.value().job;
    auto& made = parts_[job] = std::make_unique<JobPart>(
        JobPart::Needs{loop_, engine_, peers_, sessions_, runtime_dir_, processes_, cores_, post_, *this},
        std::move(plan).value());
    return made->prepare();
  }
  spdlog::warn("refused a job: {}", plan.error().text);
  loop_.errors().note(ErrorKind::Job, status_failed, "refused a job: " + plan.error().text);
  post_.send(from, kernel::Failed{.job = message.job,
                                  .host = message.self,
                                  .status = status_failed,
                                  .text = plan.error().text});
}

// ---- For tools

std::vector<std::uint64_t> Jobs::known() const {
  std::vector<std::uint64_t> all;
  for (const auto& [job, at] : parts_) all.push_back(job);
  for (const auto& [job, at] : origins_)
    if (!at->hosts().empty() && !parts_.contains(job)) all.push_back(job);
  return all;
}

std::vector<std::pair<std::string, std::int32_t>> Jobs::hosts_of(std::uint64_t job) const {
  if (const JobPart* at = part(job)) return at->hosts();
  const JobOrigin* at = origin(job);
  return at != nullptr ? at->hosts() : std::vector<std::pair<std::string, std::int32_t>>();
}

std::vector<control::JobRow> Jobs::list() const {
  std::vector<control::JobRow> all;
  for (const auto& [job, at] : parts_) {
    const JobPlan& plan = at->plan();
    all.push_back({.job = job,
                   .program = at->program_here(),
                   .size = plan.size,
                   .ranks = static_cast<std::uint32_t>(at->ranks_here()),
                   .state = std::string(name(state_of(*at))),
                   .since = static_cast<std::uint64_t>(at->since()),
                   .origin = peers_.name_of(plan.origin)});
  }
  return all;
}

// Its origin does that, wherever that is, as long as it knows the job.
bool Jobs::kill(std::uint64_t job, std::uint32_t signal) {
  if (JobOrigin* at = origin(job); at != nullptr && at->killed(signal)) return true;
  JobPart* const at = part(job);
  if (at == nullptr) return false;
  if (at->orphaned())
    at->signal(static_cast<int>(signal));
  else
    post_.send(at->plan().origin, kernel::KillJob{.job = job, .signal = signal});
  return true;
}

// ---- What happens to them

void Jobs::link_lost(std::uint32_t link) {
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

void Jobs::stop() {
  stopping_ = true;
  for (const auto& [job, at] : parts_) at->shutting_down();
  for (const auto& [job, at] : origins_) at->shutting_down();
}

void Jobs::publish(Counters& counters) {
  std::erase_if(rows_, [&](const auto& row) { return !parts_.contains(row.first); });
  for (const auto& [job, at] : parts_) {
    const JobState state = state_of(*at);
    auto row = rows_.find(job);
    if (row == rows_.end()) row = rows_.emplace(job, counters.job(job, at->ranks_here(), state)).first;
    row->second->state.set(static_cast<std::uint64_t>(state));
  }
  std::size_t held = 0;
  for (const auto& [job, at] : origins_) held += at->held_spawns();
  counters.set(Counter::SpawnsHeld, held);
}

} // namespace parc::daemon
