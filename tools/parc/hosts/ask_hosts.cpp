// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/hosts/ask_hosts.hpp"

#include "tools/parc/hosts/hosts.hpp"
#include "tools/parc/talk/kernel_connection.hpp"

#include <algorithm>
#include <iostream>

namespace parc::tools {

Result<std::vector<HostAnswer>> ask_hosts(const std::string& runtime_dir, const nlohmann::json& hosts,
                                          const nlohmann::json& question, bool starts) {
  PARC_TRY(kernel,
           starts ? KernelConnection::open(runtime_dir) : KernelConnection::open_running(runtime_dir));
  PARC_TRY(kernel.send({{"kind", "search"}, {"hosts", hosts}, {"question", question}}));
  std::vector<HostAnswer> answers;
  for (;;) {
    PARC_TRY(frame, kernel.await());
    const std::string kind = text_in(frame.message, "kind"), text = text_in(frame.message, "text");
    if (kind == "done" && !text.empty()) return error(EINVAL, "{}", text);
    if (kind == "done") break;
    if (kind != "reached") continue;
    answers.push_back({.host = text_in(frame.message, "host"),
                       .why = text,
                       .address = text_in(frame.message, "address"),
                       .rtt_us = number_in(frame.message, "rtt_us", UINT32_MAX).value_or(0),
                       .said = frame.message.value("answer", nlohmann::json::object())});
    if (!answers.back().said.is_object()) answers.back().said = nlohmann::json::object();
  }
  std::ranges::sort(answers, {}, &HostAnswer::host);
  return answers;
}

Result<nlohmann::json> hosts_to_ask(const HostOptions& options) {
  PARC_TRY(hosts, named_hosts(options.hosts, options.hostfile));
  auto names = nlohmann::json::array();
  for (HostSlots& host : hosts) names.push_back(std::move(host.name));
  return names;
}

void complain(const std::vector<HostAnswer>& answers) {
  std::cout.flush();
  for (const HostAnswer& answer : answers)
    if (!answer.up())
      std::cerr << fmt::format("parc: host {} does not answer: {}\n", answer.host, answer.why);
}

std::vector<RunningJob> jobs_of(const HostAnswer& answer) {
  std::vector<RunningJob> jobs;
  const auto listed = answer.said.find("jobs");
  if (listed == answer.said.end() || !listed->is_array()) return jobs;
  for (const auto& each : *listed) {
    if (!each.is_object()) continue;
    jobs.push_back({.id = number_in(each, "job", UINT64_MAX).value_or(0),
                    .program = text_in(each, "program"),
                    .state = text_in(each, "state"),
                    .origin = text_in(each, "origin"),
                    .size = number_in(each, "size", max_ranks).value_or(0),
                    .ranks = number_in(each, "ranks", max_ranks).value_or(0),
                    .since_s = number_in(each, "since", UINT64_MAX).value_or(0)});
  }
  return jobs;
}

} // namespace parc::tools
