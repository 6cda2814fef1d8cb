// SPDX-License-Identifier: BSD-3-Clause
#include "control/kernel_messages.hpp"

namespace parc::control::kernel {
namespace {

// As Kind.
constexpr std::array<std::string_view, kinds> names{
    "prepare",      "prepared",    "start",       "failed",         "output",        "taken",
    "input",        "input_taken", "departed",    "exited",         "ended",         "abort",
    "parted",       "stopping",    "started",     "spawn",          "signal",        "mpi_job",
    "end",          "kill",        "finish",      "spawn_prepared", "spawn_known",   "spawn_started",
    "spawn_failed", "spawn_exit",  "end_spawned", "signal_rank",    "join",          "unjoin",
    "joined",       "formed",      "go",          "join_refused",   "signal_joined", "mpi_begins",
    "look",         "seen",        "question",    "answer",         "kill_job",      "relay_open",
    "relay_opened", "relay_bytes", "relay_taken", "relay_close",    "ping",          "pong",
    "streams"};

} // namespace

std::string_view name(Kind kind) {
  return names[static_cast<std::size_t>(kind)];
}

std::optional<Kind> kind_named(std::string_view name) {
  return kind_among<Kind>(names, name);
}

} // namespace parc::control::kernel
