// SPDX-License-Identifier: BSD-3-Clause
// How requests of programs fail: as parc.h has it, and in words for the table of errors.
#pragma once

#include "daemon/base/errors.hpp"
#include "protocol/engine.hpp"

#include <cstdint>

namespace parc::daemon {

[[nodiscard]] std::int32_t error_of(protocol::Fault fault); // a PARC_E*, or PARC_OK

// That the operation in this slot has ended with an error. What was cancelled, or only has to be asked for
// again, is none.
void note_request(Errors& errors, std::uint64_t slot, std::int32_t error, protocol::Departure departure);

} // namespace parc::daemon
