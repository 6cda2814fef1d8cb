// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/job_origin.hpp"

#include "control/exit_status.hpp"
#include "control/words/host_words.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/job/rank_program.hpp"
#include "daemon/link/peers.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

constexpr double patience_s = 6; // with a host whose ranks should have been killed after 4
constexpr auto longest_patience = std::chrono::seconds(60); // with one that lives

} // namespace

JobOrigin::JobOrigin(Loop& loop, const protocol::Engine& engine, Peers& peers, Post& post, Jobs& jobs,
                     std::uint64_t id, std::shared_ptr<JobClient> client, std::optional<Spawner> spawner)
    : loop_(loop), engine_(engine), peers_(peers), post_(post), jobs_(jobs), id_(id),
      patience_(loop, [this] { out_of_patience(); }), client_(std::move(client)),
      spawner_(std::move(spawner)) {}

// ---- What the tool asks

void JobOrigin::begin(const tool::Run& run) {
  if (auto planned = plan(run); !planned) refuse(planned.error());
}

void JobOrigin::asked(const tool::Signal& message) {
  signal(message.signal);
}

void JobOrigin::asked(const tool::Kill& kill) {
  decide(status_signal + static_cast<int>(kill.signal), {});
  kill_all();
}

void JobOrigin::asked(const tool::TimedOut&) {
  decide(status_late, "the job ran longer than --timeout allows, and was ended");
}

void JobOrigin::refuse(const Error& why) {
  decide(status_failed, why.text);
}

Result<void> JobOrigin::plan(const tool::Run& run) {
  if (jobs_.stopping())
    return error(ESHUTDOWN, "the kernel of host {} is stopping; start it again", peers_.self().name);
  const auto malformed = [] { return error(EPROTO, "parc run sent a request that makes no sense"); };
  if (run.hosts.empty() || run.runs.size() % 2 != 0) return malformed();
  if (run.places && run.places->size() != run.hosts.size()) return malformed();
  for (std::size_t i = 0; i < run.hosts.size(); ++i) {
    auto place = place_of(run, i);
    if (!place) return std::move(place).error();
    hosts_.push_back({.name = run.hosts[i], .place = std::move(place).value()});
  }
  for (std::size_t i = 0; i < run.runs.size(); i += 2) {
    const auto host = run.runs[i], count = run.runs[i + 1];
    if (host >= hosts_.size() || count == 0 || count > max_ranks - ranks_.size()) return malformed();
    ranks_.resize(ranks_.size() + count, RankState(static_cast<std::uint32_t>(host)));
  }
  if (ranks_.empty()) return malformed();
  PARC_TRY(program, control::decode_program(run.program, run.payload));
  plan_.program = std::move(program);
  if (!fits(plan_.program, ranks_.size())) return malformed();
  if (spawner_) plan_.parent = spawner_->address;
  keep_going_ = run.keep_going == 1;
  if (plan_.program.input < Program::all_ranks && plan_.program.input >= ranks_.size())
    return error(EINVAL, "--stdin names rank {}, and the ranks are 0 to {}", plan_.program.input,
                 ranks_.size() - 1);

  enter(Stage::connecting);
  spdlog::info("job {:x}: {} ranks of {} on {} hosts", id_, ranks_.size(), plan_.program.arguments[0],
               hosts_.size());
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const std::string& name = hosts_[host].name;
    peers_.connect(name.empty() ? peers_.self().name : name,
                   [&jobs = jobs_, id = id_, host](Result<std::int32_t> link) {
                     if (JobOrigin* origin = jobs.origin(id)) origin->reached(host, std::move(link));
                   },
                   {.in_haste = run.in_haste == 1U});
  }
  return success();
}

std::vector<std::pair<std::string, std::int32_t>> JobOrigin::hosts() const {
  std::vector<std::pair<std::string, std::int32_t>> all;
  if (stage_ == Stage::running || stage_ == Stage::ending)
    for (const Host& host : hosts_) all.emplace_back(host.name, *host.link);
  return all;
}

