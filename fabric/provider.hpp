// SPDX-License-Identifier: BSD-3-Clause
// libparc-fi.so, the libfabric provider "parc": MPI and other programs over libfabric send through the kernel
// of their host. What every file of it needs: the provider that libfabric knows us by, and how an error of
// libparc's becomes one of libfabric's, with its sentence in libfabric's log (FI_LOG_LEVEL=warn) and, the
// first time, on stderr.
#pragma once

#include <cstdint>
#include <new>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

namespace parc::fabric {

extern fi_provider provider;

inline constexpr const char* provider_name = "parc";

// FI_E*, positive, for a PARC_E*.
[[nodiscard]] int errno_of(int parc_error);

// Says in libfabric's log what failed and the sentence of this thread's last failure in libparc. Returns the
// code that libfabric's caller gets (negative).
int refused(fi_log_subsys subsystem, const char* what, int parc_error);

// What libfabric's user makes of an error does not name its cause, and its log is off by default: of these,
// the first of each is said on stderr, too.
enum class Failing : std::uint8_t { session, address, memory, operation };
void say_once(Failing what, const char* sentence);
// Both.
int refused_aloud(Failing what, fi_log_subsys subsystem, int parc_error);

// What libfabric calls is C: there is no memory for exceptions to cross it.
template <class Call> auto guarded(const Call& call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  }
}

} // namespace parc::fabric
