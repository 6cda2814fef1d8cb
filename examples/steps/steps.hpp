// SPDX-License-Identifier: BSD-3-Clause
// What the programs of erMPI 2005 (section 3.2), cannon and cg have in common: options, timed steps, and one
// line about them from every rank. Each of erMPI's is one source for all modes; `parc run --early-release`
// makes the difference.
#pragma once

#include <algorithm>
#include <functional>
#include <parc/parc.hpp>
#include <string>
#include <vector>

namespace parc::examples {

struct Options {
  int steps = 20;
  int warm_up = 2;    // steps before the clock starts
  int work = 1;       // how often everything is calculated: the same result, later
  int uneven = 0;     // per cent more and less of it in turn
  bool alone = false; // without messages
  bool only_messages = false;
  bool check = false;
  bool json = false;

  // How often a rank calculates everything in its iteration `step`: with `uneven`, every second rank more in
  // one step and less in the next, and the ranks between them the other way round.
  [[nodiscard]] int times(int rank, int step) const {
    const int more = (rank + step) % 2 == 0 ? uneven : -uneven;
    return std::max(1, work * (100 + more) / 100);
  }
};

// A size of table 1 of the paper, or a small one, and its steps.
struct Preset {
  std::string name;
  std::size_t size;
  int steps;
};

// A number that is told with an option of its own.
struct Size {
  const char* option;
  const char* help;
  std::size_t& value;
  std::size_t least, most;
};

// A choice between two ways of the program.
struct Flag {
  const char* option;
  const char* help;
  bool& value;
};

// As many numbers from 0 on as `count`, separated by commas; none where the option is not given.
struct Numbers {
  const char* option;
  const char* help;
  std::vector<double>& values;
  int count;
};

// What a program says of itself, and what can be told it besides Options.
struct Program {
  const char* name;
  const char* purpose;
  std::vector<Size> sizes;
  std::vector<Preset> presets = {}; // of the first size; --steps goes over theirs
  std::vector<Flag> flags = {};
  std::vector<Numbers> numbers = {};
};

// A part of a step that the program has measured itself.
struct Part {
  const char* name;
  double ms;
};

struct Timing {
  double step_ms = 0; // of all timed steps: a wait that is released moves time from one to the next
  double cpu_ms = 0;  // of this process
  std::vector<Part> parts = {};
};

// Calls `step` with the number of each, from 0. Begins when all ranks are there, and ends when what they
// wrote and read has arrived.
[[nodiscard]] Timing time_steps(Context& parc, const Options& options, const std::function<void(int)>& step);

// Makes the compiler calculate again what it could keep.
inline void forget_results() {
  asm volatile("" ::: "memory");
}

// Parses, runs, and turns what fails into a sentence and an exit status. `run` returns 0, or 1 when it has
// said that its results are wrong.
int run_program(const Program& program, Options& options, int count, char** arguments,
                const std::function<int()>& run);

// The line; `correct` counts when options.check is set. Returns the exit status.
int say(const std::string& program, Context& parc, const Options& options, const Timing& timing,
        bool correct);

} // namespace parc::examples
