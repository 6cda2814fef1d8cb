// SPDX-License-Identifier: BSD-3-Clause
#include "system/orphans.hpp"

#include "system/environment.hpp"
#include "system/fd.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <vector>

namespace parc {
namespace {

constexpr int longest_wait_ms = 2000; // for one killed process
constexpr unsigned most_looks = 100;  // at all processes, while there is one to be killed

// The environment that a process was started with, with a zero before each variable and behind the last.
std::string environment_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  return std::string(1, '\0') + std::string(std::istreambuf_iterator<char>(file), {});
}

bool has(const std::string& environment, const std::string& variable) {
  return environment.find(std::string(1, '\0') + variable + std::string(1, '\0')) != std::string::npos;
}

// Numbers of processes mean the same there.
bool is_in_our_namespace(pid_t process) {
  std::error_code failure;
  const auto theirs = std::filesystem::read_symlink(fmt::format("/proc/{}/ns/pid", process), failure);
  return !failure && theirs == std::filesystem::read_symlink("/proc/self/ns/pid", failure);
}

bool is_ours(pid_t process) {
  struct stat status {};
  return stat(fmt::format("/proc/{}", process).c_str(), &status) == 0 && status.st_uid == geteuid() &&
         is_in_our_namespace(process);
}

// "PID:STARTTIME".
bool lives(std::string_view kernel) {
  pid_t process = 0;
  std::uint64_t started = 0;
  const auto [colon, problem] = std::from_chars(kernel.data(), kernel.data() + kernel.size(), process);
  if (problem != std::errc{} || colon == kernel.data() + kernel.size()) return false;
  std::from_chars(colon + 1, kernel.data() + kernel.size(), started);
  return started != 0 && process_start_time(process) == started;
}

// A kernel whose runtime directory was removed lives, though another one has that now.
bool is_orphan(pid_t process, const RuntimeDir& dir) {
  if (!is_ours(process)) return false;
  const std::string environment = environment_of(process);
  if (!has(environment, fmt::format("{}={}", env_runtime_dir, dir.path()))) return false;
  const std::string name = fmt::format("{}{}=", '\0', env_kernel);
  const auto at = environment.find(name);
  if (at == environment.npos) return false;
  return !lives(environment.c_str() + at + name.size());
}

std::vector<pid_t> processes() {
  std::vector<pid_t> all;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failure)) {
    const std::string name = entry.path().filename();
    pid_t process = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (problem == std::errc{} && end == name.data() + name.size()) all.push_back(process);
  }
  return all;
}

// By pidfd: the number may belong to another process between the look and the kill.
template <class Belongs> std::vector<Fd> kill_all(const Belongs& belongs) {
  std::vector<Fd> killed;
  for (const pid_t process : processes()) {
    if (process == getpid()) continue;
    Fd handle(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
    if (!handle || !belongs(process)) continue;
    if (syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0) == 0)
      killed.push_back(std::move(handle));
  }
  return killed;
}

} // namespace

std::string kernel_variable(pid_t kernel) {
  return fmt::format("{}={}:{}", env_kernel, kernel, process_start_time(kernel));
}

unsigned end_orphans(const RuntimeDir& dir) {
  const std::vector<Fd> killed = kill_all([&](pid_t process) { return is_orphan(process, dir); });
  for (const Fd& process : killed) {
    pollfd death{process.get(), POLLIN, 0};
    (void)poll(&death, 1, longest_wait_ms);
  }
  return static_cast<unsigned>(killed.size());
}

// Again and again, for one may have started another behind the look.
void end_strays(const std::string& kernel_variable, const std::string& job_variable) {
  const auto belongs = [&](pid_t process) {
    if (!is_ours(process)) return false;
    const std::string environment = environment_of(process);
    return has(environment, kernel_variable) && (job_variable.empty() || has(environment, job_variable));
  };
  for (unsigned looks = 0; looks < most_looks && !kill_all(belongs).empty(); ++looks) continue;
}

} // namespace parc
