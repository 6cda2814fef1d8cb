// SPDX-License-Identifier: BSD-3-Clause
// The hosts of a job's ranks in words, as its programs find them in PARC_HOSTS: "a:2,b:1", to be read again
// from the front while there are ranks left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parc::control {

// The system takes 128 KiB in an environment variable.
inline constexpr std::size_t most_host_words = 131'000;

[[nodiscard]] std::string too_many_host_words(std::size_t bytes); // a sentence for who has started the job

// `host_of_rank`: places in `names`; not empty. Where the hosts come round again, once round.
[[nodiscard]] std::string host_words(std::span<const std::uint32_t> host_of_rank,
                                     std::span<const std::string> names);

// The names of the hosts of so many ranks; none: the words make no sense, or say more ranks.
[[nodiscard]] std::optional<std::vector<std::string>> hosts_in(std::string_view words, std::size_t ranks);

} // namespace parc::control
