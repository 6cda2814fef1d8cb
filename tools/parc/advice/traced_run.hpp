// SPDX-License-Identifier: BSD-3-Clause
// What the traces of a job's ranks come to: a run that can be played again (model/replay.hpp), the wires that
// its messages took, and how long its steps were.
//
// Each thread of a rank that sends, reads or waits is a rank of the run. What a thread did between its calls
// is calculation; a call waits for the operations that it was told of, or, where it was told of several, for
// those that had ended by its end and nobody has waited for. A read belongs to the write of the same pair,
// context and tag that was begun as the same one in order. What was touched first of a read is taken from
// traces of pages.
//
// Pure. Times are seconds since the first rank was heard of.
#pragma once

#include "model/replay.hpp"
#include "tools/parc/trace/trace.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace parc::tools {

struct RankSite {
  std::uint64_t rank, site; // an address there; 0: not known
  auto operator<=>(const RankSite&) const = default;
};

// Where a program waits for what it has read.
struct WaitPlace {
  RankSite at; // of the first that waited there
  trace::Call call;
  std::uint64_t waits = 0;
  double waited = 0;            // s, of all ranks
  RankSite touched_at = {0, 0}; // where most of what it has waited for is first touched
  bool untouched = false;       // most of it is not, until its buffer is used again
};

struct TracedRun {
  model::Run run;
  std::vector<std::string> hosts; // by number
  model::Wires wires{0};          // between them, as far as messages have told
  std::vector<WaitPlace> places;  // model::Action::place of waits

  double step = 0;         // s, as it was: as usual_step has it
  std::uint64_t steps = 0; // 0: nothing repeats itself, and `step` is all of it
  std::uint64_t messages_a_step = 0;
  std::uint64_t messages = 0, unmatched = 0;  // the latter of operations
  std::uint64_t touched = 0, long_enough = 0; // reads whose touches are known; that could be
  double wake = 0;                            // s, of a touch that has to wait
};

[[nodiscard]] TracedRun make_run(const std::map<std::uint64_t, RankTrace>& ranks);

} // namespace parc::tools
