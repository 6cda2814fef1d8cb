// SPDX-License-Identifier: BSD-3-Clause
// parc status and parc clean, with a kernel and after it.
#include "tests/support/hosts.hpp"
#include "tests/support/terminal.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace parc::test {
BOOST_AUTO_TEST_SUITE(status)

BOOST_AUTO_TEST_CASE(a_running_job_is_seen) {
  Hosts hosts(2);
  Process job = hosts.run({"-n", "3", "--hosts", "a:2,b", PARC_TEST_PROGRAMS "/ring", "100000", "0"});
  BOOST_TEST(eventually([&] {
    const auto seen = hosts.status();
    return seen["sessions"].size() == 2 && seen["links"].size() == 1 && seen["jobs"].size() == 1 &&
           seen["jobs"][0]["state"] == "running" && seen["links"][0]["bytes_in"] > 100000;
  }));
  const auto seen = hosts.status();
  Process named = hosts.run({"sh", "-c", "echo $PARC_JOB; exec sleep 1000"});
  BOOST_TEST(eventually([&] { return named.output().ends_with('\n'); }));
  BOOST_TEST(eventually([&] { return hosts.status()["jobs"].size() == 2; }));
  const auto jobs = hosts.status()["jobs"];
  BOOST_TEST((jobs[0]["job"].get<std::string>() + "\n" == named.output() ||
              jobs[1]["job"].get<std::string>() + "\n" == named.output()));
  named.signal(SIGTERM);
  BOOST_TEST(named.wait() == 128 + SIGTERM);
  BOOST_TEST(seen["schema"] == 1);
  BOOST_TEST(seen["kernel"]["host"] == "a");
  BOOST_TEST(seen["kernel"]["alive"] == true);
  BOOST_TEST(seen["kernel"]["pid"] == hosts[0].kernel().id());
  BOOST_TEST(seen["jobs"][0]["ranks_here"] == 2);
  BOOST_TEST(seen["links"][0]["host"] == "b");
  Process text = hosts.parc("status", {});
  BOOST_TEST(text.wait() == 0);
  for (const char* word : {"kernel of host a", "listening on 127.0.0.1, port ", ", on loopback only\n",
                           "LINK", "JOB", "running", "READS WRITES"})
    BOOST_TEST(text.output().find(word) != std::string::npos, word);
  BOOST_TEST(text.output().find("JOB") < text.output().find("LINK"));
  BOOST_TEST(text.output().find("bytes_out") == std::string::npos);
  Process verbose = hosts.parc("status", {"-v"});
  BOOST_TEST(verbose.wait() == 0);
  BOOST_TEST(verbose.output().find("bytes_out") != std::string::npos);
  job.signal(SIGTERM);
  BOOST_TEST(job.wait() == 128 + SIGTERM);
  BOOST_TEST(eventually([&] { return hosts.status()["jobs"].empty() && hosts.status(1)["jobs"].empty(); }));
}

// In a pipe it has neither, as above.
BOOST_AUTO_TEST_CASE(a_terminal_of_80_columns_has_room_for_it_and_colours) {
  Hosts hosts(2);
  Process job = hosts.run({"--hosts", "a:2,b", PARC_TEST_PROGRAMS "/ring", "100000", "0"});
  BOOST_TEST(eventually([&] { return hosts.status()["sessions"].size() == 2; }));
  const auto shown_as = [&](const std::string& type, const std::string& prefix) {
    Terminal terminal(
        type,
        {"/bin/sh", "-c",
         prefix + "exec " PARC_TEST_BIN "/parc status -v --runtime-dir " + hosts[0].runtime_dir()},
        80);
    BOOST_TEST(terminal.wait() == 0);
    return terminal.sent();
  };
  const std::string plain = shown_as("dumb", ""), coloured = shown_as("xterm", "");
  BOOST_TEST(plain.find("NEIGHBOURS") != plain.npos, plain);
  BOOST_TEST(plain.find('\x1b') == plain.npos, plain);
  BOOST_TEST(coloured.find("\x1b[1mLINK") != coloured.npos, coloured);
  BOOST_TEST(shown_as("xterm", "export NO_COLOR=1; ").find('\x1b') == plain.npos);
  std::istringstream lines(plain);
  for (std::string line; std::getline(lines, line);) BOOST_TEST(line.size() <= 81U, line); // with its \r
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  const std::string dead = shown_as("xterm", "");
  BOOST_TEST(dead.find("\x1b[1;31mkernel of host a: DEAD") != dead.npos, dead);
}

BOOST_AUTO_TEST_CASE(what_a_kernel_did_is_counted) {
  Hosts hosts(2);
  Process job = hosts.run({"--hosts", "a:2,b:2", PARC_TEST_PROGRAMS "/random_messages", "1", "500"});
  BOOST_TEST(job.wait() == 0);
  Process rogue = hosts.run({PARC_TEST_PROGRAMS "/rogue", "tail"});
  BOOST_TEST(rogue.wait() == 0);
  BOOST_TEST(eventually([&] { // counters are written before a sleep
    return hosts.status()["counters"]["sessions_refused"] == 1 &&
           hosts.status(1)["counters"]["sessions"] == 0;
  }));
  const auto a = hosts.status()["counters"], b = hosts.status(1)["counters"];
  for (const char* moved :
       {"turns", "sleeps", "wakes", "trains_out", "fragments_in", "bytes_in", "messages_in", "messages_out",
        "messages_local", "unexpected", "unexpected_bytes", "copy_bytes"})
    BOOST_TEST(a[moved] > 0, moved);
  BOOST_TEST(a["pool_peak"].get<int>() + b["pool_peak"].get<int>() > 0);
  BOOST_TEST(a["messages_out"] == b["messages_in"]);
  BOOST_TEST(b["messages_out"] == a["messages_in"]);
  BOOST_TEST(a["bytes_out"] == b["bytes_in"]);
  BOOST_TEST(a["sessions_total"] == 3);
  BOOST_TEST(b["sessions_total"] == 2);
  BOOST_TEST(b["sessions_refused"] == 0);
}

