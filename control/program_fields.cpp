// SPDX-License-Identifier: BSD-3-Clause
#include "control/program_fields.hpp"

#include "control/words/texts.hpp"
#include "jobs/host_place.hpp"
#include "jobs/placement.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <span>

namespace parc::control {
namespace {

Error malformed() {
  return error(EPROTO, "the description of the program to start makes no sense");
}

// Each has its own copy.
constexpr std::size_t most_bytes_of_apps = std::size_t{64} << 20;

using Texts = std::vector<std::string>;

// Takes so many from the front; none: there are not that many.
std::optional<Texts> take(std::span<std::string>& texts, std::uint64_t count) {
  if (count > texts.size()) return {};
  const auto taken = texts.first(count);
  texts = texts.subspan(count);
  return Texts(std::move_iterator(taken.begin()), std::move_iterator(taken.end()));
}

bool are_variables(const Texts& texts) {
  return std::ranges::all_of(texts, is_variable);
}

bool is_name(const std::optional<Texts>& arguments) {
  return arguments && !arguments->empty() && !arguments->front().empty();
}

std::optional<std::vector<Program::App>> take_apps(std::span<std::string>& texts,
                                                   const std::vector<std::uint64_t>& numbers) {
  if (numbers.empty() || numbers.size() % 3 != 0) return {};
  std::vector<Program::App> apps;
  for (std::size_t i = 0; i < numbers.size(); i += 3) {
    auto directory = take(texts, 1);
    auto arguments = take(texts, numbers[i + 1]);
    auto variables = take(texts, numbers[i + 2]);
    if (!directory || !is_name(arguments) || !variables || !are_variables(*variables)) return {};
    const bool in_order = apps.empty() ? numbers[i] == 0 : numbers[i] > apps.back().first_rank;
    if (!in_order || numbers[i] >= max_ranks) return {};
    if (!directory->front().empty() && !is_path_of_host(directory->front())) return {};
    apps.push_back({.first_rank = static_cast<std::uint32_t>(numbers[i]),
                    .arguments = std::move(*arguments),
                    .directory = std::move(directory->front()),
                    .variables = std::move(*variables)});
  }
  return apps;
}

} // namespace

std::string encode_program(const Program& program, ProgramFields& fields) {
  fields = {.arguments = program.arguments.size(),
            .here = program.here.size(),
            .umask = program.umask,
            .input = program.input,
            .binds = program.binds ? 1u : 0u,
            .mpi = program.mpi ? std::optional(1u) : std::nullopt,
            .limits = {},
            .apps = {}};
  for (const auto& limit : program.limits)
    fields.limits.insert(fields.limits.end(), {limit.resource, limit.soft, limit.hard});
  std::string payload;
  add_text(payload, program.directory);
  for (const auto& argument : program.arguments) add_text(payload, argument);
  for (const auto& variable : program.here) add_text(payload, variable);
  for (const Program::App& app : program.apps) {
    if (!fields.apps) fields.apps.emplace();
    fields.apps->insert(fields.apps->end(), {app.first_rank, app.arguments.size(), app.variables.size()});
    add_text(payload, app.directory);
    for (const auto& argument : app.arguments) add_text(payload, argument);
    for (const auto& variable : app.variables) add_text(payload, variable);
  }
  for (const auto& variable : program.environment) add_text(payload, variable);
  return payload;
}

Result<Program> decode_program(const ProgramFields& fields, std::string_view payload) {
  if (payload.size() > max_program_bytes)
    return error(E2BIG, "arguments and environment have {} bytes, and may have {}; set fewer variables",
                 payload.size(), max_program_bytes);
  if (fields.arguments == 0 || fields.limits.size() % 3 != 0 || fields.mpi == 0u) return malformed();
  Program program;
  program.umask = fields.umask;
  program.input = fields.input;
  program.binds = fields.binds == 1;
  program.mpi = fields.mpi.has_value();
  for (std::size_t i = 0; i < fields.limits.size(); i += 3) {
    if (fields.limits[i] >= RLIM_NLIMITS) return malformed();
    program.limits.push_back(
        {static_cast<std::uint32_t>(fields.limits[i]), fields.limits[i + 1], fields.limits[i + 2]});
  }
  auto texts = texts_in(payload);
  if (!texts) return malformed();
  std::span<std::string> left(*texts);
  auto directory = take(left, 1);
  auto arguments = take(left, fields.arguments);
  auto here = take(left, fields.here);
  if (!directory || !is_path_of_host(directory->front()) || !is_name(arguments) || !here) return malformed();
  program.directory = std::move(directory->front());
  program.arguments = std::move(*arguments);
  program.here = std::move(*here);
  if (fields.apps) {
    auto apps = take_apps(left, *fields.apps);
    if (!apps) return malformed();
    if (apps->size() * payload.size() > most_bytes_of_apps)
      return error(E2BIG, "so many programs with an environment of that size take too much memory; set fewer "
                          "variables");
    program.apps = std::move(*apps);
  }
  program.environment = std::move(*take(left, left.size()));
  if (!are_variables(program.here) || !are_variables(program.environment)) return malformed();
  return program;
}

} // namespace parc::control
