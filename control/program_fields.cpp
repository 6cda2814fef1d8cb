// SPDX-License-Identifier: BSD-3-Clause
#include "control/program_fields.hpp"

#include "control/words/texts.hpp"
#include "jobs/host_place.hpp"

#include <algorithm>
#include <cerrno>

namespace parc::control {
namespace {

Error malformed() {
  return error(EPROTO, "the description of the program to start makes no sense");
}

} // namespace

std::string encode_program(const Program& program, ProgramFields& fields) {
  fields = {.arguments = program.arguments.size(),
            .here = program.here.size(),
            .umask = program.umask,
            .input = program.input,
            .binds = program.binds ? 1u : 0u,
            .mpi = program.mpi ? std::optional(1u) : std::nullopt,
            .limits = {}};
  for (const auto& limit : program.limits)
    fields.limits.insert(fields.limits.end(), {limit.resource, limit.soft, limit.hard});
  std::string payload;
  add_text(payload, program.directory);
  for (const auto& argument : program.arguments) add_text(payload, argument);
  for (const auto& variable : program.here) add_text(payload, variable);
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
  if (!texts || fields.arguments > max_program_bytes || fields.here > max_program_bytes ||
      texts->size() < 1 + fields.arguments + fields.here || !is_path_of_host(texts->front()))
    return malformed();
  const auto first = texts->begin() + 1;
  const auto here = first + static_cast<std::ptrdiff_t>(fields.arguments);
  const auto last = here + static_cast<std::ptrdiff_t>(fields.here);
  if (first->empty()) return malformed();
  program.directory = std::move(texts->front());
  program.arguments.assign(first, here);
  program.here.assign(here, last);
  program.environment.assign(last, texts->end());
  if (!std::ranges::all_of(program.here, is_variable) ||
      !std::ranges::all_of(program.environment, is_variable))
    return malformed();
  return program;
}

} // namespace parc::control
