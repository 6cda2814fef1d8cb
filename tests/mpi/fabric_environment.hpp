// SPDX-License-Identifier: BSD-3-Clause
// What programs that use libfabric are started with: our provider from where it was built, and a kernel.
#pragma once

#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

namespace parc::test {

// env NAME=VALUE...: what stands before a command that runs on this host.
inline std::vector<std::string> on_host(Hosts& hosts, std::size_t host) {
  return {"env", "FI_PROVIDER_PATH=" PARC_PROVIDERS, "PARC_RUNTIME_DIR=" + hosts[host].runtime_dir()};
}

inline void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// tests/mpi/slurm can: as root, where namespaces and mounts are allowed.
inline boost::test_tools::assertion_result may_start_slurm(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result may(
      getuid() == 0 &&
      std::system("unshare --net --pid --fork --mount --propagation unchanged "
                  "sh -c 'mount --make-private /proc && mount -t proc proc /proc' 2>/dev/null") == 0);
  may.message() << "this system does not let this user make namespaces";
  return may;
}

} // namespace parc::test
