// SPDX-License-Identifier: BSD-3-Clause
// A domain: this process as the kernel of its host knows it. Opening it connects to that kernel.
#pragma once

#include "fabric/fabric.hpp"
#include "fabric/kernel_session.hpp"

#include <rdma/fi_domain.h>

namespace parc::fabric {

struct Domain final : Child<fid_domain, Fabric> {
  using Child::Child;
  ~Domain() {
    if (session) session->release();
  }
  KernelSession* session = nullptr;
  bool remote = false; // its memory may be remote to others
};

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);

} // namespace parc::fabric
