// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/spawn_request.hpp"

#include "control/words/texts.hpp"
#include "jobs/placement.hpp"
#include "jobs/program.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace parc::daemon {

std::uint32_t SpawnRequest::ranks() const {
  std::uint32_t all = 0;
  for (const App& app : apps) all += app.ranks;
  return all;
}

std::vector<std::uint64_t> SpawnRequest::numbers() const {
  std::vector<std::uint64_t> all;
  for (const App& app : apps) all.insert(all.end(), {app.ranks, app.arguments.size(), app.variables.size()});
  return all;
}

std::optional<SpawnRequest> parse_spawn(std::string_view texts, std::uint64_t ranks) {
  if (ranks == 0 || ranks > max_ranks) return {};
  auto all = control::texts_in(texts);
  if (!all || all->size() < 2 || (*all)[1].empty()) return {};
  SpawnRequest request;
  request.apps.push_back(
      {.ranks = static_cast<std::uint32_t>(ranks),
       .hosts = std::move(all->front()),
       .arguments = {std::move_iterator(all->begin() + 1), std::move_iterator(all->end())}});
  return request;
}

std::optional<SpawnRequest> parse_mpi_spawn(std::string_view texts, std::span<const std::uint64_t> numbers) {
  if (numbers.empty() || numbers.size() % 3 != 0 || numbers.size() / 3 > most_apps) return {};
  auto all = control::texts_in(texts);
  if (!all) return {};
  SpawnRequest request{.apps = {}, .mpi = true};
  std::span<std::string> left(*all);
  for (; !numbers.empty(); numbers = numbers.subspan(3)) {
    const auto [ranks, arguments, variables] = std::tuple(numbers[0], numbers[1], numbers[2]);
    if (ranks == 0 || ranks > max_ranks - request.ranks() || arguments == 0) return {};
    if (arguments > left.size() || variables > left.size() || arguments + variables + 2 > left.size())
      return {};
    SpawnRequest::App app{.ranks = static_cast<std::uint32_t>(ranks), .hosts = left[0], .arguments = {}};
    app.arguments.assign(left.begin() + 1, left.begin() + 1 + static_cast<std::ptrdiff_t>(arguments));
    left = left.subspan(1 + arguments);
    app.directory = left[0];
    app.variables.assign(left.begin() + 1, left.begin() + 1 + static_cast<std::ptrdiff_t>(variables));
    left = left.subspan(1 + variables);
    if (app.arguments.front().empty() || !std::ranges::all_of(app.variables, is_variable)) return {};
    if (!app.directory.empty() && app.directory.front() != '/') return {};
    request.apps.push_back(std::move(app));
  }
  if (!left.empty()) return {};
  return request;
}

std::string texts_of(const SpawnRequest& request) {
  std::string texts;
  for (const SpawnRequest::App& app : request.apps) {
    control::add_text(texts, app.hosts);
    for (const std::string& argument : app.arguments) control::add_text(texts, argument);
    if (!request.mpi) continue;
    control::add_text(texts, app.directory);
    for (const std::string& variable : app.variables) control::add_text(texts, variable);
  }
  return texts;
}

} // namespace parc::daemon
