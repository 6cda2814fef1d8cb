// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/mpi_server.hpp"

#include "system/environment.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::size_t most_line = 65536, most_complaints = 2048;

// "abort RANK STATUS"
std::optional<std::pair<std::int32_t, int>> abort_in(std::string_view line) {
  constexpr std::string_view begin = "abort ";
  if (!line.starts_with(begin)) return {};
  std::pair<std::int32_t, int> found{};
  const char* const last = line.data() + line.size();
  const auto [space, bad_rank] = std::from_chars(line.data() + begin.size(), last, found.first);
  if (bad_rank != std::errc() || space == last || *space != ' ') return {};
  const auto [end, bad_status] = std::from_chars(space + 1, last, found.second);
  if (bad_status != std::errc() || end != last) return {};
  return found;
}

// What there is to read: empty at the end, and where there is nothing now.
std::string read_some(const Fd& pipe, bool& over) {
  std::array<char, 4096> buffer{};
  const ssize_t got = read(pipe.get(), buffer.data(), buffer.size());
  over = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
}

} // namespace

Result<MpiServer::Started> MpiServer::start(event_base* loop, const Processes& processes, Program program,
                                            const std::string& directory, Job job, Events events) {
  if (mkdir(directory.c_str(), 0700) != 0) return system_error("cannot make {}", directory);
  job.variables.push_back(fmt::format("{}={}", env_mpi_ranks, job.ranks));
  job.variables.push_back(fmt::format("{}={}", env_mpi_hosts, job.hosts));
  job.variables.push_back(fmt::format("{}={}", env_mpi_directory, directory));
  auto process = processes.start(program, job.variables, false, nullptr);
  if (!process) {
    rmdir(directory.c_str());
    return std::move(process).error();
  }
  auto server = std::make_unique<MpiServer>(loop, processes, process.value(), directory, std::move(events));
  return Started{std::move(server), std::move(process.value().from_program),
                 std::move(process.value().to_program)};
}

MpiServer::MpiServer(event_base* loop, const Processes& processes, StartedProcess& process,
                     std::string directory, Events events)
    : processes_(processes), id_(process.id), directory_(std::move(directory)), events_(std::move(events)),
      process_(std::move(process.process)), output_(std::move(process.output)),
      errors_(std::move(process.errors)),
      ended_(loop, process_.get(), EV_READ, [this](short) { process_ended(); }),
      said_(loop, output_.get(), EV_READ | EV_PERSIST, [this](short) { read_output(); }),
      complained_(loop, errors_.get(), EV_READ | EV_PERSIST, [this](short) { read_errors(); }) {
  ended_.add();
  said_.add();
  complained_.add();
}

MpiServer::~MpiServer() {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void MpiServer::kill() {
  if (alive()) processes_.signal(id_, SIGKILL);
}

void MpiServer::process_ended() {
  kill(); // what else is in its group
  (void)processes_.reap(process_);
  ended_.remove();
  process_.reset();
  read_errors();
  while (!complaints_.empty() && complaints_.back() == '\n') complaints_.pop_back();
  std::ranges::replace(complaints_, '\n', ' ');
  events_.ended(complaints_);
}

void MpiServer::read_errors() {
  if (!errors_) return;
  bool over = false;
  complaints_ += read_some(errors_, over);
  if (complaints_.size() > most_complaints) complaints_.erase(0, complaints_.size() - most_complaints);
  if (!over) return;
  complained_.remove();
  errors_.reset();
}

void MpiServer::read_output() {
  bool over = false;
  line_ += read_some(output_, over);
  for (std::size_t end = line_.find('\n'); end != line_.npos; end = line_.find('\n')) {
    const std::string line = line_.substr(0, end);
    line_.erase(0, end + 1);
    hear(line);
  }
  if (!over && line_.size() <= most_line) return;
  said_.remove();
  output_.reset();
}

void MpiServer::hear(std::string_view line) {
  if (ready_) {
    if (const auto abort = abort_in(line)) events_.aborted(abort->first, abort->second);
  } else if (line.empty()) {
    ready_ = true;
    events_.ready(std::exchange(variables_, {}));
  } else if (is_variable(line)) {
    variables_.emplace_back(line);
  }
}

} // namespace parc::daemon
