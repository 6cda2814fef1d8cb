// SPDX-License-Identifier: BSD-3-Clause
// Open MPI's parameters with which its messages are parc's.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace parc::tools {

// "osc": one-sided windows that ranks of one host alone allocate are memory that they share, all others
// parc's windows, and where the kernels may not reach the ranks' memory messages. Their transport is "btl":
// nothing goes by vader, which would make its files in /dev/shm all the same, and warns where that is small.
inline constexpr std::array<std::pair<const char*, const char*>, 7> mpi_settings{
    {{"pml", "cm"},
     {"mtl", "ofi"},
     {"mtl_ofi_provider_include", "parc"},
     {"osc", "sm,rdma,pt2pt"},
     {"osc_rdma_btls", "ofi"},
     {"btl", "ofi,self"},
     {"opal_common_ofi_provider_include", "parc"}}};
// Objects of mpi4py are received without MPI_Mprobe: a synchronous send that mtl/ofi meets by that never
// ends.
inline constexpr const char* for_mpi4py = "MPI4PY_RC_RECV_MPROBE";

// Adds them to the variables that ranks are asked to get, where nobody has set them otherwise, and what the
// caller's environment has of Open MPI's parameters, as mpirun does. Programs without windows do without
// their transport: MPI_Finalize sleeps for a second to close it.
void ask_for_mpi(std::vector<std::string>& asked, bool with_windows);

} // namespace parc::tools
