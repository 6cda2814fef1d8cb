// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/spawn/spawn_door.hpp"

#include "daemon/job/jobs.hpp"
#include "system/frames.hpp"

#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {
constexpr std::size_t longest_logged = 4096; // line; a longer one is cut
} // namespace

// What parc run is told on the way has no reader here.
void SpawnDoor::send(const nlohmann::json& message) {
  if (text_in(message, "kind") != "done") return;
  for (const auto& [from, line] : lines_)
    if (!line.empty()) spdlog::info("rank {} of job {:x}: {}", from.first, job_, line);
  const std::string text = number_in(message, "status", 255) == 0U ? std::string() : text_in(message, "text");
  jobs_.spawned_over(job_, root_, text);
}

void SpawnDoor::send_output(std::uint32_t rank, std::uint64_t stream, std::string_view bytes) {
  if (JobOrigin* const root = jobs_.origin(root_)) return root->spawned_output(first_ + rank, stream, bytes);
  log(rank, stream, bytes);
  if (JobOrigin* const own = jobs_.origin(job_)) own->credit(rank, bytes.size());
}

void SpawnDoor::log(std::uint32_t rank, std::uint64_t stream, std::string_view bytes) {
  std::string& line = lines_[{rank, stream}];
  for (const char each : bytes) {
    if (each != '\n') line += each;
    if (each != '\n' && line.size() < longest_logged) continue;
    spdlog::info("rank {} of job {:x}: {}", rank, job_, line);
    line.clear();
  }
}

} // namespace parc::daemon