void JobOrigin::signal(std::uint32_t number) {
  const bool stops = only_stops(static_cast<int>(number));
  if (stops && stage_ < Stage::running) return;
  if (!stops) forwarded_ = number;
  if (stage_ < Stage::running) return decide(status_signal + static_cast<int>(number), {});
  if (stage_ != Stage::running) return;
  tell_all(kernel::Signal{.signal = number});
  for (const ChildJob& each : child_jobs_)
    if (JobOrigin* const at = jobs_.origin(each.job)) at->signal(number);
}

void JobOrigin::kill_all() {
  if (stage_ == Stage::ending) tell_all(kernel::Kill{});
  for (const ChildJob& each : child_jobs_)
    if (JobOrigin* const at = jobs_.origin(each.job)) at->kill_all();
}

bool JobOrigin::killed(std::uint32_t number) {
  if (hosts_.empty() || stage_ == Stage::over) return false;
  by_parc_kill_ = by_parc_kill_ || !only_stops(static_cast<int>(number));
  signal(number);
  return true;
}

void JobOrigin::tool_gone() {
  if (stage_ == Stage::over) return jobs_.forget_origin(id_);
  spdlog::info("job {:x}: its parc run has gone; the job ends", id_);
  decide(status_failed, {});
}

// Credit goes back in quarters: one message for many lines.
void JobOrigin::credit(std::uint32_t rank, std::uint64_t bytes) {
  if (rank >= ranks_.size()) return credit_spawned(rank, bytes);
  RankState& state = ranks_[rank];
  state.untaken -= bytes;
  state.taken += bytes;
  if (state.taken < kernel::output_credit(plan_.size) / 4) return;
  tell(hosts_[state.host], kernel::Taken{.rank = rank, .bytes = state.taken});
  state.taken = 0;
}

// ---- Towards the start

void JobOrigin::reached(std::size_t host, Result<std::int32_t> link) {
  if (stage_ != Stage::connecting) return;
  enter(hosts_[host], link ? Host::Stage::reached : Host::Stage::unreached);
  if (link)
    hosts_[host].link = link.value();
  else
    hosts_[host].why = link.error();
  if (link && !post_.reaches(link.value())) return lose(hosts_[host]);
  if (!all_are(Host::Stage::unreached)) return;
  if (!all_are(Host::Stage::reached)) return tell_unreached();
  merge_hosts();
  prepare();
}

// parc run may start kernels where only they are missing. Who is to start them may know a name that is not
// known here (an alias of ssh, a node of Slurm).
void JobOrigin::tell_unreached() {
  tool::Unreached unreached;
  std::string text;
  bool only_kernels = true;
  for (const Host& host : hosts_) {
    if (host.stage != Host::Stage::unreached) continue;
    unreached.hosts.push_back(host.name);
    unreached.unknown.push_back(host.why.code == ENOENT ? host.why.text : std::string());
    if (text.empty()) text = host.why.text;
    only_kernels = only_kernels && (host.why.code == ECONNREFUSED || host.why.code == ENOENT);
  }
  if (unreached.hosts.size() > 1)
    text += fmt::format(" (and {} more of its hosts)", unreached.hosts.size() - 1);
  if (only_kernels) client_->send(unreached);
  decide(status_failed, text);
}

// Two names of one host are one host, by its first name; this host has its own name everywhere.
void JobOrigin::merge_hosts() {
  std::vector<Host> merged;
  std::vector<std::uint32_t> place;
  for (Host& host : hosts_) {
    const auto same = std::ranges::find(merged, host.link, &Host::link);
    place.push_back(static_cast<std::uint32_t>(same - merged.begin()));
    if (same != merged.end()) continue;
    if (*host.link == this_host) host.name = peers_.self().name;
    merged.push_back(std::move(host));
  }
  hosts_ = std::move(merged);
  for (RankState& rank : ranks_) rank.host = place[rank.host];
}

