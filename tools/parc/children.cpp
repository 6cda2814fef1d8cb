// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/children.hpp"

#include "system/error.hpp"
#include "system/fd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sstream>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::tools {
namespace {

constexpr std::size_t at_once = 64;
constexpr std::size_t most_output = std::size_t{1} << 20; // of one; the rest is read and forgotten
constexpr int status_not_started = 127;

class Running {
public:
  explicit Running(Child& child) : child_(child) {}

  // False: it could not be started, and the child says why.
  bool start() {
    for (std::size_t i = 0; i < ours_.size(); ++i) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) return fail(errno);
      ours_[i].reset(ends[i == 0 ? 1 : 0]);
      theirs_[i].reset(ends[i == 0 ? 0 : 1]);
      fcntl(ours_[i].get(), F_SETFL, O_NONBLOCK);
    }
    child_.started = std::chrono::system_clock::now();
    const int failure = spawn();
    for (Fd& end : theirs_) end.reset();
    if (failure != 0) return fail(failure);
    if (child_.input.empty()) ours_[0].reset();
    return true;
  }

  [[nodiscard]] bool open() const { return ours_[0] || ours_[1] || ours_[2]; }
  void add_events(std::vector<pollfd>& events) const {
    for (std::size_t i = 0; i < ours_.size(); ++i)
      events.push_back({ours_[i] ? ours_[i].get() : -1, static_cast<short>(i == 0 ? POLLOUT : POLLIN), 0});
  }
  void serve(const pollfd* events) {
    if (events[0].revents != 0) give();
    if (events[1].revents != 0) take(ours_[1], child_.output);
    if (events[2].revents != 0) take(ours_[2], child_.errors);
    if (child_.stays_after && child_.stays_after(child_.output)) leave();
  }
  void wait() {
    if (left_) return;
    int how = 0;
    while (waitpid(id_, &how, 0) < 0 && errno == EINTR) {
    }
    child_.ended = std::chrono::system_clock::now();
    child_.status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  }

private:
  int spawn() {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; ++i)
      posix_spawn_file_actions_adddup2(&actions, theirs_[static_cast<std::size_t>(i)].get(), i);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t standard; // a broken pipe ends it, if not us
    sigemptyset(&standard);
    sigaddset(&standard, SIGPIPE);
    sigaddset(&standard, SIGXFSZ);
    posix_spawnattr_setsigdefault(&attributes, &standard);
    posix_spawnattr_setflags(&attributes, child_.stays_after ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> words;
    for (const std::string& word : child_.command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const int failure = posix_spawnp(&id_, words[0], &actions, &attributes, words.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
  }

  bool fail(int failure) {
    for (Fd& end : ours_) end.reset();
    child_.status = status_not_started;
    child_.errors = fmt::format("cannot start {}: {}", child_.command[0], std::strerror(failure));
    return false;
  }

  void leave() {
    for (Fd& end : ours_) end.reset();
    child_.status = 0;
    left_ = true;
  }

  void give() {
    const ssize_t written = write(ours_[0].get(), child_.input.data() + given_, child_.input.size() - given_);
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (written > 0) given_ += static_cast<std::size_t>(written);
    if (written < 0 || given_ == child_.input.size()) ours_[0].reset();
  }

  static void take(Fd& from, std::string& text) {
    std::array<char, 4096> buffer;
    const ssize_t got = read(from.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return from.reset();
    text.append(buffer.data(), std::min(static_cast<std::size_t>(got), most_output - text.size()));
  }

  Child& child_;
  pid_t id_ = -1;
  std::array<Fd, 3> ours_, theirs_; // of its stdin, stdout and stderr
  std::size_t given_ = 0;
  bool left_ = false; // it goes on by itself
};

} // namespace

void run_all(std::vector<Child>& children) {
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<Running> running;
  running.reserve(children.size());
  std::vector<Running*> open;
  std::size_t next = 0;
  while (next < children.size() || !open.empty()) {
    for (; next < children.size() && open.size() < at_once; ++next) {
      Running& started = running.emplace_back(children[next]);
      if (started.start()) open.push_back(&started);
    }
    if (open.empty()) continue; // none of them could be started: nobody would end a wait
    std::vector<pollfd> events;
    for (const Running* each : open) each->add_events(events);
    if (poll(events.data(), events.size(), -1) < 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < open.size(); ++i) open[i]->serve(&events[3 * i]);
    std::erase_if(open, [](Running* each) {
      if (each->open()) return false;
      each->wait();
      return true;
    });
  }
}

std::string last_line(const std::string& text) {
  std::string last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) last = line;
  }
  return last;
}

std::string why_failed(const Child& child, std::string_view what) {
  std::string said = last_line(child.errors);
  for (const std::string_view name : {"parc: ", "parcd: "}) // we say ours
    if (said.starts_with(name)) return said.substr(name.size());
  if (!said.empty()) return said;
  return fmt::format("{} ended with status {} and said nothing (it was run by {})", what, child.status,
                     child.command.front());
}

} // namespace parc::tools
