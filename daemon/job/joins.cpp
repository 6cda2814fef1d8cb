// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/joins.hpp"

#include "daemon/job/jobs.hpp"
#include "daemon/link/peers.hpp"
#include "daemon/program/program_pipes.hpp"
#include "daemon/program/sessions.hpp"
#include "include/parc/parc.h"
#include "system/frames.hpp"
#include "system/job_name.hpp"
#include "system/quote.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

namespace parc::daemon {
namespace {

constexpr std::uint32_t most_joined = 4096; // ranks

// With a zero behind each.
std::vector<std::string> texts_in(std::string_view all) {
  std::vector<std::string> texts;
  for (auto end = all.find('\0'); end != all.npos; end = all.find('\0')) {
    texts.emplace_back(all.substr(0, end));
    all.remove_prefix(end + 1);
  }
  return texts;
}

std::optional<std::uint32_t> number_of(const std::string& text, std::uint32_t most) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != text.npos) return {};
  const auto number = static_cast<std::uint32_t>(std::stoul(text));
  return number > most ? std::nullopt : std::optional(number);
}

// "2, 5-7".
template <class Missing> std::string ranks_in_words(std::size_t size, const Missing& missing) {
  std::string words;
  for (std::size_t first = 0, next = 0; first < size; first = next + 1) {
    next = first;
    if (!missing(first)) continue;
    while (next + 1 < size && missing(next + 1)) ++next;
    words += fmt::format("{}{}", words.empty() ? "" : ", ", first);
    if (next != first) words += fmt::format("-{}", next);
  }
  return words;
}

} // namespace

Joins::Joins(Loop& loop, protocol::Engine& engine, Peers& peers, Sessions& sessions, Jobs& jobs,
             const std::uint32_t& patience_s)
    : loop_(loop), engine_(engine), peers_(peers), sessions_(sessions), jobs_(jobs), patience_s_(patience_s) {
}

Joins::~Joins() {
  for (const auto& [token, joiner] : joiners_)
    if (joiner.endpoint != 0) engine_.kill(joiner.endpoint);
  for (const auto& [group, programs] : programs_) engine_.drop_group(group);
}

// ---- Programs of this host

void Joins::joiner(Fd socket, const std::string& wants) {
  const std::uint64_t token = ++last_token_;
  Joiner& joiner = joiners_[token];
  joiner.socket = std::move(socket);
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
  const auto texts = texts_in(wants);
  if (texts.size() != 4)
    return refuse(token, PARC_EINVAL, "its libparc asks for a place in another way than this parcd knows");
  const auto rank = number_of(texts[2], most_joined - 1), size = number_of(texts[3], most_joined);
  if (!is_job_name(texts[0]))
    return refuse(token, PARC_EINVAL, fmt::format("{} names no job: {}", quote(texts[0]), job_name_rule));
  if (!rank || !size || *rank >= *size)
    return refuse(
        token, PARC_EINVAL,
        fmt::format("rank {} of {} makes no sense: a job that is joined has at most {} ranks, from 0 on",
                    quote(texts[2]), quote(texts[3]), most_joined));
  joiner.name = texts[0];
  joiner.rank = *rank;
  joiner.size = *size;
  joiner.endpoint = engine_.add_endpoint();
  const auto answer = [self = std::weak_ptr(self_), token](const Result<std::int32_t>& link) {
    if (const auto joins = self.lock()) (*joins)->reached(token, link);
  };
  if (texts[1].empty())
    answer(this_host);
  else
    peers_.connect(texts[1], answer);
}

void Joins::reached(std::uint64_t token, const Result<std::int32_t>& link) {
  const auto found = joiners_.find(token);
  if (found == joiners_.end()) return;
  Joiner& joiner = found->second;
  if (!link || !jobs_.reaches(link.value()))
    return refuse(token, PARC_EPEER,
                  fmt::format("the host where the ranks of job {} meet cannot be reached: {}", joiner.name,
                              link ? "its link broke" : link.error().text));
  joiner.stage = Stage::meeting;
  joiner.meeting = link.value();
  jobs_.tell(joiner.meeting, {{"kind", "join"},
                              {"name", joiner.name},
                              {"rank", joiner.rank},
                              {"size", joiner.size},
                              {"token", token},
                              {"at", peers_.self().name},
                              {"address", to_text(peers_.describe({protocol::here, joiner.endpoint}))}});
}

