// SPDX-License-Identifier: BSD-3-Clause
// parc up and parc down, with a real sshd for each host.
#include "system/identity.hpp"
#include "tests/support/reachable.hpp"

#include <algorithm>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace parc::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(up, Reachable)

BOOST_AUTO_TEST_CASE(kernels_of_other_hosts_start_run_jobs_and_end) {
  const Ended up = command("up", "b,c");
  BOOST_TEST(up.status == 0, up.errors << hosts);
  BOOST_TEST(lines_in(up.output) == 3U);
  BOOST_TEST(contains(up.output, "\nb and c reach each other\n"), up.output);
  for (const char* host : {"b", "c"}) {
    BOOST_TEST(contains(up.output, std::string(host) + ": up at 127.0.0.1, listening on 127.0.0.1"));
    BOOST_TEST(is_up(host));
  }
  // No [hosts] names them, and b and c talk to each other, too.
  Process job = hosts.run({"--hosts", "a:1,b:2,c:2", PARC_TEST_PROGRAMS "/ring", "20", "1000"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);

  const Ended again = command("up", "b,c"); // those that run are no failure
  BOOST_TEST(again.status == 0, again.errors);

  const Ended down = command("down", "b,c");
  BOOST_TEST(down.status == 0, down.errors);
  BOOST_TEST(lines_in(down.output) == 2U);
  BOOST_TEST((!is_up("b") && !is_up("c")));
  const Ended nothing = command("down", "b,c");
  BOOST_TEST(nothing.status == 0, nothing.errors);
}

// With ports that nobody could have known, and no [hosts] but at host a.
BOOST_AUTO_TEST_CASE(every_kernel_is_told_where_the_others_are) {
  const auto on = [this](const std::string& host, std::vector<std::string> words) {
    words.insert(words.begin(), {"env", "PARC_RUNTIME_DIR=" + hosts.directory() + "/" + host + "/run/parc",
                                 "PARC_AUTOSTART=off"});
    Process process = hosts.start(std::move(words));
    const int status = process.wait();
    BOOST_TEST(status == 0, process.errors() << hosts);
    return process.output();
  };
  const auto up_at = [&](const std::string& host) {
    std::string names;
    const auto all = nlohmann::json::parse(on(host, {PARC_TEST_BIN "/parc", "hosts", "--json"}))["hosts"];
    for (const auto& each : all) names += each["up"] == true ? each["host"].get<std::string>() : "-";
    return names;
  };
  const Ended two = command("up", "b,c");
  BOOST_TEST_REQUIRE(two.status == 0, two.errors);
  BOOST_TEST(up_at("b") == "abc");
  BOOST_TEST(up_at("c") == "abc");
  const Ended third = command("up", "d");
  BOOST_TEST_REQUIRE(third.status == 0, third.errors);
  for (const char* host : others) BOOST_TEST(up_at(host) == "abcd");

  (void)on("c", {PARC_TEST_BIN "/parc", "run", "--hosts", "c,b,d", PARC_TEST_PROGRAMS "/ring", "20", "1000"});
  std::vector<Process> joiners; // they meet where none of them started parc up
  for (const char* rank : {"0", "1"})
    joiners.push_back(hosts.start(
        {"env", "PARC_RUNTIME_DIR=" + hosts.directory() + (*rank == '0' ? "/b/run/parc" : "/d/run/parc"),
         PARC_TEST_PROGRAMS "/joiner", "j@c", rank, "2"}));
  for (Process& each : joiners) {
    const int status = each.wait();
    BOOST_TEST(status == 0, each.errors() << hosts);
  }
}

BOOST_AUTO_TEST_CASE(what_is_up_is_what_other_commands_are_about) {
  const Ended up = command("up", "b:2,c");
  BOOST_TEST_REQUIRE(up.status == 0, up.errors << hosts);
  const auto ended = [&](Process process) {
    const int status = process.wait();
    return Ended{status, process.output(), process.errors()};
  };
  const std::string ssh = "ssh -F " + ssh_config();
  const Ended job = ended(hosts.run({"sh", "-c", "echo $PARC_SIZE $PARC_HOSTS"}));
  BOOST_TEST(contains(job.output, "3 b:2,c:1"), job.output << job.errors);
  BOOST_TEST(contains(job.errors, "parc: the hosts are those of parc up: b, c (--hosts names others)"));
  const Ended named = ended(hosts.run({"--hosts", "a", "sh", "-c", "echo $PARC_HOSTS"}));
  BOOST_TEST(contains(named.output, "a:1"), named.output);
  BOOST_TEST(named.errors.empty(), named.errors);
  const Ended two = ended(hosts.parc("probe", {}));
  BOOST_TEST(two.status == 2);
  BOOST_TEST(contains(two.errors, "name one of the hosts of parc up: b, c"), two.errors);

  const Ended first = ended(hosts.parc("down", {"--ssh", ssh, "--hosts", "c"}));
  BOOST_TEST(first.status == 0, first.errors);
  const Ended probe = ended(hosts.parc("probe", {"--json"}));
  BOOST_TEST(probe.status == 0, probe.errors);
  BOOST_TEST(contains(probe.output, "\"to\": \"b\""), probe.output);
  const Ended down = ended(hosts.parc("down", {"--ssh", ssh}));
  BOOST_TEST(down.status == 0, down.errors);
  BOOST_TEST(lines_in(down.output) == 1U, down.output);
  BOOST_TEST((!is_up("b") && !is_up("c")));
  const Ended none = ended(hosts.parc("down", {"--ssh", ssh}));
  BOOST_TEST(none.status == 2);
  BOOST_TEST(contains(none.errors, "no hosts are named"), none.errors);
  const Ended here = ended(hosts.run({"sh", "-c", "echo $PARC_HOSTS"}));
  BOOST_TEST(contains(here.output, "a:1"), here.output);

  // The list is their kernel's, and goes with it.
  BOOST_TEST_REQUIRE(command("up", "b").status == 0);
  BOOST_TEST(std::filesystem::exists(hosts[0].runtime_dir() + "/up-hosts"));
  hosts[0].kernel().signal(SIGKILL);
  (void)hosts[0].kernel().wait();
  hosts[0].start();
  BOOST_TEST(!std::filesystem::exists(hosts[0].runtime_dir() + "/up-hosts"));
}

// Of its own accord parc down ends what parc up has started, and not this host's kernel.
BOOST_AUTO_TEST_CASE(this_hosts_kernel_outlives_the_others) {
  const std::string own = hosts.directory() + "/own", ssh = "ssh -F " + ssh_config();
  std::filesystem::create_directory(own);
  std::filesystem::permissions(own, std::filesystem::perms::owner_all);
  const auto parc = [&](std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"env", "-u", "PARC_RUNTIME_DIR", "XDG_RUNTIME_DIR=" + own, PARC_TEST_BIN "/parc"});
    Process process = hosts.start(std::move(words));
    const int status = process.wait();
    return Ended{status, process.output(), process.errors()};
  };
  const Ended up = parc({"up", "--ssh", ssh, "--hosts", "b", "--", "--port", "0"});
  BOOST_TEST_REQUIRE(up.status == 0, up.errors);
  const Ended down = parc({"down", "--ssh", ssh});
  BOOST_TEST(down.status == 0, down.errors);
  BOOST_TEST(lines_in(down.output) == 1U, down.output);
  BOOST_TEST(!is_up("b"));
  BOOST_TEST(contains(parc({"status", "--json"}).output, "\"alive\": true"));
  BOOST_TEST(parc({"stop"}).status == 0);
}

