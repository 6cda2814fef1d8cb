// SPDX-License-Identifier: BSD-3-Clause
// What the report of 1994 measured on its machines (V. Strumpen, Communication Latency Hiding - Model and
// Implementation in High-Latency Computer Networks, D-INFK Technical Report 216, ETH Zurich), as it prints
// them: in ms. What it only draws is not here.
#pragma once

#include <array>
#include <string_view>

namespace parc::bench {

// Table 1: one synchronization of two processes.
struct PaperSynchronization {
  std::string_view machine;
  double semaphore_ms, pipe_ms;
};
inline constexpr std::array<PaperSynchronization, 5> paper_synchronizations{{
    {"HP9000", 0.09, 0.18},
    {"IBM RS6000", 0.053, 0.050},
    {"SGI Crimson", 0.222, 0.222},
    {"Sun SPARCstation1+", 0.5, 0.38},
    {"Sun SPARCstation10", 0.19, 0.11},
}};

// Table 2: 8 bytes from user space to user space, on the Ethernet.
struct PaperTransfer {
  std::string_view machines;
  double pipes_ms; // the overhead of four pipe messages
  double direct_ms, lathide_ms;
};
inline constexpr std::array<PaperTransfer, 3> paper_transfers{{
    {"IBM RS6000/590", 0.2, 0.596, 0.977},
    {"Sun SPARCstation1+", 1.52, 0.962, 2.489},
    {"Sun SPARCstation10", 0.44, 0.442, 0.996},
}};

// Section 3.2.2, of figure 16: what a pipe moves on a SPARCstation1+ in the time of a semaphore.
inline constexpr double paper_crossing_bytes = 512;
// Section 3.1.1: messages of 4,097 to 5,552 bytes without TCP_NODELAY. With it, less than 10 ms.
inline constexpr double paper_stall_ms = 100;
// Section 4.1.
inline constexpr double paper_internet_startup_ms = 50, paper_overhead_ms = 1;

} // namespace parc::bench
