// SPDX-License-Identifier: BSD-3-Clause
// The fabric: all hosts whose kernels have one key. Nothing of it lies in this process.
#pragma once

#include "fabric/provider.hpp"

#include <atomic>

namespace parc::fabric {

struct Fabric final : fid_fabric {
  std::atomic<unsigned> users = 0; // objects that were opened on it
};

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

} // namespace parc::fabric
