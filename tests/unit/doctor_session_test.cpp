// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/doctor_test.hpp"
#include "tools/parc/doctor/doctor_checks.hpp"

#include <cerrno>

namespace parc::tools::diagnosis {

BOOST_AUTO_TEST_SUITE(doctor_session)

namespace {

const User ann{.id = 1000, .name = "ann"}, root{.id = 0, .name = "root"};
const std::string of_session = "/run/user/1000/parc", elsewhere = "/tmp/parc-1000";

SessionFacts debian() {
  SessionFacts facts;
  facts.systemd = true;
  facts.defaults = {{"KillUserProcesses", "no"}, {"RemoveIPC", "yes"}, {"KillExcludeUsers", "root"}};
  return facts;
}

ProcessFacts kernel_in(const std::string& cgroup) {
  ProcessFacts kernel;
  kernel.known = true;
  kernel.cgroup = cgroup;
  kernel.ipc_namespace = "ipc:[4026531839]";
  return kernel;
}
const ProcessFacts none{};
const ProcessFacts in_session = kernel_in("0::/user.slice/user-1000.slice/session-3.scope\n");
const ProcessFacts in_unit =
    kernel_in("0::/user.slice/user-1000.slice/user@1000.service/app.slice/parcd.service\n");

} // namespace

BOOST_AUTO_TEST_CASE(without_systemd_nothing_is_ended) {
  const auto found = check_logout({}, ann, none, of_session);
  BOOST_TEST(found.size() == 1U);
  expect(found[0], Level::information, "systemd does not run here");
}

BOOST_AUTO_TEST_CASE(linger) {
  SessionFacts facts = debian();
  expect(of(check_logout(facts, ann, in_session, of_session), "linger"), Level::warning, "/run/user/1000 go",
         "loginctl enable-linger");
  expect(of(check_logout(facts, ann, in_unit, elsewhere), "linger"), Level::warning, "units",
         "loginctl enable-linger");
  expect(of(check_logout(facts, ann, in_session, elsewhere), "linger"), Level::information, "off");
  expect(of(check_logout(facts, root, in_session, elsewhere), "linger"), Level::ok, "root");
  facts.linger = true;
  expect(of(check_logout(facts, ann, in_unit, of_session), "linger"), Level::ok, "on");
}

BOOST_AUTO_TEST_CASE(killed_at_logout) {
  SessionFacts facts = debian();
  expect(of(check_logout(facts, ann, in_session, elsewhere), "KillUserProcesses"), Level::ok, "no");
  facts.logind["KillUserProcesses"] = "True";
  expect(of(check_logout(facts, ann, in_session, elsewhere), "KillUserProcesses"), Level::warning, "killed",
         "systemctl --user enable --now parcd");
  expect(of(check_logout(facts, ann, none, elsewhere), "KillUserProcesses"), Level::warning, "killed",
         "unit");
  expect(of(check_logout(facts, ann, in_unit, elsewhere), "KillUserProcesses"), Level::ok, "no session");
  expect(of(check_logout(facts, root, in_session, elsewhere), "KillUserProcesses"), Level::ok,
         "not those of root");
  facts.logind["KillOnlyUsers"] = "bob 1001";
  expect(of(check_logout(facts, ann, in_session, elsewhere), "KillUserProcesses"), Level::ok,
         "not those of ann");
  facts.logind["KillOnlyUsers"] = "bob 1000";
  expect(of(check_logout(facts, ann, in_session, elsewhere), "KillUserProcesses"), Level::warning, "killed",
         "unit");
}

BOOST_AUTO_TEST_CASE(removed_at_logout) {
  SessionFacts facts = debian();
  expect(of(check_logout(facts, ann, in_session, elsewhere), "RemoveIPC"), Level::information,
         "parc's segments stay", "RemoveIPC=no");
  expect(of(check_logout(facts, root, in_session, elsewhere), "RemoveIPC"), Level::ok, "root");
  facts.logind["RemoveIPC"] = "no";
  expect(of(check_logout(facts, ann, in_session, elsewhere), "RemoveIPC"), Level::ok, "no");
}

BOOST_AUTO_TEST_CASE(namespaces) {
  ProcessFacts self = kernel_in("");
  expect(of(check_isolation(debian(), ann, self, none, {}), "IPC namespace"), Level::ok, "the system's");
  expect(of(check_isolation(debian(), ann, self, in_unit, {}), "IPC namespace"), Level::ok, "that of parcd");
  self.ipc_namespace = "ipc:[4026532000]";
  expect(of(check_isolation(debian(), ann, self, none, {}), "IPC namespace"), Level::information, "container",
         "--ipc=host");
  expect(of(check_isolation(debian(), ann, self, in_unit, {}), "IPC namespace"), Level::problem, "another",
         "--ipc=host");
}

BOOST_AUTO_TEST_CASE(hidden_processes) {
  SessionFacts facts = debian();
  facts.hidepid = "invisible";
  expect(of(check_isolation(facts, ann, none, none, {}), "hidepid"), Level::ok, "hidden");
  facts.hidepid = "ptraceable";
  expect(of(check_isolation(facts, ann, none, none, {}), "hidepid"), Level::warning, "miss", "remount");
}

BOOST_AUTO_TEST_CASE(memory_of_programs) {
  SessionFacts facts = debian();
  facts.ptrace_scope = 1; // a kernel's programs are its children
  expect(of(check_isolation(facts, ann, none, none, {}), "cross memory"), Level::ok, "may copy");
  facts.ptrace_scope = 2;
  expect(of(check_isolation(facts, ann, none, none, {}), "cross memory"), Level::warning, "ptrace_scope is 2",
         "kernel.yama.ptrace_scope=1");
  expect(of(check_isolation(facts, root, none, none, {}), "cross memory"), Level::ok, "may copy");
  facts.ptrace_scope = 3;
  expect(of(check_isolation(facts, root, none, none, {}), "cross memory"), Level::warning, "3",
         "start this host again");
  Settings settings;
  settings.cross_memory = "off";
  expect(of(check_isolation(facts, ann, none, none, settings), "cross memory"), Level::ok, "off");
  facts.ptrace_scope.reset();
  facts.cross_memory_error = EPERM;
  expect(of(check_isolation(facts, ann, none, none, {}), "cross memory"), Level::warning, "not permitted",
         "seccomp");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(doctor_kernel)

using namespace doctor_session;

BOOST_AUTO_TEST_CASE(kernels) {
  KernelFacts facts;
  expect(of(check_kernel(facts, none), "kernel"), Level::information, "none runs", "parcd --detach");
  facts.runtime_dir = elsewhere;
  facts.parc_version = "1.0";
  facts.counters = CounterSnapshot{};
  facts.counters->program = "1.0";
  facts.counters->pid = 7;
  expect(of(check_kernel(facts, none), "kernel"), Level::warning, "dead (it was process 7)", "parc clean");
  facts.runs = true;
  expect(of(check_kernel(facts, none), "kernel"), Level::problem, "another container", "--pid=host");
  facts.process = 7;
  expect(of(check_kernel(facts, in_unit), "kernel"), Level::problem, "does not answer", "kill -9 7");
  facts.answers = true;
  expect(of(check_kernel(facts, in_unit), "kernel"), Level::ok, "process 7");
  expect(of(check_kernel(facts, in_unit), "version"), Level::ok, "1.0");
  ProcessFacts other = in_unit;
  other.state = 'T';
  expect(of(check_kernel(facts, other), "kernel"), Level::problem, "stopped", "kill -CONT 7");
  other.replaced = true;
  expect(of(check_kernel(facts, other), "version"), Level::warning, "replaced", "parc stop");
  facts.parc_version = "2.0";
  expect(of(check_kernel(facts, other), "version"), Level::problem, "parcd 1.0 runs, and this is parc 2.0",
         "install");
  facts.runtime_dir_refused = "runtime directory /x has mode 0755; correct it with: chmod 700 /x";
  const auto found = check_kernel(facts, other);
  BOOST_TEST(found.size() == 1U);
  expect(found[0], Level::problem, "/x has mode 0755", "correct it with: chmod 700 /x");
}

BOOST_AUTO_TEST_CASE(keys_and_settings) {
  SettingsFacts settings;
  settings.refused = "/etc/parc/parcd.toml:3: unknown setting \"prot\"; did you mean \"port\"?";
  BOOST_TEST(check_settings(settings, {}, ann).size() == 1U);
  expect(of(check_settings(settings, {}, ann), "settings"), Level::problem, "parcd.toml:3", "did you mean");
  settings = {.settings = Settings{}, .refused = {}, .cannot_start = {}};
  KeyFacts key{.path = "/k", .there = true, .is_file = true, .owner = 1000, .mode = 0600};
  expect(of(check_settings(settings, key, ann), "key"), Level::ok, "mode 0600");
  expect(of(check_settings(settings, key, ann), "settings"), Level::ok, "parcd -T");
  key.of_relay = true;
  expect(of(check_settings(settings, key, ann), "key"), Level::ok, "this host relays");
  key.mode = 0644;
  settings.cannot_start = "the key /k can be read by others (mode 0644); make it private with: chmod 600 /k";
  expect(of(check_settings(settings, key, ann), "key"), Level::problem, "mode 0644", "chmod 600 /k");
  expect(of(check_settings(settings, key, ann), "settings"), Level::ok, ""); // said once
  key.mode = 0600;
  settings.cannot_start = "the key /k is malformed: it must be one line; copy it again";
  expect(of(check_settings(settings, key, ann), "settings"), Level::problem, "malformed", "copy it again");
  key.owner = 1001;
  expect(of(check_settings(settings, key, ann), "key"), Level::problem, "belongs to user 1001",
         "chown ann /k");
  key.is_file = false;
  expect(of(check_settings(settings, key, ann), "key"), Level::problem, "not a file", "rm -r /k");
  key.there = false;
  expect(of(check_settings(settings, key, ann), "key"), Level::information, "none yet", "copy it");
  key.error = EACCES;
  expect(of(check_settings(settings, key, ann), "key"), Level::problem, "Permission denied", "ls -ld");
  key = {.path = "-"};
  expect(of(check_settings(settings, key, ann), "key"), Level::ok, "handed over");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools::diagnosis
