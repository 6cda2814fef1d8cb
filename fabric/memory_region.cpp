// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/memory_region.hpp"

#include "fabric/domain.hpp"

namespace parc::fabric {
namespace {

struct MemoryRegion final : Child<fid_mr, Domain> {
  using Child::Child;
};

int register_memory(fid* of, std::uint64_t access, std::uint64_t key, void* context, fid_mr** region) {
  if (of->fclass != FI_CLASS_DOMAIN) return -FI_EINVAL;
  if (access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) {
    FI_WARN(&provider, FI_LOG_MR, "parc has no remote access to memory, and so none can be registered\n");
    return -FI_EOPNOTSUPP;
  }
  const auto complete = [&](MemoryRegion& made) {
    made.mem_desc = &made;
    made.key = key;
    return 0;
  };
  return open_object<MemoryRegion>(FI_CLASS_MR, context, region, complete, object_of<Domain>(of));
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
