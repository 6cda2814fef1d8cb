// SPDX-License-Identifier: BSD-3-Clause
// Remote memory (fi_rma(3), fi_atomic(3)): parc's windows, gets, puts and atomic operations. A registered
// memory's key is its window's number.
#pragma once

#include "fabric/provider.hpp"

#include <rdma/fi_domain.h>

namespace parc::fabric {

int query_atomic(fid_domain* domain, fi_datatype type, fi_op operation, fi_atomic_attr* attributes,
                 std::uint64_t flags);

} // namespace parc::fabric
