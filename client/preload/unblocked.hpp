// SPDX-License-Identifier: BSD-3-Clause
// SIGSEGV is never blocked where pages may be guarded: a touch of one would end the program.
#pragma once

#include <csignal>

namespace parc::preload {

// The set without SIGSEGV, where it is one that blocks.
class Unblocked {
public:
  explicit Unblocked(const sigset_t* set) {
    if (set == nullptr) return;
    copy_ = *set;
    sigdelset(&copy_, SIGSEGV);
    set_ = &copy_;
  }
  operator const sigset_t*() const { return set_; }

private:
  sigset_t copy_{};
  const sigset_t* set_ = nullptr;
};

} // namespace parc::preload
