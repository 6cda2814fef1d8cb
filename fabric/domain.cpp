// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/domain.hpp"

#include "fabric/address_vector.hpp"
#include "fabric/completion_queue.hpp"
#include "fabric/counter.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/memory_region.hpp"
#include "fabric/poll_set.hpp"
#include "fabric/remote_memory.hpp"

namespace parc::fabric {
namespace {

fi_ops_domain domain_calls{
    .size = sizeof(fi_ops_domain),
    .av_open = open_address_vector,
    .cq_open = open_completion_queue,
    .endpoint = open_endpoint,
    .scalable_ep = [](fid_domain*, fi_info*, fid_ep**, void*) { return -FI_ENOSYS; },
    .cntr_open = open_counter,
    .poll_open = open_poll_set,
    .stx_ctx = [](fid_domain*, fi_tx_attr*, fid_stx**, void*) { return -FI_ENOSYS; },
    .srx_ctx = [](fid_domain*, fi_rx_attr*, fid_ep**, void*) { return -FI_ENOSYS; },
    .query_atomic = query_atomic,
    .query_collective = [](fid_domain*, fi_collective_op, fi_collective_attr*,
                           std::uint64_t) { return -FI_EOPNOTSUPP; },
    .endpoint2 =
        [](fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags, void* context) {
          return flags ? -FI_EINVAL : open_endpoint(domain, info, endpoint, context);
        },
};

} // namespace

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) {
  const auto complete = [info](Domain& made) {
    made.remote = is_for_remote_memory(info->caps);
    made.ops = &domain_calls;
    made.mr = &memory_calls;
    return KernelSession::acquire(made.session);
  };
  return open_object<Domain>(FI_CLASS_DOMAIN, context, domain, complete, object_of<Fabric>(fabric));
}

} // namespace parc::fabric
