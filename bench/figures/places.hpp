// SPDX-License-Identifier: BSD-3-Clause
// What benches start on hosts. All of it ends with the bench.
#pragma once

#include "bench/figures/figures.hpp"
#include "bench/heat/hosts.hpp"
#include "bench/heat/process.hpp"

#include <chrono>

namespace parc::bench {

using heat::demo::catch_interrupts;
using heat::demo::Child;
using heat::demo::Clock;
using heat::demo::Command;
using heat::demo::Hosts;
using heat::demo::Kernels;
using heat::demo::program;
using heat::demo::run_together;

// This program, for starting it over in another role.
[[nodiscard]] std::string self_path();
[[nodiscard]] double seconds_now();

// The standard output of a command that succeeds.
[[nodiscard]] Result<std::string> output_of(const Command& command,
                                            std::chrono::seconds patience = std::chrono::seconds(300));
// The same of several that run together, one after the other, without what a bench prints for people.
[[nodiscard]] Result<std::string> output_of_all(std::span<const Command> commands,
                                                std::chrono::seconds patience = std::chrono::seconds(300));

// `parc run` of this program as a job of `ranks` ranks, from the first host; `slots` as "a:1,b:1".
[[nodiscard]] Command job(const Hosts& hosts, int ranks, const std::string& slots, const Command& words);

[[nodiscard]] Result<Network> network_of(const Hosts& hosts);

} // namespace parc::bench