// A program that does not take its answer has gone.
void Joins::refuse(std::uint64_t token, int code, const std::string& text) {
  const auto found = joiners_.find(token);
  if (found == joiners_.end()) return;
  spdlog::info("a program could not join: {}", text);
  loop_.errors().note(ErrorKind::Job, code, "refused a program that joins a job: " + text);
  const std::string answer = fmt::format("E{} {}", code, text);
  [[maybe_unused]] const auto sent =
      send(found->second.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  forget(token);
}

void Joins::forget(std::uint64_t token) {
  const auto found = joiners_.find(token);
  if (found == joiners_.end()) return;
  Joiner& joiner = found->second;
  if (std::exchange(joiner.stage, Stage::over) == Stage::meeting)
    jobs_.tell(joiner.meeting,
               {{"kind", "unjoin"}, {"name", joiner.name}, {"rank", joiner.rank}, {"token", token}});
  if (joiner.endpoint != 0) engine_.kill(std::exchange(joiner.endpoint, 0));
  joiner.readable.remove();
  loop_.after_step([self = std::weak_ptr(self_), token] { // its event may be what calls
    if (const auto joins = self.lock()) (*joins)->joiners_.erase(token);
  });
}

// ---- Where they meet

void Joins::join(std::int32_t from, const nlohmann::json& message) {
  const auto token = number_in(message, "token", UINT64_MAX).value_or(0);
  const auto rank = number_in(message, "rank", most_joined - 1),
             size = number_in(message, "size", most_joined);
  const std::string name = text_in(message, "name"), host = text_in(message, "at"),
                    address = text_in(message, "address");
  if (!jobs_.reaches(from)) return;
  const auto endpoint = parse_endpoint_address(address);
  const bool of_sender = endpoint && endpoint.value().identity == peers_.describe({from, 0}).identity;
  if (!rank || !size || *rank >= *size || !is_job_name(name) || !of_sender)
    return tell_refused(from, token, PARC_EINVAL, "its kernel asked for something that makes no sense");
  if (jobs_.stopping())
    return tell_refused(from, token, PARC_EPEER,
                        fmt::format("the kernel of host {} is stopping", peers_.self().name));
  Meeting& meeting = meetings_[name];
  if (meeting.members.empty()) {
    meeting.members.resize(*size);
    meeting.missing = *size;
    meeting.patience = std::make_unique<Timer>(loop_, [this, name] { out_of_patience(name); });
    meeting.patience->set(patience_s_);
  }
  if (meeting.members.size() != *size)
    return tell_refused(from, token, PARC_EINVAL,
                        fmt::format("rank {} says that job {} has {} ranks, and others have said {}", *rank,
                                    name, *size, meeting.members.size()));
  if (const auto& there = meeting.members[*rank])
    return tell_refused(
        from, token, PARC_EINVAL,
        fmt::format("rank {} of job {} is there already, from host {}", *rank, name, there->host));
  meeting.members[*rank] = Member{from, token, host, address};
  if (--meeting.missing == 0) complete(name);
}

void Joins::unjoin(std::int32_t from, const nlohmann::json& message) {
  const auto found = meetings_.find(text_in(message, "name"));
  const auto rank = number_in(message, "rank", most_joined - 1);
  if (found == meetings_.end() || !rank || *rank >= found->second.members.size()) return;
  auto& member = found->second.members[*rank];
  if (!member || member->from != from || member->token != number_in(message, "token", UINT64_MAX)) return;
  member.reset();
  if (++found->second.missing == found->second.members.size()) meetings_.erase(found);
}

void Joins::complete(const std::string& name) {
  const Meeting meeting = std::move(meetings_.extract(name).mapped());
  const std::uint64_t job = jobs_.new_job();
  spdlog::info("job {:x}: {} ranks have come for job {}", job, meeting.members.size(), name);
  std::string addresses, hosts;
  std::map<std::int32_t, nlohmann::json> tokens; // by link: rank, token, ...
  for (std::size_t rank = 0, run = 0; rank < meeting.members.size(); ++rank) {
    const Member& member = *meeting.members[rank];
    (addresses += member.address) += '\0';
    tokens[member.from].push_back(rank);
    tokens[member.from].push_back(member.token);
    ++run;
    if (rank + 1 < meeting.members.size() && meeting.members[rank + 1]->host == member.host) continue;
    hosts += fmt::format("{}{}:{}", hosts.empty() ? "" : ",", member.host, run);
    run = 0;
  }
  for (const auto& [link, mine] : tokens)
    jobs_.tell(link, {{"kind", "joined"}, {"number", job}, {"mine", mine}, {"hosts", hosts}}, addresses);
}

void Joins::out_of_patience(const std::string& name) {
  Meeting meeting = std::move(meetings_.extract(name).mapped());
  const std::shared_ptr<Timer> calling = std::move(meeting.patience);
  loop_.after_step([calling] {}); // goes then
  const auto missing = [&](std::size_t rank) { return !meeting.members[rank].has_value(); };
  const std::string text = fmt::format("rank {} of {} of job {} did not come to host {} within {} s "
                                       "(join_timeout_s); do all say the same job and host?",
                                       ranks_in_words(meeting.members.size(), missing),
                                       meeting.members.size(), name, peers_.self().name, patience_s_);
  for (const auto& member : meeting.members)
    if (member) tell_refused(member->from, member->token, PARC_EPEER, text);
}

void Joins::tell_refused(std::int32_t to, std::uint64_t token, int code, const std::string& text) {
  jobs_.tell(to, {{"kind", "join_refused"}, {"token", token}, {"code", -code}, {"text", text}});
}

// ---- All are there

void Joins::joined(std::int32_t from, const nlohmann::json& message, const std::string& bytes) {
  const auto forming = std::make_shared<Forming>();
  forming->job = number_in(message, "number", UINT64_MAX).value_or(0);
  forming->hosts = text_in(message, "hosts");
  bool good = forming->job != 0;
  for (const std::string& text : texts_in(bytes)) {
    auto address = parse_endpoint_address(text);
    good = good && address && address.value().number != protocol::kernel_endpoint;
    if (good) forming->members.push_back(std::move(address).value());
  }
  const auto mine = numbers_in(message, "mine", std::size_t{2} * most_joined);
  std::size_t ours = 0; // members
  for (std::size_t i = 0; mine && i + 1 < mine->size(); i += 2) {
    const std::uint64_t rank = (*mine)[i], token = (*mine)[i + 1];
    good = good && rank < forming->members.size() && token <= last_token_;
    const auto joiner = joiners_.find(token);
    if (joiner == joiners_.end()) { // it has gone meanwhile, and so has its endpoint
      good = good && !engine_.is_there(forming->members[rank].number);
      ++ours;
      continue;
    }
    const Joiner& at = joiner->second;
    if (at.stage != Stage::meeting || at.meeting != from) {
      good = false;
      continue;
    }
    good = good && rank == at.rank && at.size == forming->members.size() &&
           forming->members[at.rank].identity == peers_.self().identity &&
           forming->members[at.rank].number == at.endpoint;
    joiner->second.stage = Stage::forming;
    forming->mine[at.rank] = joiner->first;
    ++ours;
  }
  // Nobody else of this host joins, whatever a peer says.
  const auto is_here = [this](const EndpointAddress& each) {
    return each.identity == peers_.self().identity;
  };
  good = good && std::ranges::count_if(forming->members, is_here) == static_cast<std::ptrdiff_t>(ours);
  if (good) return reach_all(forming);
  for (const auto& [rank, token] : forming->mine)
    refuse(token, PARC_EPEER, "the kernel where the job's ranks meet said something that makes no sense");
}

void Joins::reach_all(const std::shared_ptr<Forming>& forming) {
  if (forming->mine.empty()) return;
  std::map<std::uint64_t, EndpointAddress> kernels;
  for (const EndpointAddress& member : forming->members) kernels.emplace(member.identity, member);
  forming->unreached = kernels.size();
  for (const auto& [identity, address] : kernels)
    peers_.connect(address, [self = std::weak_ptr(self_), forming, identity](Result<std::int32_t> link) {
      if (link)
        forming->links[identity] = link.value();
      else
        forming->failure = std::move(link).error();
      const auto joins = self.lock();
      if (--forming->unreached != 0 || joins == nullptr) return;
      if (!forming->failure) return (*joins)->form(*forming);
      for (const auto& [rank, token] : forming->mine)
        (*joins)->refuse(
            token, PARC_EPEER,
            fmt::format("another rank's host cannot be reached from here: {}", forming->failure->text));
    });
}

void Joins::form(const Forming& forming) {
  std::vector<protocol::Address> members;
  for (const EndpointAddress& member : forming.members) {
    const std::int32_t link = forming.links.at(member.identity);
    members.push_back({link == this_host ? protocol::here : link, member.number});
  }
  const std::uint64_t group = engine_.add_group(members);
  if (group == protocol::Engine::no_group) {
    for (const auto& [rank, token] : forming.mine)
      refuse(token, PARC_EPEER, "the kernel where the job's ranks meet named who cannot be in it");
    return;
  }
  programs_[group] = 0;
  const auto ended = [self = std::weak_ptr(self_), group] {
    const auto joins = self.lock();
    if (joins == nullptr || --(*joins)->programs_.at(group) != 0) return;
    (*joins)->programs_.erase(group);
    (*joins)->engine_.drop_group(group);
  };
  ++programs_[group]; // so that it stays until all have been let in
  for (const auto& [rank, token] : forming.mine) {
    const auto found = joiners_.find(token);
    if (found == joiners_.end() || found->second.endpoint == 0) continue; // it has gone
    auto pipes = give_program_pipes(found->second.socket);
    if (!pipes) {
      refuse(token, PARC_EKERNEL, pipes.error().text);
      continue;
    }
    [[maybe_unused]] const auto sent = send(found->second.socket.get(), forming.hosts.data(),
                                            forming.hosts.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ++programs_[group];
    sessions_.add({forming.job, static_cast<std::int32_t>(rank), static_cast<std::int32_t>(members.size()),
                   std::exchange(found->second.endpoint, 0)},
                  std::move(pipes.value().from_program), std::move(pipes.value().to_program),
                  [ended](Sessions::End) { ended(); });
    forget(token);
  }
  ended();
}

// ---- From others

bool Joins::received(std::int32_t from, const std::string& kind, const nlohmann::json& message,
                     const std::string& bytes) {
  if (kind == "join") {
    join(from, message);
  } else if (kind == "unjoin") {
    unjoin(from, message);
  } else if (kind == "joined") {
    joined(from, message, bytes);
  } else if (kind == "join_refused") {
    const auto token = number_in(message, "token", UINT64_MAX).value_or(0);
    const auto joiner = joiners_.find(token);
    const auto code = number_in(message, "code", 64).value_or(-PARC_EPEER);
    if (joiner == joiners_.end() || joiner->second.stage != Stage::meeting || joiner->second.meeting != from)
      return true;
    joiner->second.stage = Stage::over; // there
    refuse(token, -static_cast<int>(code), text_in(message, "text"));
  } else {
    return false;
  }
  return true;
}

void Joins::link_lost(std::uint32_t link) {
  const auto lost = static_cast<std::int32_t>(link);
  std::vector<std::uint64_t> waiting;
  for (auto& [token, joiner] : joiners_) {
    if (joiner.stage != Stage::meeting || joiner.meeting != lost) continue;
    joiner.stage = Stage::over; // there
    waiting.push_back(token);
  }
  for (const std::uint64_t token : waiting)
    refuse(token, PARC_EPEER, "the host where the job's ranks meet was lost: is parcd still running there?");
  for (auto& [name, meeting] : meetings_)
    for (auto& member : meeting.members) {
      if (!member || member->from != lost) continue;
      member.reset();
      ++meeting.missing;
    }
  std::erase_if(meetings_,
                [](const auto& each) { return each.second.missing == each.second.members.size(); });
}

void Joins::stop() {
  std::vector<std::uint64_t> waiting;
  for (const auto& [token, joiner] : joiners_) waiting.push_back(token);
  for (const std::uint64_t token : waiting)
    refuse(token, PARC_EKERNEL, fmt::format("the kernel of host {} was stopped", peers_.self().name));
}

} // namespace parc::daemon
