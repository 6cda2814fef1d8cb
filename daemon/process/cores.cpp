// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/process/cores.hpp"

#include <algorithm>
#include <cerrno>

namespace parc::daemon {

Result<std::vector<std::size_t>> Cores::take(std::size_t count) {
  if (!cores_) {
    PARC_TRY(found, find_());
    cores_ = std::move(found);
    taken_.assign(cores_->size(), false);
  }
  std::vector<std::size_t> cores;
  for (std::size_t core = 0; core < taken_.size() && cores.size() < count; ++core)
    if (!taken_[core]) cores.push_back(core);
  if (cores.size() < count) {
    const auto others = std::ranges::count(taken_, true);
    return error(
        EBUSY,
        "--bind core gives each a core of its own, and there are {}{}; run fewer ranks there, or leave "
        "--bind out",
        taken_.size(), others == 0 ? "" : fmt::format(", of which ranks of other jobs have {}", others));
  }
  for (const std::size_t core : cores) taken_[core] = true;
  return cores;
}

void Cores::give_back(const std::vector<std::size_t>& cores) {
  for (const std::size_t core : cores) taken_[core] = false;
}

} // namespace parc::daemon
