// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/job_origin.hpp"

#include "control/exit_status.hpp"
#include "daemon/job/job_messages.hpp"
#include "daemon/job/jobs.hpp"
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

} // namespace

JobOrigin::JobOrigin(Loop& loop, const protocol::Engine& engine, Peers& peers, Jobs& jobs, std::uint64_t id,
                     std::shared_ptr<JobDoor> door, std::optional<Spawner> spawner)
    : loop_(loop), engine_(engine), peers_(peers), jobs_(jobs), id_(id),
      patience_(loop, [this] { out_of_patience(); }), door_(std::move(door)), spawner_(spawner) {}

// ---- What the tool asks

void JobOrigin::asked(Frame frame) {
  const std::string kind = text_in(frame.message, "kind");
  const auto number =
      static_cast<std::uint32_t>(number_in(frame.message, "signal", NSIG - 1).value_or(SIGTERM));
  if (kind == "run" && stage_ == Stage::asked) {
    if (auto planned = plan(frame); !planned) decide(status_failed, planned.error().text);
  } else if (kind == "input") {
    if (stage_ == Stage::running) pass_input(frame);
  } else if (kind == "signal") {
    signal(number);
  } else if (kind == "kill") {
    decide(status_signal + static_cast<int>(number), {});
    kill_all();
  } else if (kind == "timeout") {
    decide(status_late, "the job ran longer than --timeout allows, and was ended");
  } else {
    decide(status_failed, fmt::format("parcd does not know the request \"{}\"; upgrade parcd", kind));
  }
}

Result<void> JobOrigin::plan(const Frame& frame) {
  if (jobs_.stopping())
    return error(ESHUTDOWN, "the kernel of host {} is stopping; start it again", peers_.self().name);
  const auto malformed = [] { return error(EPROTO, "parc run sent a request that makes no sense"); };
  const auto names = frame.message.find("hosts");
  const auto runs = numbers_in(frame.message, "runs", std::size_t{2} * max_ranks);
  if (names == frame.message.end() || !names->is_array() || names->empty() || !runs || runs->size() % 2 != 0)
    return malformed();
  for (const auto& name : *names) {
    if (!name.is_string()) return malformed();
    hosts_.push_back({.name = name.get<std::string>(), .link = {}});
  }
  for (std::size_t i = 0; i < runs->size(); i += 2) {
    const auto host = (*runs)[i], count = (*runs)[i + 1];
    if (host >= hosts_.size() || count == 0 || count > max_ranks - ranks_.size()) return malformed();
    ranks_.resize(ranks_.size() + count, RankState(static_cast<std::uint32_t>(host)));
  }
  if (ranks_.empty()) return malformed();
  PARC_TRY(program, decode_program(frame.message, frame.bytes));
  plan_.program = std::move(program);
  if (spawner_) plan_.parent = text_in(frame.message, "parent");
  keep_going_ = number_in(frame.message, "keep_going", 1) == 1U;
  if (plan_.program.input < Program::all_ranks && plan_.program.input >= ranks_.size())
    return error(EINVAL, "--stdin names rank {}, and the ranks are 0 to {}", plan_.program.input,
                 ranks_.size() - 1);

  stage_ = Stage::connecting;
  spdlog::info("job {:x}: {} ranks of {} on {} hosts", id_, ranks_.size(), plan_.program.arguments[0],
               hosts_.size());
  const bool in_haste = number_in(frame.message, "in_haste", 1) == 1U;
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const std::string& name = hosts_[host].name;
    peers_.connect(
        name.empty() ? peers_.self().name : name,
        [&jobs = jobs_, id = id_, host](Result<std::int32_t> link) {
          if (JobOrigin* origin = jobs.origin(id)) origin->reached(host, std::move(link));
        },
        in_haste);
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
  tell_all("signal", {{"signal", number}});
  for (const Spawned& each : spawned_)
    if (JobOrigin* const at = jobs_.origin(each.job)) at->signal(number);
}

void JobOrigin::kill_all() {
  if (stage_ == Stage::ending) tell_all("kill");
  for (const Spawned& each : spawned_)
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
  if (state.taken < output_credit(plan_.size) / 4) return;
  tell(hosts_[state.host], "taken", {{"rank", rank}, {"bytes", state.taken}});
  state.taken = 0;
}

// ---- Towards the start

