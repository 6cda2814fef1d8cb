// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace parc {

// Words of a file or a command line, as a sentence may repeat them: in quotes, on one line, not too long, and
// with nothing that a terminal would obey.
[[nodiscard]] std::string quote(std::string_view text);

} // namespace parc
