// SPDX-License-Identifier: BSD-3-Clause
// The walk over the system's table of segments.
#include "shm/leftovers.hpp"

#include "shm/layout.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <sys/shm.h>
#include <unistd.h>

namespace parc::shm {
namespace {

bool is_dead(pid_t process) {
  return kill(process, 0) != 0 && errno == ESRCH; // signal 0: only asks whether there is one
}

bool is_leftover(const shmid_ds& segment, std::chrono::seconds age) {
  const auto key = static_cast<std::uint32_t>(segment.shm_perm.__key);
  return (key & key_mask) == key_prefix && segment.shm_perm.uid == geteuid() && segment.shm_nattch == 0 &&
         is_dead(segment.shm_cpid) && std::time(nullptr) - segment.shm_ctime >= age.count();
}

} // namespace

Result<unsigned> remove_leftovers(std::chrono::seconds age) {
  shm_info info{};
  const int last = shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&info));
  if (last < 0) return system_error("cannot read the table of shared-memory segments");
  unsigned removed = 0;
  for (int index = 0; index <= last; ++index) {
    shmid_ds segment{};
    const int id = shmctl(index, SHM_STAT, &segment);
    if (id < 0 || !is_leftover(segment, age)) continue; // a free place, or somebody else's
    if (shmctl(id, IPC_RMID, nullptr) == 0) ++removed;
  }
  return removed;
}

} // namespace parc::shm