void JobOrigin::prepare() {
  enter(Stage::preparing);
  plan_.job = id_;
  plan_.size = static_cast<std::uint32_t>(ranks_.size());
  plan_.origin_place = hosts_.size();
  for (const Host& host : hosts_) {
    if (*host.link == this_host) plan_.origin_place = plan_.hosts.size();
    const std::uint64_t identity = *host.link == this_host
                                       ? peers_.self().identity
                                       : engine_.link(static_cast<std::uint32_t>(*host.link)).peer;
    const EndpointAddress address = peers_.describe({*host.link, protocol::kernel_endpoint});
    plan_.hosts.push_back({host.name, static_cast<std::uint32_t>(identity),
                           address.port != 0 ? to_text(address) : std::string()});
  }
  for (const RankState& rank : ranks_) {
    if (plan_.runs.empty() || plan_.runs.back().host != rank.host) plan_.runs.push_back({rank.host, 0});
    ++plan_.runs.back().ranks;
    ++hosts_[rank.host].ranks;
  }
  departures_ = Departures(plan_.host_of_rank());
  if (const std::size_t size = plan_.hosts_in_words().size(); size > control::most_host_words)
    return decide(status_failed, control::too_many_host_words(size));
  for (plan_.self = 0; plan_.self < hosts_.size(); ++plan_.self)
    if (!post_.try_send(*hosts_[plan_.self].link, plan_for(hosts_[plan_.self])))
      return decide(status_failed,
                    fmt::format("the job has too many hosts, or its program too many arguments or "
                                "variables: what its kernels are told takes more than {} bytes",
                                Post::max_message));
}

kernel::Prepare JobOrigin::plan_for(const Host& host) const {
  kernel::Prepare message = encode_plan(plan_);
  if (host.place != HostPlace())
    message.payload = control::encode_program(with_place(plan_.program, host.place), message.program);
  return message;
}

// What a hostfile says goes before what [hosts] does.
Result<HostPlace> JobOrigin::place_of(const tool::Run& run, std::size_t host) const {
  HostPlace place = peers_.place_of(run.hosts[host]);
  if (!run.places) return place;
  const tool::RankPlace& told = (*run.places)[host];
  if (!told.wdir.empty()) {
    PARC_TRY(set(place, "wdir", told.wdir));
  }
  for (const std::string& variable : told.env) {
    PARC_TRY(set(place, "env", variable));
  }
  return place;
}

void JobOrigin::heard(Host& host, const kernel::Prepared& message) {
  if (host.stage != Host::Stage::reached) return;
  enter(host, Host::Stage::prepared);
  host.endpoint = message.endpoint;
  if (stage_ != Stage::preparing || !all_prepared()) return;
  if (spawner_) return tell_spawner_prepared();
  start();
}

void JobOrigin::start() {
  enter(Stage::running);
  kernel::Start start;
  for (const Host& each : hosts_) start.endpoints.push_back(each.endpoint);
  if (plan_.program.mpi) jobs_.introduce(*this);
  tell_all(start);
  if (plan_.program.input != Program::no_rank) client_->send(tool::InputTaken{});
}

// First PMIx servers find what the ranks of each other's jobs publish.
kernel::MpiBegins JobOrigin::as_other() const {
  const Host& first = hosts_[plan_.hosts_with_ranks().front()];
  const protocol::Address server{*first.link == this_host ? protocol::here : *first.link,
                                 first.endpoint + first.ranks};
  return {.other = id_, .address = to_text(peers_.describe(server))};
}

void JobOrigin::tell_of(const kernel::MpiBegins& other) {
  tell(hosts_[plan_.hosts_with_ranks().front()],
       kernel::MpiJob{.other = other.other, .address = other.address});
}

// ---- What the ranks read

bool JobOrigin::reads_input(const Host& host) const {
  if (plan_.program.input == Program::all_ranks) return true;
  return plan_.program.input < ranks_.size() &&
         ranks_[plan_.program.input].host == static_cast<std::uint32_t>(&host - hosts_.data());
}

void JobOrigin::asked(const tool::Input& input) {
  if (stage_ != Stage::running) return;
  input_given_ += input.payload.size();
  if (input_given_ - input_taken_ > kernel::input_window)
    return decide(status_failed, "parc run sent more input than its kernel had asked for");
  for (const Host& host : hosts_)
    if (reads_input(host)) tell(host, kernel::Input{.end = input.end, .payload = input.payload});
}

void JobOrigin::input_taken() {
  std::uint64_t taken = input_given_;
  for (const Host& host : hosts_)
    if (reads_input(host)) taken = std::min(taken, host.input_taken);
  if (taken <= input_taken_) return;
  input_taken_ = taken;
  client_->send(tool::InputTaken{.taken = taken});
}

