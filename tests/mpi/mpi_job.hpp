// SPDX-License-Identifier: BSD-3-Clause
// MPI jobs on emulated hosts, over parc or over Open MPI's own TCP.
#pragma once

#include "tests/mpi/fabric_environment.hpp"

namespace parc::test {

// Without vader's shared memory, which cm does not use: a rank that is killed would leave its segment.
// Windows that messages would have to stand in for fail.
inline const std::vector<std::string> by_parc{
    "--mca", "pml",           "cm",    "--mca",
    "mtl",   "ofi",           "--mca", "mtl_ofi_provider_include",
    "parc",  "--mca",         "osc",   "sm,rdma",
    "--mca", "osc_rdma_btls", "ofi",   "--mca",
    "btl",   "ofi,self",      "--mca", "opal_common_ofi_provider_include",
    "parc"};
inline const std::vector<std::string> by_tcp{"--mca",    "pml",   "ob1", "--mca",   "btl",
                                             "tcp,self", "--mca", "osc", "sm,pt2pt"};

struct Job {
  std::string program;
  std::size_t ranks = 2;
  std::size_t hosts = 1;
  std::vector<std::string> words{};
  std::vector<std::string> environment{}; // NAME=VALUE
};

// Ranks go round the hosts: neighbours are on different ones. mpirun that hangs is ended by a signal on which
// it ends its ranks, also where the test itself is killed.
std::vector<std::string> mpirun(Hosts& hosts, const std::vector<std::string>& transport, const Job& job);

// What the ranks printed; a job that does not end with 0 fails the test.
std::string output_of(Hosts& hosts, const std::vector<std::string>& transport, const Job& job);

// What they print over TCP, which is run once for all jobs of one program, its words and so many ranks.
std::string expected_of(Hosts& hosts, const Job& job);

// Over parc it prints what it prints over TCP.
void compare(const Job& job);

} // namespace parc::test
