// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/unix_listener.hpp"

#include "daemon/base/acceptor.hpp"

#include <algorithm>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace parc::daemon {

UnixListener::~UnixListener() {
  if (is_there()) unlink(path_.c_str());
}

bool UnixListener::is_there() const {
  struct stat found {};
  return place_.st_ino != 0 && lstat(path_.c_str(), &found) == 0 && found.st_dev == place_.st_dev &&
         found.st_ino == place_.st_ino;
}

Result<Fd> UnixListener::listen() {
  unlink(path_.c_str());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), std::min(path_.size(), sizeof address.sun_path - 1));
  Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener || bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), accept_backlog) != 0)
    return system_error("cannot listen on {}", path_);
  if (lstat(path_.c_str(), &place_) != 0) place_.st_ino = 0;
  return listener;
}

Result<void> check_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return error(EACCES, "the system does not say who it is");
  if (peer.uid == geteuid()) return success();
  return error(EACCES, "it is of user {}, and this kernel serves user {} alone; each user has a kernel",
               peer.uid, geteuid());
}

} // namespace parc::daemon
