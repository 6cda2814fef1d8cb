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
} // namespace

void say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout); // which is locked for that
  std::fflush(stdout);
}

void Spawns::spawn(const SpawnedProgram& program, Answer answer) {
  std::string texts;
  control::add_text(texts, program.hosts);
  for (const std::string& each : program.arguments) control::add_text(texts, each);
  control::add_text(texts, program.directory);
  for (const std::string& each : program.variables) control::add_text(texts, each);
  if (texts.size() > most_texts) return answer(PMIX_ERR_BAD_PARAM, {});
  const std::uint64_t token = ++last_token_;
  answers_.emplace(token, std::move(answer));
  say(fmt::format("spawn {} {} {} {}\n{}", token, program.ranks, program.arguments.size(), texts.size(),
                  texts));
}

void Spawns::spawned(std::uint64_t token, const std::string& job) {
  if (const auto answer = answers_.extract(token)) answer.mapped()(PMIX_SUCCESS, job);
}

void Spawns::not_spawned(std::uint64_t token) {
  if (const auto answer = answers_.extract(token)) answer.mapped()(PMIX_ERR_JOB_FAILED_TO_LAUNCH, {});
}

} // namespace parc::pmix
