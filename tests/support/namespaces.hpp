// SPDX-License-Identifier: BSD-3-Clause
// A test in namespaces of its own: what it leaves or changes there ends with it.
#pragma once

#include <fstream>
#include <sched.h>
#include <string>
#include <sys/shm.h>
#include <unistd.h>

namespace parc::test {

// As root, or in a user namespace in which our own user keeps its number. False, with errno: this system
// allows neither.
[[nodiscard]] inline bool enter_namespaces(int kinds) {
  if (unshare(kinds) == 0) return true;
  const auto write = [](const char* path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    return file.good();
  };
  const auto mapping = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  const std::string user = mapping(getuid()), group = mapping(getgid());
  return unshare(CLONE_NEWUSER | kinds) == 0 && write("/proc/self/uid_map", user) &&
         write("/proc/self/setgroups", "deny") && write("/proc/self/gid_map", group);
}

// System V segments of this IPC namespace.
[[nodiscard]] inline int segments() {
  shm_info info{};
  shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&info));
  return info.used_ids;
}

} // namespace parc::test
