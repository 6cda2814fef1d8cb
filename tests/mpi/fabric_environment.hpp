// SPDX-License-Identifier: BSD-3-Clause
// What programs that use libfabric are started with: our provider from where it was built, and a kernel.
#pragma once

#include "tests/support/hosts.hpp"

#include <string>
#include <vector>

namespace parc::test {

// env NAME=VALUE...: what stands before a command that runs on this host.
inline std::vector<std::string> on_host(Hosts& hosts, std::size_t host) {
  return {"env", "FI_PROVIDER_PATH=" PARC_PROVIDERS, "PARC_RUNTIME_DIR=" + hosts[host].runtime_dir()};
}

inline void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

} // namespace parc::test
