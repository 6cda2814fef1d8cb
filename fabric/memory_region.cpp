// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/memory_region.hpp"

#include "fabric/domain.hpp"

namespace parc::fabric {
namespace {

struct MemoryRegion final : fid_mr {
  Domain* domain = nullptr;
};

int close_region(fid* of) {
  auto& region = object_of_fid<MemoryRegion, fid_mr>(of);
  --region.domain->users;
  delete &region;
  return 0;
}

fi_ops region_object_calls{.size = sizeof(fi_ops),
                           .close = close_region,
                           .bind = no_bind,
                           .control = no_control,
                           .ops_open = no_ops_open,
                           .tostr = nullptr,
                           .ops_set = nullptr};

int register_memory(fid* of, std::uint64_t access, std::uint64_t key, void* context, fid_mr** region) {
  if (of->fclass != FI_CLASS_DOMAIN) return -FI_EINVAL;
  if (access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) {
    FI_WARN(&provider, FI_LOG_MR, "parc has no remote access to memory, and so none can be registered\n");
    return -FI_EOPNOTSUPP;
  }
  return guarded([&] {
    auto* const made = new MemoryRegion;
    made->fid = {.fclass = FI_CLASS_MR, .context = context, .ops = &region_object_calls};
    made->mem_desc = made;
    made->key = key;
    made->domain = &object_of_fid<Domain, fid_domain>(of);
    ++made->domain->users;
    *region = made;
    return 0;
  });
}

} // namespace

fi_ops_mr memory_calls{
    .size = sizeof(fi_ops_mr),
    .reg = [](fid* of, const void*, std::size_t, std::uint64_t access, std::uint64_t, std::uint64_t key,
              std::uint64_t, fid_mr** region,
              void* context) { return register_memory(of, access, key, context, region); },
    .regv = [](fid* of, const iovec*, std::size_t, std::uint64_t access, std::uint64_t, std::uint64_t key,
               std::uint64_t, fid_mr** region,
               void* context) { return register_memory(of, access, key, context, region); },
    .regattr =
        [](fid* of, const fi_mr_attr* attributes, std::uint64_t, fid_mr** region) {
          return register_memory(of, attributes->access, attributes->requested_key, attributes->context,
                                 region);
        },
};

} // namespace parc::fabric
