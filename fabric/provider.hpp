// SPDX-License-Identifier: BSD-3-Clause
// libparc-fi.so, the libfabric provider "parc": MPI and other programs over libfabric send through the kernel
// of their host. What every file of it needs: the provider that libfabric knows us by, and how an error of
// libparc's becomes one of libfabric's, with its sentence in libfabric's log (FI_LOG_LEVEL=warn).
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

// What libfabric calls is C: there is no memory for exceptions to cross it.
template <class Call> auto guarded(const Call& call) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  }
}

} // namespace parc::fabric
