// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/talk/children.hpp"

#include "control/exit_status.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"
#include "tools/parc/talk/caught_signals.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sstream>
#include <string_view>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::tools {
namespace {

constexpr std::size_t at_once = 64;
constexpr std::size_t most_output = std::size_t{1} << 20; // of one; the rest is read and forgotten
constexpr std::chrono::milliseconds longest_end{1000};    // of one that was killed

using Clock = std::chrono::steady_clock;

class Running {
public:
  Running(Child& child, Clock::time_point due, const sigset_t* blocked)
      : child_(child), due_(due), blocked_(blocked) {}

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
    process_.reset(static_cast<int>(syscall(SYS_pidfd_open, id_, 0)));
    if (child_.input.empty()) ours_[0].reset();
    return true;
  }

  [[nodiscard]] bool open() const { return ours_[0] || ours_[1] || ours_[2]; }
  void add_events(std::vector<pollfd>& events) const {
    for (std::size_t i = 0; i < ours_.size(); ++i)
      events.push_back({ours_[i] ? ours_[i].get() : -1, static_cast<short>(i == 0 ? POLLOUT : POLLIN), 0});
    events.push_back({open() ? -1 : process_.get(), POLLIN, 0}); // its end
  }
  static constexpr std::size_t events_each = 4;
  void serve(const pollfd* events) {
    if (events[0].revents != 0) give();
    if (events[1].revents != 0) take(ours_[1], child_.output);
    if (events[2].revents != 0) take(ours_[2], child_.errors);
    if (child_.stays_after && child_.stays_after(child_.output)) leave();
  }
  [[nodiscard]] const std::string& name() const { return child_.command[0]; }
  [[nodiscard]] Clock::time_point due() const { return due_; }
  // It is gone when that was waited for.
  void kill(std::string why) {
    if (left_) return;
    for (Fd& end : ours_) end.reset();
    ::kill(id_, SIGKILL);
    due_ = Clock::time_point::max(); // that is all
    child_.errors = std::move(why);
  }
  // Or goes on by itself. Where there was no descriptor for it, its end is waited for.
  bool ended() {
    if (left_) return true;
    if (open()) return false;
    int how = 0;
    pid_t gone = 0;
    do gone = waitpid(id_, &how, process_ ? WNOHANG : 0);
    while (gone < 0 && errno == EINTR);
    if (gone == 0) return false;
    child_.ended = std::chrono::system_clock::now();
    child_.status = gone < 0 ? EXIT_FAILURE // whoever started us has it waited for elsewhere
                             : exit_status_of(how);
    return true;
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
    if (blocked_ != nullptr) posix_spawnattr_setsigmask(&attributes, blocked_);
    const int flags = POSIX_SPAWN_SETSIGDEF | (blocked_ != nullptr ? POSIX_SPAWN_SETSIGMASK : 0) |
                      (child_.stays_after ? POSIX_SPAWN_SETSID : 0);
    posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
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
    for (Fd& end : theirs_) end.reset();
    child_.status = status_not_found;
    child_.errors = fmt::format("cannot start {}: {}", child_.command[0], std::strerror(failure));
    return false;
  }

  void leave() {
    for (Fd& end : ours_) end.reset();
    child_.status = 0;
    left_ = true;
  }

  void give() {
    const ssize_t written =
        ::write(ours_[0].get(), child_.input.data() + given_, child_.input.size() - given_);
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (written > 0) given_ += static_cast<std::size_t>(written);
    if (written < 0 || given_ == child_.input.size()) ours_[0].reset();
  }

  static void take(Fd& from, std::string& text) {
    std::array<char, 4096> buffer;
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return from.reset();
    text.append(buffer.data(), std::min(static_cast<std::size_t>(got), most_output - text.size()));
  }

  Child& child_;
  Clock::time_point due_;
  const sigset_t* blocked_; // in it; null: as here
  pid_t id_ = -1;
  std::array<Fd, 3> ours_, theirs_; // of its stdin, stdout and stderr
  Fd process_;                      // pidfd
  std::size_t given_ = 0;
  bool left_ = false; // it goes on by itself
};

class All {
public:
  All(std::vector<Child>& children, std::chrono::milliseconds patience, const CaughtSignals* signals)
      : children_(children), patience_(patience), signals_(signals) {
    running_.reserve(children.size());
  }

  // The signal that was to end this process; none: all are done.
  std::optional<int> run() {
    while (running_.size() < children_.size() || !open_.empty()) {
      start_some();
      if (open_.empty()) continue; // none of them could be started: nobody would end a wait
      std::vector<pollfd> events;
      for (const Running* each : open_) each->add_events(events);
      events.push_back({signals_ != nullptr ? signals_->fd() : -1, POLLIN, 0});
      const bool ready = poll(events.data(), events.size(), until_first_is_due()) > 0;
      for (std::size_t i = 0; ready && i < open_.size(); ++i)
        open_[i]->serve(&events[Running::events_each * i]);
      kill_late();
      if (ready && events.back().revents != 0)
        if (const auto signal = signals_->take()) {
          kill_all();
          return signal;
        }
      drop_ended();
    }
    return {};
  }

private:
  void start_some() {
    while (running_.size() < children_.size() && open_.size() < at_once) {
      Running& started = running_.emplace_back(children_[running_.size()], Clock::now() + patience_,
                                               signals_ != nullptr ? &signals_->before() : nullptr);
      if (started.start()) open_.push_back(&started);
    }
  }

  [[nodiscard]] int until_first_is_due() const {
    const auto first = *std::ranges::min_element(open_, {}, &Running::due);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first->due() - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
  }

  void kill_late() {
    for (Running* each : open_)
      if (Clock::now() >= each->due())
        each->kill(fmt::format("{} has not come to an end within {:.3g} s", each->name(),
                               std::chrono::duration<double>(patience_).count()));
  }

  // None of them is left behind, as far as the system lets go of it.
  void kill_all() {
    for (Running* each : open_) each->kill({});
    for (const auto end = Clock::now() + longest_end; !open_.empty() && Clock::now() < end; drop_ended()) {
      std::vector<pollfd> events;
      for (const Running* each : open_) each->add_events(events);
      (void)poll(events.data(), events.size(), static_cast<int>(longest_end.count()));
    }
  }

  void drop_ended() {
    std::erase_if(open_, [](Running* each) { return each->ended(); });
  }

  std::vector<Child>& children_;
  std::chrono::milliseconds patience_;
  const CaughtSignals* signals_; // null: there is no descriptor for them
  std::vector<Running> running_; // and those that have been
  std::vector<Running*> open_;
};

} // namespace

void run_all(std::vector<Child>& children, std::chrono::milliseconds patience) {
  std::signal(SIGPIPE, SIG_IGN);
  std::optional<int> signal;
  {
    const auto signals = CaughtSignals::make();
    signal = All(children, patience, signals ? &signals.value() : nullptr).run();
  }
  if (signal) raise(*signal);
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
