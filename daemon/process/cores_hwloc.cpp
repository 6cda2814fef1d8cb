// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/process/cores.hpp"

#include <hwloc.h>
#include <memory>

namespace parc::daemon {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, Destroy>;

// Cores and nothing else; not what the component x86 finds, which moves this thread to every processor.
Result<Topology> load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return system_error("cannot look for the cores of this host");
  Topology topology(raw);
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  if (hwloc_topology_load(raw) != 0) return system_error("cannot look for the cores of this host");
  return topology;
}

Processors processors_of(hwloc_const_bitmap_t bitmap) {
  Processors words(static_cast<std::size_t>(hwloc_bitmap_nr_ulongs(bitmap)));
  hwloc_bitmap_to_ulongs(bitmap, static_cast<unsigned>(words.size()), words.data());
  return words;
}

} // namespace

Result<std::vector<Processors>> own_cores() {
  PARC_TRY(topology, load_topology());
  const Bitmap ours(hwloc_bitmap_alloc()), both(hwloc_bitmap_alloc());
  if (!ours || !both || hwloc_get_cpubind(topology.get(), ours.get(), HWLOC_CPUBIND_THREAD) != 0)
    return system_error("cannot tell the processors of this process");
  // Where the system tells no cores, each processor is one.
  const bool has_cores = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  std::vector<Processors> cores;
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_by_type(topology.get(), type, core)) != nullptr) {
    hwloc_bitmap_and(both.get(), core->cpuset, ours.get());
    if (hwloc_bitmap_iszero(both.get()) == 0) cores.push_back(processors_of(both.get()));
  }
  return cores;
}

} // namespace parc::daemon
