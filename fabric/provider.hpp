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

// fi_close and the like of an object that is ours: each C structure is the base of one class of ours.
template <class Object, class Base> Object& object_of(Base* base) {
  return static_cast<Object&>(*base);
}
template <class Object, class Base> Object& object_of_fid(fid* base) {
  return static_cast<Object&>(*reinterpret_cast<Base*>(base)); // a fid is the first member of each
}

// For what is not offered in the tables of calls.
int no_bind(fid*, fid*, std::uint64_t);
int no_control(fid*, int, void*);
int no_ops_open(fid*, const char*, std::uint64_t, void**, void*);

} // namespace parc::fabric
