// SPDX-License-Identifier: BSD-3-Clause
// A Unix socket at a path of this kernel's, on which it listens. What is there at the start is of a kernel
// that was killed: this one holds the lock. It goes with its owner, unless it is another kernel's by now.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <string>
#include <sys/stat.h>

namespace parc::daemon {

class UnixListener {
public:
  explicit UnixListener(std::string path) : path_(std::move(path)) {}
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;
  ~UnixListener();
  [[nodiscard]] Result<Fd> listen(); // once more where it was removed
  [[nodiscard]] bool is_there() const;

private:
  std::string path_;
  struct stat place_ {}; // of its socket; st_ino 0: there is none
};

// Whoever is connected there runs as this process's user. Errors: EACCES, as another.
[[nodiscard]] Result<void> check_user(int socket);

} // namespace parc::daemon
