// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/host_search.hpp"

#include "daemon/job/job_messages.hpp"
#include "daemon/job/jobs.hpp"
#include "daemon/tool/known_hosts.hpp"
#include "system/frames.hpp"

#include <algorithm>
#include <map>

namespace parc::daemon {
namespace {

bool names_a_host(const nlohmann::json& host) {
  if (host.is_string()) return true;
  return host.is_array() && host.size() == 3 && host[0].is_string() && host[1].is_string() &&
         host[2].is_number_unsigned() && host[2].get<std::uint64_t>() <= UINT16_MAX;
}

} // namespace

HostSearch::HostSearch(Loop& loop, Peers& peers, Jobs& jobs, std::uint64_t token, JobDoor& door,
                       std::function<void()> over)
    : peers_(peers), jobs_(jobs), token_(token), door_(door), over_(std::move(over)),
      patience_(loop, [this] { out_of_patience(); }) {}

bool HostSearch::ask(const nlohmann::json& hosts, nlohmann::json question) {
  if (!hosts.is_array() || !std::ranges::all_of(hosts, names_a_host)) return false;
  question_ = std::move(question);
  for (const auto& host : hosts) {
    if (host.is_array()) {
      learned_ = true;
      peers_.learn(host[0], {host[1].get<std::string>(), host[2].get<std::uint16_t>()});
      hosts_.push_back({.name = host[0]});
    } else {
      hosts_.push_back({.name = host});
    }
  }
  all_known_ = hosts_.empty();
  if (all_known_)
    for (std::string& name : peers_.known()) hosts_.push_back({.name = std::move(name)});
  // Who looks hears at once that nobody listens there; who has just started them is patient.
  for (std::size_t place = 0; place < hosts_.size(); ++place)
    peers_.connect(
        hosts_[place].name,
        [self = std::weak_ptr(self_), place](const Result<std::int32_t>& link) {
          if (const auto search = self.lock()) (*search)->connected(place, link);
        },
        !learned_);
  return true;
}

void HostSearch::connected(std::size_t place, const Result<std::int32_t>& link) {
  Host& host = hosts_[place];
  if (link && all_known_ && !asked_.insert(link.value()).second) return over(host); // by another name
  if (link) {
    host.link = link.value();
    host.state = State::asked;
    put(host.link, place, question_);
    if (all(State::asked)) patience_.set(answers_within_s);
  } else {
    failed(host, link.error().text);
  }
}

void HostSearch::put(std::int32_t link, std::size_t place, const nlohmann::json& question) {
  jobs_.tell(link, {{"kind", "question"}, {"token", token_}, {"place", place}, {"question", question}});
}

void HostSearch::answered(std::int32_t from, const nlohmann::json& message) {
  const auto place = number_in(message, "place", UINT32_MAX).value_or(UINT32_MAX);
  const auto answer = message.find("answer");
  if (place >= hosts_.size() || hosts_[place].link != from || hosts_[place].state != State::asked ||
      answer == message.end())
    return;
  if (telling_) {
    hosts_[place].state = State::over;
    if (all(State::over)) finish();
    return;
  }
  const EndpointAddress at = peers_.describe({from, protocol::kernel_endpoint});
  settle(hosts_[place], {{"text", ""},
                         {"address", at.hosts.empty() ? "" : fmt::format("{}:{}", at.hosts.front(), at.port)},
                         {"rtt_us", peers_.rtt_us(from)},
                         {"answer", *answer}});
}

void HostSearch::failed(Host& host, const std::string& why) {
  host.link = this_host; // it is not waited for again
  settle(host, {{"text", why}});
}

void HostSearch::settle(Host& host, nlohmann::json answer) {
  answer["kind"] = "reached";
  answer["host"] = host.name;
  door_.send(answer);
  over(host);
}

void HostSearch::over(Host& host) {
  host.state = State::over;
  if (all(State::asked)) patience_.set(answers_within_s);
  if (!all(State::over)) return;
  if (learned_) return tell_where();
  finish();
}

// Whoever has just answered is waited for, so that who sees parc up end can go on from any of its hosts.
void HostSearch::tell_where() {
  telling_ = true;
  std::map<std::int32_t, std::size_t> places;
  for (const auto& kernel : peers_.linked()) places.emplace(kernel.link, hosts_.size()); // no place of ours
  for (std::size_t place = 0; place < hosts_.size(); ++place) {
    const auto found = places.find(hosts_[place].link);
    if (found == places.end() || found->second != hosts_.size()) continue;
    found->second = place;
    hosts_[place].state = State::asked;
  }
  for (const auto& [link, place] : places) put(link, place, {{"hosts", hosts_to_tell(peers_, link)}});
  if (all(State::over)) return finish();
  patience_.set(answers_within_s);
}

void HostSearch::finish() {
  patience_.cancel();
  door_.send({{"kind", "done"}, {"status", 0}, {"text", ""}});
  over_();
}

bool HostSearch::all(State at_least) const {
  return std::ranges::all_of(hosts_, [at_least](const Host& host) { return host.state >= at_least; });
}

void HostSearch::out_of_patience() {
  if (telling_) return finish();
  for (Host& host : hosts_)
    if (!telling_ && host.state == State::asked)
      failed(host, fmt::format("its kernel has not answered within {} s; does it hang?", answers_within_s));
}

} // namespace parc::daemon
