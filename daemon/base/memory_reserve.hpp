// SPDX-License-Identifier: BSD-3-Clause
// Memory that is set aside for the moment when there is no more: where `new` fails, it is given back to the
// system, what was to be done is done, and at the step's end something is given up. So nothing is left half
// done, and the kernel outlives what it cannot serve.
#pragma once

namespace parc::daemon {

class MemoryReserve {
public:
  MemoryReserve(); // one at a time; from here on, in every thread
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;
  ~MemoryReserve();

  [[nodiscard]] static bool used(); // since it was made, or filled
  [[nodiscard]] static bool fill(); // false: there is no memory for it
};

} // namespace parc::daemon
