// SPDX-License-Identifier: BSD-3-Clause
// A kernel as a process: the only one on its runtime directory, perhaps detached, and known to be ready by
// whoever started it.
//
// The single instance is a POSIX record lock on the file `lock`: the operating system drops it with the
// process however that ends, a forked child does not hold it, and anybody can ask who holds it without
// disturbing (running_kernel()). The file itself stays: removing it could let two kernels hold locks on two
// files of one name. In the directory of a batch job it goes with all the rest, and then whoever opened it
// before sees, when it gets the lock, that the file is no more, and opens another.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"
#include "system/runtime_dir.hpp"

#include <string>

namespace parc::daemon {

class Instance {
public:
  // Takes the lock, writes kernel.pid and removes the socket of a kernel that died. Call it in the process
  // that is to stay (after detaching); nothing else in that process may open and close the lock file.
  [[nodiscard]] static Result<Instance> acquire(const RuntimeDir& dir);
  Instance(Instance&&) = default;
  Instance& operator=(Instance&&) = delete;
  // Makes what has been removed again: the directory, the lock, kernel.pid. True: something was. An error
  // with EEXIST: another kernel has been faster; with others, it may go well later.
  [[nodiscard]] Result<bool> put_back();
  // Removes kernel.pid and the socket, or the directory of a batch job, then lets go of the lock; where that
  // is another kernel's by now, nothing.
  ~Instance();

private:
  Instance(const RuntimeDir& dir, Fd lock);
  RuntimeDir dir_;
  Fd lock_;
  pid_t owner_;
};

// Tells whoever started this process how the start went: the waiting parent of --detach, who reads what
// --announce closes, and systemd (Type=notify).
class Readiness {
public:
  // In the foreground: nobody waits.
  Readiness() = default;

  // --detach: forks, and returns in the child, a session of its own whose stderr is the log. The parent never
  // returns: it waits for ready() or failed() and exits with 0, or prints the error and exits with 1. On an
  // error here (no log, no process) nothing has been forked.
  [[nodiscard]] static Result<Readiness> detach(const std::string& log_path);

  // --announce: this process stays what it is, for a launcher whose processes end with their command, but its
  // stderr is the log from here on. ready() closes what was its stdout; failed() writes to what was its
  // stderr.
  [[nodiscard]] static Result<Readiness> announce(const std::string& log_path);

  void ready();
  // The words for who waits; in the foreground it is the caller who prints them.
  void failed(const Error& error);
  void stopping(); // systemd only: the clean shutdown has begun

  [[nodiscard]] bool detached() const { return detached_; }

private:
  Fd parent_;              // of --detach
  Fd output_, complaints_; // of --announce
  bool detached_ = false;
};

} // namespace parc::daemon
