// SPDX-License-Identifier: BSD-3-Clause
// What `parc up` wants to know of each pair of its hosts: this kernel connects to the others, as it would for
// a job, and says which it reaches. Both of a pair are asked at the same time, so that one that can dial is
// enough.
#pragma once

#include "control/host_answer.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/link/peers.hpp"

#include <cstdint>
#include <vector>

namespace parc::daemon {

// `answer` goes to the link `to` when all have been tried, or after this time with those that have been.
inline constexpr double tries_within_s = 15;
void reach_hosts(Loop& loop, Post& post, Peers& peers, std::int32_t to,
                 const std::vector<control::HostToReach>& hosts, kernel::Answer answer);

} // namespace parc::daemon
