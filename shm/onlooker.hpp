// SPDX-License-Identifier: BSD-3-Clause
// What can be seen of a program from its control segment by somebody who only reads it: a tool, or the kernel
// for one. Whatever is read may be changing, or be nonsense; nothing here trusts it.
#pragma once

#include "shm/tables.hpp"
#include "system/observe/unfinished.hpp"

namespace parc::shm {

// Fills in joined, resting, what is counted, operations and more; `most` operations, the oldest.
void look_at(const Control& control, const Tables& tables, std::size_t most, RankState& rank);

// The same of the segment with this id, which a kernel has published. False: it is not there any more, or is
// no control segment of this version and this user.
[[nodiscard]] bool look_at_segment(int id, std::size_t most, RankState& rank);

} // namespace parc::shm
