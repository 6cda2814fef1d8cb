// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/spawn_client.hpp"

#include "daemon/job/jobs.hpp"

#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {
constexpr std::size_t longest_logged = 4096; // line; a longer one is cut
} // namespace

void SpawnClient::send(const tool::Done& message) {
  for (const auto& [from, line] : lines_)
    if (!line.empty()) spdlog::info("rank {} of job {:x}: {}", from.first, job_, line);
  jobs_.spawned_over(job_, root_, message.status == 0 ? std::string() : message.text);
}

void SpawnClient::send_output(std::uint32_t rank, std::uint32_t stream, std::string bytes) {
  if (JobOrigin* const root = jobs_.origin(root_))
    return root->spawned_output(first_ + rank, stream, std::move(bytes));
  log(rank, stream, bytes);
  if (JobOrigin* const own = jobs_.origin(job_)) own->credit(rank, bytes.size());
}

void SpawnClient::log(std::uint32_t rank, std::uint32_t stream, std::string_view bytes) {
  std::string& line = lines_[{rank, stream}];
  for (const char each : bytes) {
    if (each != '\n') line += each;
    if (each != '\n' && line.size() < longest_logged) continue;
    spdlog::info("rank {} of job {:x}: {}", rank, job_, line);
    line.clear();
  }
}

} // namespace parc::daemon
