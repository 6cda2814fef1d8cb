// SPDX-License-Identifier: BSD-3-Clause
// The environment variables of parc, each with who sets it and who reads it; what is in them for users stands
// in man/. Each setting of parcd has one besides, named after its key (daemon/settings/options.cpp), and
// libparc-fi.so, which uses parc.h alone, PARC_FABRIC.
#pragma once

namespace parc {

// ---- Where kernels are. Users set them.

// Where the kernel of this host is found: read by all of parc (system/runtime_dir.hpp). parcd sets it for its
// ranks, by which its successor finds those that outlived it; wanlink for each host.
inline constexpr const char* env_runtime_dir = "PARC_RUNTIME_DIR";
// Whether who finds no kernel may start one: read by libparc and tools (system/start_kernel.hpp). parc probe
// sets it for the ranks that it starts.
inline constexpr const char* env_autostart = "PARC_AUTOSTART";
// How to get to another host: read by the commands of parc that start kernels there, and by parcd, which
// reaches some through it.
inline constexpr const char* env_ssh = "PARC_SSH";

// ---- Which rank a process is. parcd sets them for the ranks that it starts; without it, users do for those
// of a job that is joined. Read by programs, and by libparc where there is no PARC_KERNEL.

inline constexpr const char* env_rank = "PARC_RANK";
inline constexpr const char* env_size = "PARC_SIZE";
inline constexpr const char* env_job = "PARC_JOB"; // parcd: its number; users: NAME@HOST
// Set by users alone: the first rank of those that one launcher starts.
inline constexpr const char* env_first_rank = "PARC_FIRST_RANK";
// Set by parcd alone, and read by programs: its number among the ranks of its host.
inline constexpr const char* env_local_rank = "PARC_LOCAL_RANK";

// ---- What a rank's libparc and its kernel agree on. parcd sets them for the ranks that it starts.

// "READ,WRITE", each the number of a descriptor and the inode of its pipe ("20:4711"): read by libparc, which
// removes it, as a program that this one starts is no rank.
inline constexpr const char* env_pipes = "PARC_PIPES";
// The hosts of all ranks: read by libparc (control/words/host_words.hpp).
inline constexpr const char* env_hosts = "PARC_HOSTS";
// The address of the program that has spawned it (parc_spawn), as parc_address_of says it: read by libparc.
inline constexpr const char* env_parent = "PARC_PARENT";
// "PID:STARTTIME" of the kernel, which what a rank starts inherits: read by parcd and parc clean, which end
// what outlived it (system/orphans.hpp), and by libparc.
inline constexpr const char* env_kernel = "PARC_KERNEL";

// ---- What parcd tells the PMIx server of its host (pmix/), besides which rank it is.

inline constexpr const char* env_mpi_apps =
    "PARC_MPI_APPS"; // where it has several programs: their first ranks
inline constexpr const char* env_mpi_ranks = "PARC_MPI_RANKS"; // how many its job has, and their hosts, as in
inline constexpr const char* env_mpi_hosts = "PARC_MPI_HOSTS"; // PARC_HOSTS, which are the servers' own
inline constexpr const char* env_mpi_directory = "PARC_MPI_DIRECTORY"; // for files

// What the provider sets the ranks' timer slack back to, in ns, where parcd has started them with more.
inline constexpr const char* env_timer_slack = "PARC_TIMER_SLACK";

// ---- What ranks are to do besides. Users set them, or parc run and parc mpi by their options.

// "off", "envelope" or "full": read by libparc, and by parcd, which then preloads libparc-early.so.
inline constexpr const char* env_early_release = "PARC_EARLY_RELEASE";
// In what parc run asks for: anything. From parcd to a rank: the descriptor of its pipe (as in PARC_PIPES),
// or, where another launcher than parc run started it, from parc mpi: the directory for its file,
// WORLD.RANK.RANKS. Read by parcd and libparc, which removes it.
inline constexpr const char* env_trace = "PARC_TRACE";
// Anything: a trace tells of the first touch of each page, too; "unreleased": of a program none of whose
// waits is released early. Read by libparc.
inline constexpr const char* env_trace_pages = "PARC_TRACE_PAGES";
inline constexpr const char* trace_pages_unreleased = "unreleased";

} // namespace parc
