// SPDX-License-Identifier: BSD-3-Clause
// By ssh. The key goes to the kernels on standard input; where they listen is told to this host's kernel,
// which tells the others with each job (JobPlan::Host::address), so no file has to name anybody.
#include "tools/parc/start_hosts.hpp"

#include "jobs/launcher.hpp"
#include "system/frames.hpp"
#include "system/identity.hpp"
#include "tools/parc/ask_hosts.hpp"
#include "tools/parc/children.hpp"
#include "tools/parc/kernel_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>

namespace parc::tools {
namespace {

// Programs are where ours are, or in the PATH there. What a kernel that runs already says is no matter.
constexpr const char* start_script = R"(there=$1 name=$2; shift 2
[ -x "$there/parcd" ] && PATH=$there:$PATH
if parcd --detach --name "$name" --key-file - "$@"; then exec parc status --json; fi
exec parc status --json 2>/dev/null)";
Result<std::string> ask_for_key(const std::string& runtime_dir) {
  PARC_TRY(kernel, KernelConnection::open(runtime_dir));
  PARC_TRY(kernel.send({{"kind", "key"}}));
  for (;;) {
    PARC_TRY(frame, kernel.await());
    if (text_in(frame.message, "kind") == "done") return text_in(frame.message, "key");
  }
}

// Where ssh finds a host is where its kernel is.
std::vector<std::string> addresses_of(const std::string& ssh, const std::vector<std::string>& hosts) {
  std::vector<Child> questions;
  for (const std::string& host : hosts) {
    Child& question = questions.emplace_back();
    question.command = by_ssh(ssh, host, {});
    question.command.pop_back();
    question.command.insert(question.command.end() - 1, "-G");
  }
  run_all(questions);
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    std::istringstream lines(questions[i].output);
    std::string key, value;
    while (lines >> key && std::getline(lines >> std::ws, value) && key != "hostname") key.clear();
    addresses.push_back(key == "hostname" ? value : hosts[i]);
  }
  return addresses;
}

void read_status(const Child& child, StartedHost& there) {
  const auto status = nlohmann::json::parse(child.output, nullptr, false);
  const auto kernel = status.is_object() ? status.find("kernel") : status.end();
  const bool is_up =
      status.is_object() && kernel != status.end() && kernel->is_object() && kernel->value("alive", false);
  if (!is_up) {
    there.why = why_failed(child, "starting parcd");
    return;
  }
  there.port = static_cast<std::uint16_t>(number_in(*kernel, "port", UINT16_MAX).value_or(0));
  there.says = fmt::format("{}, parcd {}", text_in(*kernel, "listens"), text_in(*kernel, "version"));
}

std::vector<StartedHost> start_all(const std::string& ssh, const std::vector<std::string>& hosts,
                                   const std::string& key, const std::vector<std::string>& options) {
  std::vector<Child> children;
  for (const std::string& host : hosts) {
    std::vector<std::string> words{"sh", "-c", start_script, "parc-up", own_directory(), host};
    words.insert(words.end(), options.begin(), options.end());
    children.push_back({.command = by_ssh(ssh, host, words), .input = key + "\n"});
  }
  run_all(children);
  const auto addresses = addresses_of(ssh, hosts);
  std::vector<StartedHost> all;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    StartedHost& there =
        all.emplace_back(StartedHost{.host = hosts[i], .address = addresses[i], .says = {}, .why = {}});
    read_status(children[i], there);
  }
  return all;
}

// Our kernel connects to each that is up, or says why it cannot.
Result<void> reach_all(const std::string& runtime_dir, std::vector<StartedHost>& all) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const StartedHost& there : all)
    if (there.up()) hosts.push_back({there.host, there.address, there.port});
  if (hosts.empty()) return success();
  PARC_TRY(answers, ask_hosts(runtime_dir, hosts, {}, true));
  for (const HostAnswer& answer : answers) {
    const auto there = std::ranges::find(all, answer.host, &StartedHost::host);
    if (there == all.end() || answer.up()) continue;
    there->why = answer.why + fmt::format(" (its kernel listens on {}; parc up ... -- --listen 0.0.0.0 "
                                          "--encryption none lets it listen everywhere)",
                                          there->says);
  }
  return success();
}

} // namespace

std::string own_directory() {
  return std::filesystem::path(path_of_this_program()).parent_path();
}

Result<std::vector<StartedHost>> start_hosts(const std::vector<std::string>& hosts, const std::string& ssh,
                                             const std::string& runtime_dir,
                                             const std::vector<std::string>& options) {
  PARC_TRY(key, ask_for_key(runtime_dir));
  auto all = start_all(ssh, hosts, key, options);
  PARC_TRY(reach_all(runtime_dir, all));
  return all;
}

} // namespace parc::tools
