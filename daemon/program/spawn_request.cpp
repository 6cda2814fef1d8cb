// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/spawn_request.hpp"

#include "control/words/texts.hpp"
#include "jobs/placement.hpp"

namespace parc::daemon {

std::optional<SpawnRequest> parse_spawn_request(std::string_view texts, std::uint64_t count) {
  if (count == 0 || count > max_ranks) return {};
  SpawnRequest request{
      .count = static_cast<std::uint32_t>(count), .hosts = {}, .arguments = {}, .parent = {}};
  auto all = control::texts_in(texts);
  if (!all || all->size() < 2 || (*all)[1].empty()) return {};
  request.hosts = std::move(all->front());
  request.arguments.assign(all->begin() + 1, all->end());
  return request;
}

std::string texts_of(const SpawnRequest& request) {
  std::string texts;
  control::add_text(texts, request.hosts);
  for (const std::string& argument : request.arguments) control::add_text(texts, argument);
  return texts;
}

} // namespace parc::daemon
