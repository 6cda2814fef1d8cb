// SPDX-License-Identifier: BSD-3-Clause
// What other hosts find: parc doctor is run on each by ssh, and tries the way back to us.
#pragma once

#include "tools/parc/doctor/doctor_hosts.hpp"
#include "tools/parc/hosts/start_hosts.hpp"

#include <chrono>

namespace parc::tools::diagnosis {

using WallClock = std::chrono::system_clock;

// That of a wall clock, for messages: seconds since 1970.
[[nodiscard]] double seconds_of(WallClock::time_point time);

struct Versions {
  std::string parc;
  unsigned wire = 0;
  bool operator==(const Versions&) const = default;
};
[[nodiscard]] Versions our_versions();

struct FarAnswer {
  std::string host;
  double asked = 0, answered = 0; // by our clock
  std::string output;             // what parc doctor --json printed there
  std::string why;                // nothing was printed
};

// `prefixes`: where parc is installed there. `back`: NAME=ADDRESS:PORT of our kernel, as each host may reach
// it; empty: there is none to be reached.
[[nodiscard]] std::vector<FarAnswer> ask_hosts(const std::string& ssh, const std::vector<Reach>& hosts,
                                               Prefixes prefixes, const std::vector<std::string>& back);

// Hosts that no setting and no link names lie where ssh finds them, as for parc up.
void find_by_ssh(const std::string& ssh, const Settings& settings, std::vector<Target>& targets);

// Findings about that host, the way back first; `self` is our name.
[[nodiscard]] Findings check_far(const FarAnswer& answer, const Versions& ours, const std::string& self);

} // namespace parc::tools::diagnosis
