// SPDX-License-Identifier: BSD-3-Clause
// What parc is compared with on one machine: ping-pongs over plain sockets and a pipe, and memcpy. Two
// processes each, one on each of two cores.
#pragma once

#include <cstddef>

namespace parc::bench {

// Seconds one way of `bytes` over a TCP connection on loopback; both ends poll, or both block.
double socket_one_way(std::size_t bytes, int times, bool poll);
// Seconds one way of 8 bytes over a pair of pipes between two cores.
double pipe_one_way(int times);
// Seconds of one memcpy of `bytes` between buffers that were touched before.
double memcpy_time(std::size_t bytes, int times);

} // namespace parc::bench
