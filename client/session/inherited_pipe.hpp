// SPDX-License-Identifier: BSD-3-Clause
// A pipe that parc run has left to this process, by the number of its descriptor.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <string_view>

namespace parc::client {

enum class PipeEnd : bool { read, write };

// `text` is "NUMBER:INODE", or "NUMBER" of a kernel that does not say which pipe it was. It is not taken, and
// stays open, where something else has that number by now: nothing may be written into a file of the
// program's. `variable` had the text. Errors: PARC_EINVAL.
[[nodiscard]] Result<Fd> inherited_pipe(std::string_view text, PipeEnd end, const char* variable);

} // namespace parc::client
