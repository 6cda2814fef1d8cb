// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/join/joins.hpp"

#include "control/words/door.hpp"
#include "control/words/texts.hpp"

#include "daemon/link/peers.hpp"
#include "daemon/program/program_pipes.hpp"
#include "daemon/program/sessions.hpp"
#include "include/parc/parc.h"
#include "system/job_name.hpp"
#include "system/quote.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

namespace parc::daemon {
namespace {

constexpr const char* nonsense_there =
    "the kernel where the job's ranks meet said something that makes no sense";

std::optional<std::uint32_t> number_of(const std::string& text, std::uint32_t most) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != text.npos) return {};
  const auto number = static_cast<std::uint32_t>(std::stoul(text));
  return number > most ? std::nullopt : std::optional(number);
}

} // namespace

Joins::Joins(Loop& loop, protocol::Engine& engine, Peers& peers, Sessions& sessions, Post& post, Jobs& jobs,
             const Config& config)
    : loop_(loop), engine_(engine), peers_(peers), sessions_(sessions), post_(post),
      meetings_(loop, peers, post, jobs, config) {
  post_.on<kernel::Joined>(
      [this](std::int32_t from, const kernel::Joined& message) { joined(from, message); });
  post_.on<kernel::Go>([this](std::int32_t from, const kernel::Go& message) { go(from, message); });
  post_.on<kernel::JoinRefused>(
      [this](std::int32_t from, const kernel::JoinRefused& message) { refused(from, message); });
  post_.on<kernel::SignalJoined>([this](std::int32_t, const kernel::SignalJoined& message) {
    running_.signal(message.job, static_cast<int>(message.signal));
  });
}

Joins::~Joins() {
  for (const auto& [token, joiner] : joiners_)
    if (joiner.endpoint != 0) engine_.kill(joiner.endpoint);
  for (const std::uint64_t group : running_.groups()) engine_.drop_group(group);
}

// ---- Programs of this host

void Joins::joiner(Fd socket, const std::string& wants) {
  const std::uint64_t token = ++last_token_;
  Joiner& joiner = joiners_[token];
  joiner.socket = std::move(socket);
  joiner.process = JoinedJobs::at_other_end(joiner.socket);
  joiner.readable = Event(loop_.events(), joiner.socket.get(), EV_READ | EV_PERSIST,
                          [this, token](short) { disturbed(token); });
  joiner.readable.add();
  ask(token, wants);
}

