// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/peer_owner.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <fmt/format.h>
#include <fstream>
#include <netinet/in.h>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace parc::pmix {
namespace {

constexpr const char* established = "01";

struct Row { // of the table
  std::string local, remote, state;
  uid_t uid = 0;
  unsigned long inode = 0;
};

bool read_row(const std::string& line, Row& row) {
  std::istringstream words(line);
  std::string other;
  words >> other >> row.local >> row.remote >> row.state >> other >> other >> other >> row.uid >> other >>
      row.inode;
  return !words.fail();
}

std::string in_table(const sockaddr_in& address) {
  return fmt::format("{:08X}:{:04X}", address.sin_addr.s_addr, ntohs(address.sin_port));
}

bool get_ends(int connection, sockaddr_in& here, sockaddr_in& there) {
  socklen_t size_here = sizeof here, size_there = sizeof there;
  return getsockname(connection, reinterpret_cast<sockaddr*>(&here), &size_here) == 0 &&
         getpeername(connection, reinterpret_cast<sockaddr*>(&there), &size_there) == 0 &&
         here.sin_family == AF_INET && there.sin_family == AF_INET;
}

// A connection that its owner has closed has no owner and no inode, and root's uid in this table.
std::optional<uid_t> owner_in_table(const sockaddr_in& here, const sockaddr_in& there) {
  const std::string local = in_table(there), remote = in_table(here);
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    Row row;
    if (!read_row(line, row) || row.local != local || row.remote != remote) continue;
    if (row.state == established && row.inode != 0) return row.uid;
    return {};
  }
  return {};
}

std::atomic<bool> has_checked = false;

int accept_own(int listener, sockaddr* address, socklen_t* size, int flags) {
  const long connection = syscall(SYS_accept4, listener, address, size, flags);
  if (connection < 0) return -1;
  has_checked = true;
  const int accepted = static_cast<int>(connection);
  if (parc::pmix::owner_of_peer(accepted) == geteuid()) return accepted;
  close(accepted);
  errno = EAGAIN; // which alone does not end the thread that listens
  return -1;
}

} // namespace

bool peers_are_checked() {
  return has_checked;
}

// The table is read in pieces, and a row can be missed where others go meanwhile. While both ends are there
// no other connection has them: so they are asked for before and behind.
std::optional<uid_t> owner_of_peer(int connection) {
  sockaddr_in here{}, there{};
  for (int attempt = 0; attempt < 5 && get_ends(connection, here, there); ++attempt)
    if (const auto owner = owner_in_table(here, there); owner && get_ends(connection, here, there))
      return owner;
  return {};
}

} // namespace parc::pmix

// In place of the C library's for libpmix: a stranger is no client.
extern "C" [[gnu::visibility("default")]] int accept(int listener, sockaddr* address, socklen_t* size) {
  return parc::pmix::accept_own(listener, address, size, 0);
}
extern "C" [[gnu::visibility("default")]] int accept4(int listener, sockaddr* address, socklen_t* size,
                                                      int flags) {
  return parc::pmix::accept_own(listener, address, size, flags);
}
