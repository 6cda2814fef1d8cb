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
#include <fmt/ranges.h>
#include <iterator>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::size_t most_line = 65536, most_texts = 1 << 20, most_complaints = 2048;

// Of "WORD NUMBER NUMBER": those.
std::vector<std::int32_t> numbers_behind(std::string_view word, std::string_view line) {
  if (!line.starts_with(word)) return {};
  line.remove_prefix(word.size());
  std::vector<std::int32_t> numbers;
  while (line.starts_with(' ')) {
    const auto [end, failure] =
        std::from_chars(line.data() + 1, line.data() + line.size(), numbers.emplace_back());
    if (failure != std::errc()) return {};
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  }
  if (!line.empty()) return {};
  return numbers;
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
  job.variables.push_back(fmt::format("{}={}", env_mpi_apps, fmt::join(job.apps, ",")));
  job.variables.push_back(fmt::format("{}={}", env_mpi_directory, directory));
  auto process = processes.start(program, job.variables, true, nullptr);
  if (!process) {
    rmdir(directory.c_str());
    return std::move(process).error();
  }
  auto server = std::make_unique<MpiServer>(loop, processes, std::move(program), process.value(), directory,
                                            std::move(job.host), std::move(events));
  return Started{std::move(server), std::move(process.value().from_program),
                 std::move(process.value().to_program)};
}

MpiServer::MpiServer(event_base* loop, const Processes& processes, Program program, StartedProcess& process,
                     std::string directory, std::string host, Events events)
    : processes_(processes), id_(process.id), directory_(std::move(directory)), host_(std::move(host)),
      events_(std::move(events)), process_(std::move(process.process)), report_(std::move(process.report)),
      output_(std::move(process.output)), errors_(std::move(process.errors)), program_(std::move(program)),
      ended_(loop, process_.get(), EV_READ, [this](short) { process_ended(); }),
      said_(loop, output_.get(), EV_READ | EV_PERSIST, [this](short) { read_output(); }),
      complained_(loop, errors_.get(), EV_READ | EV_PERSIST, [this](short) { read_errors(); }),
      input_(loop, std::move(process.input), [] {}) {
  ended_.add();
  said_.add();
  complained_.add();
}

MpiServer::~MpiServer() {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void MpiServer::tell(std::string_view lines) {
  input_.add(lines);
}

void MpiServer::kill() {
  if (alive()) processes_.signal(id_, SIGKILL);
}

void MpiServer::process_ended() {
  kill(); // what else is in its group
  (void)processes_.reap(process_);
  ended_.remove();
  process_.reset();
  if (const auto failure = read_report(report_)) complaints_ = explain(program_, *failure, host_).text;
  while (read_errors()) {
  }
  while (!complaints_.empty() && complaints_.back() == '\n') complaints_.pop_back();
  std::ranges::replace(complaints_, '\n', ' ');
  events_.ended(complaints_);
}

bool MpiServer::read_errors() {
  if (!errors_) return false;
  bool over = false;
  const std::string more = read_some(errors_, over);
  complaints_ += more;
  if (complaints_.size() > most_complaints) complaints_.erase(0, complaints_.size() - most_complaints);
  if (over) {
    complained_.remove();
    errors_.reset();
  }
  return !more.empty();
}

bool MpiServer::is_missed(std::int32_t rank) {
  while (read_output()) { // what it has said of that rank before its end
  }
  return in_mpi_.contains(rank);
}

bool MpiServer::read_output() {
  if (!output_) return false;
  bool over = false;
  const std::string more = read_some(output_, over);
  line_ += more;
  while (hear_next()) {
  }
  const bool nonsense = line_.size() > (spawn_ ? most_texts : most_line);
  if (over || nonsense) {
    said_.remove();
    output_.reset();
    if (!ready_ || nonsense) kill(); // it never will be, or cannot be understood any more
  }
  return !more.empty();
}

bool MpiServer::hear_next() {
  if (spawn_) {
    if (line_.size() < spawn_->bytes) return false;
    spawn_->spawn.texts = line_.substr(0, spawn_->bytes);
    line_.erase(0, spawn_->bytes);
    const SpawnLine whole = std::move(*std::exchange(spawn_, {}));
    events_.spawn(whole.spawn);
    return true;
  }
  const std::size_t end = line_.find('\n');
  if (end == line_.npos) return false;
  const std::string line = line_.substr(0, end);
  line_.erase(0, end + 1);
  hear(line);
  return true;
}

void MpiServer::hear(std::string_view line) {
  if (!ready_) {
    if (is_variable(line)) variables_.emplace_back(line);
    if (!line.empty()) return;
    ready_ = true;
    return events_.ready(std::exchange(variables_, {}));
  }
  if (const auto in = numbers_behind("in", line); in.size() == 1) in_mpi_.insert(in[0]);
  if (const auto out = numbers_behind("out", line); out.size() == 1) in_mpi_.erase(out[0]);
  if (const auto abort = numbers_behind("abort", line); abort.size() == 2) {
    in_mpi_.erase(abort[0]); // it has said how the job is to end
    const int status = abort[1] & 0xff;
    // 0 is what coarray programs that end by STOP say, but what an exit status cannot tell from it is none.
    events_.aborted(abort[0], status == 0 && abort[1] != 0 ? 1 : status);
  }
  if (const auto spawn = numbers_behind("spawn", line); spawn.size() > 2) {
    const auto natural = [](std::int32_t number) { return static_cast<std::uint64_t>(std::max(number, 0)); };
    spawn_ = SpawnLine{{.token = spawn[0], .apps = {}, .texts = {}}, natural(spawn[1])};
    std::transform(spawn.begin() + 2, spawn.end(), std::back_inserter(spawn_->spawn.apps), natural);
  }
}

} // namespace parc::daemon