// It has gone, or says what nobody asks for.
void Joins::disturbed(std::uint64_t token) {
  const auto found = joiners_.find(token);
  if (found == joiners_.end()) return;
  char byte = 0;
  const ssize_t got = recv(found->second.socket.get(), &byte, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return forget(token);
  refuse(token, PARC_EINVAL, "it has said more than what it wants");
}

void Joins::ask(std::uint64_t token, const std::string& wants) {
  Joiner& joiner = joiners_.at(token);
  const auto wish = control::door::wish_in(wants);
  if (!wish)
    return refuse(token, PARC_EINVAL, "its libparc asks for a place in another way than this parcd knows");
  const auto rank = number_of(wish->rank, kernel::most_joined - 1),
             size = number_of(wish->size, kernel::most_joined);
  if (!is_job_name(wish->name))
    return refuse(token, PARC_EINVAL, fmt::format("{} names no job: {}", quote(wish->name), job_name_rule));
  if (!rank || !size || *rank >= *size)
    return refuse(
        token, PARC_EINVAL,
        fmt::format("rank {} of {} makes no sense: a job that is joined has at most {} ranks, from 0 on",
                    quote(wish->rank), quote(wish->size), kernel::most_joined));
  joiner.name = wish->name;
  joiner.rank = *rank;
  joiner.size = *size;
  joiner.endpoint = engine_.add_endpoint();
  const auto answer = [self = std::weak_ptr(self_), token](const Result<std::int32_t>& link) {
    if (const auto joins = self.lock()) (*joins)->reached(token, link);
  };
  if (wish->host.empty())
    answer(this_host);
  else
    peers_.connect(wish->host, answer);
}

void Joins::reached(std::uint64_t token, const Result<std::int32_t>& link) {
  const auto found = joiners_.find(token);
  if (found == joiners_.end()) return;
  Joiner& joiner = found->second;
  if (!link || !post_.reaches(link.value()))
    return refuse(token, PARC_EPEER,
                  fmt::format("the host where the ranks of job {} meet cannot be reached: {}", joiner.name,
                              link ? "its link broke" : link.error().text));
  joiner.stage = Stage::meeting;
  joiner.meeting = link.value();
  post_.send(joiner.meeting,
             kernel::Join{.name = joiner.name,
                          .rank = joiner.rank,
                          .size = joiner.size,
                          .token = token,
                          .address = to_text(peers_.describe({protocol::here, joiner.endpoint}))});
}

// A program that does not take its answer has gone.
void Joins::refuse(std::uint64_t token, int code, const std::string& text) {
  const auto found = joiners_.find(token);
  if (found == joiners_.end()) return;
  spdlog::info("a program could not join: {}", text);
  loop_.errors().note(ErrorKind::Job, code, "refused a program that joins a job: " + text);
  const std::string answer = control::door::refusal_says(code, text);
  [[maybe_unused]] const auto sent =
      send(found->second.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  forget(token);
}

void Joins::forget(std::uint64_t token) {
  const auto found = joiners_.find(token);
  if (found == joiners_.end()) return;
  Joiner& joiner = found->second;
  const Stage stage = std::exchange(joiner.stage, Stage::over);
  if (stage == Stage::meeting || stage == Stage::forming)
    post_.send(joiner.meeting, kernel::Unjoin{.name = joiner.name, .rank = joiner.rank, .token = token});
  if (const auto forming = formings_.find({joiner.meeting, joiner.job}); forming != formings_.end()) {
    forming->second->mine.erase(token);
    if (forming->second->mine.empty()) drop(forming->first);
  }
  if (joiner.endpoint != 0) engine_.kill(std::exchange(joiner.endpoint, 0));
  joiner.readable.remove();
  loop_.after_step([self = std::weak_ptr(self_), token] { // its event may be what calls
    if (const auto joins = self.lock()) (*joins)->joiners_.erase(token);
  });
}

// ---- All are there

void Joins::joined(std::int32_t from, const kernel::Joined& message) {
  const auto forming = std::make_shared<Forming>();
  forming->place = {from, message.number};
  forming->hosts = message.hosts;
  forming->within_s = message.within;
  bool good = forming->place.second != 0 && forming->within_s != 0 && !formings_.contains(forming->place);
  const auto texts = control::texts_in(message.payload);
  good = good && texts;
  for (const std::string& text : texts.value_or(std::vector<std::string>())) {
    auto address = parse_endpoint_address(text);
    good = good && address && address.value().number != protocol::kernel_endpoint;
    if (good) forming->members.push_back(std::move(address).value());
  }
  const Result<void> claimed = claim(*forming, message.mine);
  if (!good || !claimed) return cannot_begin(*forming, good ? claimed.error().text : nonsense_there);
  reach_all(forming);
}

// Who is named and waits here goes on to that stage; nobody else of this host may be named.
Result<void> Joins::claim(Forming& forming, const std::vector<std::uint64_t>& mine) {
  const Error nonsense = error(EPROTO, "{}", nonsense_there);
  if (mine.empty() || mine.size() % 2 != 0) return nonsense;
  for (std::size_t i = 0; i < mine.size(); i += 2) {
    const std::uint64_t rank = mine[i], token = mine[i + 1];
    const auto found = joiners_.find(token);
    const bool gone = token <= last_token_ && (found == joiners_.end() || found->second.stage == Stage::over);
    if (gone)
      return error(ECHILD, "rank {}, on host {}, has gone while the job began", rank, peers_.self().name);
    if (found == joiners_.end() || found->second.stage != Stage::meeting ||
        found->second.meeting != forming.place.first)
      return nonsense;
    Joiner& at = found->second;
    at.stage = Stage::forming;
    at.job = forming.place.second;
    forming.mine.emplace(token, at.rank);
    if (rank != at.rank || at.size != forming.members.size() ||
        forming.members[at.rank].identity != peers_.self().identity ||
        forming.members[at.rank].number != at.endpoint)
      return nonsense;
  }
  const auto ours = std::ranges::count(forming.members, peers_.self().identity, &EndpointAddress::identity);
  if (static_cast<std::size_t>(ours) != forming.mine.size()) return nonsense;
  return success();
}

void Joins::reach_all(const std::shared_ptr<Forming>& forming) {
  formings_.emplace(forming->place, forming);
  forming->patience = std::make_unique<Timer>(loop_, [this, &at = *forming] {
    cannot_begin(at, fmt::format("the kernel where the job's ranks meet has not said in {} s whether the job "
                                 "begins",
                                 2 * at.within_s));
  });
  forming->patience->set(2.0 * forming->within_s); // it decides itself in half of that
  std::map<std::uint64_t, std::uint32_t> kernels;  // and a rank of each
  for (std::uint32_t rank = 0; rank < forming->members.size(); ++rank)
    kernels.emplace(forming->members[rank].identity, rank);
  forming->unreached = kernels.size();
  for (const auto& [identity, rank] : kernels)
    peers_.connect(forming->members[rank], [self = std::weak_ptr(self_), at = std::weak_ptr(forming),
                                            rank = rank](const Result<std::int32_t>& link) {
      const auto joins = self.lock();
      if (const auto job = at.lock(); job != nullptr && joins != nullptr)
        (*joins)->kernel_reached(*job, rank, link);
    });
}

// Whether the job begins is told where they meet: all of its hosts hear it.
void Joins::kernel_reached(Forming& forming, std::uint32_t rank, const Result<std::int32_t>& link) {
  const auto [from, number] = forming.place;
  const std::uint64_t identity = forming.members[rank].identity;
  if (!link)
    return post_.send(from, kernel::Formed{.number = number, .text = link.error().text, .unreached = rank});
  if ((link.value() == this_host) != (identity == peers_.self().identity))
    return cannot_begin(forming, nonsense_there);
  forming.links[identity] = link.value();
  if (--forming.unreached == 0) post_.send(from, kernel::Formed{.number = number});
}

void Joins::go(std::int32_t from, const kernel::Go& message) {
  const auto found = formings_.find({from, message.number});
  if (found == formings_.end()) return;
  const std::shared_ptr<Forming> forming = found->second;
  if (forming->unreached == 0) return form(*forming);
  cannot_begin(*forming, nonsense_there);
}

void Joins::form(Forming& forming) {
  std::vector<protocol::Address> members;
  for (const EndpointAddress& member : forming.members) {
    const std::int32_t link = forming.links.at(member.identity);
    members.push_back({link == this_host ? protocol::here : link, member.number});
  }
  const std::uint64_t group = engine_.add_group(members);
  if (group == protocol::Engine::no_group) return cannot_begin(forming, nonsense_there);
  running_.begin(group, described(forming));
  for (const auto& [token, rank] : std::map(forming.mine)) give_place(forming, token, group);
  if (running_.begun(group)) engine_.drop_group(group);
}

JoinedJobs::Job Joins::described(const Forming& forming) const {
  JoinedJobs::Job job{.number = forming.place.second,
                      .name = joiners_.at(forming.mine.begin()->first).name,
                      .met_at = peers_.name_of(forming.place.first),
                      .size = static_cast<std::uint32_t>(forming.members.size()),
                      .hosts = {}};
  for (const auto& [identity, link] : forming.links) {
    const auto at = std::ranges::find(forming.members, identity, &EndpointAddress::identity);
    job.hosts.push_back({peers_.name_of(link), *at, link});
  }
  return job;
}

void Joins::give_place(const Forming& forming, std::uint64_t token, std::uint64_t group) {
  Joiner& joiner = joiners_.at(token);
  joiner.stage = Stage::over; // nobody has to hear when this connection ends
  auto pipes = give_program_pipes(joiner.socket);
  if (!pipes) return refuse(token, PARC_EKERNEL, pipes.error().text);
  // With the end, by which the program sees that it has all; nothing can be said behind a part of them.
  const std::size_t bytes = forming.hosts.size() + 1;
  if (send(joiner.socket.get(), forming.hosts.c_str(), bytes, MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(bytes)) {
    const std::string why =
        fmt::format("its socket does not take the {} bytes of the names of the job's hosts at "
                    "once (net.core.wmem_default): give hosts shorter names",
                    bytes);
    spdlog::warn("a program could not join: {}", why);
    loop_.errors().note(ErrorKind::Job, PARC_EKERNEL, "refused a program that joins a job: " + why);
    return forget(token);
  }
  const std::uint64_t endpoint = std::exchange(joiner.endpoint, 0);
  running_.add(group, joiner.rank, endpoint, std::move(joiner.process));
  sessions_.add({forming.place.second, static_cast<std::int32_t>(joiner.rank),
                 static_cast<std::int32_t>(joiner.size), endpoint},
                std::move(pipes.value().from_program), std::move(pipes.value().to_program),
                [self = std::weak_ptr(self_), group, endpoint](Sessions::End) {
                  if (const auto joins = self.lock()) (*joins)->program_ended(group, endpoint);
                });
  forget(token);
}

void Joins::program_ended(std::uint64_t group, std::uint64_t endpoint) {
  if (running_.remove(group, endpoint)) engine_.drop_group(group);
}

// Nor anywhere else, where that is still to be decided.
void Joins::cannot_begin(Forming& forming, const std::string& why) {
  const auto [from, number] = forming.place;
  if (forming.mine.empty()) return; // they have gone, which it has been told
  post_.send(from, kernel::Formed{.number = number, .text = why});
  for (const auto& [token, rank] : std::map(forming.mine)) {
    joiners_.at(token).stage = Stage::over; // there
    refuse(token, PARC_EPEER, why);
  }
}

void Joins::drop(const Place& place) {
  loop_.after_step([calling = std::move(formings_.extract(place).mapped())] {}); // its timer: goes then
}

// ---- From others

void Joins::refused(std::int32_t from, const kernel::JoinRefused& message) {
  const auto found = joiners_.find(message.token);
  if (found == joiners_.end() || !found->second.waits_at(from)) return;
  found->second.stage = Stage::over; // there
  refuse(found->first, -static_cast<int>(message.code), message.text);
}

std::vector<std::pair<std::string, std::int32_t>> Joins::hosts_of(std::uint64_t job) const {
  std::vector<std::pair<std::string, std::int32_t>> all;
  for (const JoinedJobs::Host& host : running_.hosts_of(job))
    all.emplace_back(host.name, peers_.link_to(host.kernel.identity).value_or(host.link));
  return all;
}

bool Joins::signal(std::uint64_t job, std::uint32_t number) {
  for (const JoinedJobs::Host& host : running_.hosts_of(job)) {
    if (host.kernel.identity == peers_.self().identity) continue;
    peers_.connect(host.kernel, [this, self = std::weak_ptr(self_), name = host.name, job,
                                 number](const Result<std::int32_t>& link) {
      if (self.expired()) return;
      if (link) return post_.send(link.value(), kernel::SignalJoined{.job = job, .signal = number});
      loop_.errors().note(ErrorKind::Job, link.error().code,
                          fmt::format("the ranks of job {:x} on host {} did not get signal {}: {}", job, name,
                                      number, link.error().text));
    });
  }
  running_.signal(job, static_cast<int>(number));
  return running_.knows(job);
}

void Joins::link_lost(std::uint32_t link) {
  const auto lost = static_cast<std::int32_t>(link);
  meetings_.link_lost(lost);
  std::vector<std::uint64_t> waiting;
  for (auto& [token, joiner] : joiners_) {
    if (!joiner.waits_at(lost)) continue;
    joiner.stage = Stage::over; // there
    waiting.push_back(token);
  }
  for (const std::uint64_t token : waiting)
    refuse(token, PARC_EPEER, "the host where the job's ranks meet was lost: is parcd still running there?");
  std::vector<std::shared_ptr<Forming>> without; // one that they had reached
  for (const auto& [place, forming] : formings_)
    if (std::ranges::any_of(forming->links, [lost](const auto& each) { return each.second == lost; }))
      without.push_back(forming);
  for (const auto& forming : without)
    cannot_begin(*forming, "the link to a host of the job broke while it began");
}

void Joins::stop() {
  std::vector<std::uint64_t> waiting;
  for (const auto& [token, joiner] : joiners_) waiting.push_back(token);
  for (const std::uint64_t token : waiting)
    refuse(token, PARC_EKERNEL, fmt::format("the kernel of host {} was stopped", peers_.self().name));
}

void Joins::publish(Counters& counters) {
  std::erase_if(rows_, [&](const auto& row) { return !running_.knows(row.first); });
  for (const std::uint64_t job : running_.numbers()) {
    auto row = rows_.find(job);
    if (row == rows_.end())
      row = rows_.emplace(job, counters.job(job, running_.ranks_here(job), JobState::Running)).first;
    row->second->ranks.set(running_.ranks_here(job)); // they end one by one
  }
}

} // namespace parc::daemon
