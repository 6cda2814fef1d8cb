// SPDX-License-Identifier: BSD-3-Clause
// The cores that ranks are bound to: those on which the kernel itself may run, in the order of the machine's
// topology, so that neighbours in it are neighbours on the chip. Invariant: nobody gets one that another has.
// The last go last: where there are more cores than ranks, one is left for the kernel.
#pragma once

#include "system/error.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace parc::daemon {

using Processors = std::vector<unsigned long>; // a bit each, as sched_setaffinity(2) takes them

// The processors of each core, as far as this thread may run there; at least one. Takes its time.
[[nodiscard]] Result<std::vector<Processors>> own_cores();

class Cores {
public:
  using Find = std::function<Result<std::vector<Processors>>()>;
  explicit Cores(Find find = own_cores) : find_(std::move(find)) {} // called once, when they are needed

  // So many, by their numbers; an error: there are not so many.
  [[nodiscard]] Result<std::vector<std::size_t>> take(std::size_t count);
  void give_back(const std::vector<std::size_t>& cores);
  [[nodiscard]] const Processors& processors(std::size_t core) const { return cores_->at(core); }

private:
  Find find_;
  std::optional<std::vector<Processors>> cores_;
  std::vector<bool> taken_;
};

} // namespace parc::daemon
