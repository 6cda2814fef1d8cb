// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/process.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace parc::heat::demo {

namespace {

volatile std::sig_atomic_t interrupted = 0;

constexpr auto farewell = std::chrono::seconds(5);

[[noreturn]] void become(const Command& command, int output, int errors, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  dprintf(STDERR_FILENO, "cannot execute %s: %s\n", words[0], std::strerror(errno));
  _exit(127);
}

} // namespace

std::string to_line(const Command& command) {
  return fmt::format("{}", fmt::join(command, " "));
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Result<Child> Child::start(const Command& command, Output where) {
  const auto file = [where](const char* name, int ours) {
    return Fd(where == Output::Keep ? memfd_create(name, MFD_CLOEXEC) : fcntl(ours, F_DUPFD_CLOEXEC, 3));
  };
  Child child;
  child.output_ = file("output", STDOUT_FILENO);
  child.errors_ = file("errors", STDERR_FILENO);
  if (!child.output_ || !child.errors_)
    return system_error("cannot make a file for the output of {}", command[0]);
  const pid_t parent = getpid();
  child.pid_ = fork();
  if (child.pid_ < 0) return system_error("cannot start {}", command[0]);
  if (child.pid_ == 0) become(command, child.output_.get(), child.errors_.get(), parent);
  child.watch_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, child.pid_, 0)));
  if (!child.watch_) return system_error("cannot watch {}", command[0]);
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), watch_(std::move(other.watch_)), output_(std::move(other.output_)),
      errors_(std::move(other.errors_)), exit_status_(other.exit_status_) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  kill_now();
  pid_ = std::exchange(other.pid_, -1);
  watch_ = std::move(other.watch_);
  output_ = std::move(other.output_);
  errors_ = std::move(other.errors_);
  exit_status_ = other.exit_status_;
  return *this;
}

void Child::reap(bool block) {
  int status = 0;
  pid_t ended = 0;
  do ended = waitpid(pid_, &status, block ? 0 : WNOHANG);
  while (ended < 0 && errno == EINTR);
  if (ended == 0) return;
  exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  pid_ = -1;
}

Result<void> Child::wait_for_any(std::span<Child> children, Clock::time_point give_up) {
  std::vector<pollfd> watched;
  for (const Child& child : children)
    if (child.running()) watched.push_back({child.watch_.get(), POLLIN, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - Clock::now()).count();
  if (!interrupted && !watched.empty() &&
      poll(watched.data(), watched.size(), static_cast<int>(std::max(left, 0L))) < 0 && errno != EINTR)
    return system_error("cannot wait for programs");
  if (interrupted) return error(EINTR, "interrupted");
  for (Child& child : children)
    if (child.running()) child.reap(false);
  return success();
}

void Child::terminate() {
  if (!running()) return;
  kill(pid_, SIGTERM);
  pollfd ended{watch_.get(), POLLIN, 0};
  poll(&ended, 1, static_cast<int>(std::chrono::milliseconds(farewell).count()));
  reap(false);
  kill_now();
}

void Child::kill_now() {
  if (!running()) return;
  kill(pid_, SIGKILL);
  reap(true);
}

std::string Child::contents(const Fd& file) {
  struct stat about {};
  if (fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return {};
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  const ssize_t length = pread(file.get(), text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return text;
}

Result<std::vector<Ended>> run_together(std::span<const Command> commands, std::chrono::seconds patience) {
  std::vector<Child> children;
  for (const Command& command : commands) {
    PARC_TRY(child, Child::start(command));
    children.push_back(std::move(child));
  }
  const auto running = [](const Child& child) { return child.running(); };
  const auto failed = [](const Child& child) { return !child.running() && child.exit_status() != 0; };
  auto give_up = Clock::now() + patience;
  while (std::ranges::any_of(children, running)) {
    PARC_TRY(Child::wait_for_any(children, give_up));
    if (std::ranges::any_of(children, failed)) give_up = std::min(give_up, Clock::now() + farewell);
    if (Clock::now() < give_up) continue;
    if (std::ranges::any_of(children, failed)) break;
    return error(ETIMEDOUT, "\"{}\" did not end within {} s", to_line(commands[0]), patience.count());
  }
  std::vector<Ended> all;
  for (Child& child : children) {
    child.terminate();
    all.push_back({child.exit_status(), child.output(), child.errors()});
  }
  return all;
}

} // namespace parc::heat::demo
