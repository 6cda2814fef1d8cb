// SPDX-License-Identifier: BSD-3-Clause
// What the program asks its kernel about itself and waits for, as the rooms below the one that waits
// (client/operation/control_calls.hpp) know it.
#pragma once

#include "shm/layout.hpp"

#include <cstdint>

namespace parc::client {

class KernelCalls {
public:
  // Sends the request with the control slot's next id and waits for the answer: its PARC_E*, or PARC_EKERNEL.
  // Where the answer is more than that, `answer` is shm::Operation::source.
  [[nodiscard]] virtual int run(shm::Request request, std::int32_t* answer) = 0;
  [[nodiscard]] int run(const shm::Request& request) { return run(request, nullptr); }

protected:
  ~KernelCalls() = default;
};

} // namespace parc::client