// The key came to them on standard input, and is in no file of theirs.
BOOST_AUTO_TEST_CASE(the_key_stays_in_memory) {
  const Ended up = command("up", "b");
  BOOST_TEST_REQUIRE(up.status == 0, up.errors);
  BOOST_TEST(!std::filesystem::exists(hosts.directory() + "/b/config/parc/key"));
}

// One line for each, and the others are up.
BOOST_AUTO_TEST_CASE(a_host_that_fails_is_named) {
  stop_sshd(2);
  const Ended up = command("up", "b,d,nowhere.invalid");
  BOOST_TEST(up.status == 1);
  BOOST_TEST(lines_in(up.output) == 1U, up.output);
  BOOST_TEST(lines_in(up.errors) == 2U, up.errors);
  BOOST_TEST(contains(up.output, "b: up"));
  BOOST_TEST(contains(up.errors, "parc: host d is not up: "), up.errors);
  BOOST_TEST(contains(up.errors, "Connection refused"), up.errors);
  BOOST_TEST(contains(up.errors, "parc: host nowhere.invalid is not up: "), up.errors);
  BOOST_TEST(contains(up.errors, "nowhere.invalid: "), up.errors);
  const Ended down = command("down", "b,d");
  BOOST_TEST(down.status == 1);
  BOOST_TEST(lines_in(down.errors) == 1U, down.errors);
}

