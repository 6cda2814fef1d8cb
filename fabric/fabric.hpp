// SPDX-License-Identifier: BSD-3-Clause
// The fabric: all hosts whose kernels have one key. Nothing of it lies in this process.
#pragma once

#include "fabric/object.hpp"

namespace parc::fabric {

struct Fabric final : Object<fid_fabric> {};

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

} // namespace parc::fabric
