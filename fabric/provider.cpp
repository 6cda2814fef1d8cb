// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/provider.hpp"

#include "fabric/fabric.hpp"
#include "fabric/info.hpp"
#include "parc/parc.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <unistd.h>

namespace parc::fabric {

fi_provider provider{
    .version = FI_VERSION(0, 1),
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .context = {},
    .name = provider_name,
    .getinfo = get_info,
    .fabric = open_fabric,
    .cleanup = [] {},
};

int errno_of(int parc_error) {
  switch (parc_error) {
  case PARC_OK: return 0;
  case PARC_EINVAL: return FI_EINVAL;
  case PARC_ENOMEM: return FI_ENOMEM;
  case PARC_EAGAIN: return FI_EAGAIN;
  case PARC_ETRUNCATE: return FI_ETRUNC;
  case PARC_EPEER: return FI_ECONNABORTED;
  case PARC_EKERNEL: return FI_ESHUTDOWN;
  case PARC_ECANCELED: return FI_ECANCELED;
  case PARC_EFORK: return FI_EOPBADSTATE;
  case PARC_EVERSION: return FI_EOPNOTSUPP;
  case PARC_ENOKERNEL: return FI_ENODEV;
  case PARC_EPLACE: return FI_EKEYREJECTED;
  default: return FI_EOTHER;
  }
}

int refused(fi_log_subsys subsystem, const char* what, int parc_error) {
  FI_WARN(&provider, subsystem, "%s: %s\n", what, parc_error_detail());
  return -errno_of(parc_error);
}

namespace {

constexpr std::array tried{"cannot use parc", "cannot insert an address", "cannot register memory",
                           "an operation failed"};
static_assert(tried.size() == static_cast<std::size_t>(Failing::operation) + 1);

} // namespace

void say_once(Failing what, const char* sentence) {
  static std::array<std::atomic<bool>, tried.size()> said{};
  const auto which = static_cast<std::size_t>(what);
  if (said[which].exchange(true)) return;
  std::fprintf(stderr, "parc: process %d: %s: %s\n", static_cast<int>(getpid()), tried[which], sentence);
}

int refused_aloud(Failing what, fi_log_subsys subsystem, int parc_error) {
  say_once(what, parc_error_detail());
  return refused(subsystem, tried[static_cast<std::size_t>(what)], parc_error);
}

} // namespace parc::fabric

// What libfabric looks for in a library of providers.
extern "C" {
FI_EXT_INI {
  return &parc::fabric::provider;
}
}
