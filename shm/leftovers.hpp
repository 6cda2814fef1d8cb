// SPDX-License-Identifier: BSD-3-Clause
// Segments that a killed process left between creating one and marking it for removal. Every parcd removes
// them at its start, and so does `parc clean`.
#pragma once

#include "system/error.hpp"

#include <chrono>

namespace parc::shm {

// Removes the segments with our prefix and our uid that nobody has attached, whose creator is dead and which
// are at least `age` old (a dead creator's number may belong to a process of another namespace that is just
// about to attach). Returns how many.
[[nodiscard]] Result<unsigned> remove_leftovers(std::chrono::seconds age = std::chrono::seconds(10));

} // namespace parc::shm
