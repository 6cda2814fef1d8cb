// SPDX-License-Identifier: BSD-3-Clause
// Which MPI a program was built for, and what it needs of it.
#pragma once

#include <string>

namespace parc::tools {

// The library of MPICH, or one of its ABI, that a program is linked with. Empty: none, or it cannot be told:
// there is no such program here (`name` is looked for in PATH, as it is for ranks), it is a script.
[[nodiscard]] std::string library_of_mpich(const std::string& name);

// Whether a program may make windows, or start others that do: it or a library that it is linked with calls
// such functions, or it cannot be told (as above, and of what loads its MPI itself).
[[nodiscard]] bool may_make_windows(const std::string& name);

} // namespace parc::tools
