// SPDX-License-Identifier: BSD-3-Clause
// TCP connections of a process, as the system says that it has them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <sys/types.h>

namespace parc::test {

// Of which one end is its own, whatever their state: none that listens. 0: there is no such process.
inline std::size_t tcp_connections(pid_t process) {
  const std::string proc = "/proc/" + std::to_string(process);
  std::error_code gone; // or a descriptor is, meanwhile
  std::set<std::string> sockets;
  for (std::filesystem::directory_iterator each(proc + "/fd", gone), end; !gone && each != end;
       each.increment(gone)) {
    std::error_code ignored;
    const std::string name = std::filesystem::read_symlink(each->path(), ignored);
    if (name.starts_with("socket:[")) sockets.insert(name.substr(8, name.size() - 9));
  }
  std::size_t found = 0;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream file(proc + table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >>
          inode;
      const std::string listens = "0A";
      found += state != listens && sockets.contains(inode);
    }
  }
  return found;
}

} // namespace parc::test
