// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/host_search.hpp"

#include "daemon/settings/config.hpp"

#include <algorithm>

namespace parc::daemon {

HostSearch::HostSearch(Peers& peers, ToolDoor& door, std::function<void()> over)
    : peers_(peers), door_(door), over_(std::move(over)) {}

bool HostSearch::ask(const nlohmann::json& hosts) {
  const auto good = [](const nlohmann::json& host) {
    return host.is_array() && host.size() == 3 && host[0].is_string() && host[1].is_string() &&
           host[2].is_number_unsigned() && host[2].get<std::uint64_t>() <= UINT16_MAX;
  };
  if (!hosts.is_array() || hosts.empty() || !std::ranges::all_of(hosts, good)) return false;
  open_ = hosts.size();
  for (const auto& host : hosts) {
    const auto name = host[0].get<std::string>();
    peers_.learn(name, {host[1].get<std::string>(), host[2].get<std::uint16_t>()});
    peers_.connect(name, [self = std::weak_ptr(self_), name](const Result<std::int32_t>& link) {
      if (const auto search = self.lock()) (*search)->answered(name, link);
    });
  }
  return true;
}

void HostSearch::answered(const std::string& host, const Result<std::int32_t>& link) {
  door_.send({{"kind", "reached"}, {"host", host}, {"text", link ? std::string() : link.error().text}});
  if (--open_ != 0) return;
  door_.send({{"kind", "done"}, {"status", 0}, {"text", ""}});
  over_();
}

} // namespace parc::daemon
