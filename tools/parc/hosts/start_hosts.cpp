// SPDX-License-Identifier: BSD-3-Clause
// The key goes to the kernels on standard input; where they listen is told to this host's kernel, which tells
// all others (daemon/tool/known_hosts.hpp), so no file has to name anybody.
#include "tools/parc/hosts/start_hosts.hpp"
#include "tools/parc/talk/json_fields.hpp"

#include "system/identity.hpp"
#include "system/start_kernel.hpp"
#include "tools/parc/hosts/ask_hosts.hpp"
#include "tools/parc/talk/children.hpp"
#include "tools/parc/talk/kernel_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/ranges.h>

namespace parc::tools {
namespace {

// parcd closes its output when it is ready, or has said why it is not; what it says beside a kernel that runs
// already is no matter.
constexpr const char* start_script = R"(how=$1 name=$2; shift 2
ran=$(parc status --json 2>/dev/null </dev/null | grep -c '"alive": true')
parcd "$how" --name "$name" --key-file - "$@" | {
  cat
  printf '{"ran": %d, "status": ' "${ran:-0}"
  parc status --json 2>/dev/null
  echo '}'
  exit 0
})";

// And where parc is installed on others.
Result<tool::Done> ask_for_key(const std::string& runtime_dir, const std::vector<std::string>& options) {
  PARC_TRY(kernel, KernelConnection::open(runtime_dir, options));
  PARC_TRY(kernel.send(tool::AskForKey{}));
  for (;;) {
    PARC_TRY(frame, kernel.await());
    if (control::kind_of(frame.message) != name(tool::Kind::done)) continue;
    return read<tool::Done>(frame);
  }
}

void read_status(const Child& child, StartedHost& there) {
  auto status = nlohmann::json::parse(child.output, nullptr, false);
  if (status.is_object() && status.contains("ran")) {
    there.ran = number_in(status, "ran", UINT32_MAX).value_or(1) != 0;
    status = status.value("status", nlohmann::json());
  } else {
    there.ran = true; // this host's own
  }
  const auto kernel = status.is_object() ? status.find("kernel") : status.end();
  const bool is_up =
      status.is_object() && kernel != status.end() && kernel->is_object() && kernel->value("alive", false);
  if (!is_up) {
    there.why = why_failed(child, "starting parcd");
    return;
  }
  there.port = static_cast<std::uint16_t>(number_in(*kernel, "port", UINT16_MAX).value_or(0));
  there.link_socket = text_in(*kernel, "link_socket");
  there.says = fmt::format("{}, parcd {}", text_in(*kernel, "listens"), text_in(*kernel, "version"));
}

// Of this host's kernel, which runs.
std::vector<std::string> question_of_status(const std::string& runtime_dir) {
  std::vector<std::string> words{path_of_this_program(), "status", "--json"};
  if (!runtime_dir.empty()) words.insert(words.end(), {"--runtime-dir", runtime_dir});
  return words;
}

Child start_of(const Launcher& launcher, const std::string& host, const std::string& prefix,
               const std::string& key, const std::vector<std::string>& options) {
  std::vector<std::string> words{launcher.keeps ? "--announce" : "--detach", host};
  words.insert(words.end(), options.begin(), options.end());
  Child child{.command = launcher.command(host, beside_parc(start_script, prefix, words)),
              .input = key + "\n"};
  if (launcher.keeps)
    child.stays_after = [](const std::string& said) { return nlohmann::json::accept(said); };
  return child;
}

// Where the launcher finds a host is where its kernel is: asked beside the start, which takes longer.
std::vector<StartedHost> start_all(const Launcher& launcher, const std::vector<std::string>& hosts,
                                   Prefixes& prefixes, const std::string& key, const std::string& runtime_dir,
                                   const std::vector<std::string>& options,
                                   std::chrono::milliseconds patience) {
  std::vector<Child> children;
  for (const std::string& host : hosts)
    children.push_back(is_this_host(launcher, host) ? Child{.command = question_of_status(runtime_dir)}
                                                    : start_of(launcher, host, prefixes[host], key, options));
  for (const std::string& host : hosts) children.push_back({.command = launcher.question(host)});
  run_all(children, patience);
  std::vector<StartedHost> all;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string address = launcher.address(children[hosts.size() + i].output);
    StartedHost& there = all.emplace_back(StartedHost{.host = hosts[i]});
    there.address = address.empty() ? hosts[i] : address;
    there.prefix = prefixes[hosts[i]];
    read_status(children[i], there);
    if (!there.up()) there.why += way_there(launcher, hosts[i], children[i]);
  }
  return all;
}

// What listens on loopback alone is not to be dialed where another host is.
bool is_out_of_reach(const StartedHost& there) {
  const bool is_near =
      there.address.starts_with("127.") || there.address == "::1" || there.address == "localhost";
  return !is_near && there.says.find("on loopback only") != std::string::npos;
}

