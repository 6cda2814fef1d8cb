// SPDX-License-Identifier: BSD-3-Clause
#include "system/limits.hpp"

#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <sys/resource.h>

namespace parc {
namespace {

rlimit limits() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

} // namespace

void raise_descriptor_limit() {
  rlimit limit = limits();
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t descriptor_limit() {
  return limits().rlim_cur;
}

std::size_t descriptors_open() {
  std::error_code failure; // where it fails they are used up, and the next call says so
  const std::filesystem::directory_iterator open("/proc/self/fd", failure);
  return static_cast<std::size_t>(std::distance(begin(open), end(open)));
}

std::string descriptor_advice(int code) {
  if (code == EMFILE)
    return fmt::format("; the limit is {} (RLIMIT_NOFILE): start parcd with a higher one (ulimit -n, or "
                       "LimitNOFILE= in its systemd unit)",
                       descriptor_limit());
  if (code == ENFILE) return "; the limit is the system's: raise it with sysctl fs.file-max";
  return {};
}

} // namespace parc
