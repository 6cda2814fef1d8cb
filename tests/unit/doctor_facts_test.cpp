// SPDX-License-Identifier: BSD-3-Clause
// Facts are read from a /proc, /sys and /etc that lie in a directory of the test's.
#include "tests/unit/scratch.hpp"
#include "tools/parc/doctor/doctor_facts.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::tools::diagnosis {

BOOST_AUTO_TEST_SUITE(doctor_facts)

namespace {

class FakeRoot {
public:
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(scratch_.path() + path).parent_path());
    test::write_file(scratch_.path() + path, text);
  }
  void put_link(const std::string& path, const std::string& to) {
    std::filesystem::create_directories(std::filesystem::path(scratch_.path() + path).parent_path());
    std::filesystem::create_symlink(to, scratch_.path() + path);
  }
  [[nodiscard]] Root root() const { return Root(scratch_.path()); }

private:
  test::Scratch scratch_;
};

constexpr const char* limits =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max address space         unlimited            unlimited            bytes     \n"
    "Max processes             500                  1000                 processes \n"
    "Max open files            1024                 4096                 files     \n"
    "Max realtime priority     0                    1                    \n";

} // namespace

BOOST_AUTO_TEST_CASE(an_empty_system_says_nothing) {
  const FakeRoot fake;
  const auto read = read_limits(fake.root(), {.id = 1000, .name = "ann"});
  BOOST_TEST(!read.shmmni.has_value());
  BOOST_TEST(read.segments == 0U);
  BOOST_TEST(read.cores_online == 1U);
  BOOST_TEST(!read_process(fake.root(), "self").known);
  BOOST_TEST(!read_tcp(fake.root()).tcp_rmem.has_value());
  BOOST_TEST(!read_session(fake.root(), {.id = 1000, .name = "ann"}).systemd);
}

BOOST_AUTO_TEST_CASE(limits_of_the_system) {
  FakeRoot fake;
  fake.put("/proc/sys/kernel/shmmni", "4096\n");
  fake.put("/proc/sys/kernel/shmall", "18446744073692774399\n");
  fake.put("/proc/sysvipc/shm", "       key      shmid perms                  size  cpid  lpid nattch\n"
                                "         1          0   600                  4096    11    12      2\n"
                                "         2          1   600               1000000    11    12      2\n");
  fake.put("/proc/meminfo", "MemTotal:        8000 kB\nMemFree: 1 kB\n");
  fake.put("/sys/devices/system/cpu/online", "0-3,6\n");
  fake.put("/proc/10/status", "Name:\tsh\nUid:\t1000\t1000\t1000\t1000\nThreads:\t3\n");
  fake.put("/proc/11/status", "Name:\tsh\nUid:\t1001\t1001\t1001\t1001\nThreads:\t5\n");
  fake.put("/proc/12/status", "Name:\tsh\nUid:\t1000\t1000\t1000\t1000\nThreads:\t1\n");
  const auto read = read_limits(fake.root(), {.id = 1000, .name = "ann"});
  BOOST_TEST(read.shmmni.value() == 4096U);
  BOOST_TEST(read.shmall.value() == 18446744073692774399U);
  BOOST_TEST(!read.shmmax.has_value());
  BOOST_TEST(read.segments == 2U);
  BOOST_TEST(read.segment_bytes == 1004096U);
  BOOST_TEST(read.memory == 8000U * 1024);
  BOOST_TEST(read.cores_online == 5U);
  BOOST_TEST(read.tasks_of_user == 4U);
}

