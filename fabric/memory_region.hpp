// SPDX-License-Identifier: BSD-3-Clause
// Registrations of memory (fi_mr(3)). Any memory can be sent and received as it is, so they say nothing; but
// programs for all providers make them.
#pragma once

#include "fabric/kernel_session.hpp"

#include <rdma/fi_domain.h>

namespace parc::fabric {

extern fi_ops_mr memory_calls; // of a domain

// A get into memory of this descriptor begins (null: it has none). Open MPI registers what it gets into with
// all rights of others, as it does its windows, and tells nobody its key; but libparc releases no wait for a
// get into memory that is exposed. So where gets are released early, what is got into as the very next thing
// after its registration is taken from the others; a window's key is told to somebody first, by messages
// where every rank has a host of its own.
void will_get_into(KernelSession& session, void* descriptor);

} // namespace parc::fabric
