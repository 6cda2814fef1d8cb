// SPDX-License-Identifier: BSD-3-Clause
#include "system/start_kernel.hpp"

#include "system/environment.hpp"
#include "system/runtime_dir.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <sstream>
#include <string_view>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace parc {
namespace {

constexpr std::chrono::seconds door_patience{10};

std::string read_to_end(const Fd& pipe) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t got = read(pipe.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

std::string without_warnings(const std::string& said) {
  std::string rest;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with(start_warning)) (rest += line) += '\n';
  return rest;
}

// Returns when it is ready, or has said why it is not.
Result<void> start_kernel(const std::string& parcd, const std::string& runtime_dir,
                          const std::vector<std::string>& options) {
  std::vector<std::string> words{parcd, "--detach"};
  if (!runtime_dir.empty()) words.insert(words.end(), {"--runtime-dir", runtime_dir});
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot start {}", parcd);
  const Fd said(ends[0]);
  Fd says(ends[1]);
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_adddup2(&streams, says.get(), STDERR_FILENO);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, parcd.c_str(), &streams, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&streams);
  says.reset();
  if (failure != 0)
    return error(failure, "no parcd runs here, and starting {} failed: {}; start it with parcd --detach",
                 parcd, std::strerror(failure));
  std::string text = without_warnings(read_to_end(said));
  int status = 0;
  pid_t gone = 0;
  do gone = waitpid(child, &status, 0);
  while (gone < 0 && errno == EINTR);
  // In a program that ignores SIGCHLD there is no status.
  if (gone < 0 ? text.empty() : WIFEXITED(status) && WEXITSTATUS(status) == 0) return success();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return error(ENOENT, "no parcd runs here, and none could be started: {}",
               text.empty() ? "parcd --detach says why" : text);
}

// No descriptor: nobody listens there.
Result<Fd> try_to_connect(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (socket && connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return socket;
  if (errno == ENOENT || errno == ECONNREFUSED) return Fd();
  return system_error("cannot connect to the kernel of this host at {}", path);
}

} // namespace

std::string parcd_near(const std::string& near) {
  const std::string directory = near.substr(0, near.rfind('/') + 1);
  for (const char* const way : {"parcd", "../bin/parcd", "../../bin/parcd"})
    if (const std::string path = directory + way; !directory.empty() && access(path.c_str(), X_OK) == 0)
      return path;
  return "parcd";
}

Result<bool> may_start_kernels() {
  const char* const wish = getenv(env_autostart);
  const std::string_view said = wish == nullptr ? "" : wish;
  if (said.empty() || said == "on") return true;
  if (said == "off") return false;
  return error(EINVAL, "{}={} in the environment is neither on nor off", env_autostart, said);
}

// A kernel that is about to be ready has the lock and no door yet; one that is about to end, no door any
// more.
Result<Fd> connect_to_kernel(const std::string& runtime_dir) {
  auto dir = find_runtime_dir(runtime_dir);
  if (!dir) {
    if (dir.error().code == ENOENT) return Fd();
    return std::move(dir).error();
  }
  const auto due = std::chrono::steady_clock::now() + door_patience;
  for (;;) {
    PARC_TRY(socket, try_to_connect(dir.value().socket()));
    if (socket) return std::move(socket);
    PARC_TRY(holder, running_kernel(dir.value()));
    if (!holder) return Fd();
    if (std::chrono::steady_clock::now() >= due)
      return error(ETIMEDOUT,
                   "the kernel of this host ({}) does not listen on {}: it hangs, or that file was removed; "
                   "end it with parc stop, or with kill -9",
                   *holder == 0 ? "a process that cannot be seen from here"
                                : fmt::format("parcd, process {}", *holder),
                   dir.value().socket());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Result<Fd> connect_or_start_kernel(const std::string& runtime_dir, const std::string& near,
                                   const std::vector<std::string>& options) {
  PARC_TRY(first, connect_to_kernel(runtime_dir));
  if (first) return std::move(first);
  PARC_TRY(dir, make_runtime_dir(runtime_dir));
  const Fd turn(open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (turn && flock(turn.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  PARC_TRY(second, connect_to_kernel(runtime_dir)); // somebody else may have started it meanwhile
  if (second) return std::move(second);
  const auto started = start_kernel(parcd_near(near), runtime_dir, options);
  PARC_TRY(third, connect_to_kernel(runtime_dir)); // where ours is not: of who started one by hand meanwhile
  if (third) return std::move(third);
  if (!started) return started.error();
  return error(ENOENT, "no parcd runs here, and none could be started; parcd --detach says why");
}

} // namespace parc
