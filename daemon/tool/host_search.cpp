// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/host_search.hpp"

#include "daemon/tool/known_hosts.hpp"
#include "daemon/tool/reach_hosts.hpp"

#include <map>

namespace parc::daemon {

namespace {

constexpr double pairs_within_s = tries_within_s + answers_within_s;

std::string place_text(const std::string& host, std::uint16_t port) {
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

} // namespace

HostSearch::HostSearch(Loop& loop, Post& post, Peers& peers, std::uint64_t token, ToolConnection& connection,
                       std::function<void()> over)
    : peers_(peers), connection_(connection), over_(std::move(over)),
      inquiry_(loop, post, token,
               {.silent =
                    [this](Inquiry::Host& host) {
                      failed(host,
                             fmt::format("its kernel has not answered within {} s; does it hang?",
                                         stage_ == Stage::checking ? pairs_within_s : answers_within_s));
                    },
                .all_over = [this] { all_over(); }}) {}

void HostSearch::ask(const tool::Search& search) {
  question_ = search.question;
  pairs_ = search.pairs != 0;
  for (const tool::HostToAsk& host : search.hosts) {
    learned_ |= host.address.has_value();
    inquiry_.add(host.name);
    if (peers_.is_via(host.name)) continue;                                     // that is obeyed
    if (SshAddress ssh = peers_.configured_ssh(host.name); !ssh.host.empty()) { // and that
      ssh.command = host.ssh;
      ssh.socket = host.link_socket;
      if (host.address) peers_.learn(host.name, {.address = {}, .ssh = std::move(ssh)});
      continue;
    }
    const HostAddress direct{.address = host.address.value_or(""), .port = host.port};
    const bool is_through = !host.ssh.empty() && peers_.way_to(host.name) == "ssh";
    const HostAddress through_ssh{.address = {}, .ssh = {host.name, host.ssh, host.link_socket}};
    if (host.address && !is_through) peers_.learn(host.name, direct.address.empty() ? through_ssh : direct);
    if (!host.ssh.empty() && !is_through && !direct.address.empty())
      other_ways_[host.name] = {direct, through_ssh};
  }
  all_known_ = search.hosts.empty();
  if (all_known_)
    for (std::string& name : peers_.known()) inquiry_.add(std::move(name));
  for (std::size_t place = 0; place < inquiry_.hosts().size(); ++place) connect(place);
}

// Who looks hears at once that nobody listens there; who has just started them is patient, unless there is
// another way.
void HostSearch::connect(std::size_t place) {
  const std::string& host = inquiry_.hosts()[place].name;
  const auto other = other_ways_.find(host);
  const bool has_other = other != other_ways_.end() && other->second.why_not_direct.empty();
  peers_.connect(
      host,
      [self = std::weak_ptr(self_), place](const Result<std::int32_t>& link) {
        if (const auto it = self.lock()) (*it)->connected(place, link);
      },
      {.in_haste = !learned_ || has_other, .relayed = !has_other, .to_relay = peers_.is_for_relaying(host)});
}

void HostSearch::connected(std::size_t place, const Result<std::int32_t>& link) {
  Inquiry::Host& host = inquiry_.host(place);
  if (!link) {
    const auto other = other_ways_.find(host.name);
    if (other != other_ways_.end() && other->second.why_not_direct.empty()) {
      other->second.why_not_direct = link.error().text;
      peers_.learn(host.name, other->second.through_ssh);
      return connect(place);
    }
    std::string why = link.error().text;
    if (other != other_ways_.end()) {
      peers_.learn(host.name, other->second.direct); // a way that leads nowhere is forgotten
      why = fmt::format("{}; and {}", other->second.why_not_direct, why);
    }
    failed(host, why);
    inquiry_.over(host);
  } else if (all_known_ && !asked_.insert(link.value()).second) {
    inquiry_.over(host); // by another name
  } else if (peers_.only_relays(link.value())) {
    relays(host, link.value());
  } else {
    inquiry_.ask(place, link.value(), kernel::Question{.question = question_});
  }
}

void HostSearch::answered(std::int32_t from, const kernel::Answer& message) {
  if ((stage_ == Stage::checking) != message.answer.tried.has_value()) return; // to what was asked before
  Inquiry::Host* const host = inquiry_.answered(from, message.place);
  if (host == nullptr) return;
  const EndpointAddress at = peers_.describe({from, protocol::kernel_endpoint});
  if (stage_ == Stage::checking)
    connection_.send(tool::Tried{.host = host->name, .hosts = *message.answer.tried});
  if (stage_ == Stage::asking)
    connection_.send(tool::Reached{.host = host->name,
                                   .address = at.hosts.empty() ? "" : place_text(at.hosts.front(), at.port),
                                   .way = peers_.way_of(from),
                                   .encrypted = peers_.encrypted(from) ? 1u : 0u,
                                   .streams = peers_.streams_of(from),
                                   .rtt_us = peers_.rtt_us(from),
                                   .answer = message.answer});
  inquiry_.over(*host);
}

// Nothing else can be asked of it.
void HostSearch::relays(Inquiry::Host& host, std::int32_t link) {
  host.link = this_host; // it is not waited for again
  connection_.send(tool::Reached{.host = host.name,
                                 .way = peers_.way_of(link),
                                 .encrypted = peers_.encrypted(link) ? 1u : 0u,
                                 .rtt_us = peers_.rtt_us(link),
                                 .relays = 1});
  inquiry_.over(host);
}

void HostSearch::failed(Inquiry::Host& host, const std::string& why) {
  if (stage_ == Stage::checking) connection_.send(tool::Tried{.host = host.name, .text = why});
  if (stage_ != Stage::asking) return; // it has answered before
  host.link = this_host;               // it is not waited for again
  connection_.send(tool::Reached{.host = host.name, .text = why});
}

void HostSearch::all_over() {
  if (learned_ && stage_ == Stage::asking) return tell_where();
  if (pairs_ && stage_ != Stage::checking) return check_pairs();
  connection_.send(tool::Done{});
  over_();
}

// Whoever has just answered is waited for, so that who sees parc up end can go on from any of its hosts.
void HostSearch::tell_where() {
  stage_ = Stage::telling;
  std::map<std::int32_t, std::optional<std::size_t>>
      places; // of links: that of a host; none: it is none of ours
  for (const auto& kernel : peers_.linked()) places.emplace(kernel.link, std::nullopt);
  for (std::size_t place = 0; place < inquiry_.hosts().size(); ++place)
    if (const auto found = places.find(inquiry_.hosts()[place].link); found != places.end() && !found->second)
      found->second = place;
  bool waits = false;
  for (const auto& [link, place] : places) {
    const kernel::Question told{.question = {.hosts = hosts_to_tell(peers_, link)}};
    if (place)
      inquiry_.ask(*place, link, told);
    else
      inquiry_.tell(link, told);
    waits |= place.has_value();
  }
  if (!waits) all_over();
}

// Of those of the tool; that this kernel reaches them has been seen.
void HostSearch::check_pairs() {
  stage_ = Stage::checking;
  std::map<std::int32_t, std::size_t> places; // of links
  for (std::size_t place = 0; place < inquiry_.hosts().size(); ++place)
    if (const std::int32_t link = inquiry_.hosts()[place].link; peers_.identity_of(link) != 0)
      places.emplace(link, place);
  if (places.size() < 2 || places.size() > control::HostQuestion::most_reached) return all_over();
  for (const auto& [link, place] : places) {
    std::vector<control::HostToReach> others;
    for (const auto& [other, at] : places)
      if (other != link) others.push_back({inquiry_.hosts()[at].name, peers_.identity_of(other)});
    inquiry_.ask(place, link, kernel::Question{.question = {.reach = std::move(others)}}, pairs_within_s);
  }
}

} // namespace parc::daemon
