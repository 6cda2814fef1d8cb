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

int close_fabric(fid* of) {
  auto& fabric = object_of_fid<Fabric, fid_fabric>(of);
  if (fabric.users.load() != 0) return -FI_EBUSY;
  delete &fabric;
  return 0;
}

int try_wait_one(fid& of) {
  switch (of.fclass) {
  case FI_CLASS_CQ: return object_of_fid<CompletionQueue, fid_cq>(&of).try_wait();
  case FI_CLASS_CNTR: return object_of_fid<Counter, fid_cntr>(&of).try_wait();
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

fi_ops fabric_object_calls{.size = sizeof(fi_ops),
                           .close = close_fabric,
                           .bind = no_bind,
                           .control = no_control,
                           .ops_open = no_ops_open,
                           .tostr = nullptr,
                           .ops_set = nullptr};

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
  return guarded([&] {
    auto* const made = new Fabric;
    made->fid = {.fclass = FI_CLASS_FABRIC, .context = context, .ops = &fabric_object_calls};
    made->ops = &fabric_calls;
    made->api_version = attributes->api_version;
    *fabric = made;
    return 0;
  });
}

} // namespace parc::fabric
