// SPDX-License-Identifier: BSD-3-Clause
// Segments that a killed process left between creating one and marking it for removal. A kernel removes those
// of the ranks that it started, all others at its start, and so does `parc clean`.
//
// A segment is a leftover of ours when all of this is so: its key is one of those of the process that created
// it (key_of); that process was of our user and is dead; nobody has it attached, and nobody but its creator
// ever had; it is private; and not one page of it was ever touched, which is so until it is marked. Another
// program's segment with such a key would be a chance of 1 in 2^26, and without a page it would hold nothing.
#pragma once

#include "system/error.hpp"

#include <chrono>
#include <sys/types.h>
#include <vector>

namespace parc::shm {

// Removes those that are at least `age` old (a dead creator's number may belong to a process of another
// namespace that is just about to attach). Returns how many.
[[nodiscard]] Result<unsigned> remove_leftovers(std::chrono::seconds age = std::chrono::seconds(10));

// Removes those of these processes, which were children of this one.
[[nodiscard]] Result<unsigned> remove_leftovers_of(const std::vector<pid_t>& creators);

} // namespace parc::shm
