// SPDX-License-Identifier: BSD-3-Clause
// `wanlink run`: three processes. The one that was called waits and passes signals on. Its child is process 1
// of a process namespace, makes the hosts and is the relay. The relay's child is the command. Invariant: when
// any of the first two dies, however it dies, the kernel kills everything in the namespace: the relay asks to
// be killed when its parent dies, and the namespace ends with its process 1.
#include "control/exit_status.hpp"
#include "tools/wanlink/commands.hpp"
#include "tools/wanlink/emulation.hpp"
#include "tools/wanlink/isolation.hpp"
#include "tools/wanlink/relay.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::wanlink {
namespace {

constexpr std::array passed_on{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// SIGCHLD and what is passed on, read from a descriptor in place of being delivered.
class Signals {
public:
  static Result<Signals> catch_all() {
    Signals signals;
    sigset_t caught;
    sigemptyset(&caught);
    for (int number : passed_on) sigaddset(&caught, number);
    sigaddset(&caught, SIGCHLD);
    sigprocmask(SIG_BLOCK, &caught, &signals.before_);
    signals.fd_ = Fd(signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals.fd_) return system_error("cannot make a signalfd");
    return signals;
  }
  // For a child that becomes another program.
  void restore_mask() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

  // Passes what has come on to `child`, reaps, and gives the wait status of `child` when it has ended.
  [[nodiscard]] std::optional<int> handle(pid_t child) const {
    signalfd_siginfo info;
    while (read(fd_.get(), &info, sizeof info) == sizeof info) {
      // A terminal sends its signals to the whole foreground group, so the command has had them.
      const bool from_terminal = info.ssi_code == SI_KERNEL;
      if (info.ssi_signo != SIGCHLD && !from_terminal) kill(child, static_cast<int>(info.ssi_signo));
    }
    int status = 0;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == child) return status;
    return std::nullopt;
  }
  [[nodiscard]] int fd() const { return fd_.get(); }

private:
  Fd fd_;
  sigset_t before_{};
};

// The command finds wanlink, and what was built beside it, in its PATH.
void put_own_directory_in_path() {
  std::error_code failure;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return;
  const char* path = std::getenv("PATH");
  setenv("PATH", fmt::format("{}:{}", self.parent_path().string(), path ? path : "/usr/bin:/bin").c_str(), 1);
}

Result<pid_t> start_command(const Command& command, const Signals& signals) {
  const pid_t child = fork();
  if (child < 0) return system_error("cannot start a process");
  if (child > 0) return child;
  signals.restore_mask();
  if (auto allowed = let_children_enter_hosts(); !allowed) {
    std::cerr << "wanlink: " << allowed.error().text << '\n';
    _exit(status_failed);
  }
  setenv(dir_variable, default_dir, 1);
  _exit(execute(command));
}

// Process 1 of the namespace: makes everything, relays while the command runs.
Result<int> be_relay(const RunOptions& options, const Signals& signals) {
  const Paths paths;
  put_own_directory_in_path();
  PARC_TRY(isolate_mounts(paths));
  PARC_TRY(hosts, make_hosts(paths, options.hosts, options.congestion_control));
  Relay relay(std::move(hosts), options.change, options.settings, options.seed);
  PARC_TRY(relay.close(options.closed));
  PARC_TRY(relay.prepare(paths, signals.fd(), options.realtime));
  PARC_TRY(command, start_command(options.command, signals));
  PARC_TRY(status, relay.run([&] { return signals.handle(command); }));
  return exit_status_of(status);
}

// Dies with the process that called fork; `alive` reads end of file if that was too early to notice.
bool tie_to_parent(int alive) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  pollfd end{.fd = alive, .events = POLLIN, .revents = 0};
  return poll(&end, 1, 0) == 0;
}

} // namespace

Result<int> run(const RunOptions& options) {
  PARC_TRY(open_tun()); // the commonest obstacle, found before anything is made
  PARC_TRY(isolate_children());
  PARC_TRY(signals, Signals::catch_all());
  int alive[2];
  if (pipe2(alive, O_CLOEXEC) != 0) return system_error("cannot make a pipe");
  Fd alive_read(alive[0]);
  const Fd alive_write(alive[1]);
  const pid_t child = fork();
  if (child < 0) return system_error("cannot start a process namespace");
  if (child == 0) {
    close(alive_write.get());
    if (!tie_to_parent(alive_read.get())) _exit(status_failed);
    auto result = be_relay(options, signals);
    if (!result) std::cerr << "wanlink: " << result.error().text << '\n';
    std::cerr.flush();
    _exit(result ? result.value() : status_failed);
  }
  for (;;) {
    pollfd ready{.fd = signals.fd(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, -1) < 0 && errno != EINTR) return system_error("cannot wait for the relay");
    const auto status = signals.handle(child);
    if (!status) continue;
    if (WIFSIGNALED(*status)) return error(ECHILD, "the relay was killed by signal {}", WTERMSIG(*status));
    return WEXITSTATUS(*status);
  }
}

} // namespace parc::wanlink
