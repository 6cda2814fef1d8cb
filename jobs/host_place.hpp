// SPDX-License-Identifier: BSD-3-Clause
// What is another host's own, as a hostfile or [hosts] says it: where parc is installed there, where ranks
// start there, and with what in their environment.
#pragma once

#include "system/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace parc {

struct HostPlace {
  std::string prefix;           // parc's programs are in its bin; empty: where they are here, or in PATH
  std::string wdir;             // of ranks; empty: the same as everywhere
  std::vector<std::string> env; // NAME=VALUE, of ranks, besides what they have everywhere
  bool operator==(const HostPlace&) const = default;
};

// Sets what `key` names: prefix, wdir (or wd), env. False: it names nothing of this. EINVAL: not to that.
[[nodiscard]] Result<bool> set(HostPlace& place, std::string_view key, std::string_view value);

// "/..." or, in the home of whoever it is there, "~" or "~/...".
[[nodiscard]] bool is_path_of_host(std::string_view path);
// The same with that home.
[[nodiscard]] std::string with_home(std::string_view path, std::string_view home);

} // namespace parc
