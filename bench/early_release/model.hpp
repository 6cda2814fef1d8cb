// SPDX-License-Identifier: BSD-3-Clause
// What early release can bring at best: a small event simulation of a program's communication pattern, on the
// machine's cores and on links of a given delay and rate. Its calculations and its link times are given as
// they were measured; what comes out depends on data dependences and on the causality gate alone.
#pragma once

#include <cstddef>
#include <vector>

namespace parc::bench {

// A step of one rank, in order. Messages are named by their source; each source sends one a step.
struct Action {
  enum class Kind {
    calculate, // `seconds` of a core's time, when `part` of the message of `peer` is there (peer < 0: at
               // once)
    send,      // `bytes` to `peer`
    wait,      // for the message of `peer`
  };
  Kind kind;
  double seconds = 0;
  double swing = 0; // this part of them more in even steps, and less in odd ones
  int peer = -1;
  double part = 1;
  int age = 0; // of the message: 0 of this step, 1 of the step before
  double bytes = 0;
};
using Pattern = std::vector<std::vector<Action>>; // by rank

struct Machine {
  std::size_t cores = 2;
  double delay = 0;  // s, one way
  double rate = 0;   // bytes/s, of each direction between two hosts
  double moving = 0; // s of a core for each byte under way: it goes first, as the kernels' work does
};

// Seconds a step, over many. Blocking: a wait waits. Otherwise it returns at once, calculations wait for the
// part they need, and sends wait until everything waited for before them has begun to arrive.
[[nodiscard]] double simulate(const Pattern& pattern, const Machine& machine, bool blocking);

} // namespace parc::bench
