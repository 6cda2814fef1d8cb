// SPDX-License-Identifier: BSD-3-Clause
// Where an emulation lives in the file system. A private tmpfs covers /dev/shm in the mount namespace of
// `wanlink run`, so nothing outside sees it and nothing of it outlives the last process inside:
//
//   /dev/shm/wanlink/            WANLINK_DIR
//     control                    socket of the relay (control.hpp)
//     config/parc/key            the key that all hosts share; XDG_CONFIG_HOME is config
//     etc-hosts                  covers /etc/hosts on every host
//     hosts/NAME/ns/net,uts,ipc  the host's namespaces, kept alive by these bind mounts
//     hosts/NAME/run             XDG_RUNTIME_DIR of the host, 0700; PARC_RUNTIME_DIR is run/parc
//     hosts/NAME/shm             /dev/shm of the host
#pragma once

#include "system/error.hpp"

#include <string>
#include <vector>

namespace parc::wanlink {

inline constexpr char shm_mount[] = "/dev/shm";
inline constexpr char default_dir[] = "/dev/shm/wanlink";
inline constexpr char dir_variable[] = "WANLINK_DIR";

struct Paths {
  std::string dir = default_dir;

  [[nodiscard]] std::string control() const { return dir + "/control"; }
  [[nodiscard]] std::string config() const { return dir + "/config"; }
  [[nodiscard]] std::string etc_hosts() const { return dir + "/etc-hosts"; }
  [[nodiscard]] std::string hosts() const { return dir + "/hosts"; }
  [[nodiscard]] std::string host(const std::string& name) const { return hosts() + "/" + name; }
  [[nodiscard]] std::string ns(const std::string& name) const { return host(name) + "/ns"; }
  [[nodiscard]] std::string run(const std::string& name) const { return host(name) + "/run"; }
  [[nodiscard]] std::string shm(const std::string& name) const { return host(name) + "/shm"; }
};

// The emulation that the caller is in (WANLINK_DIR), or why there is none.
[[nodiscard]] Result<Paths> present_emulation();
// An error that names the hosts there are, unless `name` is one of them.
[[nodiscard]] Result<void> check_host(const Paths& paths, const std::string& name);

} // namespace parc::wanlink
