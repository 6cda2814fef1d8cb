// SPDX-License-Identifier: BSD-3-Clause
// Where benches run: on the hosts of an emulation that the bench starts itself in, or on loopback. Everything
// that a bench starts ends with it.
#pragma once

#include "bench/figures/figures.hpp"
#include "bench/heat/hosts.hpp"
#include "bench/heat/process.hpp"

#include <chrono>
#include <string_view>

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

// Inside `wanlink run --preset PRESET` it returns at once; outside, this process becomes that, with the same
// program and arguments in it.
[[nodiscard]] Result<void> enter_emulation(std::string_view preset, char** arguments, std::size_t hosts = 2);

// Two hosts on loopback. Only one bench at a time may be on it; what a killed one left there the next
// removes.
[[nodiscard]] Result<Hosts> loopback_hosts();

// The standard output of a command that succeeds.
[[nodiscard]] Result<std::string> output_of(const Command& command,
                                            std::chrono::seconds patience = std::chrono::seconds(300));
// The same of several that run together, one after the other, without what a bench prints for people.
[[nodiscard]] Result<std::string> output_of_all(std::span<const Command> commands,
                                                std::chrono::seconds patience = std::chrono::seconds(300));

// `parc run` of this program as a job of `ranks` ranks, from the first host; `slots` as "a:1,b:1".
[[nodiscard]] Command job(const Hosts& hosts, int ranks, const std::string& slots, const Command& words);

[[nodiscard]] Result<Network> network_of(const Hosts& hosts);

// The end of a bench's main, which begins with open_standard_streams(): 1 and a sentence where nothing could
// be measured, or the table could not be written.
[[nodiscard]] int end(const char* bench, const Result<void>& result);

} // namespace parc::bench
