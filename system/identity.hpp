// SPDX-License-Identifier: BSD-3-Clause
// Who and where this process is: the host's name, unpredictable numbers, the user's directories, the start
// times that tell a process from a later one with the same number.
#pragma once

#include "system/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace parc {

// Identities of the kernels that ran in a kernel's place before it, the latest first; 0: none.
using Predecessors = std::array<std::uint64_t, 16>;

// This host's name, gethostname up to the first dot: what other hosts use in --hosts and [hosts].
[[nodiscard]] std::string short_host_name();
// Whether `name` means this host, whatever host that is: localhost, 127.0.0.1 or ::1.
[[nodiscard]] bool means_this_host(std::string_view name);

// Random bytes of the system's generator. It does not block after boot and cannot fail on a Linux that parc
// supports; where it does, the process aborts, because a key or an identity that can be guessed must not
// exist.
void fill_random(std::span<std::byte> bytes);
[[nodiscard]] std::uint64_t random_number();

// The user's directories: $XDG_CONFIG_HOME or ~/.config, and $XDG_STATE_HOME or ~/.local/state. They are not
// made here. An error: the user has no home directory.
[[nodiscard]] Result<std::string> user_config_dir();
[[nodiscard]] Result<std::string> user_state_dir();

// The path of the executable that this process runs; empty where the system does not say.
[[nodiscard]] std::string path_of_this_program();

// Makes a directory and its missing parents, each with mode 0700, as mkdir -p does.
[[nodiscard]] Result<void> make_directories(const std::string& path);

// When a process started, in clock ticks since boot, the same in all time namespaces; 0 when there is no such
// process, or it has ended and waits for its parent to notice (a zombie).
[[nodiscard]] std::uint64_t process_start_time(pid_t pid);

// Whether a process is stopped by a signal (SIGSTOP, ^Z) or a debugger: it lives, and does nothing.
[[nodiscard]] bool is_stopped(pid_t pid);

// The name of a process's program, cut after 15 characters; empty when there is no such process. Never waits
// for the process, as a look at its arguments may.
[[nodiscard]] std::string program_of(pid_t pid);

} // namespace parc
