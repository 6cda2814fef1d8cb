// SPDX-License-Identifier: BSD-3-Clause
// Who and where this process is: the host's name, unpredictable numbers, the user's directories, the start
// times that tell a process from a later one with the same number.
#pragma once

#include "system/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace parc {

// gethostname up to the first dot: the name that other hosts use in --hosts and [hosts].
[[nodiscard]] std::string short_host_name();
// On every host, whatever that is called: "localhost", and the numbers behind it.
[[nodiscard]] bool means_this_host(std::string_view name);

// From the system's generator. Does not block after boot and cannot fail on a Linux that parc supports; ends
// the process where it does, because a key or an identity that can be guessed must not exist.
void fill_random(std::span<std::byte> bytes);
[[nodiscard]] std::uint64_t random_number();

// $XDG_CONFIG_HOME or ~/.config; $XDG_STATE_HOME or ~/.local/state. Made by nobody here; the error says that
// the user has no home directory.
[[nodiscard]] Result<std::string> user_config_dir();
[[nodiscard]] Result<std::string> user_state_dir();

// Of the file that this process runs; empty where the system does not say.
[[nodiscard]] std::string path_of_this_program();

// mkdir -p with mode 0700 for what is missing.
[[nodiscard]] Result<void> make_directories(const std::string& path);

// When a process started, in clock ticks since boot, the same in all time namespaces; 0 when there is no such
// process, or it has ended and waits for its parent to notice (a zombie).
[[nodiscard]] std::uint64_t process_start_time(pid_t pid);

// By a signal (SIGSTOP, ^Z) or a debugger: it lives, and does nothing.
[[nodiscard]] bool is_stopped(pid_t pid);

// The name of its program, cut after 15 characters; empty when there is no such process. Never waits for it,
// as a look at its arguments may.
[[nodiscard]] std::string program_of(pid_t pid);

} // namespace parc
