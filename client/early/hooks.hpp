/* SPDX-License-Identifier: BSD-3-Clause */
// What libparc-early.so, which stands between a program and the C library, asks of libparc: no part of the
// interface for programs. One symbol, looked up when the program has libparc at all.
#pragma once

#include <csignal>
#include <cstddef>

namespace parc::client {

struct EarlyHooks {
  // Something is guarded, and this thread is not in a call of libparc: its own system calls are not held up.
  bool (*any)();
  bool (*in_library)(); // this thread is in a call of libparc
  // As Guards: wait until nothing is missing of that memory; until every released read has begun; of
  // anything.
  void (*settle)(const void* memory, std::size_t bytes);
  void (*settle_begun)();
  void (*settle_all)();
  // For SIGSEGV: libparc has its handler there, and this is kept as the program's. False: it has none yet.
  bool (*set_program_action)(const struct sigaction* action, struct sigaction* before);
};

inline constexpr const char* early_hooks_symbol = "parc_early_hooks_1"; // the number goes with the structure

// While one of these lives this thread is in a call of libparc.
class InLibrary {
public:
  InLibrary() { ++depth_; }
  InLibrary(const InLibrary&) = delete;
  InLibrary& operator=(const InLibrary&) = delete;
  ~InLibrary() { --depth_; }
  [[nodiscard]] static bool is() { return depth_ != 0; }

private:
  // A page fault's handler may be the first to ask.
  __attribute__((tls_model("initial-exec"))) static thread_local int depth_;
};

} // namespace parc::client