// Our kernel connects to each that is up, or says why it cannot.
Result<void> reach_all(const std::string& runtime_dir, const Launcher& launcher,
                       std::vector<StartedHost>& all, bool pairs) {
  std::vector<tool::HostToAsk> hosts;
  for (const StartedHost& there : all)
    if (const bool by_ssh = !is_this_host(launcher, there.host) && !launcher.ssh.empty(); there.up())
      hosts.push_back({.name = there.host,
                       .address = by_ssh && is_out_of_reach(there) ? "" : there.address,
                       .port = there.port,
                       .ssh = by_ssh ? launcher.ssh : "",
                       .link_socket = there.link_socket});
  if (hosts.empty()) return success();
  PARC_TRY(answers, ask_hosts(runtime_dir, hosts, {}, true, pairs));
  for (AskedHost& answer : answers) {
    const auto there = std::ranges::find(all, answer.host, &StartedHost::host);
    if (there == all.end()) continue;
    there->way = answer.way;
    there->tried = std::move(answer.tried);
    there->not_tried = std::move(answer.not_tried);
    if (answer.up()) continue;
    there->reachable = false;
    there->why = fmt::format("{} (its kernel listens on {})", answer.why, there->says);
    if (there->says.find("on loopback only") != std::string::npos)
      there->why += "; parc up ... -- --listen 0.0.0.0 lets it listen everywhere";
  }
  return success();
}

// Nobody but who started it knows of it, and with other settings it can be started only when it is gone.
void end_unreachable(const Launcher& launcher, std::vector<StartedHost>& all) {
  std::vector<StartedHost*> ended;
  std::vector<Child> children;
  for (StartedHost& there : all) {
    if (there.reachable) continue;
    if (there.ran) {
      there.why = "its kernel runs, and cannot be reached from here: " + there.why;
      continue;
    }
    ended.push_back(&there);
    children.push_back({.command = launcher.command(there.host, words_of_stop_at(there.prefix))});
  }
  run_all(children);
  for (std::size_t i = 0; i < ended.size(); ++i)
    ended[i]->why = fmt::format(
        "its kernel was started, could not be reached from here and {}: {}",
        children[i].status == 0 ? "was ended again" : "still runs (parc down ends it)", ended[i]->why);
}

Prefixes prefixes_in(const tool::Done& done) {
  Prefixes prefixes;
  if (done.prefixes)
    for (const auto& [host, prefix] : *done.prefixes) prefixes[host] = prefix;
  return prefixes;
}

} // namespace

Result<Prefixes> prefixes_of_settings(const std::string& runtime_dir) {
  PARC_TRY(running, connect_to_kernel(runtime_dir));
  if (!running) return Prefixes();
  running.reset();
  PARC_TRY(done, ask_for_key(runtime_dir, {}));
  return prefixes_in(done);
}

std::vector<std::string> words_of_stop(const std::string& runtime_dir) {
  std::vector<std::string> words{path_of_this_program(), "stop"};
  if (!runtime_dir.empty()) words.insert(words.end(), {"--runtime-dir", runtime_dir});
  return words;
}

std::vector<std::string> words_of_stop_at(const std::string& prefix) {
  return beside_parc("exec parc stop", prefix);
}

std::string way_there(const Launcher& launcher, const std::string& host, const Child& child) {
  constexpr int status_of_ssh = 255; // it did not get there
  if (launcher.keeps || child.status != status_of_ssh) return {};
  return fmt::format("; see that {} works without a password",
                     fmt::join(launcher.command(host, {"true"}), " "));
}

bool is_this_host(const Launcher& launcher, const std::string& host) {
  if (launcher.keeps) return false; // what a batch system starts, it counts
  return host == short_host_name() || means_this_host(host);
}

// The key is for those that are brought up.
Result<void> check_keys(const tool::Done& done, const std::vector<std::string>& hosts) {
  if (!done.key)
    return error(EACCES,
                 "the kernel of this host only relays: bring hosts up from one that has the whole key");
  for (const std::string& relay : done.relays.value_or(std::vector<std::string>()))
    if (std::ranges::find(hosts, relay) != hosts.end())
      return error(
          EACCES,
          "host {} only relays, as [hosts] says (relay = true): its kernel is started there, with what "
          "parc keygen --relay prints as its key",
          relay);
  return success();
}

Result<std::vector<StartedHost>> start_hosts(const std::vector<std::string>& hosts, const Launcher& launcher,
                                             const std::string& runtime_dir, Prefixes prefixes,
                                             const std::vector<std::string>& options,
                                             std::chrono::milliseconds patience, bool pairs) {
  PARC_TRY(running, connect_to_kernel(runtime_dir));
  const bool ran = static_cast<bool>(running);
  running.reset(); // nothing is asked of it here
  PARC_TRY(done, ask_for_key(runtime_dir, options));
  PARC_TRY(check_keys(done, hosts));
  prefixes.merge(prefixes_in(done));
  auto all = start_all(launcher, hosts, prefixes, *done.key, runtime_dir, options, patience);
  PARC_TRY(reach_all(runtime_dir, launcher, all, pairs));
  end_unreachable(launcher, all);
  for (StartedHost& there : all)
    if (is_this_host(launcher, there.host)) there.ran = ran;
  return all;
}

} // namespace parc::tools