void JobOrigin::reached(std::size_t host, Result<std::int32_t> link) {
  if (stage_ != Stage::connecting) return;
  if (link)
    hosts_[host].link = link.value();
  else
    hosts_[host].unreached = link.error();
  if (link && !jobs_.reaches(link.value())) return lose(hosts_[host]);
  const auto is_open = [](const Host& each) { return !each.link && !each.unreached; };
  if (std::ranges::any_of(hosts_, is_open)) return;
  if (std::ranges::any_of(hosts_, [](const Host& each) { return each.unreached.has_value(); }))
    return tell_unreached();
  merge_hosts();
  prepare();
}

// parc run may start kernels where only they are missing. Who is to start them may know a name that is not
// known here (an alias of ssh, a node of Slurm).
void JobOrigin::tell_unreached() {
  nlohmann::json names = nlohmann::json::array(), unknown = nlohmann::json::array();
  std::string text;
  bool only_kernels = true;
  for (const Host& host : hosts_) {
    if (!host.unreached) continue;
    names.push_back(host.name);
    unknown.push_back(host.unreached->code == ENOENT ? host.unreached->text : std::string());
    if (text.empty()) text = host.unreached->text;
    only_kernels = only_kernels && (host.unreached->code == ECONNREFUSED || host.unreached->code == ENOENT);
  }
  if (names.size() > 1) text += fmt::format(" (and {} more of its hosts)", names.size() - 1);
  if (only_kernels) door_->send({{"kind", "unreached"}, {"hosts", names}, {"unknown", unknown}});
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
  stage_ = Stage::preparing;
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
  }
  departures_ = Departures(plan_.host_of_rank());
  for (plan_.self = 0; plan_.self < hosts_.size(); ++plan_.self) {
    std::string bytes;
    nlohmann::json message = encode_plan(plan_, bytes);
    jobs_.tell(*hosts_[plan_.self].link, std::move(message), std::move(bytes));
  }
}

void JobOrigin::prepared(Host& host, std::uint64_t endpoint) {
  host.prepared = true;
  host.endpoint = endpoint;
  if (stage_ != Stage::preparing || !all_prepared()) return;
  if (spawner_) return tell_spawner_prepared();
  start();
}

void JobOrigin::start() {
  stage_ = Stage::running;
  nlohmann::json endpoints = nlohmann::json::array();
  for (const Host& each : hosts_) endpoints.push_back(each.endpoint);
  tell_all("start", {{"endpoints", endpoints}});
  if (plan_.program.input != Program::no_rank) door_->send({{"kind", "input_taken"}, {"taken", 0}});
}

// ---- What the ranks read

bool JobOrigin::reads_input(const Host& host) const {
  if (plan_.program.input == Program::all_ranks) return true;
  return plan_.program.input < ranks_.size() &&
         ranks_[plan_.program.input].host == static_cast<std::uint32_t>(&host - hosts_.data());
}

void JobOrigin::pass_input(const Frame& frame) {
  input_given_ += frame.bytes.size();
  if (input_given_ - input_taken_ > input_window)
    return decide(status_failed, "parc run sent more input than its kernel had asked for");
  for (const Host& host : hosts_)
    if (reads_input(host))
      tell(host, "input", {{"end", number_in(frame.message, "end", 1).value_or(0)}}, frame.bytes);
}

void JobOrigin::input_taken() {
  std::uint64_t taken = input_given_;
  for (const Host& host : hosts_)
    if (reads_input(host)) taken = std::min(taken, host.input_taken);
  if (taken <= input_taken_) return;
  input_taken_ = taken;
  door_->send({{"kind", "input_taken"}, {"taken", taken}});
}

// ---- From the parts

void JobOrigin::received(std::int32_t from, const std::string& kind, const nlohmann::json& message,
                         std::string bytes) {
  const auto place = number_in(message, "host", hosts_.size() - 1);
  if (stage_ < Stage::preparing || stage_ == Stage::over || !place || hosts_[*place].link != from) return;
  Host& host = hosts_[*place];
  if (host.lost) return;
  if (kind == "prepared") return prepared(host, number_in(message, "endpoint", UINT64_MAX).value_or(0));
  if (kind == "input_taken") {
    host.input_taken = number_in(message, "taken", input_given_).value_or(host.input_taken);
    return input_taken();
  }
  if (kind == "failed") {
    const auto status = number_in(message, "status", 255).value_or(status_failed);
    return decide(static_cast<int>(status), text_in(message, "text"));
  }
  if (kind == "spawn") return spawn(from, message, bytes);
  if (kind == "started") return part_started(host);
  if (kind == "stopping")
    return is_through(host)
               ? void()
               : decide(status_failed, fmt::format("the kernel of host {} was stopped", host.name));
  if (kind == "parted") {
    const auto other = number_in(message, "other", hosts_.size() - 1);
    if (other && is_through(hosts_[*other])) return;
    return decide(status_failed,
                  fmt::format("host {} lost its link to host {}; the logs of their parcd say why", host.name,
                              other ? hosts_[*other].name : "?"));
  }

  const auto number = number_in(message, "rank", ranks_.size() - 1);
  if (!number || ranks_[*number].host != *place) return;
  RankState& rank = ranks_[*number];
  if (kind == "output") {
    output(static_cast<std::uint32_t>(*number), number_in(message, "stream", 3).value_or(1), bytes);
  } else if (kind == "departed") {
    departures_.heard(static_cast<std::uint32_t>(*number),
                      numbers_in(message, "known", ranks_.size()).value_or(std::vector<std::uint64_t>()));
  } else if (kind == "exited") {
    exited(*number, message);
  } else if (kind == "ended") {
    rank.ended = true;
    note_unread(host, message);
    check_over();
  } else if (kind == "abort") {
    decide(static_cast<int>(number_in(message, "status", 255).value_or(1)),
           fmt::format("rank {} on host {} called parc_abort", *number, host.name));
  }
}

