// SPDX-License-Identifier: BSD-3-Clause
// A job as its origin plans it and every host of it knows it. Invariant of a decoded plan: places lie within
// the list of hosts, and the runs add up to the size.
#pragma once

#include "daemon/base/post.hpp"
#include "jobs/placement.hpp"
#include "jobs/program.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace parc::daemon {

struct JobPlan {
  struct Host {
    std::string name;       // as the user calls it
    std::uint32_t identity; // low half: that all hosts mean the same host by it
    std::string address; // of its kernel, as the origin knows it (endpoint_address.hpp); empty: it does not
  };
  std::uint64_t job = 0;
  std::int32_t origin = -1; // link to its kernel, or this_host
  std::vector<Host> hosts = {};
  std::size_t self = 0;         // this host among them
  std::size_t origin_place = 0; // the origin among them, or hosts.size()
  std::uint32_t size = 0;
  std::vector<Run> runs = {};
  Program program = {};
  std::string parent = {}; // address of the program that spawned it (endpoint_address.hpp); empty: none did

  [[nodiscard]] std::vector<std::uint32_t> host_of_rank() const;
  // Places in the list of hosts, in the order of their first ranks: each has a PMIx server where the program
  // is one of MPI.
  [[nodiscard]] std::vector<std::size_t> hosts_with_ranks() const;
  // For PARC_HOSTS (host_words.hpp).
  [[nodiscard]] std::string hosts_in_words() const;
};

// Whether each of its programs has a rank.
[[nodiscard]] bool fits(const Program& program, std::size_t ranks);
[[nodiscard]] kernel::Prepare encode_plan(const JobPlan& plan);
[[nodiscard]] Result<JobPlan> decode_plan(const kernel::Prepare& message, std::int32_t origin);

} // namespace parc::daemon