// ---- From the parts

JobOrigin::Host* JobOrigin::host_at(std::int32_t link, std::uint64_t place) {
  if (stage_ < Stage::preparing || stage_ == Stage::over || place >= hosts_.size()) return nullptr;
  Host& host = hosts_[place];
  return host.link == link && host.stage != Host::Stage::lost ? &host : nullptr;
}

JobOrigin::RankState* JobOrigin::rank_of(const Host& host, std::uint32_t number) {
  if (number >= ranks_.size()) return nullptr;
  RankState& rank = ranks_[number];
  return &hosts_[rank.host] == &host ? &rank : nullptr;
}

void JobOrigin::heard(Host& host, const kernel::InputTaken& message) {
  if (message.taken > input_given_) return;
  host.input_taken = message.taken;
  input_taken();
}

void JobOrigin::heard(Host&, const kernel::Failed& message) {
  decide(static_cast<int>(message.status), message.text);
}

void JobOrigin::heard(Host& host, const kernel::Stopping&) {
  if (!is_through(host)) decide(status_failed, fmt::format("the kernel of host {} was stopped", host.name));
}

void JobOrigin::heard(Host& host, const kernel::Parted& message) {
  const Host* const other = message.other < hosts_.size() ? &hosts_[message.other] : nullptr;
  if (other != nullptr && is_through(*other)) return;
  decide(status_failed, fmt::format("host {} lost its link to host {}; the logs of their parcd say why",
                                    host.name, other != nullptr ? other->name : "?"));
}

void JobOrigin::heard(Host& host, kernel::Output message) {
  RankState* const rank = rank_of(host, message.rank);
  if (rank == nullptr) return;
  const std::size_t bytes = message.payload.size();
  if (bytes > kernel::output_credit(plan_.size) -
                  std::min(rank->untaken + rank->taken, kernel::output_credit(plan_.size)))
    return decide(status_failed, fmt::format("the kernel of host {} sent more output of rank {} than it may",
                                             host.name, message.rank));
  rank->untaken += bytes;
  if (client_->open())
    client_->send_output(message.rank, message.stream, std::move(message.payload));
  else
    credit(message.rank, bytes);
}

void JobOrigin::heard(Host& host, const kernel::Departed& message) {
  if (rank_of(host, message.rank) != nullptr) departures_.heard(message.rank, message.known);
}

void JobOrigin::heard(Host& host, const kernel::Abort& message) {
  // With 0 all is well, but for a rank that has failed before.
  if (message.status == 0 && stage_ >= Stage::running && verdict_of_ranks().status != 0) return end();
  if (rank_of(host, message.rank) != nullptr)
    decide(static_cast<int>(message.status),
           fmt::format("rank {} on host {} called {}", message.rank, host.name,
                       plan_.program.mpi ? "MPI_Abort" : "parc_abort"));
}

// ---- Towards the end

void JobOrigin::heard(Host& host, const kernel::Exited& message) {
  RankState* const rank = rank_of(host, message.rank);
  if (stage_ < Stage::running || rank == nullptr || rank->exited()) return;
  departures_.heard(message.rank, {}); // where it has not been said
  end(*rank, RankState::Stage::exited);
  rank->exit.status = message.status;
  rank->exit.signal = message.signal;
  rank->exit.no_memory = message.no_memory.value_or(false);
  rank->ordered = message.ordered;
  tell_exit(*rank);
  if (keep_going_ || !rank->failed()) return;
  fail_spawner(verdict_of_ranks());
  end();
}

void JobOrigin::heard(Host& host, const kernel::Ended& message) {
  RankState* const rank = rank_of(host, message.rank);
  if (stage_ < Stage::running || rank == nullptr || rank->stage != RankState::Stage::exited) return;
  end(*rank, RankState::Stage::over);
  host.unread = message.unread.value_or(0);
  host.unread_messages.clear();
  for (const auto& each : message.messages.value_or(std::vector<kernel::UnreadMessage>()))
    if (each.from >= 0)
      host.unread_messages.push_back(
          fmt::format("a message from rank {} to rank {} was never read (tag {}, {} bytes)", each.from,
                      each.to, each.tag, each.bytes));
  check_over();
}

