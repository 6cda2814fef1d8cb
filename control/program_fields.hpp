// SPDX-License-Identifier: BSD-3-Clause
// How a Program travels: numbers as fields of a message, texts in its payload, each with a zero behind it,
// for they need not be UTF-8.
#pragma once

#include "control/message.hpp"
#include "jobs/program.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <vector>

namespace parc::control {

inline constexpr std::size_t max_program_bytes = std::size_t{1} << 20; // of all its texts

struct ProgramFields {
  std::uint64_t arguments = 0, here = 0; // how many
  std::uint32_t umask = 0;
  std::uint64_t input = 0;
  std::uint32_t binds = 0;
  std::optional<std::uint32_t> mpi = {};
  std::vector<std::uint64_t> limits = {}; // resource, soft, hard, resource, ...
  // Of each of several programs: its first rank, and how many arguments and variables.
  std::optional<std::vector<std::uint64_t>> apps = {};
};

// Those of a message that has them in the member `program`.
template <auto program> constexpr auto program_fields() {
  return std::array{field<program, &ProgramFields::arguments>("arguments", max_program_bytes),
                    field<program, &ProgramFields::here>("here", max_program_bytes),
                    field<program, &ProgramFields::umask>("umask", 0777),
                    field<program, &ProgramFields::input>("input", Program::no_rank),
                    field<program, &ProgramFields::binds>("binds", 1),
                    field<program, &ProgramFields::mpi>("mpi", 1),
                    field<program, &ProgramFields::limits>("limits", 3 * RLIM_NLIMITS),
                    field<program, &ProgramFields::apps>("apps", 3 * most_apps)};
}

// Returns the payload.
[[nodiscard]] std::string encode_program(const Program& program, ProgramFields& fields);
// An error where it has more than max_program_bytes, or makes no sense.
[[nodiscard]] Result<Program> decode_program(const ProgramFields& fields, std::string_view payload);

} // namespace parc::control
