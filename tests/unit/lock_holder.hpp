// SPDX-License-Identifier: BSD-3-Clause
// A process that has the lock of a runtime directory, as a kernel has: it calls `then`, and ends with that or
// with its owner.
#pragma once

#include "system/runtime_dir.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::test {

class LockHolder {
public:
  template <class Then> LockHolder(const RuntimeDir& dir, Then then) {
    int ready[2];
    BOOST_REQUIRE(pipe(ready) == 0);
    process_ = fork();
    if (process_ == 0) {
      const Fd file(open(dir.lock().c_str(), O_RDWR | O_CREAT, 0600));
      if (!try_lock(file) || write(ready[1], "x", 1) != 1) _exit(1);
      then();
      _exit(0);
    }
    close(ready[1]);
    char byte = 0;
    BOOST_REQUIRE(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
  }
  LockHolder(const LockHolder&) = delete;
  LockHolder& operator=(const LockHolder&) = delete;
  ~LockHolder() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  [[nodiscard]] pid_t process() const { return process_; }

private:
  pid_t process_ = 0;
};

} // namespace parc::test
