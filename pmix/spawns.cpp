// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/spawns.hpp"

#include "control/words/texts.hpp"

#include <cstdio>
#include <fmt/format.h>
#include <pmix_common.h>
#include <utility>

namespace parc::pmix {
namespace {
constexpr std::size_t most_texts = 256 << 10; // the kernel takes more
constexpr std::size_t most_programs = 1024;   // no more than the kernel takes
} // namespace

void say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout); // which is locked for that
  std::fflush(stdout);
}

void Spawns::spawn(const std::vector<SpawnedProgram>& programs, Answer answer) {
  std::string texts, numbers;
  for (const SpawnedProgram& program : programs) {
    numbers += fmt::format(" {} {} {}", program.ranks, program.arguments.size(), program.variables.size());
    control::add_text(texts, program.hosts);
    for (const std::string& each : program.arguments) control::add_text(texts, each);
    control::add_text(texts, program.directory);
    for (const std::string& each : program.variables) control::add_text(texts, each);
  }
  if (texts.size() > most_texts || programs.size() > most_programs) return answer(PMIX_ERR_BAD_PARAM, {});
  const std::uint64_t token = ++last_token_;
  answers_.emplace(token, std::move(answer));
  say(fmt::format("spawn {} {}{}\n{}", token, texts.size(), numbers, texts));
}

void Spawns::spawned(std::uint64_t token, const std::string& job) {
  if (const auto answer = answers_.extract(token)) answer.mapped()(PMIX_SUCCESS, job);
}

void Spawns::not_spawned(std::uint64_t token) {
  if (const auto answer = answers_.extract(token)) answer.mapped()(PMIX_ERR_JOB_FAILED_TO_LAUNCH, {});
}

} // namespace parc::pmix
