// SPDX-License-Identifier: BSD-3-Clause
// What ends a simulation: something that must never be.
#pragma once

#include <stdexcept>

namespace parc::sim {

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace parc::sim
