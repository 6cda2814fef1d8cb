// SPDX-License-Identifier: BSD-3-Clause
// How a command gets to another host, as the words that are run here for it. One way today: ssh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parc {

// `words` on `host`, by this ssh, which may have options of its own ("ssh -F file"). No question is asked:
// there may be many of them at once, and nobody to answer.
[[nodiscard]] std::vector<std::string> by_ssh(std::string_view ssh, const std::string& host,
                                              const std::vector<std::string>& words);

// As a shell reads it back as one word.
[[nodiscard]] std::string shell_word(std::string_view word);

} // namespace parc
