// SPDX-License-Identifier: BSD-3-Clause
// What libpmix asks, on its thread, for the ranks of this host.
#pragma once

#include <pmix_server.h>

namespace parc::pmix {

class Server;

// It hands them no argument of ours: there is one server in a process.
[[nodiscard]] pmix_server_module_t callbacks_of(Server& server);

} // namespace parc::pmix