void JobOrigin::link_lost(std::uint32_t link) {
  if (stage_ == Stage::over) return;
  const auto index = static_cast<std::int32_t>(link);
  if (spawner_ && spawner_->link == index)
    decide(status_failed, "the host of the program that spawned it was lost");
  for (Host& host : hosts_)
    if (host.link == index) lose(host);
}

void JobOrigin::end(RankState& rank, RankState::Stage next) {
  assert(next > rank.stage);
  rank.stage = next;
  if (next != RankState::Stage::over) return;
  ++ranks_over_;
  ++hosts_[rank.host].ranks_over;
}

void JobOrigin::give_up(Host& host) {
  enter(host, Host::Stage::lost);
  const auto place = static_cast<std::uint32_t>(&host - hosts_.data());
  for (RankState& rank : ranks_) {
    if (rank.host != place || rank.stage == RankState::Stage::over) continue;
    const bool had_exited = rank.exited();
    end(rank, RankState::Stage::over);
    if (had_exited) continue;
    rank.ordered = true;
    rank.exit.status = status_failed;
    tell_exit(rank);
  }
}

// It had ranks, and nobody needs it any more.
bool JobOrigin::is_through(const Host& host) const {
  return stage_ == Stage::running && host.ranks != 0 && host.ranks_over == host.ranks;
}

void JobOrigin::lose(Host& host) {
  if (host.stage == Host::Stage::lost) return;
  const bool through = is_through(host);
  give_up(host);
  if (through) return;
  decide(status_failed,
         fmt::format("host {} was lost: the link to its kernel broke; is parcd still running there?",
                     host.name));
  check_over();
}

void JobOrigin::decide(int status, std::string text) {
  if (!verdict_) {
    verdict_ = {status, std::move(text)};
    fail_spawner(*verdict_);
  }
  end();
}

void JobOrigin::end() {
  if (stage_ >= Stage::ending) return;
  if (stage_ < Stage::running) return conclude();
  enter(Stage::ending);
  tell_all(kernel::End{});
  end_spawned();
  patience_.set(patience_s);
  (void)heard_of();
  if (!leaving_) patient_until_ = loop_.now() + longest_patience;
  check_over();
}

// With hosts that have not killed their ranks, and of which nothing is heard: their kernels hang. Others may
// have much to say first, over a link that is slow or breaks all the time. A rank that had failed before is
// still why the job did.
void JobOrigin::out_of_patience() {
  const bool failed = verdict_of_ranks().status != 0;
  const std::set<std::size_t> alive = heard_of();
  bool waits = false;
  for (const RankState& rank : ranks_) {
    Host& host = hosts_[rank.host];
    if (rank.exited()) continue;
    if (alive.contains(rank.host) && loop_.now() < patient_until_) {
      waits = true;
      continue;
    }
    give_up(host);
    if (!failed)
      decide(status_failed, fmt::format("host {} has not ended its ranks within {} s; does its kernel hang?",
                                        host.name, patience_s));
  }
  if (waits) patience_.set(patience_s);
  check_over();
}

// Since it was asked last.
std::set<std::size_t> JobOrigin::heard_of() {
  std::set<std::size_t> hosts;
  for (Host& host : hosts_) {
    if (!host.link || host.stage == Host::Stage::lost) continue;
    const std::uint64_t bytes = post_.bytes_heard(*host.link);
    if (std::exchange(host.bytes_heard, bytes) != bytes)
      hosts.insert(static_cast<std::size_t>(&host - hosts_.data()));
  }
  return hosts;
}

void JobOrigin::check_over() {
  if (ranks_over_ == ranks_.size() && child_jobs_.empty() &&
      (stage_ == Stage::running || stage_ == Stage::ending))
    conclude();
}

