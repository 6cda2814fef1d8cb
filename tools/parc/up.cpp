// SPDX-License-Identifier: BSD-3-Clause
// parc up and parc down: start and end kernels of other hosts, all at the same time, by ssh. The key goes to
// them on standard input; where they listen is told to this host's kernel, which tells the others with each
// job (JobPlan::Host::address), so no file has to name anybody.
#include "jobs/launcher.hpp"
#include "system/frames.hpp"
#include "tools/parc/ask_hosts.hpp"
#include "tools/parc/children.hpp"
#include "tools/parc/commands.hpp"
#include "tools/parc/hosts.hpp"
#include "tools/parc/kernel_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <map>
#include <poll.h>
#include <sstream>

namespace parc::tools {
namespace {

// Programs are where ours are, or in the PATH there. What a kernel that runs already says is no matter.
constexpr const char* start_script = R"(there=$1 name=$2; shift 2
[ -x "$there/parcd" ] && PATH=$there:$PATH
if parcd --detach --name "$name" --key-file - "$@"; then exec parc status --json; fi
exec parc status --json 2>/dev/null)";
constexpr const char* stop_script = R"([ -x "$1/parc" ] && PATH=$1:$PATH
exec parc stop)";

struct There {
  std::string host;
  std::string address;
  std::uint16_t port = 0;
  std::string says; // where it listens, and its version
  std::string why;  // it is not up
  [[nodiscard]] bool up() const { return why.empty(); }
};

std::string own_directory() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

// The last thing that a program said, which is mostly why it failed.
std::string last_line(const std::string& text) {
  std::string last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) last = line;
  }
  return last;
}

std::string why_failed(const Child& child, std::string_view what) {
  const std::string said = last_line(child.errors);
  if (!said.empty()) return said;
  return fmt::format("{} ended with status {} and said nothing", what, child.status);
}

Result<std::vector<std::string>> host_names(const UpOptions& options) {
  PARC_TRY(hosts, named_hosts(options.where.hosts, options.where.hostfile));
  if (hosts.empty()) return error(EINVAL, "no hosts are named: parc up --hosts a,b or --hostfile FILE");
  std::vector<std::string> names;
  for (HostSlots& host : hosts) names.push_back(std::move(host.name));
  return names;
}

Result<std::string> ask_for_key(const UpOptions& options) {
  PARC_TRY(kernel, KernelConnection::open(options.where.runtime_dir));
  PARC_TRY(kernel.send({{"kind", "key"}}));
  for (;;) {
    PARC_TRY(frame, kernel.await());
    if (text_in(frame.message, "kind") == "done") return text_in(frame.message, "key");
  }
}

// Where ssh finds a host is where its kernel is.
std::vector<std::string> addresses_of(const UpOptions& options, const std::vector<std::string>& hosts) {
  std::vector<Child> questions;
  for (const std::string& host : hosts) {
    Child& question = questions.emplace_back();
    question.command = by_ssh(options.ssh, host, {});
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

void read_status(const Child& child, There& there) {
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

std::vector<There> start_all(const UpOptions& options, const std::vector<std::string>& hosts,
                             const std::string& key) {
  std::vector<Child> children;
  for (const std::string& host : hosts) {
    std::vector<std::string> words{"sh", "-c", start_script, "parc-up", own_directory(), host};
    words.insert(words.end(), options.of_parcd.begin(), options.of_parcd.end());
    children.push_back({.command = by_ssh(options.ssh, host, words), .input = key + "\n"});
  }
  run_all(children);
  const auto addresses = addresses_of(options, hosts);
  std::vector<There> all;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    There& there = all.emplace_back(There{.host = hosts[i], .address = addresses[i], .says = {}, .why = {}});
    read_status(children[i], there);
  }
  return all;
}

// Our kernel connects to each that is up, or says why it cannot.
Result<void> reach_all(const UpOptions& options, std::vector<There>& all) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const There& there : all)
    if (there.up()) hosts.push_back({there.host, there.address, there.port});
  if (hosts.empty()) return success();
  PARC_TRY(answers, ask_hosts(options.where.runtime_dir, hosts, {}, true));
  for (const HostAnswer& answer : answers) {
    const auto there = std::ranges::find(all, answer.host, &There::host);
    if (there == all.end() || answer.up()) continue;
    there->why = answer.why + fmt::format(" (its kernel listens on {}; parc up ... -- --listen 0.0.0.0 "
                                          "--encryption none lets it listen everywhere)",
                                          there->says);
  }
  return success();
}

int report(const std::vector<There>& all) {
  for (const There& there : all)
    if (there.up())
      std::cout << fmt::format("{}: up at {}, listening on {}\n", there.host, there.address, there.says);
  std::cout.flush();
  for (const There& there : all)
    if (!there.up()) std::cerr << fmt::format("parc: host {} is not up: {}\n", there.host, there.why);
  return std::ranges::all_of(all, &There::up) ? 0 : status_failure;
}

Result<int> start(const UpOptions& options) {
  PARC_TRY(hosts, host_names(options));
  PARC_TRY(key, ask_for_key(options));
  auto all = start_all(options, hosts, key);
  PARC_TRY(reach_all(options, all));
  return report(all);
}

Result<int> stop_all(const UpOptions& options) {
  PARC_TRY(hosts, host_names(options));
  std::vector<Child> children;
  for (const std::string& host : hosts)
    children.push_back(
        {.command = by_ssh(options.ssh, host, {"sh", "-c", stop_script, "parc-down", own_directory()}),
         .input = {}});
  run_all(children);
  int status = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (children[i].status == 0) {
      std::cout << fmt::format("{}: {}\n", hosts[i], last_line(children[i].output));
    } else {
      std::cout.flush();
      std::cerr << fmt::format("parc: host {}: {}\n", hosts[i], why_failed(children[i], "parc stop"));
      status = status_failure;
    }
  }
  return status;
}

} // namespace

int up(const UpOptions& options) {
  return end_with(start(options));
}

int down(const UpOptions& options) {
  return end_with(stop_all(options));
}

} // namespace parc::tools
