// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/cores.hpp"

#include <cerrno>

namespace parc::daemon {

Result<std::vector<Processors>> own_cores() {
  return error(ENOSYS, "its parcd was built without hwloc and cannot tell the cores; leave --bind out");
}

} // namespace parc::daemon
