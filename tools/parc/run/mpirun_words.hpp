// SPDX-License-Identifier: BSD-3-Clause
// The words of parc mpi, which are parc run's or mpirun's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace parc::tools {

// How many values an option of mpirun(1) has, of Open MPI 4.1. One or two hyphens are the same to it.
[[nodiscard]] std::size_t values_of_mpiruns_option(std::string_view option);

// `words` begin with "mpi". Where they start a program, and not by --mpirun, they become those of parc run
// --mpi: of mpirun's options those that have an equal there.
[[nodiscard]] std::vector<std::string> without_mpirun(std::vector<std::string> words);

} // namespace parc::tools
