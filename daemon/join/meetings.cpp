// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/join/meetings.hpp"

#include "control/words/host_words.hpp"
#include "control/words/texts.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/link/peers.hpp"
#include "include/parc/parc.h"
#include "system/job_name.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

namespace parc::daemon {

Meetings::Meetings(Loop& loop, Peers& peers, Post& post, Jobs& jobs, const Config& config)
    : loop_(loop), peers_(peers), post_(post), jobs_(jobs), config_(config) {
  post_.on<kernel::Join>([this](std::int32_t from, const kernel::Join& message) { join(from, message); });
  post_.on<kernel::Unjoin>(
      [this](std::int32_t from, const kernel::Unjoin& message) { unjoin(from, message); });
  post_.on<kernel::Formed>(
      [this](std::int32_t from, const kernel::Formed& message) { formed(from, message); });
}

// "2, 5-7".
std::string Meetings::Meeting::missing() const {
  std::string words;
  std::size_t next = 0;
  const auto name_those_before = [&words, &next](std::size_t there) {
    if (next != there) words += fmt::format("{}{}", words.empty() ? "" : ", ", next);
    if (next + 1 < there) words += fmt::format("-{}", there - 1);
    next = there + 1;
  };
  for (const auto& [rank, member] : members) name_those_before(rank);
  name_those_before(size);
  return words;
}

// ---- They come

void Meetings::join(std::int32_t from, const kernel::Join& message) {
  const auto& [name, rank, size, token, address] = message;
  if (!post_.reaches(from)) return;
  const auto endpoint = parse_endpoint_address(address);
  const bool of_sender = endpoint && endpoint.value().identity == peers_.describe({from, 0}).identity;
  if (rank >= size || !is_job_name(name) || !of_sender)
    return tell_refused(from, token, PARC_EINVAL, "its kernel asked for something that makes no sense");
  if (jobs_.stopping())
    return tell_refused(from, token, PARC_EPEER,
                        fmt::format("the kernel of host {} is stopping", peers_.self().name));
  Meeting& meeting = meetings_[name];
  if (meeting.members.empty()) {
    meeting.size = size;
    meeting.patience = std::make_unique<Timer>(loop_, [this, its = name] { out_of_patience(its); });
    meeting.patience->set(config_.join_timeout_s);
  }
  if (meeting.size != size)
    return tell_refused(from, token, PARC_EINVAL,
                        fmt::format("rank {} says that job {} has {} ranks, and others have said {}", rank,
                                    name, size, meeting.size));
  const auto [there, fresh] =
      meeting.members.try_emplace(rank, Member{from, token, peers_.name_of(from), address});
  if (!fresh)
    return tell_refused(
        from, token, PARC_EINVAL,
        fmt::format("rank {} of job {} is there already, from host {}", rank, name, there->second.host));
  if (meeting.members.size() == meeting.size) complete(name);
}

void Meetings::out_of_patience(const std::string& name) {
  Meeting meeting = std::move(meetings_.extract(name).mapped());
  const std::shared_ptr<Timer> calling = std::move(meeting.patience);
  loop_.after_step([calling] {}); // goes then
  const std::string text =
      fmt::format("rank {} of {} of job {} did not come to host {} within {} s "
                  "(join_timeout_s); do all say the same job and host?",
                  meeting.missing(), meeting.size, name, peers_.self().name, config_.join_timeout_s);
  for (const auto& [rank, member] : meeting.members)
    tell_refused(member.from, member.token, PARC_EPEER, text);
}

std::vector<control::WaitingJob> Meetings::waiting() const {
  std::vector<control::WaitingJob> all;
  for (const auto& [name, meeting] : meetings_)
    all.push_back(
        {.name = name, .size = static_cast<std::uint32_t>(meeting.size), .missing = meeting.missing()});
  return all;
}

// ---- All are there

std::string Meetings::words_of(const std::vector<Member>& members) {
  std::map<std::int32_t, std::uint32_t> places; // of links among the names
  std::vector<std::string> names;
  std::vector<std::uint32_t> host_of_rank;
  for (const Member& member : members) {
    const auto [at, fresh] = places.emplace(member.from, names.size());
    if (fresh) names.push_back(member.host);
    host_of_rank.push_back(at->second);
  }
  return control::host_words(host_of_rank, names);
}

// For other kernels to reach each other, each of which may try for its connect_timeout_s.
std::uint32_t Meetings::beginning_s() const {
  return config_.join_timeout_s + config_.connect_timeout_s;
}

void Meetings::complete(const std::string& name) {
  Meeting meeting = std::move(meetings_.extract(name).mapped());
  const std::uint64_t job = jobs_.new_job();
  spdlog::info("job {:x}: {} ranks have come for job {}", job, meeting.members.size(), name);
  Beginning& begun = beginnings_[job];
  begun.name = name;
  std::string addresses;
  std::map<std::int32_t, std::vector<std::uint64_t>> tokens; // by link: rank, token, ...
  for (auto& [rank, each] : meeting.members) {
    const Member& member = begun.members.emplace_back(std::move(each));
    control::add_text(addresses, member.address);
    tokens[member.from].push_back(begun.members.size() - 1);
    tokens[member.from].push_back(member.token);
    begun.unheard.insert(member.from);
  }
  const std::string hosts = words_of(begun.members);
  if (hosts.size() > control::most_host_words)
    return dissolve(job, control::too_many_host_words(hosts.size()));
  begun.patience = std::make_unique<Timer>(loop_, [this, job] { begin_or_not(job); });
  begun.patience->set(beginning_s());
  for (const auto& [link, mine] : tokens)
    post_.send(
        link,
        kernel::Joined{
            .number = job, .mine = mine, .hosts = hosts, .within = beginning_s(), .payload = addresses});
}

void Meetings::formed(std::int32_t from, const kernel::Formed& message) {
  const std::uint64_t job = message.number;
  const auto found = beginnings_.find(job);
  if (found == beginnings_.end()) return;
  Beginning& begun = found->second;
  if (!message.text) {
    if (begun.unheard.erase(from) != 0 && begun.unheard.empty()) begin_or_not(job);
    return;
  }
  // It may have said before that it does.
  if (std::ranges::find(begun.members, from, &Member::from) == begun.members.end()) return;
  const std::string host = peers_.name_of(from);
  const auto rank = message.unreached;
  dissolve(job, rank && *rank < begun.members.size()
                    ? fmt::format("host {} cannot reach host {}, on which rank {} of job {} is: {}", host,
                                  begun.members[*rank].host, *rank, begun.name, *message.text)
                    : fmt::format("host {} cannot begin job {}: {}", host, begun.name, *message.text));
}

// All have said that they reach the others, or it has taken too long.
void Meetings::begin_or_not(std::uint64_t job) {
  Beginning& begun = beginnings_.at(job);
  std::set<std::string> silent;
  for (const Member& member : begun.members)
    if (begun.unheard.contains(member.from)) silent.insert(member.host);
  if (!silent.empty())
    return dissolve(job, fmt::format("host {} did not reach the other hosts of job {} within {} s",
                                     fmt::join(silent, ", "), begun.name, beginning_s()));
  std::set<std::int32_t> links;
  for (const Member& member : begun.members) links.insert(member.from);
  for (const std::int32_t link : links) post_.send(link, kernel::Go{.number = job});
  (void)forget(job);
}

Meetings::Beginning Meetings::forget(std::uint64_t job) {
  Beginning begun = std::move(beginnings_.extract(job).mapped());
  loop_.after_step([calling = std::shared_ptr<Timer>(std::move(begun.patience))] {}); // goes then
  return begun;
}

void Meetings::dissolve(std::uint64_t job, const std::string& why) {
  const Beginning begun = forget(job);
  spdlog::info("job {:x} does not begin: {}", job, why);
  for (const Member& member : begun.members) tell_refused(member.from, member.token, PARC_EPEER, why);
}

// ---- They go

void Meetings::unjoin(std::int32_t from, const kernel::Unjoin& message) {
  const auto& [name, rank, token] = message;
  if (const auto found = meetings_.find(name); found != meetings_.end()) {
    auto& members = found->second.members;
    if (const auto member = members.find(rank); member != members.end() && member->second.is(from, token)) {
      members.erase(member);
      if (members.empty()) meetings_.erase(found);
      return;
    }
  }
  for (const auto& [job, begun] : beginnings_)
    if (begun.name == name && rank < begun.members.size() && begun.members[rank].is(from, token))
      return dissolve(job, fmt::format("rank {} of job {}, on host {}, has gone while the job began", rank,
                                       name, begun.members[rank].host));
}

void Meetings::link_lost(std::int32_t lost) {
  for (auto& [name, meeting] : meetings_)
    std::erase_if(meeting.members, [lost](const auto& member) { return member.second.from == lost; });
  std::erase_if(meetings_, [](const auto& each) { return each.second.members.empty(); });
  std::vector<std::pair<std::uint64_t, std::string>> over;
  for (const auto& [job, begun] : beginnings_)
    if (const auto of_it = std::ranges::find(begun.members, lost, &Member::from);
        of_it != begun.members.end())
      over.emplace_back(job, fmt::format("host {} was lost while job {} began: is parcd still running there?",
                                         of_it->host, begun.name));
  for (const auto& [job, why] : over) dissolve(job, why);
}

void Meetings::tell_refused(std::int32_t to, std::uint64_t token, int code, const std::string& text) {
  if (post_.reaches(to))
    post_.send(to,
               kernel::JoinRefused{.token = token, .code = static_cast<std::uint32_t>(-code), .text = text});
}

} // namespace parc::daemon
