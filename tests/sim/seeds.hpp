// SPDX-License-Identifier: BSD-3-Clause
// The seeds that a simulation runs, as its command line says: a failing one is printed and replays exactly.
#pragma once

#include "tests/sim/violation.hpp"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/core.h>
#include <string>

namespace parc::sim {

class Seeds {
public:
  explicit Seeds(CLI::App& app) {
    app.add_option("--seed", seed_, "Replay this one, and say what happens");
    app.add_option("--from", from_, "The first seed");
    app.add_option("--seeds", count_, "How many");
    app.add_option("--new-for", seconds_, "Seeds that nobody has run yet, for so many seconds");
    app.add_flag("--keep-going", keep_going_, "Run the others when one has failed");
  }

  [[nodiscard]] bool one() const { return seed_ != 0; }
  [[nodiscard]] std::uint64_t done() const { return done_; }
  // `replay`: the command that `--seed N` is put behind. False: one has failed.
  template <class Run> bool run(const std::string& replay, Run run_one) {
    const auto begin = std::chrono::steady_clock::now();
    if (one()) from_ = seed_, count_ = 1;
    if (seconds_ != 0) {
      from_ = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
      count_ = ~std::uint64_t{0} - from_;
      fmt::print("seeds from {}\n", from_);
    }
    bool good = true;
    for (std::uint64_t seed = from_; seed < from_ + count_; ++seed, ++done_) {
      if (seconds_ != 0 && std::chrono::steady_clock::now() - begin >= std::chrono::seconds(seconds_)) break;
      try {
        run_one(seed);
      } catch (const Violation& violation) {
        fmt::print(stderr, "seed {} failed: {}\nreplay it with: {} --seed {}\n", seed, violation.what(),
                   replay, seed);
        good = false;
        if (!keep_going_) break;
      }
    }
    return good;
  }

private:
  std::uint64_t from_ = 1, count_ = 1000, seed_ = 0, seconds_ = 0, done_ = 0;
  bool keep_going_ = false;
};

} // namespace parc::sim
