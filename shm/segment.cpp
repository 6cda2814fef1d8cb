// SPDX-License-Identifier: BSD-3-Clause
// Creating and attaching segments. Boost attaches and detaches; keys are ours, because `parc clean` finds
// leftovers by them, and the mark for removal follows the attach at once: only a kill between the two leaves
// a segment behind (shm/leftovers.hpp removes it).
#include "shm/segment.hpp"

#include "shm/layout.hpp"

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/xsi_shared_memory.hpp>
#include <cerrno>
#include <fstream>
#include <sys/ipc.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <unistd.h>

namespace parc::shm {
namespace {

constexpr int owner_only = 0600;
constexpr int key_attempts = 1000; // of 2^24 keys; a used one is drawn again

Result<key_t> draw_key() {
  std::uint32_t bits = 0;
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) return system_error("cannot draw a segment's key");
  return static_cast<key_t>(key_prefix | (bits & ~key_mask));
}

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
  for (int attempt = 0; attempt < key_attempts; ++attempt) {
    PARC_TRY(key, draw_key());
    const int id = shmget(key, bytes, IPC_CREAT | IPC_EXCL | owner_only | flags);
    if (id >= 0) return id;
    if (errno != EEXIST) return creation_error(errno, bytes);
  }
  return error(EEXIST, "cannot create a shared-memory segment: {} keys were all in use; run parc clean",
               key_attempts);
}

} // namespace

Result<Segment> Segment::attach_checked(int id) {
  namespace ipc = boost::interprocess;
  try {
    Segment segment;
    const ipc::xsi_shared_memory memory(ipc::open_only, id);
    segment.region_ = ipc::mapped_region(memory, ipc::read_write);
    segment.id_ = id;
    return segment;
  } catch (const ipc::interprocess_exception& failure) {
    errno = failure.get_native_error();
    return system_error("cannot attach shared-memory segment {}", id);
  }
}

Result<Segment> Segment::create(std::size_t bytes) {
  return create(bytes, 0);
}

Result<Segment> Segment::create_sparse(std::size_t bytes) {
  return create(bytes, SHM_NORESERVE);
}

Result<Segment> Segment::create(std::size_t bytes, int flags) {
  PARC_TRY(id, create_unattached(bytes, flags));
  auto segment = attach_checked(id);
  shmctl(id, IPC_RMID, nullptr); // our own: cannot fail
  return segment;
}

Result<Segment> Segment::attach(int id, std::size_t bytes) {
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
  return attach_checked(id);
}

} // namespace parc::shm
