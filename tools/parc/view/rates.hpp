// SPDX-License-Identifier: BSD-3-Clause
// How fast things go, from two looks at a kernel. Pure. What is in one look only (it has just begun, or the
// kernel was started again in between) has no rates yet: they are 0, and so is what seems to go backwards.
#pragma once

#include "tools/parc/view/view.hpp"

#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace parc::tools {

// Of a thread, as the system counts it.
struct ThreadTimes {
  std::uint64_t ran_ns = 0;
  std::uint64_t delayed_ns = 0; // ready to run, and did not
  std::uint64_t runs = 0;
};

struct Look {
  std::chrono::steady_clock::time_point at;
  KernelView view;
  std::unordered_map<std::uint64_t, ThreadTimes> threads; // by process: the main thread
  // What the cores of the machine have worked, or others under a hypervisor had of them, all together; and
  // for the kernel and its programs.
  std::uint64_t busy_ns = 0, own_ns = 0;
};

struct ThreadRates {
  double core = 0;     // its share of one
  double delay_us = 0; // from being woken to running, on average
};

struct Flow { // a second
  double messages = 0, bytes = 0;
};

struct LinkRates {
  CounterSnapshot::Link link;
  Flow in, out;
  double stalls = 0, resent_bytes = 0; // a second
};

struct ProgramRates {
  ProgramView program;
  Flow in, out;     // through the kernel and to neighbours
  double waits = 0; // a second
  ThreadRates thread;
};

struct Rates {
  CounterSnapshot kernel;
  std::array<double, counter_count> counters{}; // a second
  ThreadRates thread;                           // of the kernel
  double others = 0; // cores that what is shown here does not take, and somebody does
  std::vector<LinkRates> links;
  std::vector<ProgramRates> programs;
};

[[nodiscard]] Rates rates_between(const Look& before, const Look& after);

} // namespace parc::tools