// At who has written it, and at who keeps it; what stands for seconds is said, once.
BOOST_AUTO_TEST_CASE(what_neighbours_do_not_take_is_seen) {
  constexpr int messages = 5000;
  Hosts hosts(1, {"--local", "direct"});
  const std::string files = hosts.directory() + "/files", said = " have waited for 10 s ";
  std::filesystem::create_directory(files);
  Process job = hosts.run({"--hosts", "a:2", PARC_TEST_PROGRAMS "/backlog", files, "stands",
                           std::to_string(messages), "100", std::to_string(messages / 2)});
  const auto backlog_of = [&](std::size_t rank) {
    const auto sessions = hosts.status()["sessions"];
    return sessions.size() == 2 ? sessions[rank]["backlog"] : nlohmann::json();
  };
  BOOST_TEST_REQUIRE(eventually([&] { return std::filesystem::exists(files + "/written"); }), job);
  const auto standing = backlog_of(0);
  BOOST_TEST(standing.value("to_neighbours", 0) > messages / 2, standing.dump());
  BOOST_TEST(standing.value("to_neighbours_bytes", 0) > standing.value("to_neighbours", 0) * 100);
  BOOST_TEST(standing.size() == 2u);
  BOOST_TEST(backlog_of(1).empty());
  for (const char* command : {"status", "dump"}) {
    Process text = hosts.parc(command, {});
    BOOST_TEST(text.wait() == 0);
    BOOST_TEST(text.output().find("messages to neighbours that do not take them") != std::string::npos,
               text.output());
  }
  BOOST_TEST(eventually([&] { return job.errors().find(said) != std::string::npos; }), job);
  BOOST_TEST(job.errors().find(" messages to peer 1 (") != std::string::npos, job.errors());
  std::ofstream(files + "/take").put('\n');
  BOOST_TEST(eventually([&] { // all of it is with its reader then
    return backlog_of(0).empty() && backlog_of(1).value("from_neighbours", 0) == messages - messages / 2;
  }));
  BOOST_TEST(backlog_of(1).value("from_neighbours_bytes", 0) > messages / 2 * 100);
  std::ofstream(files + "/end").put('\n');
  BOOST_TEST(job.wait() == 0, job);
  BOOST_TEST(job.errors().find(said) == job.errors().rfind(said), job.errors());
}

BOOST_AUTO_TEST_CASE(a_dead_kernel_is_seen_and_cleaned_up) {
  Hosts hosts(1);
  // One that is in a process group of its own: it does not die with its rank.
  Process job = hosts.run({"sh", "-c", "setsid sleep 1000 & echo ready; wait"});
  BOOST_TEST(eventually([&] { return job.output() == "ready\n"; }));
  Process clean_beside = hosts.parc("clean", {});
  BOOST_TEST(clean_beside.wait() == 0);
  BOOST_TEST(clean_beside.output().find("removed /") == std::string::npos);
  BOOST_TEST(job.running());

  hosts[0].kernel().signal(SIGKILL);
  // Before anybody has noticed, too: until then it is a zombie.
  BOOST_TEST(eventually([&] { return hosts.status()["kernel"]["alive"] == false; }));
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  BOOST_TEST(job.wait() == 125);
  Process text = hosts.parc("status", {});
  BOOST_TEST(text.wait() == 0);
  BOOST_TEST(text.output().find("DEAD") != std::string::npos);
  BOOST_TEST(hosts.status()["kernel"]["ended"] == false);
  BOOST_TEST(eventually([&] { return hosts.ranks().size() == 1; })); // the one that got away

  Process clean = hosts.parc("clean", {});
  BOOST_TEST(clean.wait() == 0);
  BOOST_TEST(clean.output().find("ended 1 processes") != std::string::npos);
  BOOST_TEST(clean.output().find("counters of a dead kernel") != std::string::npos);
  BOOST_TEST(hosts.ranks().empty());
  BOOST_TEST(!std::filesystem::exists(hosts[0].runtime_dir() + "/kernel.sock"));
  Process none = hosts.parc("status", {});
  BOOST_TEST(none.wait() == 1);
  BOOST_TEST(none.errors().starts_with("parc: "));

  hosts[0].start();
  Process again = hosts.run({"echo", "again"});
  BOOST_TEST(again.wait() == 0);
  BOOST_TEST(again.output() == "again\n");
}

BOOST_AUTO_TEST_CASE(the_next_kernel_cleans_up_too) {
  Hosts hosts(1);
  Process job = hosts.run({"sh", "-c", "setsid sleep 1000 & echo ready; wait"});
  BOOST_TEST(eventually([&] { return job.output() == "ready\n"; }));
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  BOOST_TEST(job.wait() == 125);
  hosts[0].start();
  BOOST_TEST(hosts.ranks().empty());
  // It has read what the one before has left, and still holds the lock.
  Process stop = hosts.parc("stop", {});
  BOOST_TEST(stop.wait() == 0);
  BOOST_TEST(stop.output().starts_with("stopping the kernel of host a"), stop.output());
  const auto seen = hosts.status()["kernel"]; // other than after kill -9
  BOOST_TEST(seen["alive"] == false);
  BOOST_TEST(seen["ended"] == true);
  BOOST_TEST(hosts[0].kernel().wait() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
