// SPDX-License-Identifier: BSD-3-Clause
#include "bench/early_release/patterns.hpp"

namespace parc::bench {
namespace {

constexpr int slices = 32; // of a calculation whose parts need different parts of a message

Action calculate(double seconds, int peer = -1, double part = 1, int age = 0) {
  return {.kind = Action::Kind::calculate, .seconds = seconds, .peer = peer, .part = part, .age = age};
}
Action send(int peer, double bytes) {
  return {.kind = Action::Kind::send, .peer = peer, .bytes = bytes};
}
Action wait(int peer) {
  return {.kind = Action::Kind::wait, .peer = peer};
}

} // namespace

// Rows from top to bottom: the first needs the row above, the last the one below, of the step before.
Pattern poisson_pattern(int ranks, double calculation, double row_bytes) {
  Pattern pattern;
  const double slice = calculation / slices;
  for (int rank = 0; rank < ranks; ++rank) {
    const int above = rank - 1, below = rank + 1 < ranks ? rank + 1 : -1;
    std::vector<Action> step{calculate(slice, above, 1, 1)};
    for (int i = 1; i + 1 < slices; ++i) step.push_back(calculate(slice));
    step.push_back(calculate(slice, below, 1, 1));
    for (const int peer : {above, below})
      if (peer >= 0) step.push_back(send(peer, row_bytes));
    for (const int peer : {above, below})
      if (peer >= 0) step.push_back(wait(peer));
    pattern.push_back(step);
  }
  return pattern;
}

// The own block, then the others' in turn; each needs the whole of it for the first particle.
Pattern nbody_pattern(int ranks, double calculation, double block_bytes) {
  Pattern pattern;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Action> step{calculate(calculation / ranks)};
    for (int i = 1; i < ranks; ++i) step.push_back(calculate(calculation / ranks, (rank + i) % ranks, 1, 1));
    for (int i = 1; i < ranks; ++i) step.push_back(send((rank + ranks - i) % ranks, block_bytes));
    for (int i = 1; i < ranks; ++i) step.push_back(wait((rank + i) % ranks));
    pattern.push_back(step);
  }
  return pattern;
}

// A slave multiplies each row when it is there. The master asks for results into the place of those before
// last.
Pattern m3_pattern(int ranks, double making, double multiplying, double slice_bytes) {
  Pattern pattern(static_cast<std::size_t>(ranks));
  pattern[0].push_back(calculate(making));
  for (int slave = 1; slave < ranks; ++slave) pattern[0].push_back(calculate(0, slave, 1, 2));
  for (int slave = 1; slave < ranks; ++slave) pattern[0].push_back(send(slave, slice_bytes));
  for (int slave = 1; slave < ranks; ++slave) pattern[0].push_back(wait(slave));
  for (int slave = 1; slave < ranks; ++slave) {
    std::vector<Action>& step = pattern[static_cast<std::size_t>(slave)];
    step.push_back(wait(0));
    for (int i = 1; i <= slices; ++i)
      step.push_back(calculate(multiplying / slices, 0, static_cast<double>(i) / slices));
    step.push_back(send(0, slice_bytes));
  }
  return pattern;
}

Pattern uneven(Pattern pattern, double part, std::size_t first) {
  for (std::size_t rank = first; rank < pattern.size(); ++rank)
    for (Action& action : pattern[rank])
      if (action.kind == Action::Kind::calculate) action.swing = rank % 2 == 0 ? part : -part;
  return pattern;
}

} // namespace parc::bench
