// SPDX-License-Identifier: BSD-3-Clause
// What the threads of early_stress share, and its options.
#pragma once

#include "tests/support/programs/stress/received.hpp"

#include <new>
#include <pthread.h>
#include <string_view>
#include <sys/mman.h>

namespace stress {

inline int messages = 1000, threads = 1;

// A system call on a guarded page fails, and a barrier makes some: this lies on pages of its own.
struct Meeting {
  pthread_barrier_t barrier;
  std::array<std::array<Received, Plan::most>, 2> rounds; // this one's and the last one's
  std::array<std::array<std::atomic<bool>, Plan::most>, 2> touchable;
};

inline Meeting* make_meeting() {
  void* const memory =
      mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  rank::expect(memory != MAP_FAILED, "no memory");
  auto* const made = new (memory) Meeting{};
  pthread_barrier_init(&made->barrier, nullptr, static_cast<unsigned>(threads));
  return made;
}

inline void read_options(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--seed") seed = value;
    if (name == "--messages") messages = static_cast<int>(value);
    if (name == "--threads") threads = static_cast<int>(value);
  }
}

} // namespace stress