void JobOrigin::output(std::uint32_t rank, std::uint64_t stream, std::string_view bytes) {
  RankState& state = ranks_[rank];
  if (bytes.size() > output_credit(plan_.size) - state.untaken)
    return decide(status_failed, fmt::format("the kernel of host {} sent more output of rank {} than it may",
                                             hosts_[state.host].name, rank));
  state.untaken += bytes.size();
  if (door_->open())
    door_->send_output(rank, stream, bytes);
  else
    credit(rank, bytes.size());
}

// ---- Towards the end

void JobOrigin::exited(std::size_t number, const nlohmann::json& message) {
  RankState& rank = ranks_[number];
  departures_.heard(static_cast<std::uint32_t>(number), {}); // where it has not been said
  rank.exited = true;
  rank.exit.status = static_cast<std::uint32_t>(number_in(message, "status", 255).value_or(0));
  rank.exit.signal = static_cast<std::uint32_t>(number_in(message, "signal", NSIG - 1).value_or(0));
  const auto says = [&](const char* what) {
    const auto found = message.find(what);
    return found != message.end() && found->is_boolean() && found->get<bool>();
  };
  rank.ordered = says("ordered");
  rank.exit.no_memory = says("no_memory");
  tell_exit(rank);
  if (!keep_going_ && rank.failed()) end();
}

void JobOrigin::link_lost(std::uint32_t link) {
  if (stage_ == Stage::over) return;
  const auto index = static_cast<std::int32_t>(link);
  if (spawner_ && spawner_->link == index)
    decide(status_failed, "the host of the program that spawned it was lost");
  for (Host& host : hosts_)
    if (host.link == index) lose(host);
}

void JobOrigin::give_up(Host& host) {
  host.lost = true;
  const auto place = static_cast<std::uint32_t>(&host - hosts_.data());
  for (RankState& rank : ranks_) {
    if (rank.host != place) continue;
    rank.ended = true;
    if (std::exchange(rank.exited, true)) continue;
    rank.ordered = true;
    rank.exit.status = status_failed;
    tell_exit(rank);
  }
}

// It had ranks, and nobody needs it any more. One without is there for what is spawned.
bool JobOrigin::is_through(const Host& host) const {
  const auto is_there = [place = &host - hosts_.data()](const RankState& rank) { return rank.host == place; };
  return stage_ == Stage::running && std::ranges::any_of(ranks_, is_there) &&
         std::ranges::all_of(
             ranks_, [&](const RankState& rank) { return !is_there(rank) || (rank.exited && rank.ended); });
}

void JobOrigin::lose(Host& host) {
  if (host.lost) return;
  const bool through = is_through(host);
  give_up(host);
  if (through) return;
  decide(status_failed,
         fmt::format("host {} was lost: the link to its kernel broke; is parcd still running there?",
                     host.name));
  check_over();
}

void JobOrigin::decide(int status, std::string text) {
  if (!verdict_) verdict_ = {status, std::move(text)};
  end();
}

void JobOrigin::end() {
  if (stage_ >= Stage::ending) return;
  if (stage_ < Stage::running) return conclude();
  stage_ = Stage::ending;
  tell_all("end");
  end_spawned();
  patience_.set(patience_s);
  check_over();
}

// With hosts that have not killed their ranks: their kernels hang. A rank that had failed before is still why
// the job did.
void JobOrigin::out_of_patience() {
  const bool failed = verdict_of_ranks().status != 0;
  for (const RankState& rank : ranks_) {
    Host& host = hosts_[rank.host];
    if (rank.exited) continue;
    give_up(host);
    if (!failed)
      decide(status_failed, fmt::format("host {} has not ended its ranks within {} s; does its kernel hang?",
                                        host.name, patience_s));
  }
  check_over();
}

