// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tool/reach_hosts.hpp"

#include <memory>

namespace parc::daemon {
namespace {

struct Trial {
  kernel::Answer answer;
  std::size_t left;
};

control::HostTried what_became(const Peers& peers, const control::HostToReach& host,
                               const Result<std::int32_t>& link) {
  if (!link) return {.name = host.name, .text = link.error().text};
  if (peers.identity_of(link.value()) != host.identity)
    return {.name = host.name, .text = fmt::format("another kernel is called {} there", host.name)};
  std::string way = peers.way_of(link.value());
  if (way.empty()) return {.name = host.name, .text = "its connection has just been lost"};
  return {.name = host.name, .way = std::move(way)};
}

} // namespace

void reach_hosts(Post& post, Peers& peers, std::int32_t to, const std::vector<control::HostToReach>& hosts,
                 kernel::Answer answer) {
  answer.answer.tried.emplace();
  if (hosts.empty()) return post.send(to, std::move(answer));
  const auto trial = std::make_shared<Trial>(Trial{std::move(answer), hosts.size()});
  for (const control::HostToReach& host : hosts)
    peers.connect(host.name,
                  [&post, &peers, to, host, trial](const Result<std::int32_t>& link) {
                    trial->answer.answer.tried->push_back(what_became(peers, host, link));
                    if (--trial->left == 0) post.send(to, std::move(trial->answer));
                  },
                  {.identity = host.identity});
}

} // namespace parc::daemon
