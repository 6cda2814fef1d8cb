// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/reach_hosts.hpp"

#include "daemon/tool/known_hosts.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

namespace parc::daemon {
namespace {

constexpr std::size_t longest_text = 1024;

control::HostTried what_became(const Peers& peers, const control::HostToReach& host,
                               const Result<std::int32_t>& link) {
  if (!link) return {.name = host.name, .text = link.error().text.substr(0, longest_text)};
  if (peers.identity_of(link.value()) != host.identity)
    return {.name = host.name, .text = fmt::format("another kernel is called {} there", host.name)};
  std::string way = peers.way_of(link.value());
  if (way.empty()) return {.name = host.name, .text = "its connection has just been lost"};
  return {.name = host.name, .way = std::move(way)};
}

// Lives as long as one of the attempts that it waits for.
class Trial {
public:
  Trial(Loop& loop, Post& post, std::int32_t to, const std::vector<control::HostToReach>& hosts,
        kernel::Answer answer)
      : post_(post), to_(to), answer_(std::move(answer)), left_(hosts.size()),
        patience_(loop, [this] { send(); }) {
    auto& tried = answer_.answer.tried.emplace();
    for (const control::HostToReach& host : hosts)
      tried.push_back({.name = host.name, .text = fmt::format("no answer within {} s", tries_within_s)});
    patience_.set(tries_within_s);
  }
  void became(std::size_t place, control::HostTried tried) {
    if (sent_) return;
    (*answer_.answer.tried)[place] = std::move(tried);
    if (--left_ == 0) send();
  }
  void send() {
    if (std::exchange(sent_, true)) return;
    patience_.cancel();
    post_.send(to_, std::move(answer_));
  }

private:
  Post& post_;
  std::int32_t to_;
  kernel::Answer answer_;
  std::size_t left_;
  bool sent_ = false;
  Timer patience_;
};

} // namespace

void reach_hosts(Loop& loop, Post& post, Peers& peers, std::int32_t to,
                 const std::vector<control::HostToReach>& hosts, kernel::Answer answer) {
  const auto trial = std::make_shared<Trial>(loop, post, to, hosts, std::move(answer));
  if (hosts.empty()) return trial->send();
  for (std::size_t place = 0; place < hosts.size(); ++place) {
    const control::HostToReach& host = hosts[place];
    const auto became = [&peers, place, host, trial](const Result<std::int32_t>& link) {
      trial->became(place, what_became(peers, host, link));
    };
    is_host_name(host.name) ? peers.connect(host.name, became, {.identity = host.identity})
                            : became(error(EINVAL, "that is no name of a host"));
  }
}

} // namespace parc::daemon
