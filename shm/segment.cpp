// SPDX-License-Identifier: BSD-3-Clause
// Creating and attaching segments. Boost attaches and detaches; keys are ours, because leftovers are known by
// them. Invariant: until a segment is marked for removal, which follows the attach at once, nobody touches
// its memory. So what a kill leaves behind has not a single page (shm/leftovers.hpp).
#include "shm/segment.hpp"

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/xsi_shared_memory.hpp>
#include <cerrno>
#include <fstream>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <unistd.h>

namespace parc::shm {
namespace {

constexpr int owner_only = 0600;

std::string limit(const char* name) {
  std::string value = "unknown";
  std::ifstream(fmt::format("/proc/sys/kernel/{}", name)) >> value;
  return value;
}

// Why shmget failed, and what to do about it.
Error creation_error(int code, std::size_t bytes) {
  const std::string tried = fmt::format("cannot create a shared-memory segment of {} bytes", bytes);
  if (code == ENOSPC) {
    shm_info used{};
    shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&used));
    const std::string ids = limit("shmmni");
    if (std::to_string(used.used_ids) == ids)
      return error(
          code,
          "{}: all {} segments of this system are taken (/proc/sys/kernel/shmmni); run parc clean, look "
          "with ipcs -m for others that nobody uses, or raise it: sysctl kernel.shmmni=16384",
          tried, ids);
    return error(code,
                 "{}: System V shared memory is at its limit of {} pages (/proc/sys/kernel/shmall); run parc "
                 "clean, or raise it with sysctl kernel.shmall",
                 tried, limit("shmall"));
  }
  if (code == ENOMEM)
    return error(code, "{}: the system has no memory for it; use smaller buffers or fewer ranks on this host",
                 tried);
  if (code == EINVAL)
    return error(code, "{}: a segment may have {} bytes (/proc/sys/kernel/shmmax); raise it with sysctl",
                 tried, limit("shmmax"));
  errno = code;
  return system_error("{}", tried);
}

Result<int> create_unattached(std::size_t bytes, int flags) {
  for (std::uint32_t number = 0; number < keys_of_process; ++number) {
    const auto key = static_cast<key_t>(key_of(getpid(), number));
    if (key == IPC_PRIVATE) continue;
    const int id = shmget(key, bytes, IPC_CREAT | IPC_EXCL | owner_only | flags);
    if (id >= 0) return id;
    if (errno != EEXIST) return creation_error(errno, bytes); // by another thread, or left by a dead process
  }
  return error(
      EEXIST, "cannot create a shared-memory segment: all {} keys of this process are in use; run parc clean",
      keys_of_process);
}

} // namespace

std::size_t most_segments() {
  std::size_t most = SIZE_MAX;
  std::ifstream("/proc/sys/kernel/shmmni") >> most;
  return most == 0 ? SIZE_MAX : most;
}

Result<Segment> Segment::attach_checked(int id, For what) {
  namespace ipc = boost::interprocess;
  try {
    Segment segment;
    const ipc::xsi_shared_memory memory(ipc::open_only, id);
    segment.region_ = ipc::mapped_region(memory, what == For::reading ? ipc::read_only : ipc::read_write);
    segment.id_ = id;
    return segment;
  } catch (const ipc::interprocess_exception& failure) {
    errno = failure.get_native_error();
    return system_error("cannot attach shared-memory segment {}", id);
  }
}

pid_t Segment::maker(int id) {
  shmid_ds about{};
  return shmctl(id, IPC_STAT, &about) == 0 ? about.shm_cpid : 0;
}

std::size_t Segment::attachments(int id) {
  shmid_ds about{};
  return shmctl(id, IPC_STAT, &about) == 0 ? about.shm_nattch : 0;
}

Result<Segment> Segment::create(std::size_t bytes) {
  return create(bytes, 0);
}

Result<Segment> Segment::create_sparse(std::size_t bytes) {
  return create(bytes, SHM_NORESERVE);
}

Result<Segment> Segment::create(std::size_t bytes, int flags) {
  PARC_TRY(id, create_unattached(bytes, flags));
  auto segment = attach_checked(id, For::writing);
  shmctl(id, IPC_RMID, nullptr); // our own: cannot fail
  return segment;
}

Result<Segment> Segment::attach(int id, std::size_t bytes) {
  return attach(id, bytes, For::writing);
}

Result<Segment> Segment::attach_to_read(int id, std::size_t bytes) {
  return attach(id, bytes, For::reading);
}

Result<Segment> Segment::attach(int id, std::size_t bytes, For what) {
  shmid_ds status{};
  if (shmctl(id, IPC_STAT, &status) != 0) return system_error("cannot look at shared-memory segment {}", id);
  const auto& owner = status.shm_perm;
  if (owner.uid != geteuid() || owner.cuid != geteuid())
    return error(EACCES, "shared-memory segment {} belongs to user {}, not to us (user {})", id, owner.uid,
                 geteuid());
  if ((owner.mode & 0777) != owner_only)
    return error(EACCES, "shared-memory segment {} has mode {:04o} and must have 0600", id,
                 owner.mode & 0777);
  if (status.shm_segsz < bytes)
    return error(EINVAL, "shared-memory segment {} has {} bytes, not {}", id, status.shm_segsz, bytes);
  return attach_checked(id, what);
}

} // namespace parc::shm
