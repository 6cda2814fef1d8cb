// SPDX-License-Identifier: BSD-3-Clause
// A poll set (fi_poll(3)): which of several completion queues and counters have something to be read.
#pragma once

#include "fabric/domain.hpp"

namespace parc::fabric {

int open_poll_set(fid_domain* domain, fi_poll_attr* attributes, fid_poll** set);

} // namespace parc::fabric
