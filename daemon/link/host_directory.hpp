// SPDX-License-Identifier: BSD-3-Clause
// What hosts are called, and where they are: by [hosts], by what somebody has found out since that was read,
// and by which kernel answered to a name.
//
// Invariant: what another kernel says of a third never goes before [hosts].
#pragma once

#include "daemon/settings/config.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace parc::daemon {

class HostDirectory {
public:
  explicit HostDirectory(const Config& config) : config_(config) {} // which may change: forget()

  // Where a host is now; the kernel under that name may be another one than before. There is room for some
  // thousands; false: this one has none.
  bool learn(const std::string& host, HostAddress address);
  void answered(const std::string& host, std::uint64_t identity) { identities_[host] = identity; }
  void forget(); // all but [hosts]

  [[nodiscard]] bool is_this_host(const std::string& host) const;
  [[nodiscard]] bool is_configured(const std::string& host) const { return config_.hosts.contains(host); }
  [[nodiscard]] std::optional<std::string> configured_as(std::uint32_t tag) const; // name_tag() of its name
  [[nodiscard]] HostAddress address_of(const std::string& host) const;
  [[nodiscard]] SshAddress configured_ssh(const std::string& host) const; // .host is empty: none
  [[nodiscard]] std::optional<std::uint64_t> identity_of(const std::string& host) const;
  // Whether this kernel may dial it, as [hosts] says; else it waits until that one dials.
  [[nodiscard]] bool may_dial(const std::string& host) const;
  [[nodiscard]] bool may_dial() const; // anybody
  // Which kernel that name means is yet to be seen, though a link to one that calls itself so is up.
  [[nodiscard]] bool is_undecided(const std::string& host) const;
  [[nodiscard]] std::vector<std::string> names() const; // this host's among them
  // Names that somebody has found out, by the kernel that answered to them.
  [[nodiscard]] std::map<std::uint64_t, std::vector<std::string>> learned_names() const;

private:
  const Config& config_;
  std::map<std::string, HostAddress> learned_;
  std::map<std::string, std::uint64_t> identities_;
};

} // namespace parc::daemon
