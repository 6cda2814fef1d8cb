// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/doctor_test.hpp"
#include "tools/parc/doctor/doctor_checks.hpp"

namespace parc::tools::diagnosis {

BOOST_AUTO_TEST_SUITE(doctor_limits)

namespace {

LimitFacts plenty() {
  LimitFacts facts;
  facts.shmmni = 4096;
  facts.shmmax = facts.shmall = 18446744073692774399U;
  facts.memory = std::uint64_t{8} << 30;
  facts.cores_online = 4;
  return facts;
}

Who ann(bool is_kernel = false) {
  Who who{.user = {.id = 1000, .name = "ann"}, .process = {}, .is_kernel = is_kernel};
  who.process.known = true;
  who.process.cores = {0, 1, 2, 3};
  who.process.realtime = {0, 0};
  return who;
}

} // namespace

BOOST_AUTO_TEST_CASE(stock_limits_are_enough) {
  for (const Finding& finding : check_segments(plenty(), 4))
    BOOST_TEST(finding.level == Level::ok, finding.found);
  for (const Finding& finding : check_process_limits(plenty(), ann()))
    BOOST_TEST(finding.level == Level::ok, finding.found);
}

BOOST_AUTO_TEST_CASE(segments) {
  LimitFacts facts = plenty();
  facts.segments = 4000;
  expect(of(check_segments(facts, 4), "segments"), Level::warning, "4000 in use: room for 46 ranks",
         "kernel.shmmni=16384");
  facts.segments = 4095;
  expect(of(check_segments(facts, 4), "segments"), Level::problem, "room for 0 ranks", "parc clean");
  facts.shmmni.reset();
  expect(of(check_segments(facts, 4), "segments"), Level::problem, "no System V shared memory",
         "CONFIG_SYSVIPC");
}

BOOST_AUTO_TEST_CASE(sizes_of_segments) {
  LimitFacts facts = plenty();
  facts.shmmax = 32 << 20; // once Linux's own default
  expect(of(check_segments(facts, 4), "segment size"), Level::problem, "32.0 MiB", "kernel.shmmax=");
  facts.shmmax = 512 << 20;
  expect(of(check_segments(facts, 4), "segment size"), Level::warning, "early release", "kernel.shmmax=");
  facts.shmall = (std::uint64_t{4} << 30) / facts.page;
  expect(of(check_segments(facts, 4), "segments in all"), Level::warning,
         "less than this host's memory of 8.0 GiB", "kernel.shmall=");
  facts.segment_bytes = (std::uint64_t{4} << 30) - 1000;
  expect(of(check_segments(facts, 4), "segments in all"), Level::problem, "4 ranks need", "kernel.shmall=");
}

BOOST_AUTO_TEST_CASE(descriptors) {
  Who who = ann();
  who.process.files = {1024, 1024};
  expect(of(check_process_limits(plenty(), who), "descriptors"), Level::warning,
         "a parcd started from here may have 1024 descriptors (RLIMIT_NOFILE): room for 162 ranks",
         "\"ann - nofile 65536\" into /etc/security/limits.d/parc.conf");
  who.process.files = {64, 1 << 20}; // parcd raises it
  expect(of(check_process_limits(plenty(), who), "descriptors"), Level::ok, "1048576");
  who.is_kernel = true;
  who.process.files = {256, 256};
  who.process.files_open = 200;
  expect(of(check_process_limits(plenty(), who), "descriptors"), Level::problem, "parcd may have 256",
         "LimitNOFILE=65536");
}

BOOST_AUTO_TEST_CASE(processes) {
  LimitFacts facts = plenty();
  facts.tasks_of_user = 90;
  Who who = ann();
  who.process.processes = {100, 200};
  expect(of(check_process_limits(facts, who), "processes"), Level::warning, "100 processes and threads",
         "nproc");
  facts.tasks_of_user = 98;
  expect(of(check_process_limits(facts, who), "processes"), Level::problem, "98 in use", "nproc");
  who.user = {.id = 0, .name = "root"};
  expect(of(check_process_limits(facts, who), "processes"), Level::ok, "root");
  who.process.tasks_max = 40;
  who.process.tasks = 10;
  expect(of(check_process_limits(facts, who), "tasks"), Level::warning, "allows 40 processes",
         "TasksMax=infinity");
  who.process.address_space.soft = std::uint64_t{2} << 30;
  expect(of(check_process_limits(facts, who), "address space"), Level::warning, "2.0 GiB",
         "ulimit -v unlimited");
}

BOOST_AUTO_TEST_CASE(real_time) {
  Who who = ann();
  expect(check_realtime(who, "auto", ""), Level::warning, "RLIMIT_RTPRIO is 0",
         "\"ann - rtprio 1\" into /etc/security/limits.d/parc.conf");
  expect(check_realtime(who, "off", ""), Level::information, "realtime = \"off\"");
  who.process.realtime = {0, 1};
  expect(check_realtime(who, "auto", ""), Level::ok, "may run at real-time priority");
  who = ann(true);
  expect(check_realtime(who, "auto", "real-time"), Level::ok, "parcd runs at real-time priority");
  expect(check_realtime(who, "auto", "normal, slice 0.1 ms"), Level::warning, "normal, slice 0.1 ms",
         "LimitRTPRIO=1");
  who.user = {.id = 0, .name = "root"};
  expect(check_realtime(who, "auto", "normal, default slice"), Level::warning, "normal", "SYS_NICE");
  who.process.in_user_namespace = true;
  expect(check_realtime(who, "auto", "normal, default slice"), Level::warning, "user namespace", "outside");
}

BOOST_AUTO_TEST_CASE(cores) {
  Who who = ann(true);
  expect(of(check_cores(plenty(), who, 3), "cores"), Level::ok,
         "4 of 4 cores; it has one for itself with up to 3 ranks");
  expect(of(check_cores(plenty(), who, 4), "cores"), Level::information, "shares one", "with 3 ranks");
  who.process.cores = {2};
  expect(of(check_cores(plenty(), who, 0), "cores"), Level::warning, "1 of 4 cores", "taskset");
  LimitFacts small = plenty();
  small.cores_online = 1;
  expect(of(check_cores(small, who, 0), "cores"), Level::warning, "1 of 1 cores", "second core");
  who = ann(true);
  BOOST_TEST(check_cores(plenty(), who, 0).size() == 1U);
  who.process.core_quota = 4;
  BOOST_TEST(check_cores(plenty(), who, 0).size() == 1U);
  who.process.core_quota = 1.5;
  expect(of(check_cores(plenty(), who, 0), "core quota"), Level::warning, "1.50 cores", "--cpuset-cpus");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools::diagnosis