void JobOrigin::check_over() {
  const bool over =
      std::ranges::all_of(ranks_, [](const RankState& rank) { return rank.exited && rank.ended; });
  if (over && spawned_.empty() && (stage_ == Stage::running || stage_ == Stage::ending)) conclude();
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

void JobOrigin::note_unread(Host& host, const nlohmann::json& message) {
  host.unread = number_in(message, "unread", UINT32_MAX).value_or(0);
  host.unread_messages.clear();
  const auto messages = message.find("messages");
  if (messages == message.end() || !messages->is_array()) return;
  for (const auto& each : *messages) {
    if (!each.is_object() || host.unread_messages.size() == unread_told) return;
    const auto from = number_in(each, "from", max_ranks), to = number_in(each, "to", max_ranks),
               tag = number_in(each, "tag", INT32_MAX), bytes = number_in(each, "bytes", UINT64_MAX);
    if (!from || !to || !tag || !bytes) return;
    host.unread_messages.push_back(fmt::format(
        "a message from rank {} to rank {} was never read (tag {}, {} bytes)", *from, *to, *tag, *bytes));
  }
}

// At most a few lines, and a count.
std::vector<std::string> JobOrigin::warnings() const {
  std::uint64_t all = 0;
  std::vector<std::string> lines;
  for (const Host& host : hosts_) {
    all += host.unread;
    for (const std::string& line : host.unread_messages)
      if (lines.size() < unread_told) lines.push_back(line);
  }
  if (all > lines.size())
    lines.push_back(fmt::format("{} more messages were never read", all - lines.size()));
  lines.insert(lines.end(), spawned_warnings_.begin(), spawned_warnings_.end());
  return lines;
}

// How its ranks have ended, where that is why the job failed: what happened, and to which.
nlohmann::json JobOrigin::ends() const {
  const auto told = [this](const RankState& rank) {
    return rank.failed() && (forwarded_ == 0 || rank.exit.signal != forwarded_);
  };
  if (verdict_ || ranks_.size() == 1 || std::ranges::none_of(ranks_, told)) return nlohmann::json::array();
  std::map<std::string, std::string> ranks;
  for (std::size_t first = 0, next = 0; first < ranks_.size(); first = next) {
    const std::string how = ranks_[first].ended_how();
    for (next = first + 1; next < ranks_.size() && ranks_[next].ended_how() == how;) ++next;
    std::string& all = ranks[how];
    all += fmt::format("{}{}", all.empty() ? "" : ",", first);
    if (next - first > 1) all += fmt::format("-{}", next - 1);
  }
  nlohmann::json rows = nlohmann::json::array();
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
  stage_ = Stage::over;
  patience_.cancel();
  if (told) tell_all("finish");
  end_spawned();
  const Verdict verdict = verdict_ ? *verdict_ : verdict_of_ranks();
  spdlog::info("job {:x}: over with status {}{}{}", id_, verdict.status, verdict.text.empty() ? "" : ": ",
               verdict.text);
  if (verdict.status != 0 && !verdict.text.empty())
    loop_.errors().note(ErrorKind::Job, verdict.status,
                        fmt::format("a job of {} failed: {}", plan_.program.name(), verdict.text));
  if (spawner_ && !std::exchange(spawner_->answered, true))
    tell_spawner("spawn_failed", {{"text", verdict.text.empty() ? "the job is ending" : verdict.text}});
  if (door_->open())
    door_->send({{"kind", "done"},
                 {"status", verdict.status},
                 {"text", verdict.text},
                 {"ends", ends()},
                 {"warnings", verdict.status == 0 ? warnings() : std::vector<std::string>{}}});
  else
    jobs_.forget_origin(id_);
}

void JobOrigin::shutting_down() {
  if (stage_ == Stage::over) return;
  if (!verdict_)
    verdict_ = {status_failed, fmt::format("the kernel of host {} was stopped", peers_.self().name)};
  end();
}

// Also a host that was given up because it did not answer: it may go on one day, and must hear that it is
// over.
void JobOrigin::tell(const Host& host, const char* kind, nlohmann::json message, const std::string& bytes) {
  if (!host.link) return;
  message["kind"] = kind;
  message["job"] = id_;
  jobs_.tell(*host.link, std::move(message), bytes);
}

void JobOrigin::tell_all(const char* kind, const nlohmann::json& message) {
  for (const Host& host : hosts_) tell(host, kind, message);
}

} // namespace parc::daemon
