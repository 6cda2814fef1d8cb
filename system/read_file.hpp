// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "system/error.hpp"

#include <string>
#include <string_view>

namespace parc {

// All of a file; `what` stands before its name where it cannot be read, as "hosts from ". Unlike a stream's
// buffer, which throws, this says what is wrong with a directory or a disk.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::string_view what = {});

} // namespace parc
