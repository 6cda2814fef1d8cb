// SPDX-License-Identifier: BSD-3-Clause
// The exchange of borders over parc: the implementations that section 4.2 of the paper compares. Each
// calculates one time step and has the neighbours' borders in place when it returns.
#pragma once

#include "examples/heat/strip.hpp"
#include "system/error.hpp"

#include <parc/parc.h>

namespace parc::heat {

[[nodiscard]] Result<void> simultaneous(parc_context* parc, Strip& strip);  // I.1
[[nodiscard]] Result<void> borders_first(parc_context* parc, Strip& strip); // I.2
// I.2 for a context whose waits for writes may not copy (parc_set_copy_room).
[[nodiscard]] Result<void> borders_first_uncopied(parc_context* parc, Strip& strip);
[[nodiscard]] Result<void> hidden(parc_context* parc, Strip& strip); // I.3

} // namespace parc::heat
