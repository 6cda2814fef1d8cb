// SPDX-License-Identifier: BSD-3-Clause
// Registrations of memory (fi_mr(3)). Any memory can be sent and received as it is, so they say nothing; but
// programs for all providers make them.
#pragma once

#include <rdma/fi_domain.h>

namespace parc::fabric {

extern fi_ops_mr memory_calls; // of a domain

} // namespace parc::fabric