JobOrigin::Verdict JobOrigin::verdict_of_ranks() const {
  const auto number = departures_.first([this](std::uint32_t rank) { return ranks_[rank].failed(); });
  if (!number) return {};
  const RankState& first = ranks_[*number];
  const std::string& host = hosts_[first.host].name;
  if (first.exit.signal == 0)
    return {static_cast<int>(first.exit.status),
            fmt::format("rank {} on host {} ended with exit status {}", *number, host, first.exit.status)};
  const auto signal = static_cast<int>(first.exit.signal);
  Verdict verdict{status_signal + signal, {}};
  if (first.exit.signal != forwarded_)
    verdict.text = fmt::format("rank {} on host {} was killed by signal {} ({}){}", *number, host, signal,
                               strsignal(signal), first.exit.no_memory ? no_memory : "");
  else if (by_parc_kill_) // a signal to parc run needs no telling
    verdict.text = fmt::format("parc kill ended the job with signal {} ({})", signal, strsignal(signal));
  return verdict;
}

// At most a few lines, and a count.
std::vector<std::string> JobOrigin::warnings() const {
  std::uint64_t all = 0;
  std::vector<std::string> lines;
  for (const Host& host : hosts_) {
    all += host.unread;
    for (const std::string& line : host.unread_messages)
      if (lines.size() < kernel::unread_told) lines.push_back(line);
  }
  if (all > lines.size())
    lines.push_back(fmt::format("{} more messages were never read", all - lines.size()));
  lines.insert(lines.end(), spawned_warnings_.begin(), spawned_warnings_.end());
  return lines;
}

// How its ranks have ended, where that is why the job failed: what happened, and to which.
std::vector<std::array<std::string, 2>> JobOrigin::ends() const {
  const auto told = [this](const RankState& rank) {
    return rank.failed() && (forwarded_ == 0 || rank.exit.signal != forwarded_);
  };
  if (verdict_ || ranks_.size() == 1 || std::ranges::none_of(ranks_, told)) return {};
  std::map<std::string, std::string> ranks;
  for (std::size_t first = 0, next = 0; first < ranks_.size(); first = next) {
    const std::string how = ranks_[first].ended_how();
    for (next = first + 1; next < ranks_.size() && ranks_[next].ended_how() == how;) ++next;
    std::string& all = ranks[how];
    all += fmt::format("{}{}", all.empty() ? "" : ",", first);
    if (next - first > 1) all += fmt::format("-{}", next - 1);
  }
  std::vector<std::array<std::string, 2>> rows;
  for (const auto& [how, which] : ranks) rows.push_back({how, which});
  return rows;
}

std::string JobOrigin::RankState::ended_how() const {
  if (ordered) return "with the job";
  if (exit.signal == 0) return fmt::format("exit status {}", exit.status);
  return fmt::format("signal {} ({})", exit.signal, strsignal(static_cast<int>(exit.signal)));
}

void JobOrigin::conclude() {
  const bool told = stage_ >= Stage::preparing;
  enter(Stage::over);
  patience_.cancel();
  if (told) tell_all(kernel::Finish{});
  end_spawned();
  const Verdict verdict = verdict_ ? *verdict_ : verdict_of_ranks();
  spdlog::info("job {:x}: over with status {}{}{}", id_, verdict.status, verdict.text.empty() ? "" : ": ",
               verdict.text);
  if (verdict.status != 0 && !verdict.text.empty())
    loop_.errors().note(ErrorKind::Job, verdict.status,
                        fmt::format("a job of {} failed: {}", plan_.program.name(), verdict.text));
  if (!verdict_) fail_spawner(verdict);
  if (spawner_ && !std::exchange(spawner_->answered, true))
    post_.send(spawner_->link,
               kernel::SpawnFailed{.token = spawner_->token,
                                   .text = verdict.text.empty() ? "the job is ending" : verdict.text});
  if (client_->open())
    client_->send(tool::Done{.status = static_cast<std::uint32_t>(verdict.status),
                             .text = verdict.text,
                             .ends = ends(),
                             .warnings = verdict.status == 0 ? warnings() : spawned_warnings_});
  else
    jobs_.forget_origin(id_);
}

void JobOrigin::shutting_down() {
  if (stage_ == Stage::over) return;
  leaving_ = true;
  patient_until_ = {};
  if (!verdict_)
    verdict_ = {status_failed, fmt::format("the kernel of host {} was stopped", peers_.self().name)};
  end();
}

} // namespace parc::daemon
