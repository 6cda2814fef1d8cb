// SPDX-License-Identifier: BSD-3-Clause
// The namespaces that hold an emulation together. Invariant: everything made here is anonymous and lives in
// the mount and process namespaces of the relay, so the end of the relay, however it comes, is the end of all
// of it.
#pragma once

#include "system/error.hpp"
#include "tools/wanlink/device.hpp"
#include "tools/wanlink/emulation.hpp"

#include <string>
#include <vector>

namespace parc::wanlink {

// The next child of the caller starts a process namespace; without root everything is in a user namespace,
// where the caller keeps its uid. Where the system allows neither, the error says what to enable.
[[nodiscard]] Result<void> isolate_children();

// In that child: a private mount namespace with its own /proc and the directory of the emulation.
[[nodiscard]] Result<void> isolate_mounts(const Paths& paths);

struct Host {
  std::string name;
  unsigned number; // from 1
  Device device;
};

// Makes the hosts; the caller is back in its own namespaces afterwards.
[[nodiscard]] Result<std::vector<Host>> make_hosts(const Paths& paths, const std::vector<std::string>& names,
                                                   const std::string& congestion_control);

// What the caller starts may enter the hosts, in a user namespace too.
[[nodiscard]] Result<void> let_children_enter_hosts();

// Moves the calling process onto the host: network, host name, System V objects, /etc/hosts, /dev/shm,
// environment.
[[nodiscard]] Result<void> enter_host(const Paths& paths, const std::string& name);

} // namespace parc::wanlink
