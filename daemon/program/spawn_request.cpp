// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/spawn_request.hpp"

#include "jobs/placement.hpp"

namespace parc::daemon {

std::optional<SpawnRequest> parse_spawn_request(std::string_view texts, std::uint64_t count) {
  if (count == 0 || count > max_ranks) return {};
  SpawnRequest request{
      .count = static_cast<std::uint32_t>(count), .hosts = {}, .arguments = {}, .parent = {}};
  std::vector<std::string> all;
  while (!texts.empty()) {
    const auto end = texts.find('\0');
    if (end == texts.npos) return {};
    all.emplace_back(texts.substr(0, end));
    texts.remove_prefix(end + 1);
  }
  if (all.size() < 2 || all[1].empty()) return {};
  request.hosts = std::move(all[0]);
  request.arguments.assign(all.begin() + 1, all.end());
  return request;
}

std::string texts_of(const SpawnRequest& request) {
  std::string texts = request.hosts + '\0';
  for (const std::string& argument : request.arguments) (texts += argument) += '\0';
  return texts;
}

} // namespace parc::daemon
