// SPDX-License-Identifier: BSD-3-Clause
// Kernels of other hosts, started by this host's user: for parc up, and for parc run where one is missing.
#pragma once

#include "control/host_answer.hpp"
#include "jobs/launcher.hpp"
#include "system/error.hpp"
#include "tools/parc/hosts/hosts.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace parc::tools {

struct StartedHost {
  std::string host;
  std::string address = {}; // where its launcher finds it
  std::uint16_t port = 0;
  std::string prefix = {};                    // parc is installed there; empty: where it is here, or in PATH
  std::string link_socket = {};               // of its kernel, for who comes through ssh
  std::string way = {};                       // how this host's kernel reaches it
  std::string says = {};                      // where it listens, and its version
  std::string why = {};                       // it is not up
  std::vector<control::HostTried> tried = {}; // which others its kernel reaches
  std::string not_tried = {};                 // why it has not said
  bool ran = false;                           // its kernel, before it was to be started
  bool reachable = true; // false: its kernel runs or did, but not where this host could connect to it
  [[nodiscard]] bool up() const { return why.empty(); }
};

// As [hosts] says, to the kernel of this host, if it runs.
[[nodiscard]] Result<Prefixes> prefixes_of_settings(const std::string& runtime_dir);

// All at the same time; a kernel that runs already stays as it is. Those that are up are known to this host's
// kernel, and connected; one that was started and cannot be reached is ended again. Who does not answer
// within `patience` is not up. `prefixes` go before what [hosts] says; `options` are parcd's: of the kernel
// of this host, too, where that has to be started; `pairs`: whether they reach each other is looked at, too.
struct Child;

[[nodiscard]] Result<std::vector<StartedHost>> start_hosts(const std::vector<std::string>& hosts,
                                                           const Launcher& launcher,
                                                           const std::string& runtime_dir, Prefixes prefixes,
                                                           const std::vector<std::string>& options,
                                                           std::chrono::milliseconds patience, bool pairs);

// It is this one, and needs no launcher, which might have no way from a host to itself.
[[nodiscard]] bool is_this_host(const Launcher& launcher, const std::string& host);

// What ends the kernel of this host, and of one where parc is installed there.
[[nodiscard]] std::vector<std::string> words_of_stop(const std::string& runtime_dir);
[[nodiscard]] std::vector<std::string> words_of_stop_at(const std::string& prefix);
// What to look at, behind the sentence of one whose launcher did not get there; empty: it did.
[[nodiscard]] std::string way_there(const Launcher& launcher, const std::string& host, const Child& child);

} // namespace parc::tools
