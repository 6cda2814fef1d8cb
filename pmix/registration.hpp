// SPDX-License-Identifier: BSD-3-Clause
// What libpmix is told of jobs, so that ranks need not ask. These calls block until it has that.
#pragma once

#include "pmix/job.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace parc::pmix {

// The own job: `self` is this server's place, `directory` where its files lie.
[[nodiscard]] Result<void> register_own_job(const Job& job, std::uint32_t self, const std::string& directory);
// Another one: none of its ranks asks this server.
[[nodiscard]] Result<void> register_other_job(const Job& job);

// What a call of libpmix has returned, as a sentence.
[[nodiscard]] Result<void> checked(int status, std::string_view what);

} // namespace parc::pmix
