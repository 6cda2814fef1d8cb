// SPDX-License-Identifier: BSD-3-Clause
// What the system allows this process, and what to tell a person when that is used up.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace parc {

// A kernel with less could not even start a job of a few ranks.
inline constexpr std::size_t least_descriptors = 64;

// The soft limit becomes the hard one. Programs that this process starts inherit that: give them their own.
void raise_descriptor_limit();

[[nodiscard]] std::size_t descriptor_limit(); // the soft one
[[nodiscard]] std::size_t descriptors_open();

// What belongs behind the error of a call that failed for want of a descriptor; empty for any other code.
[[nodiscard]] std::string descriptor_advice(int code);

// The same for a process or thread.
inline constexpr std::string_view process_advice =
    "; allow parcd more processes (ulimit -u, or TasksMax= in its systemd unit)";

} // namespace parc
