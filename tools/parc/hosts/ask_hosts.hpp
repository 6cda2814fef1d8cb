// SPDX-License-Identifier: BSD-3-Clause
// What kernels of several hosts say, asked through that of this host.
#pragma once

#include "control/host_answer.hpp"
#include "system/error.hpp"
#include "tools/parc/talk/command.hpp"
#include "tools/parc/talk/kernel_connection.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace parc::tools {

struct AskedHost {
  std::string host;
  std::string why = {};     // there is no answer
  std::string address = {}; // of its kernel, with the port
  std::string way = {};     // how it is reached; empty: it is this host
  bool encrypted = true;
  std::uint64_t streams = 0; // of the link to it
  std::uint64_t rtt_us = 0;  // 0: not known, or this host
  bool relays = false;       // it has nothing to say
  control::HostAnswer said = {};
  std::vector<control::HostTried> tried = {}; // the others, where it was told of them
  std::string not_tried = {};                 // it was asked, and why it does not say
  [[nodiscard]] bool up() const { return why.empty(); }
};

// `hosts`: empty: all that this kernel knows. `starts`: where no kernel runs here, one is started. `pairs`:
// they also say which others they reach. In the order of their names.
[[nodiscard]] Result<std::vector<AskedHost>> ask_hosts(const std::string& runtime_dir,
                                                       const std::vector<tool::HostToAsk>& hosts,
                                                       const control::HostQuestion& question, bool starts,
                                                       bool pairs = false);

struct HostOptions {
  NamedHosts named;
  std::string runtime_dir; // of this host's kernel
  bool json = false;
};
inline constexpr const char* hosts_that_are_known =
    "those of the batch job, or all that this host's kernel knows";

void add_options(CLI::App& app, HostOptions& options);

// The hosts that the options name; none: all.
[[nodiscard]] Result<std::vector<tool::HostToAsk>> hosts_to_ask(const HostOptions& options);

// A line for each that does not answer.
void complain(const std::vector<AskedHost>& answers);

} // namespace parc::tools
