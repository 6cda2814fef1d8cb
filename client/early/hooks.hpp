/* SPDX-License-Identifier: BSD-3-Clause */
// What libparc-early.so, which stands between a program and the C library, asks of libparc: no part of the
// interface for programs. libparc offers it when it is loaded, since it finds libparc-early.so (which is
// global, or stands before nothing), but may itself be loaded where nobody finds it.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace parc::client {

// What the program is about to do with pages of its own.
enum class PageChange : std::uint8_t {
  look,      // nothing that they could not bear: advice, say
  unprotect, // loads and stores are allowed
  protect,   // not all of both are
  discard,   // their bytes become zero
  move,      // they go elsewhere, or become what shared memory cannot be
  pin,       // they are to stay in memory, or out of children
  unpin,
  unmap,
};

struct EarlyHooks {
  // Something is guarded, and this thread is not in a call of libparc: its own system calls are not held up.
  bool (*any)();
  bool (*in_library)(); // this thread is in a call of libparc
  // As Guards: wait until nothing is missing of that memory; until every released read has begun; of
  // anything.
  void (*settle)(const void* memory, std::size_t bytes);
  void (*settle_begun)();
  void (*settle_all)();
  // Operations with guarded pages in this process: what is called as often as free() looks here first.
  const std::atomic<std::size_t>* guarded;
  // Waits as `settle` does, and makes the pages what the call that follows needs: adopted memory becomes
  // private where that must be. False: pages that are to be discarded cannot, as a message comes into what
  // they lie in; they must be zeroed instead.
  bool (*before_change)(const void* memory, std::size_t bytes, PageChange change);
  // For SIGSEGV: libparc has its handler there, and this is kept as the program's. False: it has none yet.
  bool (*set_program_action)(const struct sigaction* action, struct sigaction* before);
  // As those of pthread_atfork, for children that are made without it.
  void (*before_fork)();
  void (*after_fork_in_parent)();
  void (*after_fork_in_child)();
};

// void(const EarlyHooks*), of libparc-early.so; the number goes with the structure.
inline constexpr const char* early_offer_symbol = "parc_early_offer_3";

// `another`: it was preloaded and knows no such structure, as it is of another version.
enum class EarlyLibrary { none, ours, another };
[[nodiscard]] EarlyLibrary early_library();

// Of the process (client/calls/parc_c.cpp).
[[nodiscard]] bool before_change(const void* memory, std::size_t bytes, PageChange change);
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

} // namespace parc::client
