// SPDX-License-Identifier: BSD-3-Clause
// What becomes of processes of this user, as systemd and the system's security settings have it.
#include "tools/parc/doctor/doctor_facts.hpp"

#include <cerrno>
#include <sstream>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::tools::diagnosis {
namespace {

std::string_view without_spaces(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// The settings of the section [Login]; those in comments, which name what is built in, go to `defaults`.
void read_login_section(const std::string& text, SessionFacts& facts) {
  std::istringstream lines(text);
  bool in_section = false;
  for (std::string each; std::getline(lines, each);) {
    std::string_view line = without_spaces(each);
    if (line.starts_with('[')) in_section = line == "[Login]";
    const bool comment = line.starts_with('#') || line.starts_with(';');
    if (comment) line.remove_prefix(1);
    const auto equals = line.find('=');
    if (!in_section || equals == line.npos) continue;
    const std::string key(without_spaces(line.substr(0, equals)));
    if (key.find(' ') != key.npos) continue; // prose
    (comment ? facts.defaults : facts.logind)[key] = without_spaces(line.substr(equals + 1));
  }
}

// As systemd does: of the main file the first that there is; then drop-ins by their names, whatever their
// directory, of which one hides its namesakes in those behind it.
void read_logind(const Root& root, SessionFacts& facts) {
  constexpr const char* places[]{"/etc", "/run", "/usr/local/lib", "/usr/lib"};
  for (const std::string place : places)
    if (const std::string path = place + "/systemd/logind.conf"; root.has(path)) {
      read_login_section(root.text(path), facts);
      break;
    }
  std::map<std::string, std::string> drop_ins;
  for (const std::string place : places)
    for (const std::string& name : root.names_in(place + "/systemd/logind.conf.d"))
      if (name.ends_with(".conf")) drop_ins.try_emplace(name, place + "/systemd/logind.conf.d/" + name);
  for (const auto& [name, path] : drop_ins) read_login_section(root.text(path), facts);
}

// The option hidepid of the mount at /proc; empty: none.
std::string read_hidepid(const Root& root) {
  std::istringstream lines(root.text("/proc/self/mounts"));
  std::string found;
  for (std::string device, place, type, options, rest;
       lines >> device >> place >> type >> options && std::getline(lines, rest);) {
    if (place != "/proc") continue;
    std::istringstream list(options);
    found.clear();
    for (std::string option; std::getline(list, option, ',');)
      if (option.starts_with("hidepid=")) found = option.substr(8);
  }
  return found;
}

} // namespace

std::string SessionFacts::setting(const std::string& key, const std::string& otherwise) const {
  if (const auto set = logind.find(key); set != logind.end() && !set->second.empty()) return set->second;
  if (const auto built_in = defaults.find(key); built_in != defaults.end()) return built_in->second;
  return otherwise;
}

SessionFacts read_session(const Root& root, const User& user) {
  SessionFacts facts;
  facts.systemd = root.has("/run/systemd/system");
  facts.linger = root.has("/var/lib/systemd/linger/" + user.name);
  read_logind(root, facts);
  facts.hidepid = read_hidepid(root);
  facts.ptrace_scope = root.number("/proc/sys/kernel/yama/ptrace_scope");
  return facts;
}

// The kernel is to the ranks that it starts what we are to this child.
int try_cross_memory() {
  std::uint64_t here = 0, there = 1;
  int until[2]; // its end is the child's
  if (pipe(until) != 0) return errno;
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    close(until[0]);
    close(until[1]);
    return error;
  }
  if (child == 0) {
    char none;
    close(until[1]);
    while (::read(until[0], &none, 1) < 0 && errno == EINTR) {
    }
    _exit(0);
  }
  close(until[0]);
  const iovec to{&here, sizeof here}, from{&there, sizeof there};
  const int error = process_vm_readv(child, &to, 1, &from, 1, 0) == sizeof here ? 0 : errno;
  close(until[1]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return error;
}

} // namespace parc::tools::diagnosis
