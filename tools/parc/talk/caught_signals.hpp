// SPDX-License-Identifier: BSD-3-Clause
// The signals that end a program, and others, as a descriptor.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <csignal>
#include <initializer_list>
#include <optional>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace parc::tools {

// They wait here while this lives; one that whoever started us ignores stays ignored.
class CaughtSignals {
public:
  static Result<CaughtSignals> make(std::initializer_list<int> others = {}) {
    CaughtSignals caught;
    sigset_t signals;
    sigemptyset(&signals);
    std::vector<int> numbers{SIGINT, SIGTERM, SIGHUP};
    numbers.insert(numbers.end(), others);
    for (const int number : numbers) {
      struct sigaction before {};
      sigaction(number, nullptr, &before);
      if (before.sa_handler != SIG_IGN) sigaddset(&signals, number);
    }
    caught.fd_.reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!caught.fd_) return system_error("cannot watch for signals");
    sigprocmask(SIG_BLOCK, &signals, &caught.before_);
    return caught;
  }
  CaughtSignals(CaughtSignals&&) = default;
  CaughtSignals& operator=(CaughtSignals&&) = delete;
  ~CaughtSignals() {
    if (fd_) sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const sigset_t& before() const { return before_; } // what was blocked, for children

  // The one that has come; none: none has.
  [[nodiscard]] std::optional<int> take() const {
    signalfd_siginfo signal{};
    if (read(fd_.get(), &signal, sizeof signal) != sizeof signal) return {};
    return static_cast<int>(signal.ssi_signo);
  }

private:
  CaughtSignals() = default;
  Fd fd_;
  sigset_t before_{};
};

} // namespace parc::tools
