// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/memory_region.hpp"

#include "fabric/domain.hpp"

#include <cstdlib>
#include <string_view>
#include <sys/random.h>
#include <utility>

namespace parc::fabric {
namespace {

constexpr std::uint64_t remote_access = FI_REMOTE_READ | FI_REMOTE_WRITE;

// Of memory that others may reach the key is a window's number; of any other nothing is to be known.
struct MemoryRegion final : Child<fid_mr, Domain> {
  using Child::Child;
  ~MemoryRegion() {
    (void)parent.session->registered_last.take(this);
    hide();
  }
  void hide() {
    if (std::exchange(exposed, false)) (void)parc_unexpose(parent.session->parc(), key);
  }
  bool exposed = false;
};

// Waits for gets are released early, and Open MPI has one rank on this host: of ranks of one host it reads
// the keys of a window that MPI_Win_attach has just made from memory that they share.
bool gets_are_released() {
  static const bool are = [] {
    const char* const level = std::getenv("PARC_EARLY_RELEASE");
    const char* const ranks_here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    return level != nullptr && std::string_view(level) != "off" && ranks_here != nullptr &&
           std::string_view(ranks_here) == "1";
  }();
  return are;
}

// Who knows the key may do what was asked for: peers are those of whatever endpoints there are.
int expose(MemoryRegion& region, const iovec& memory, std::uint64_t access) {
  const unsigned rights = ((access & FI_REMOTE_READ) != 0 ? PARC_MAY_GET : 0u) |
                          ((access & FI_REMOTE_WRITE) != 0 ? PARC_MAY_PUT : 0u) | PARC_MAY_ANYBODY;
  if (memory.iov_base == nullptr && memory.iov_len != 0)
    return -FI_EINVAL; // MPICH tries, for dynamic windows
  int code = PARC_EINVAL;
  while (code == PARC_EINVAL) { // the number may be in use
    if (getrandom(&region.key, sizeof region.key, 0) != sizeof region.key) return -FI_EAGAIN;
    code = parc_expose(region.parent.session->parc(), region.key, memory.iov_base, memory.iov_len, rights);
    if (memory.iov_base == nullptr) break;
  }
  region.exposed = code == PARC_OK;
  if (region.exposed && gets_are_released()) region.parent.session->registered_last.is(&region);
  if (region.exposed) return 0;
  return refused_aloud(Failing::memory, FI_LOG_MR, code);
}

int register_memory(fid* of, const iovec* pieces, std::size_t count, std::uint64_t access, std::uint64_t key,
                    void* context, fid_mr** region) {
  if (of->fclass != FI_CLASS_DOMAIN || (count != 1 && (access & remote_access) != 0)) return -FI_EINVAL;
  if ((access & remote_access) != 0 && !object_of<Domain>(of).remote) {
    FI_WARN(&provider, FI_LOG_MR, "a domain for messages has no memory that others reach\n");
    return -FI_EOPNOTSUPP;
  }
  const auto complete = [&](MemoryRegion& made) {
    made.mem_desc = &made;
    made.key = key;
    return (access & remote_access) != 0 ? expose(made, *pieces, access) : 0;
  };
  return open_object<MemoryRegion>(FI_CLASS_MR, context, region, complete, object_of<Domain>(of));
}

} // namespace

void will_get_into(KernelSession& session, void* descriptor) {
  if (descriptor != nullptr && session.registered_last.take(descriptor))
    static_cast<MemoryRegion*>(descriptor)->hide();
}

fi_ops_mr memory_calls{
    .size = sizeof(fi_ops_mr),
    .reg =
        [](fid* of, const void* memory, std::size_t length, std::uint64_t access, std::uint64_t,
           std::uint64_t key, std::uint64_t, fid_mr** region, void* context) {
          const iovec whole{const_cast<void*>(memory), length};
          return register_memory(of, &whole, 1, access, key, context, region);
        },
    .regv = [](fid* of, const iovec* pieces, std::size_t count, std::uint64_t access, std::uint64_t,
               std::uint64_t key, std::uint64_t, fid_mr** region,
               void* context) { return register_memory(of, pieces, count, access, key, context, region); },
    .regattr =
        [](fid* of, const fi_mr_attr* attributes, std::uint64_t, fid_mr** region) {
          return register_memory(of, attributes->mr_iov, attributes->iov_count, attributes->access,
                                 attributes->requested_key, attributes->context, region);
        },
};

} // namespace parc::fabric
