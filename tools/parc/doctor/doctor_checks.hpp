// SPDX-License-Identifier: BSD-3-Clause
// The checks of parc doctor that are about this host alone.
#pragma once

#include "tools/parc/doctor/doctor.hpp"
#include "tools/parc/doctor/doctor_facts.hpp"

namespace parc::tools::diagnosis {

// Whose limits count: those of the kernel that runs, else ours, which one that we start would have.
struct Who {
  User user;
  ProcessFacts process;
  bool is_kernel = false;
};

[[nodiscard]] Findings check_segments(const LimitFacts& facts, std::size_t cores);
[[nodiscard]] Findings check_process_limits(const LimitFacts& facts, const Who& who);
// `scheduling`: the class that the running kernel has got, in its words; empty: none runs. `ranks`: here.
[[nodiscard]] Finding check_realtime(const Who& who, const std::string& policy,
                                     const std::string& scheduling);
[[nodiscard]] Findings check_cores(const LimitFacts& facts, const Who& who, std::size_t ranks);

[[nodiscard]] Findings check_tcp(const TcpFacts& facts, const Settings& settings, const Path& path,
                                 const User& user);

// `kernel` is known where one runs that we can see.
[[nodiscard]] Findings check_logout(const SessionFacts& facts, const User& user, const ProcessFacts& kernel,
                                    const std::string& runtime_dir);
[[nodiscard]] Findings check_isolation(const SessionFacts& facts, const User& user, const ProcessFacts& self,
                                       const ProcessFacts& kernel, const Settings& settings);

[[nodiscard]] Findings check_kernel(const KernelFacts& facts, const ProcessFacts& process);
[[nodiscard]] Findings check_settings(const SettingsFacts& facts, const KeyFacts& key, const User& user);

} // namespace parc::tools::diagnosis