BOOST_AUTO_TEST_CASE(what_parcd_complains_of_is_told) {
  std::filesystem::create_directory(hosts.directory() + "/b/config/parc");
  std::ofstream(hosts.directory() + "/b/config/parc/parcd.toml") << "fragment_size = \"big\"\n";
  const Ended up = command("up", "b");
  BOOST_TEST(up.status == 1);
  BOOST_TEST(contains(up.errors, "fragment_size"), up.errors);
  BOOST_TEST(lines_in(up.errors) == 1U, up.errors);
}

BOOST_AUTO_TEST_CASE(parc_run_starts_kernels_that_are_missing) {
  const auto settings = [this](const std::string& host) {
    std::filesystem::create_directory(hosts.directory() + "/" + host + "/config/parc");
    std::ofstream(hosts.directory() + "/" + host + "/config/parc/parcd.toml")
        << "port = " << free_ports(1)[0] << "\n";
  };
  for (const char* host : {"b", "c"}) settings(host);
  std::filesystem::create_directory(hosts.directory() + "/d/config/parc");
  std::ofstream(hosts.directory() + "/d/config/parc/parcd.toml") << "port = 0\nlisten = \"127.0.0.2\"\n";
  const auto run = [this](const std::string& named, const std::string& autostart) {
    return hosts.start({"env", "PARC_SSH=ssh -F " + ssh_config(), "PARC_AUTOSTART=" + autostart,
                        PARC_TEST_BIN "/parc", "run", "--runtime-dir", hosts[0].runtime_dir(), "--hosts",
                        named, PARC_TEST_PROGRAMS "/ring", "20", "1000"});
  };
  Process job = run("a,b,c", "on");
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
  BOOST_TEST((is_up("b") && is_up("c")));

  // ssh knows who that is, and this host's kernel does not; and what runs already is not ended.
  Process alias = run("a,alias-of-b", "on");
  const int of_alias = alias.wait();
  BOOST_TEST(of_alias == 0, alias.errors() << hosts);

  // One that was started where nobody can reach it is ended again, and each that is missing is named.
  Process unreachable = run("a,d,nowhere.invalid", "on");
  BOOST_TEST(unreachable.wait() == 125);
  BOOST_TEST(lines_in(unreachable.errors()) == 2U, unreachable.errors());
  BOOST_TEST(contains(unreachable.errors(),
                      "parc: host d cannot take part: its kernel was started, could not be "
                      "reached from here and was ended again: "),
             unreachable.errors());
  BOOST_TEST(contains(unreachable.errors(), "127.0.0.2"), unreachable.errors());
  BOOST_TEST(contains(unreachable.errors(), "unknown host nowhere.invalid: "), unreachable.errors());
  BOOST_TEST(!is_up("d"));

  Process by_hand = hosts.start({"env", "XDG_CONFIG_HOME=" + hosts.directory() + "/d/config",
                                 "XDG_STATE_HOME=" + hosts.directory() + "/d/state", PARC_TEST_BIN "/parcd",
                                 "--detach", "--runtime-dir", hosts.directory() + "/d/run/parc"});
  BOOST_TEST(by_hand.wait() == 0, by_hand);
  Process there = run("a,d", "on");
  BOOST_TEST(there.wait() == 125);
  BOOST_TEST(
      contains(there.errors(), "parc: host d cannot take part: its kernel runs, and cannot be reached "),
      there.errors());
  BOOST_TEST(is_up("d"));
  const Ended down = command("down", "d");
  BOOST_TEST(down.status == 0, down.errors);

  stop_sshd(2);
  Process failed = run("b,d", "on");
  BOOST_TEST(failed.wait() == 125);
  BOOST_TEST(lines_in(failed.errors()) == 1U, failed.errors());
  BOOST_TEST(contains(failed.errors(), "parc: no parcd runs on host d, and none could be started there: "),
             failed.errors());
  Process forbidden = run("d", "off");
  BOOST_TEST(forbidden.wait() == 125);
  BOOST_TEST(contains(forbidden.errors(), "refuses the connection"), forbidden.errors());
}

