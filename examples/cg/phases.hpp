// SPDX-License-Identifier: BSD-3-Clause
// Where the time of an iteration goes, and iterations that sleep for as long as their calculation took
// elsewhere: what messages do beside it can be seen with more ranks than there are cores.
#pragma once

#include "examples/steps/steps.hpp"

#include <array>
#include <cstddef>
#include <vector>

namespace parc::examples::cg {

// Those of the calculation are named for what Strip does in them.
enum class Phase {
  Interior, // hides the halo
  Border,
  Forward, // may hide the sum of (p, q)
  Residual,
  Backward, // may hide the sum of (s, s)
  Advance,
  Halo,  // waiting for it
  Start, // of the two sums
  Sums,  // waiting for them
  Count
};

class Phases {
public:
  static constexpr int calculations = static_cast<int>(Phase::Halo);

  // `asleep`: milliseconds of each calculation, or nothing.
  Phases(const Options& options, const std::vector<double>& asleep);

  // Does `work`, or sleeps in its place, or neither.
  template <class Work> void calculate(Phase phase, const Work& work) {
    if (!options_.only_messages) measure(phase, [&] { asleep_.empty() ? work() : sleep(phase); });
  }
  template <class Work> void communicate(Phase phase, const Work& work) {
    if (!options_.alone) measure(phase, work);
  }

  void begin() { seconds_ = {}; }
  [[nodiscard]] std::vector<Part> parts() const; // of a step, since begin

private:
  template <class Work> void measure(Phase phase, const Work& work) {
    const double begin = parc_clock();
    work();
    seconds_[static_cast<std::size_t>(phase)] += parc_clock() - begin;
  }
  void sleep(Phase phase);

  const Options& options_;
  const std::vector<double>& asleep_;
  std::array<double, static_cast<std::size_t>(Phase::Count)> seconds_ = {};
  double late_ = 0; // seconds
};

} // namespace parc::examples::cg
