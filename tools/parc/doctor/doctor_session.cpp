// SPDX-License-Identifier: BSD-3-Clause
// What a logout takes away, and who cannot see or reach whom.
#include "tools/parc/doctor/doctor_checks.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <sstream>

namespace parc::tools::diagnosis {
namespace {

constexpr const char* as_a_unit = "systemctl --user enable --now parcd, and loginctl enable-linger";

bool says_yes(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text == "1" || text == "yes" || text == "y" || text == "true" || text == "t" || text == "on";
}

bool names_user(const std::string& list, const User& user) {
  std::istringstream names(list);
  for (std::string name; names >> name;)
    if (name == user.name || name == std::to_string(user.id)) return true;
  return false;
}

bool is_unit(const ProcessFacts& kernel) {
  return kernel.cgroup.find(".service") != std::string::npos &&
         kernel.cgroup.find("/session-") == std::string::npos;
}

// systemd leaves alone what belongs to users of the system.
bool is_system_user(const User& user) {
  constexpr uid_t first_of_people = 1000;
  return user.id < first_of_people;
}

Finding check_linger(const SessionFacts& facts, const User& user, const ProcessFacts& kernel,
                     const std::string& runtime_dir) {
  const std::string of_session = fmt::format("/run/user/{}", user.id);
  const bool in_session = runtime_dir.starts_with(of_session);
  if (facts.linger)
    return {"linger", Level::ok, "on: units of this user, and " + of_session + ", stay after logout"};
  if (user.is_root() && !in_session) return {"linger", Level::ok, "off; the kernel of root does not need it"};
  const bool goes = in_session || (kernel.known && is_unit(kernel));
  return {
      "linger", goes ? Level::warning : Level::information,
      goes
          ? fmt::format(
                "off: with the last session of {} the user's units and {} go, and with them this kernel's "
                "runtime directory",
                user.name, of_session)
          : fmt::format("off: with the last session of {} the user's units and {} go", user.name, of_session),
      "loginctl enable-linger (as root: loginctl enable-linger " + user.name + ")"};
}

Finding check_kill(const SessionFacts& facts, const User& user, const ProcessFacts& kernel) {
  const bool kills = says_yes(facts.setting("KillUserProcesses", "yes"));
  const std::string only = facts.setting("KillOnlyUsers", "");
  const bool spared = names_user(facts.setting("KillExcludeUsers", "root"), user) ||
                      (!only.empty() && !names_user(only, user));
  if (!kills) return {"KillUserProcesses", Level::ok, "no: what was started in a session goes on after it"};
  if (spared) return {"KillUserProcesses", Level::ok, fmt::format("yes, but not those of {}", user.name)};
  if (kernel.known && is_unit(kernel))
    return {"KillUserProcesses", Level::ok, "yes; this kernel belongs to no session"};
  return {
      "KillUserProcesses", Level::warning, "yes: a kernel that was started in a session is killed with it",
      fmt::format(
          "start it as a unit: {}; or KillUserProcesses=no under [Login] in /etc/systemd/logind.conf, and "
          "systemctl restart systemd-logind",
          as_a_unit)};
}

// systemd-logind leaves attached segments alone, and parc's are marked for removal as soon as they are
// attached: nothing of a running job is ever removed. What programs make for themselves is.
Finding check_remove_ipc(const SessionFacts& facts, const User& user) {
  if (!says_yes(facts.setting("RemoveIPC", "yes"))) return {"RemoveIPC", Level::ok, "no"};
  if (is_system_user(user))
    return {"RemoveIPC", Level::ok, fmt::format("yes, but not what belongs to {}", user.name)};
  return {"RemoveIPC", facts.linger ? Level::ok : Level::information,
          "yes: parc's segments stay, as they are attached while they are used; System V queues and "
          "semaphores, and "
          "/dev/shm, of programs that run on after logout do not",
          facts.linger ? ""
                       : "where programs have such: loginctl enable-linger, or RemoveIPC=no under [Login] in "
                         "/etc/systemd/logind.conf"};
}

Finding check_namespaces(const ProcessFacts& self, const ProcessFacts& kernel) {
  constexpr const char* of_the_system = "ipc:[4026531839]"; // the system's own, on every Linux
  const bool own = !self.ipc_namespace.empty() && self.ipc_namespace != of_the_system;
  if (kernel.known && !kernel.ipc_namespace.empty() && kernel.ipc_namespace != self.ipc_namespace)
    return {"IPC namespace", Level::problem,
            "parcd is in another IPC namespace than this shell (another container): programs of the two see "
            "none of "
            "each other's shared memory",
            "start both in one container, or the containers with one namespace: docker run --ipc=host, "
            "podman run "
            "--ipc=container:NAME, or hostIPC: true in Kubernetes"};
  if (own)
    return {"IPC namespace", Level::information,
            "this is a container with an IPC namespace of its own: programs reach a kernel in the same "
            "container only",
            "for a kernel outside: docker run --ipc=host --pid=host, and its runtime directory as a volume"};
  return {"IPC namespace", Level::ok, kernel.known ? "that of parcd" : "the system's"};
}

Finding check_hidepid(const SessionFacts& facts) {
  if (facts.hidepid == "4" || facts.hidepid == "ptraceable")
    return {"hidepid", Level::warning,
            "/proc shows only processes that we may trace: parc clean and parc status miss some",
            "mount -o remount,hidepid=invisible /proc"};
  return {"hidepid", Level::ok,
          facts.hidepid.empty() || facts.hidepid == "0" || facts.hidepid == "off"
              ? "all processes are seen"
              : "others' processes are hidden, which parc does not need"};
}

Finding check_cross_memory(const SessionFacts& facts, const User& user, const Settings& settings) {
  Finding finding{"cross memory", Level::ok,
                  "parcd may copy between its programs' memories (process_vm_readv)"};
  if (settings.cross_memory == "off") {
    finding.found = "cross_memory = \"off\" in the settings";
    return finding;
  }
  const std::uint64_t scope = facts.ptrace_scope.value_or(0);
  const bool scope_forbids = scope == 3 || (scope == 2 && !user.is_root());
  if (facts.cross_memory_error == 0 && !scope_forbids) return finding;
  finding.level = Level::warning;
  finding.found =
      fmt::format("parcd may not copy between its programs' memories ({}): long messages of one host that "
                  "are not in memory of parc_alloc are copied once more",
                  scope_forbids ? fmt::format("kernel.yama.ptrace_scope is {}", scope)
                                : std::strerror(facts.cross_memory_error));
  if (scope == 3)
    finding.mend =
        "kernel.yama.ptrace_scope = 1 in /etc/sysctl.d, and start this host again; or use parc_alloc";
  else if (scope_forbids)
    finding.mend = "sysctl -w kernel.yama.ptrace_scope=1, as root; or use parc_alloc";
  else
    finding.mend =
        "allow process_vm_readv in the container's seccomp profile (docker run --cap-add SYS_PTRACE); or use "
        "parc_alloc";
  return finding;
}

} // namespace

Findings check_logout(const SessionFacts& facts, const User& user, const ProcessFacts& kernel,
                      const std::string& runtime_dir) {
  if (!facts.systemd)
    return {
        {"logout", Level::information, "systemd does not run here, so nothing is ended at logout by it", {}}};
  return {check_linger(facts, user, kernel, runtime_dir), check_kill(facts, user, kernel),
          check_remove_ipc(facts, user)};
}

Findings check_isolation(const SessionFacts& facts, const User& user, const ProcessFacts& self,
                         const ProcessFacts& kernel, const Settings& settings) {
  return {check_namespaces(self, kernel), check_hidepid(facts), check_cross_memory(facts, user, settings)};
}

} // namespace parc::tools::diagnosis
