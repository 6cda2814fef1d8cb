// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/host_search.hpp"

#include "daemon/job/job_messages.hpp"
#include "daemon/job/jobs.hpp"
#include "system/frames.hpp"

#include <algorithm>

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
      peers_.learn(host[0], {host[1].get<std::string>(), host[2].get<std::uint16_t>()});
      hosts_.push_back({.name = host[0]});
    } else {
      hosts_.push_back({.name = host});
    }
  }
  if (hosts_.empty())
    for (std::string& name : peers_.known()) hosts_.push_back({.name = std::move(name)});
  for (std::size_t place = 0; place < hosts_.size(); ++place)
    peers_.connect(hosts_[place].name,
                   [self = std::weak_ptr(self_), place](const Result<std::int32_t>& link) {
                     if (const auto search = self.lock()) (*search)->connected(place, link);
                   });
  return true;
}

void HostSearch::connected(std::size_t place, const Result<std::int32_t>& link) {
  Host& host = hosts_[place];
  if (link) {
    host.link = link.value();
    host.state = State::asked;
    jobs_.tell(host.link,
               {{"kind", "question"}, {"token", token_}, {"place", place}, {"question", question_}});
    if (all(State::asked)) patience_.set(answers_within_s);
  } else {
    failed(host, link.error().text);
  }
}

void HostSearch::answered(std::int32_t from, const nlohmann::json& message) {
  const auto place = number_in(message, "place", UINT32_MAX).value_or(UINT32_MAX);
  const auto answer = message.find("answer");
  if (place >= hosts_.size() || hosts_[place].link != from || hosts_[place].state != State::asked ||
      answer == message.end())
    return;
  const EndpointAddress at = peers_.describe({from, protocol::kernel_endpoint});
  settle(hosts_[place], {{"text", ""},
                         {"address", at.hosts.empty() ? "" : fmt::format("{}:{}", at.hosts.front(), at.port)},
                         {"rtt_us", peers_.rtt_us(from)},
                         {"answer", *answer}});
}

void HostSearch::failed(Host& host, const std::string& why) {
  settle(host, {{"text", why}});
}

void HostSearch::settle(Host& host, nlohmann::json answer) {
  host.state = State::over;
  answer["kind"] = "reached";
  answer["host"] = host.name;
  door_.send(answer);
  if (all(State::asked)) patience_.set(answers_within_s);
  if (!all(State::over)) return;
  patience_.cancel();
  door_.send({{"kind", "done"}, {"status", 0}, {"text", ""}});
  over_();
}

bool HostSearch::all(State at_least) const {
  return std::ranges::all_of(hosts_, [at_least](const Host& host) { return host.state >= at_least; });
}

void HostSearch::out_of_patience() {
  for (Host& host : hosts_)
    if (host.state == State::asked)
      failed(host, fmt::format("its kernel has not answered within {} s; does it hang?", answers_within_s));
}

} // namespace parc::daemon
