// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/hosts/ask_hosts.hpp"

#include "tools/parc/hosts/hosts.hpp"
#include "tools/parc/talk/kernel_connection.hpp"

#include <algorithm>
#include <iostream>

namespace parc::tools {

Result<std::vector<AskedHost>> ask_hosts(const std::string& runtime_dir,
                                         const std::vector<tool::HostToAsk>& hosts,
                                         const control::HostQuestion& question, bool starts, bool pairs) {
  PARC_TRY(kernel,
           starts ? KernelConnection::open(runtime_dir) : KernelConnection::open_running(runtime_dir));
  PARC_TRY(kernel.send(tool::Search{.hosts = hosts, .question = question, .pairs = pairs ? 1u : 0u}));
  std::vector<AskedHost> answers;
  for (;;) {
    PARC_TRY(frame, kernel.await());
    const auto kind = tool::kind_named(control::kind_of(frame.message));
    if (kind == tool::Kind::done) {
      PARC_TRY(done, read<tool::Done>(frame));
      if (!done.text.empty()) return error(EINVAL, "{}", done.text);
      break;
    }
    if (kind == tool::Kind::tried) {
      PARC_TRY(tried, read<tool::Tried>(frame));
      if (const auto from = std::ranges::find(answers, tried.host, &AskedHost::host); from != answers.end()) {
        from->tried = std::move(tried.hosts);
        from->not_tried = std::move(tried.text);
      }
    }
    if (kind != tool::Kind::reached) continue;
    PARC_TRY(reached, read<tool::Reached>(frame));
    answers.push_back({.host = std::move(reached.host),
                       .why = std::move(reached.text),
                       .address = std::move(reached.address).value_or(""),
                       .way = std::move(reached.way).value_or(""),
                       .encrypted = reached.encrypted.value_or(1) == 1,
                       .streams = reached.streams.value_or(0),
                       .rtt_us = reached.rtt_us.value_or(0),
                       .relays = reached.relays.value_or(0) == 1,
                       .said = std::move(reached.answer).value_or(control::HostAnswer())});
  }
  std::ranges::sort(answers, {}, &AskedHost::host);
  return answers;
}

void add_options(CLI::App& app, HostOptions& options) {
  add_hosts(app, options.named, hosts_that_are_known);
  add_json(app, options.json, "One object, for programs");
  add_runtime_dir(app, options.runtime_dir);
}

Result<std::vector<tool::HostToAsk>> hosts_to_ask(const HostOptions& options) {
  PARC_TRY(named, named_hosts(options.named));
  std::vector<tool::HostToAsk> hosts;
  for (HostSlots& host : named) hosts.push_back({.name = std::move(host.name)});
  return hosts;
}

void complain(const std::vector<AskedHost>& answers) {
  std::cout.flush();
  for (const AskedHost& answer : answers)
    if (!answer.up())
      std::cerr << fmt::format("parc: host {} does not answer: {}\n", answer.host, answer.why);
}

} // namespace parc::tools
