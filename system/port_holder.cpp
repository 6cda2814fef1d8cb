// SPDX-License-Identifier: BSD-3-Clause
#include "system/port_holder.hpp"

#include "system/identity.hpp"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <pwd.h>
#include <sstream>
#include <unistd.h>

namespace parc {
namespace {

struct Listening {
  uid_t user;
  std::string inode;
};

// A line of proc_pid_net(5): number, local and remote address as hexadecimal ADDRESS:PORT, state, queues,
// timer, retransmits, user, timeout, inode.
std::optional<Listening> listening_in(const std::string& line, std::uint16_t port) {
  constexpr const char* listens = "0A"; // TCP_LISTEN
  std::istringstream words(line);
  std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
  words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
  if (!words || state != listens || !local.ends_with(fmt::format(":{:04X}", port))) return {};
  return Listening{static_cast<uid_t>(std::strtoul(user.c_str(), nullptr, 10)), inode};
}

std::optional<Listening> find_listening(std::uint16_t port) {
  for (const char* const table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);)
      if (auto found = listening_in(line, port)) return found;
  }
  return {};
}

// The first process of ours that has the socket open; 0: none that can be seen.
pid_t holder_of(const std::string& inode) {
  const std::string socket = "socket:[" + inode + "]";
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failure)) {
    const std::string name = entry.path().filename();
    pid_t process = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (problem != std::errc{} || end != name.data() + name.size()) continue;
    std::error_code not_ours;
    for (std::filesystem::directory_iterator at(entry.path() / "fd", not_ours), last; !not_ours && at != last;
         at.increment(not_ours))
      if (std::filesystem::read_symlink(at->path(), not_ours) == socket) return process;
  }
  return 0;
}

} // namespace

std::string holder_of_port(std::uint16_t port) {
  const auto found = find_listening(port);
  if (!found) return "somebody";
  if (const pid_t process = holder_of(found->inode); process > 0)
    return fmt::format("process {} ({})", process, program_of(process));
  const passwd* const user = getpwuid(found->user);
  return user != nullptr ? fmt::format("a process of user {}", user->pw_name)
                         : fmt::format("a process of user {}", found->user);
}

} // namespace parc
