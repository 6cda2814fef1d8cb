// SPDX-License-Identifier: BSD-3-Clause
// The hosts of a job's ranks in words, as its programs find them in PARC_HOSTS: "a:2,b:1", to be read again
// from the front while there are ranks left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace parc::control {

// The system takes 128 KiB in an environment variable.
inline constexpr std::size_t most_host_words = 131'000;

// `host_of_rank`: places in `names`; not empty. Where the hosts come round again, once round.
[[nodiscard]] std::string host_words(std::span<const std::uint32_t> host_of_rank,
                                     std::span<const std::string> names);

} // namespace parc::control
