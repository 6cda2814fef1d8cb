// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/fabric.hpp"

#include "fabric/completion_queue.hpp"
#include "fabric/counter.hpp"
#include "fabric/domain.hpp"
#include "fabric/event_queue.hpp"

#include <cstring>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

namespace parc::fabric {
namespace {

int try_wait_one(fid& of) {
  switch (of.fclass) {
  case FI_CLASS_CQ: return object_of<CompletionQueue>(&of).try_wait();
  case FI_CLASS_CNTR: return object_of<Counter>(&of).try_wait();
  case FI_CLASS_EQ: return try_wait(reinterpret_cast<fid_eq&>(of));
  default: return -FI_EINVAL;
  }
}

// Whether it is safe to sleep on the descriptors of these: nothing has come that was not read.
int try_wait_all(fid_fabric*, fid** fids, int count) {
  for (int i = 0; i < count; ++i)
    if (const int code = try_wait_one(*fids[i]); code != 0) return code;
  return 0;
}

fi_ops_fabric fabric_calls{
    .size = sizeof(fi_ops_fabric),
    .domain = open_domain,
    .passive_ep = [](fid_fabric*, fi_info*, fid_pep**, void*) { return -FI_ENOSYS; },
    .eq_open = open_event_queue,
    .wait_open = [](fid_fabric*, fi_wait_attr*, fid_wait**) { return -FI_ENOSYS; },
    .trywait = try_wait_all,
    .domain2 = [](fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags,
                  void* context) { return flags ? -FI_EINVAL : open_domain(fabric, info, domain, context); },
};

} // namespace

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  if (attributes->name && std::strcmp(attributes->name, provider_name) != 0) return -FI_ENODATA;
  return open_object<Fabric>(FI_CLASS_FABRIC, context, fabric, [&](Fabric& made) {
    made.ops = &fabric_calls;
    made.api_version = attributes->api_version;
    return 0;
  });
}

} // namespace parc::fabric