BOOST_AUTO_TEST_CASE(a_process_in_control_groups_of_the_second_version) {
  FakeRoot fake;
  fake.put("/proc/7/status", "Name:\tparcd\nState:\tT (stopped)\nCpus_allowed_list:\t0,2-3\n");
  fake.put("/proc/7/limits", limits);
  fake.put("/proc/7/cgroup", "0::/user.slice/user-1000.slice/session-2.scope\n");
  fake.put("/proc/7/uid_map", "         0          0 4294967295\n");
  fake.put("/proc/7/fd/0", "");
  fake.put("/proc/7/fd/1", "");
  fake.put_link("/proc/7/ns/ipc", "ipc:[4026531839]");
  fake.put_link("/proc/7/exe", "/usr/bin/parcd (deleted)");
  fake.put("/sys/fs/cgroup/user.slice/pids.max", "max\n");
  fake.put("/sys/fs/cgroup/user.slice/pids.current", "80\n");
  fake.put("/sys/fs/cgroup/user.slice/user-1000.slice/pids.max", "100\n");
  fake.put("/sys/fs/cgroup/user.slice/user-1000.slice/pids.current", "60\n");
  fake.put("/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope/pids.max", "1000\n");
  fake.put("/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope/pids.current", "50\n");
  fake.put("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  fake.put("/sys/fs/cgroup/user.slice/user-1000.slice/cpu.max", "max 100000\n");
  const auto read = read_process(fake.root(), "7");
  BOOST_TEST(read.known);
  BOOST_TEST(read.state == 'T');
  BOOST_TEST(read.files.soft == 1024U);
  BOOST_TEST(read.files.hard == 4096U);
  BOOST_TEST(read.processes.soft == 500U);
  BOOST_TEST(read.realtime.hard == 1U);
  BOOST_TEST(read.address_space.soft == unlimited);
  BOOST_TEST(read.files_open == 2U);
  BOOST_TEST((read.cores == std::vector<unsigned>{0, 2, 3}));
  BOOST_TEST(read.tasks_max.value() == 100U); // the one with least room
  BOOST_TEST(read.tasks.value() == 60U);
  BOOST_TEST(read.core_quota.value() == 1.5);
  BOOST_TEST(read.ipc_namespace == "ipc:[4026531839]");
  BOOST_TEST(!read.in_user_namespace);
  BOOST_TEST(read.replaced);
}

BOOST_AUTO_TEST_CASE(a_process_in_control_groups_of_the_first_version) {
  FakeRoot fake;
  fake.put("/proc/7/status", "Name:\tparcd\nState:\tS (sleeping)\n");
  fake.put("/proc/7/cgroup", "8:pids:/docker/x\n2:cpu,cpuacct:/docker/x\n0::/\n");
  fake.put("/proc/7/uid_map", "         0     100000      65536\n");
  fake.put("/sys/fs/cgroup/pids/docker/x/pids.max", "40\n");
  fake.put("/sys/fs/cgroup/pids/docker/x/pids.current", "4\n");
  fake.put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  fake.put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  fake.put("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "50000\n");
  fake.put("/sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  const auto read = read_process(fake.root(), "7");
  BOOST_TEST(read.tasks_max.value() == 40U);
  BOOST_TEST(read.core_quota.value() == 0.5);
  BOOST_TEST(read.in_user_namespace);
  BOOST_TEST(!read.replaced);
}

BOOST_AUTO_TEST_CASE(settings_of_tcp) {
  FakeRoot fake;
  fake.put("/proc/sys/net/core/wmem_max", "212992\n");
  fake.put("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
  fake.put("/proc/sys/net/ipv4/tcp_congestion_control", "cubic\n");
  fake.put("/proc/sys/net/ipv4/tcp_allowed_congestion_control", "reno cubic\n");
  fake.put("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "1\n");
  fake.put("/proc/sys/net/ipv4/tcp_window_scaling", "0\n");
  const auto read = read_tcp(fake.root());
  BOOST_TEST(read.wmem_max.value() == 212992U);
  BOOST_TEST(read.tcp_rmem.value() == 6291456U);
  BOOST_TEST(!read.tcp_wmem.has_value());
  BOOST_TEST(read.congestion == "cubic");
  BOOST_TEST((read.allowed == std::vector<std::string>{"reno", "cubic"}));
  BOOST_TEST(read.slow_start_after_idle.value());
  BOOST_TEST(!read.window_scaling.value());
}

// The first main file alone; drop-ins in the order of their names, one of /etc in place of its namesake.
BOOST_AUTO_TEST_CASE(settings_of_logind_as_systemd_reads_them) {
  FakeRoot fake;
  fake.put("/run/systemd/system/x", "");
  fake.put("/var/lib/systemd/linger/ann", "");
  fake.put("/etc/systemd/logind.conf",
           "# Entries in this file show the defaults, as Key=value\n[Login]\n#KillUserProcesses=no\n"
           "#RemoveIPC=yes\n; KillExcludeUsers=root\n[Other]\nRemoveIPC=no\n");
  fake.put("/usr/lib/systemd/logind.conf", "[Login]\nKillUserProcesses=yes\nKillOnlyUsers=bob\n");
  fake.put("/usr/lib/systemd/logind.conf.d/20-site.conf", "[Login]\nRemoveIPC = no \n");
  fake.put("/etc/systemd/logind.conf.d/10-site.conf", "[Login]\nRemoveIPC=yes\nKillOnlyUsers=ann\n");
  fake.put("/usr/lib/systemd/logind.conf.d/10-site.conf", "[Login]\nKillUserProcesses=yes\n");
  fake.put("/etc/systemd/logind.conf.d/30-site.ignored", "[Login]\nRemoveIPC=maybe\n");
  fake.put("/proc/self/mounts", "proc /proc proc rw,nosuid,hidepid=invisible 0 0\ntmpfs /tmp tmpfs rw 0 0\n");
  fake.put("/proc/sys/kernel/yama/ptrace_scope", "2\n");
  const auto read = read_session(fake.root(), {.id = 1000, .name = "ann"});
  BOOST_TEST(read.systemd);
  BOOST_TEST(read.linger);
  BOOST_TEST(read.setting("RemoveIPC", "?") == "no");
  BOOST_TEST(read.setting("KillUserProcesses", "?") == "no"); // built in, as its comment says
  BOOST_TEST(read.setting("KillOnlyUsers", "?") == "ann");
  BOOST_TEST(read.setting("KillExcludeUsers", "?") == "root");
  BOOST_TEST(read.setting("Unknown", "?") == "?");
  BOOST_TEST(read.hidepid == "invisible");
  BOOST_TEST(read.ptrace_scope.value() == 2U);
  BOOST_TEST(!read_session(fake.root(), {.id = 1001, .name = "bob"}).linger);
}

BOOST_AUTO_TEST_CASE(settings_of_parcd) {
  const auto read =
      parse_settings("name = \"a\"  # default\nlisten = [\"127.0.0.1\", \"::1\"]\nsend_buffer = 65536\n"
                     "congestion = \"bbr\"\nkey_file = \"/k\"\n\n[hosts]\n"
                     "\"b\" = { address = \"10.0.0.2\", port = 7273 }\n");
  BOOST_TEST_REQUIRE(read.has_value());
  const Settings& settings = read.value();
  BOOST_TEST(settings.name == "a");
  BOOST_TEST(settings.listen.size() == 2U);
  BOOST_TEST(settings.send_buffer == 65536U);
  BOOST_TEST(settings.receive_buffer == 0U);
  BOOST_TEST(settings.congestion == "bbr");
  BOOST_TEST(settings.hosts.at("b").address == "10.0.0.2");
  BOOST_TEST(settings.hosts.at("b").port == 7273);
  BOOST_TEST(!parse_settings("name = ").has_value());
}

BOOST_AUTO_TEST_CASE(a_key_file) {
  const test::Scratch scratch;
  BOOST_TEST(!read_key_facts(scratch / "key").there);
  test::write_file(scratch / "key", "x");
  std::filesystem::permissions(scratch / "key", std::filesystem::perms(0640));
  const auto read = read_key_facts(scratch / "key");
  BOOST_TEST(read.there);
  BOOST_TEST(read.is_file);
  BOOST_TEST(read.mode == 0640U);
  BOOST_TEST(!read_key_facts(scratch.path()).is_file);
  BOOST_TEST(read_key_facts(scratch / "key/below").error == ENOTDIR);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools::diagnosis
