// SPDX-License-Identifier: BSD-3-Clause
// What processes do that bench-paper starts, each a role of this program: they measure, and print their
// figures as one line of JSON. Of two sides it is the first, which begins and ends each round; the other one
// has no figures.
#pragma once

#include "bench/figures/sockets.hpp"
#include "system/error.hpp"

#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace parc::bench {

using Figures = std::map<std::string, double>; // seconds, but where a role says otherwise
using Sizes = std::vector<std::size_t>;

// What is measured, known to those who measure and to those who make rows of it.
inline const Sizes network_sizes = {8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
inline const Sizes pipe_sizes = {8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10};
inline const Sizes buffered_sizes = {1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
inline const Sizes fragmented_sizes = {16 << 10, 1 << 20};
inline const Sizes fragments = {256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10};
inline const Sizes stalling_sizes = {4096, 4097, 4800, 5552, 8193};
inline const std::vector<std::string> copyings = {"byte by byte", "by memcpy", "not at all"};

// The name of a figure of several messages.
inline std::string keyed(std::size_t bytes, std::string_view what) {
  return fmt::format("{} {}", bytes, what);
}

// Half a round trip of two processes, both on one core and each on one of its own; nothing of the latter
// where there is one core. "semaphore, one core", "futex, two cores", "eventfd, ..." and, of each size, "pipe
// 8, ...".
[[nodiscard]] Result<Figures> synchronizations(const Sizes& sizes);
// "pipe message": one, on one core, half a round trip. "its calls": the same written and read by one process.
// What lies between is a context switch.
[[nodiscard]] Result<Figures> context_switch();

// Over a TCP connection. One way of a ping-pong, by size.
[[nodiscard]] Result<Figures> direct(const Sizes& sizes, const Endpoint& where);
// The same with a copy into a buffer at the sender and out of one at the receiver: keyed(bytes, copying).
[[nodiscard]] Result<Figures> buffering(const Endpoint& where);
// The same written and read in fragments, of the message's size too: keyed(bytes, fragment).
[[nodiscard]] Result<Figures> fragmentation(const Endpoint& where);
// A message written in fragments of 4 KiB and 8 bytes back, a round: keyed(bytes, "delayed"), and
// keyed(bytes, "at once") with TCP_NODELAY.
[[nodiscard]] Result<Figures> delayed_writes(const Endpoint& where);
// One message that no buffers hold, to a receiver that reads at once and to one that reads late: "at once"
// and "late", without the receiver's delay; "send at once" and "send late", the call.
[[nodiscard]] Result<Figures> zero_window(const Endpoint& where);

// Over parc, as a rank. One way of a ping-pong whose reads are started before their messages come, by size.
[[nodiscard]] Result<Figures> lathide(const Sizes& sizes);
// Over parc, as a rank: an exchange with the other rank, hidden behind a calculation; `kernel` is the process
// of this rank's kernel where it is the first. "t_calc", and of one calculation: "calculation" (what it takes
// longer), "calls" (of the library), "kernel" (all processor time), "voluntary" and "involuntary" (context
// switches of the program, their number).
[[nodiscard]] Result<Figures> hiding(std::size_t bytes, pid_t kernel);

} // namespace parc::bench