BOOST_AUTO_TEST_CASE(an_ssh_that_is_not_there) {
  Process up = hosts.start({PARC_TEST_BIN "/parc", "up", "--runtime-dir", hosts[0].runtime_dir(), "--ssh",
                            "/no/such/ssh", "--hosts", "b,c"});
  BOOST_TEST(up.wait() == 1);
  BOOST_TEST(lines_in(up.errors()) == 2U, up.errors());
  BOOST_TEST(
      contains(up.errors(), "parc: host b is not up: cannot start /no/such/ssh: No such file or directory"),
      up.errors());
}

// It writes its process to a file, and never answers.
BOOST_AUTO_TEST_CASE(an_ssh_that_hangs) {
  const std::string ssh = hosts.directory() + "/slow", told = hosts.directory() + "/slow.pid";
  std::ofstream(ssh) << "#!/bin/sh\necho $$ >" << told << "\nexec sleep 1000\n";
  chmod(ssh.c_str(), 0700);
  const auto ends = [&](Process process, int status) {
    pid_t child = 0;
    BOOST_REQUIRE(eventually([&] { return static_cast<bool>(std::ifstream(told) >> child); }));
    if (status == 128 + SIGTERM) process.signal(SIGTERM);
    BOOST_TEST(process.wait() == status, process);
    BOOST_TEST(eventually([&] { return kill(child, 0) != 0; }));
    std::filesystem::remove(told);
    return process.errors();
  };
  ends(hosts.start({PARC_TEST_BIN "/parc", "up", "--runtime-dir", hosts[0].runtime_dir(), "--ssh", ssh,
                    "--hosts", "b"}),
       128 + SIGTERM);
  const std::string late =
      ends(hosts.start({"env", "PARC_SSH=" + ssh, PARC_TEST_BIN "/parc", "run", "--runtime-dir",
                        hosts[0].runtime_dir(), "--timeout", "10", "--hosts", "b", "true"}),
           124);
  BOOST_TEST(contains(late, "slow has not come to an end within"), late);
}

const auto names_of_this_host =
    boost::unit_test::data::make({short_host_name(), std::string("localhost"), std::string("127.0.0.1")});

// This host's kernel listens as the others are told to, and nobody has to get from a host to itself.
BOOST_DATA_TEST_CASE_F(Reachable, this_host_is_one_of_them, names_of_this_host, here) {
  const std::string runtime = hosts.directory() + "/fresh";
  std::filesystem::create_directory(runtime);
  chmod(runtime.c_str(), 0700);
  const std::vector<std::string> named{"--ssh", "/no/such/ssh", "--hosts", here};
  std::vector<std::string> words{PARC_TEST_BIN "/parc", "up", "--runtime-dir", runtime};
  words.insert(words.end(), named.begin(), named.end());
  words.insert(words.end(), {"--", "--port", "0", "--listen", "127.0.0.3"});
  Process up = hosts.start(std::move(words));
  BOOST_TEST(up.wait() == 0, up);
  BOOST_TEST(contains(up.output(), here + ": up at "), up.output());
  BOOST_TEST(contains(up.output(), "listening on 127.0.0.3, port"), up.output());

  words = {"env", "PARC_RUNTIME_DIR=" + runtime, PARC_TEST_BIN "/parc", "down"};
  words.insert(words.end(), named.begin(), named.end());
  Process down = hosts.start(std::move(words));
  BOOST_TEST(down.wait() == 0, down);
  BOOST_TEST(access((runtime + "/kernel.sock").c_str(), F_OK) != 0);
}

BOOST_AUTO_TEST_CASE(no_hosts) {
  Process none = hosts.start({PARC_TEST_BIN "/parc", "up"});
  BOOST_TEST(none.wait() == 2);
  BOOST_TEST(contains(none.errors(), "no hosts are named: parc up --hosts a,b or --hostfile FILE"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
