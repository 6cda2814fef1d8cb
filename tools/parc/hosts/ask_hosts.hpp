// SPDX-License-Identifier: BSD-3-Clause
// What kernels of several hosts say, asked through that of this host.
#pragma once

#include "system/error.hpp"
#include "tools/parc/commands.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace parc::tools {

struct HostAnswer {
  std::string host;
  std::string why;          // there is no answer
  std::string address;      // of its kernel, with the port
  std::uint64_t rtt_us = 0; // 0: not known, or this host
  nlohmann::json said = {};
  [[nodiscard]] bool up() const { return why.empty(); }
};

// `hosts`: an array of names, or [name, address, port] to find it there from now on; empty: all that this
// kernel knows. `starts`: where no kernel runs here, one is started. In the order of their names.
[[nodiscard]] Result<std::vector<HostAnswer>> ask_hosts(const std::string& runtime_dir,
                                                        const nlohmann::json& hosts,
                                                        const nlohmann::json& question, bool starts);

// The hosts that the options name; none: all.
[[nodiscard]] Result<nlohmann::json> hosts_to_ask(const HostOptions& options);

// A line for each that does not answer.
void complain(const std::vector<HostAnswer>& answers);

struct RunningJob {
  std::uint64_t id = 0;
  std::string program, state, origin;
  std::uint64_t size = 0, ranks = 0, since_s = 0; // ranks: on that host
};
[[nodiscard]] std::vector<RunningJob> jobs_of(const HostAnswer& answer);

} // namespace parc::tools
