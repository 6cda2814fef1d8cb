// SPDX-License-Identifier: BSD-3-Clause
// The context of this process, and the adopted memory that outlives it: what the calls of parc.h, forks and
// changes of pages (process.cpp) find it by.
#pragma once

#include "client/calls/context.hpp"

#include <atomic>
#include <mutex>

struct parc_context : parc::client::Context {
  using Context::Context;
  // A page fault's handler looks into it.
  static void* operator new(std::size_t bytes) { return parc::client::map_own(bytes); }
  static void operator delete(void* memory, std::size_t bytes) { parc::client::unmap_own(memory, bytes); }
};

namespace parc::client {

inline std::mutex one_context; // held by open and close, and over a fork; not while an open waits
inline int awaited = -1;       // with that: the connection of an open that waits for its answer
inline std::atomic<parc_context*> open_context; // of this process
inline std::atomic<bool> forked;                // this process is a forked child of one that had a context

// It knows the process's memory, which contexts come and go over; a page fault's handler must not find it
// guarded. Lives as long as the process.
inline Adoption& adoption() {
  static auto* const the_one = new (map_own(sizeof(Adoption))) Adoption;
  return *the_one;
}

} // namespace parc::client
