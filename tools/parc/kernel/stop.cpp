// SPDX-License-Identifier: BSD-3-Clause
// parc stop: ends the kernel of this host, as SIGTERM does, and returns when it is gone. One that is stopped
// goes on for that, as systemd does it.
#include "system/fd.hpp"
#include "system/identity.hpp"
#include "system/observe/counters.hpp"
#include "system/runtime_dir.hpp"
#include "tools/parc/kernel/commands.hpp"
#include "tools/parc/talk/unwell.hpp"

#include <cerrno>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace parc::tools {
namespace {

constexpr int longest_wait_ms = 20'000; // a kernel with jobs gives their ranks some seconds to end

// The kernel as a person knows it, and what ends with it.
std::string describe_kernel(const RuntimeDir& dir, pid_t process) {
  const auto counters = CounterReader::open(dir);
  if (!counters) return fmt::format("parcd, process {}", process);
  const CounterSnapshot kernel = counters.value().read();
  std::uint64_t ranks = 0;
  for (const auto& job : kernel.jobs) ranks += job.ranks;
  std::string text = fmt::format("the kernel of host {}, process {}", kernel.host, process);
  if (!kernel.jobs.empty())
    text += fmt::format(", and with it {} job{} with {} rank{} here", kernel.jobs.size(),
                        kernel.jobs.size() == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s");
  return text;
}

// Signals and awaits exactly the process that holds the lock, by its pidfd; none when it has just gone.
Result<void> stop_kernel(const RuntimeDir& dir, pid_t process) {
  const Fd handle(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  PARC_TRY(still, running_kernel(dir));
  if (still != process) return success();
  if (!handle) return error(ESRCH, "{}; {}", unwell::is_elsewhere, unwell::if_elsewhere);
  const std::string kernel = describe_kernel(dir, process);
  std::cout << "stopping " << kernel << std::endl;
  const bool goes_on = is_stopped(process); // to one that is not, it could take a debugger's SIGSTOP away
  if (syscall(SYS_pidfd_send_signal, handle.get(), SIGTERM, nullptr, 0) != 0)
    return system_error("cannot stop {}", kernel);
  if (goes_on) (void)syscall(SYS_pidfd_send_signal, handle.get(), SIGCONT, nullptr, 0);
  pollfd end{handle.get(), POLLIN, 0};
  int ready = 0;
  do ready = poll(&end, 1, longest_wait_ms);
  while (ready < 0 && errno == EINTR);
  if (ready > 0) return success();
  return error(ETIMEDOUT,
               "{} has not ended within {} s; its log may say why, and kill -9 {} ends it without its leave",
               kernel, longest_wait_ms / 1000, process);
}

Result<void> stop_if_running(const std::string& runtime_dir) {
  const auto dir = find_runtime_dir(runtime_dir);
  if (!dir && dir.error().code != ENOENT) return dir.error();
  std::optional<pid_t> process;
  if (dir) {
    PARC_TRY(running, running_kernel(dir.value()));
    process = running;
  }
  if (process) return stop_kernel(dir.value(), *process);
  std::cout << (dir ? "no parcd runs on " + dir.value().path() : "no parcd runs here") << '\n';
  return success();
}

int stop(const std::string& runtime_dir) {
  const auto stopped = stop_if_running(runtime_dir);
  if (stopped) return 0;
  std::cerr << "parc: " << stopped.error().text << '\n';
  return status_failure;
}

} // namespace

Command stop_command() {
  const auto directory = std::make_shared<std::string>();
  return {.name = "stop",
          .help = "End this host's kernel, and the jobs that it runs",
          .options =
              [directory](CLI::App& app) {
                add_runtime_dir(app, *directory, "The runtime directory of the kernel");
              },
          .run = [directory] { return stop(*directory); }};
}

} // namespace parc::tools
