// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/program.hpp"

#include "system/observe/trace.hpp"

#include <algorithm>
#include <array>

namespace parc {
namespace {

constexpr std::array<std::string_view, 10> given_names{"PATH", "HOME",    "LANG",  "LD_LIBRARY_PATH", "TERM",
                                                       "USER", "LOGNAME", "SHELL", "TMPDIR",          "TZ"};
constexpr std::array<std::string_view, 3> given_prefixes{"LC_", "OMP_", "PARC_"};
// Every rank has its own; those of a rank that starts a job are not handed down.
constexpr std::array<std::string_view, 10> own_names{
    "PARC_RANK",  "PARC_SIZE",        "PARC_LOCAL_RANK", "PARC_JOB",    "PARC_PIPES",
    "PARC_HOSTS", "PARC_RUNTIME_DIR", "PARC_KERNEL",     "PARC_PARENT", trace::environment};

} // namespace

bool is_given_to_ranks(std::string_view name) {
  if (std::ranges::find(own_names, name) != own_names.end()) return false;
  return std::ranges::find(given_names, name) != given_names.end() ||
         std::ranges::any_of(given_prefixes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

} // namespace parc
