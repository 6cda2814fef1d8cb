// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/spawn_request.hpp"

#include "control/words/texts.hpp"
#include "jobs/placement.hpp"
#include "jobs/program.hpp"

#include <algorithm>

namespace parc::daemon {

std::optional<SpawnRequest> parse_spawn_request(std::string_view texts, std::uint64_t count,
                                                std::optional<std::uint32_t> arguments) {
  if (count == 0 || count > max_ranks) return {};
  SpawnRequest request{
      .count = static_cast<std::uint32_t>(count), .hosts = {}, .arguments = {}, .parent = {}};
  auto all = control::texts_in(texts);
  if (!all || all->size() < 2 || (*all)[1].empty()) return {};
  request.hosts = std::move(all->front());
  auto end_of_arguments = all->end();
  if (arguments) {
    if (*arguments == 0 || *arguments > all->size() - 2) return {}; // a directory is behind them
    end_of_arguments = all->begin() + 1 + *arguments;
    request.mpi =
        SpawnRequest::OfMpi{.directory = *end_of_arguments, .variables = {end_of_arguments + 1, all->end()}};
    if (!std::ranges::all_of(request.mpi->variables, is_variable)) return {};
    if (!request.mpi->directory.empty() && request.mpi->directory.front() != '/') return {};
  }
  request.arguments.assign(all->begin() + 1, end_of_arguments);
  return request;
}

std::string texts_of(const SpawnRequest& request) {
  std::string texts;
  control::add_text(texts, request.hosts);
  for (const std::string& argument : request.arguments) control::add_text(texts, argument);
  if (!request.mpi) return texts;
  control::add_text(texts, request.mpi->directory);
  for (const std::string& variable : request.mpi->variables) control::add_text(texts, variable);
  return texts;
}

} // namespace parc::daemon
