// SPDX-License-Identifier: BSD-3-Clause
// What the papers say of their machines, for parc probe to print beside what it has measured. What a paper
// does not state is not there.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace parc::tools {

struct PaperMachine {
  std::string_view name, paper; // as man/parc-probe.1 calls them
  std::optional<double> round_trip_us = {}, startup_us = {}, bandwidth_mb_s = {}, fault_us = {},
                        guard_us = {};
};

inline constexpr std::string_view hiding = "1994, table 2", hunt = "HUNT, table 1", ermpi = "erMPI, table 2";

// Of HUNT's G, microseconds per KB.
constexpr double mb_per_s(double us_per_kb) {
  return 1024 / us_per_kb;
}
// HUNT has the time of one mprotect; a guard is closed with one and opened with another.
constexpr double guard_of(double mprotect_us) {
  return 2 * mprotect_us;
}

// 1994, table 2: 8 bytes from user space to user space through the kernels ("lathide"); section 4.1: startup
// times of the Internet.
// HUNT, table 1: RTT, G, I (the cost of servicing a signal) and mprotect. Its o, the overhead of both sides
// without the way between them, is no startup time as the report of 1994 measures it.
// erMPI, table 2: protection and unprotection of 4 kB; the times of transfers beside it are the network's raw
// ones.
inline constexpr std::array<PaperMachine, 9> paper_machines{{
    {.name = "SPARCstation 1+, Ethernet", .paper = hiding, .startup_us = 2489},
    {.name = "SPARCstation 10, Ethernet", .paper = hiding, .startup_us = 996},
    {.name = "RS6000/590, Ethernet", .paper = hiding, .startup_us = 977},
    {.name = "SPARCstations, Internet", .paper = "1994, section 4.1", .startup_us = 50'000},
    {.name = "Opteron, InfiniBand",
     .paper = hunt,
     .round_trip_us = 11.6,
     .bandwidth_mb_s = mb_per_s(1.23),
     .fault_us = 2,
     .guard_us = guard_of(1)},
    {.name = "Itanium 2, Myrinet",
     .paper = hunt,
     .round_trip_us = 25.5,
     .bandwidth_mb_s = mb_per_s(4.7),
     .fault_us = 3,
     .guard_us = guard_of(1)},
    {.name = "PowerPC 970FX, InfiniBand",
     .paper = hunt,
     .round_trip_us = 20.2,
     .bandwidth_mb_s = mb_per_s(1.26),
     .fault_us = 37,
     .guard_us = guard_of(1)},
    {.name = "AlphaServer, Quadrics",
     .paper = hunt,
     .round_trip_us = 8,
     .bandwidth_mb_s = mb_per_s(3.96),
     .fault_us = 5,
     .guard_us = guard_of(1)},
    {.name = "Pentium 4, Gbit Ethernet", .paper = ermpi, .guard_us = 3.0},
}};

} // namespace parc::tools
