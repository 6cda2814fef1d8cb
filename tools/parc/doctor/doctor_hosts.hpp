// SPDX-License-Identifier: BSD-3-Clause
// Whether this host reaches the kernels of others: a connection to each port, all at the same time. Nothing
// is said on it, so a kernel there counts it as a stranger that hangs up.
#pragma once

#include "tools/parc/doctor/doctor.hpp"
#include "tools/parc/doctor/doctor_facts.hpp"
#include "tools/parc/hosts/pairs.hpp"

#include <chrono>

namespace parc::tools::diagnosis {

inline constexpr std::uint16_t default_port = 7272;

struct Target {
  std::string host;
  std::string address; // numeric or a name
  std::uint16_t port = 0;
  bool named = true; // to us, or in [hosts]; false: only the running kernel knows it, and where it is
  // Of its link of the running kernel:
  bool linked = false, reconnecting = false;
  LinkWay way = LinkWay::Direct;
  bool encrypted = true;
  std::uint64_t rtt_us = 0; // 0: it has not been measured yet
};

// "NAME=ADDRESS:PORT", where the port may be missing, and an IPv6 address stands in brackets.
[[nodiscard]] Result<Target> parse_target(const std::string& text);
[[nodiscard]] std::string place_of(const std::string& address, std::uint16_t port);

// Those of the settings, or only `named` ones where there are any, and `at` in place of what settings say of
// them; and the running kernel's links. Not this host itself.
[[nodiscard]] std::vector<Target> find_targets(const Settings& settings,
                                               const std::optional<CounterSnapshot>& counters,
                                               const std::vector<std::string>& named,
                                               const std::vector<Target>& at);

struct Reach {
  Target target;
  std::string unresolved;    // why its name is none
  std::string place;         // its numeric address and port
  std::string from;          // our own address on the way there
  bool is_here = false;      // a name that stands for loopback
  std::uint64_t rtt_us = 0;  // of the connection
  std::optional<int> failed; // errno; ETIMEDOUT: nobody answered. None: connected
};
[[nodiscard]] std::vector<Reach> reach(const std::vector<Target>& targets,
                                       std::chrono::milliseconds patience);

[[nodiscard]] Path longest_path(const std::vector<Reach>& reaches);
[[nodiscard]] Finding check_reach(const Reach& reach);
// Of those that are not this host; none: there is no pair, or nobody was asked.
[[nodiscard]] Findings check_pairs(const Pairs& pairs);
// Whether others can reach us at all; `others` are not on loopback.
[[nodiscard]] Finding check_listening(const Settings& settings, const std::vector<Reach>& others);

} // namespace parc::tools::diagnosis
