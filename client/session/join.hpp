// SPDX-License-Identifier: BSD-3-Clause
// Joining a job: finding this host's kernel, getting the two pipes, handing it the control segment, and its
// answer.
#pragma once

#include "client/session/named_job.hpp"
#include "shm/segment.hpp"
#include "system/fd.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace parc::client {

struct Session {
  Fd from_kernel, to_kernel; // non-blocking, close-on-exec
  shm::Segment control;      // holds a shm::Control that the kernel has attached
  int rank = 0, size = 1;
  unsigned copy_ns_per_kib = 0;
  std::int32_t kernel_pid = 0;
  std::int32_t area = -1; // where its letterbox is; below 0: it has none
  std::uint32_t letterbox = 0;
  std::vector<std::string> hosts; // of all ranks
};

// parc_start_kernel.
[[nodiscard]] Result<void> start_kernel();

// `job`: which this process, where it is no rank of `parc run`, is to join; none: it is a job of its own.
// `neighbours`: it wants to exchange messages with those of this host itself. Blocks until the kernel has
// answered. Errors carry a PARC_E*. PARC_PIPES is taken out of the environment: a program that this one
// starts is not a rank.
// `wait`: called before the kernel's answer is read, which may take long, with the connection on which that
// comes; returns when it is there.
using WaitForAnswer = std::function<void(int connection)>;
[[nodiscard]] Result<Session> join(bool neighbours, const std::optional<NamedJob>& job,
                                   const WaitForAnswer& wait);

} // namespace parc::client
