// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace parc {

// A word of a file or a command line, as an error's sentence may repeat it: in quotes, on one line, cut after
// 80 bytes, and with nothing that a terminal would obey.
[[nodiscard]] std::string quote(std::string_view text);
// A sentence of somebody else's: what is no printable ASCII is a question mark.
[[nodiscard]] std::string harmless(std::string_view text);

} // namespace parc
