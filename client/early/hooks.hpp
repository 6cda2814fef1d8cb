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
  look,      // nothing that changes them: advice, say
  unprotect, // loads and stores are allowed
  protect,   // not all of both are
  discard,   // their bytes become zero
  move,      // they go elsewhere, or become what shared memory cannot be
  pin,       // they are to stay in memory, or out of children
  unpin,
  unmap,
};

struct EarlyHooks {
  // Whether something is guarded and this thread is not inside libparc, whose own calls are not held up.
  bool (*any)();
  bool (*in_library)(); // whether this thread is in a call of libparc
  // Wait, as Guards does, until nothing is missing of that memory; until every released read has begun and
  // every released get has ended; until nothing is missing at all.
  void (*settle)(const void* memory, std::size_t bytes);
  void (*settle_begun)();
  void (*settle_all)();
  // The number of operations with guarded pages: what is called as often as free() looks here first.
  const std::atomic<std::size_t>* guarded;
  // Waits as `settle` does, and makes the pages what the call that follows needs: adopted memory becomes
  // private where that must be. False: pages that are to be discarded cannot, as a message comes into what
  // they lie in; they must be zeroed instead.
  bool (*before_change)(const void* memory, std::size_t bytes, PageChange change);
  // Keeps `action` as the program's for SIGSEGV, whose handler is libparc's; `before`: the one kept until
  // now. False: libparc has no handler there yet.
  bool (*set_program_action)(const struct sigaction* action, struct sigaction* before);
  // The handlers of pthread_atfork, for children that are made without it.
  void (*before_fork)();
  void (*after_fork_in_parent)();
  void (*after_fork_in_child)();
};

// The function of libparc-early.so that takes the hooks, void(const EarlyHooks*); the number is that of this
// structure's version.
inline constexpr const char* early_offer_symbol = "parc_early_offer_3";

// Whether libparc-early.so is loaded; `another`: one was preloaded, of a version without these hooks.
enum class EarlyLibrary { none, ours, another };
// A sanitizer stands itself between a program and the C library: such builds have none.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool has_early_library = false;
#else
inline constexpr bool has_early_library = true;
#endif
[[nodiscard]] EarlyLibrary early_library();

// The process's own hooks, as in EarlyHooks (client/calls/process.cpp).
[[nodiscard]] bool before_change(const void* memory, std::size_t bytes, PageChange change);
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

} // namespace parc::client
