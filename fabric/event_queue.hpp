// SPDX-License-Identifier: BSD-3-Clause
// An event queue (fi_eq(3)). Nothing of ours is asynchronous but transfers, so what is in it the program has
// written itself.
#pragma once

#include "fabric/provider.hpp"

#include <rdma/fi_eq.h>

namespace parc::fabric {

[[nodiscard]] int try_wait(fid_eq& queue); // as WaitObject::try_wait
int open_event_queue(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** queue, void* context);

} // namespace parc::fabric
