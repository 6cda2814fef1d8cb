// SPDX-License-Identifier: BSD-3-Clause
// How an operation of a program ends that is no message: as parc.h has its error, and what else it says.
#pragma once

#include "include/parc/parc.h"
#include "protocol/engine.hpp"

#include <cstdint>
#include <functional>

namespace parc::daemon {

struct Completion {
  std::int32_t error = PARC_OK;
  protocol::Outcome outcome = {};
};

// Tells of one that ended later than its request was taken; the operation may be over by then.
using Completed = std::function<void(std::uint64_t operation, const Completion&)>;

} // namespace parc::daemon
