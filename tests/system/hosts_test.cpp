// SPDX-License-Identifier: BSD-3-Clause
// parc hosts, ps and kill: what all kernels are asked.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>

namespace parc::test {
namespace {

struct Three {
  Hosts hosts{3};

  nlohmann::json ask(const std::string& command, int expected = 0, std::vector<std::string> more = {}) {
    more.insert(more.begin(), "--json");
    Process process = hosts.parc(command, std::move(more));
    const int status = process.wait();
    BOOST_TEST(status == expected, process.errors() << hosts);
    return nlohmann::json::parse(process.output());
  }
  // parc kill on host `on`: its status and what it says.
  std::pair<int, std::string> kill(std::vector<std::string> words, std::size_t on = 0) {
    Process process = hosts.parc("kill", std::move(words), on);
    const int status = process.wait();
    return {status, process.output() + process.errors()};
  }
  // The only job, once all its ranks run.
  nlohmann::json running_job(std::size_t hosts_of_it) {
    nlohmann::json job;
    BOOST_REQUIRE(eventually([&] {
      const auto jobs = ask("ps")["jobs"];
      if (jobs.size() == 1) job = jobs[0];
      return jobs.size() == 1 && job["state"] == "running" && job["hosts"].size() == hosts_of_it;
    }));
    return job;
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(hosts_and_addresses)

// a dials b at another address than b says, b hears a from another one than a says.
BOOST_AUTO_TEST_CASE(what_is_advertised_is_told) {
  Hosts hosts(2, {"--advertise", "127.0.0.9"});
  for (const std::size_t on : {0u, 1u}) {
    Process process = hosts.parc("hosts", {"--json"}, on);
    BOOST_TEST(process.wait() == 0, process);
    const auto told = nlohmann::json::parse(process.output())["hosts"];
    BOOST_TEST(told.size() == 2U);
    for (const auto& each : told) {
      const Host& host = hosts[each["host"] == "a" ? 0 : 1];
      BOOST_TEST(each["address"] == "127.0.0.9:" + std::to_string(host.port()));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(hosts_and_jobs, Three)

BOOST_AUTO_TEST_CASE(who_is_up) {
  const auto all = ask("hosts")["hosts"];
  BOOST_TEST_REQUIRE(all.size() == 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(all[i]["host"] == hosts[i].name());
    BOOST_TEST(all[i]["up"] == true);
    BOOST_TEST(all[i]["version"] == PARC_VERSION);
    BOOST_TEST(all[i]["address"] == "127.0.0.1:" + std::to_string(hosts[i].port()));
  }
  Process table = hosts.parc("hosts", {});
  BOOST_TEST(table.wait() == 0);
  BOOST_TEST(contains(table.output(), "127.0.0.1:" + std::to_string(hosts[2].port())), table.output());

  hosts[2].kernel().signal(SIGKILL);
  (void)hosts[2].kernel().wait();
  const auto named = ask("hosts", 1, {"--hosts", "a,c,nowhere.invalid"})["hosts"];
  BOOST_TEST_REQUIRE(named.size() == 3U);
  BOOST_TEST(named[0]["up"] == true);
  BOOST_TEST(named[1]["up"] == false);
  BOOST_TEST(contains(named[1]["why"], "refuses the connection"), named[1]["why"]);
  BOOST_TEST(contains(named[2]["why"], "unknown host nowhere.invalid"));
}

// One that hangs is told from one that is not there, and holds up nobody.
BOOST_AUTO_TEST_CASE(a_kernel_that_hangs) {
  (void)ask("hosts"); // links are up
  hosts[1].kernel().signal(SIGSTOP);
  const auto all = ask("hosts", 1)["hosts"];
  hosts[1].kernel().signal(SIGCONT);
  BOOST_TEST(all[1]["up"] == false);
  BOOST_TEST(contains(all[1]["why"], "has not answered within 3 s"));
  BOOST_TEST(all[2]["up"] == true);
}

// The kernel of this host: whoever asks it is told what it is like, and waits no longer.
BOOST_AUTO_TEST_CASE(the_own_kernel_that_hangs) {
  Process job = hosts.run({"sh", "-c", "echo runs; exec sleep 1000"});
  BOOST_REQUIRE(eventually([&] { return job.output() == "runs\n"; }));
  hosts[0].kernel().signal(SIGSTOP);
  const std::string number = std::to_string(hosts[0].kernel().id());
  std::vector<Process> asking;
  asking.push_back(hosts.parc("hosts", {}));
  asking.push_back(hosts.parc("ps", {}));
  asking.push_back(hosts.parc("kill", {"1"}));
  asking.push_back(hosts.parc("dump", {}));
  asking.push_back(hosts.parc("probe", {"b"}));
  asking.push_back(hosts.parc("up", {"--hosts", "b"}));
  for (Process& each : asking) {
    BOOST_TEST(each.wait() == 1);
    BOOST_TEST(
        contains(each.errors(), "(parcd, process " + number + ") is stopped by a signal or a debugger"),
        each.errors());
    BOOST_TEST(contains(each.errors(), "kill -CONT " + number), each.errors());
  }
  Process none = hosts.run({"true"});
  BOOST_TEST(none.wait() == 125);
  BOOST_TEST(contains(none.errors(), "kill -CONT " + number), none.errors());
  // One signal is enough.
  job.signal(SIGINT);
  BOOST_TEST(job.wait() == 125);
  BOOST_TEST(contains(job.errors(), "kill -CONT " + number), job.errors());

  Process stop = hosts.parc("stop", {});
  BOOST_TEST(stop.wait() == 0, stop); // it goes on for that
  BOOST_TEST(hosts[0].kernel().wait() == 0);
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
}

BOOST_AUTO_TEST_CASE(jobs_of_all_hosts) {
  BOOST_TEST(ask("ps")["jobs"].empty());
  Process job = hosts.run({"--hosts", "b:2,c", "sleep", "1000"}, 1);
  const auto row = running_job(2);
  BOOST_TEST(row["program"] == "sleep");
  BOOST_TEST(row["ranks"] == 3);
  BOOST_TEST(row["from"] == "b");
  BOOST_TEST((row["hosts"] == nlohmann::json{{"b", 2}, {"c", 1}}));
  Process table = hosts.parc("ps", {});
  BOOST_TEST(table.wait() == 0);
  BOOST_TEST(contains(table.output(), row["job"]));
  BOOST_TEST(contains(table.output(), "b:2,c:1"));

  // From a host that has no part in it.
  const auto [status, said] = kill({row["job"]});
  BOOST_TEST(status == 0, said);
  BOOST_TEST(contains(said, "3 ranks of sleep): signal 15 (Terminated)"), said);
  BOOST_TEST(job.wait() == 128 + SIGTERM);
  BOOST_TEST(contains(job.errors(), "parc kill ended the job with signal 15 (Terminated)"), job.errors());
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));

  const auto [again, why] = kill({row["job"]});
  BOOST_TEST(again == 1);
  BOOST_TEST(contains(why, "no job " + std::string(row["job"]) + " runs on the hosts that answer (a, b, c)"),
             why);
}

BOOST_AUTO_TEST_CASE(other_signals_reach_the_ranks) {
  Process job =
      hosts.run({"--hosts", "a,c", "sh", "-c", "trap 'exit 5' USR1; while true; do sleep 0.05; done"});
  const auto row = running_job(2);
  const auto [status, said] = kill({"-s", "sigusr1", row["job"]}, 1);
  BOOST_TEST(status == 0, said);
  BOOST_TEST(job.wait() == 5);

  Process deaf = hosts.run({"-n", "2", "sh", "-c", "trap '' TERM; while true; do sleep 0.05; done"});
  BOOST_TEST(kill({running_job(1)["job"], "-s", "9"}, 2).first == 0);
  BOOST_TEST(deaf.wait() == 128 + SIGKILL);
}

BOOST_AUTO_TEST_CASE(what_is_no_job_or_signal) {
  const auto [no_job, job_text] = kill({"zebra"});
  BOOST_TEST(no_job == 2);
  BOOST_TEST(contains(job_text, "\"zebra\" is no job"), job_text);
  const auto [no_signal, signal_text] = kill({"-s", "SIGWHAT", "1"});
  BOOST_TEST(no_signal == 2);
  BOOST_TEST(contains(signal_text, "\"SIGWHAT\" is no signal; write a name as TERM, or a number"),
             signal_text);
  BOOST_TEST(kill({}).first == 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
