// SPDX-License-Identifier: BSD-3-Clause
// parc_spawn, parc_parent, parc_kill, parc_initexit.
#include "tests/support/hosts.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fstream>

namespace parc::test {
namespace {

const std::string program = PARC_TEST_PROGRAMS "/spawner";

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

bool nothing_runs(Hosts& hosts) {
  return eventually([&] {
    return hosts.ranks().empty() && hosts.status(0)["jobs"].empty() && hosts.status(1)["jobs"].empty();
  });
}

struct Fixture {
  Hosts hosts{2};
  ~Fixture() { BOOST_TEST(nothing_runs(hosts), hosts); }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(spawned, Fixture)

BOOST_AUTO_TEST_CASE(tasks_and_results) {
  for (const std::string place : {"a", "a,b", "b"}) {
    Process job = hosts.run({"-n", "1", "--hosts", place, program, "farm", "5"});
    const int status = job.wait();
    BOOST_TEST(status == 0, job.errors() << hosts);
    BOOST_TEST(count_of(job.output(), "task ") == 5, job.output());
  }
}

BOOST_AUTO_TEST_CASE(hosts_take_turns) {
  Process job = hosts.run({"-n", "2", "--hosts", "a,b", program, "farm", "4"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
  BOOST_TEST(count_of(job.output(), "on a\n") == 4, job.output());
  BOOST_TEST(count_of(job.output(), "on b\n") == 4, job.output());
}

// Also one that the job had not.
BOOST_AUTO_TEST_CASE(hosts_that_are_named) {
  Process job = hosts.run({"-n", "1", "--tag-output", program, "farm", "3", "b:2,a"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
  BOOST_TEST(count_of(job.output(), "[1] task 0 of rank 0 on b\n") == 1, job.output());
  BOOST_TEST(count_of(job.output(), "[2] task 1 of rank 1 on b\n") == 1, job.output());
  BOOST_TEST(count_of(job.output(), "[3] task 2 of rank 2 on a\n") == 1, job.output());
}

BOOST_AUTO_TEST_CASE(how_they_end) {
  Process job = hosts.run({"-n", "1", "--hosts", "a,b", program, "endings"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
  BOOST_TEST(count_of(job.output(), "nested\n") == 1);
  BOOST_TEST(count_of(job.errors(), "of the programs that were spawned, rank 0 on host ") > 0U, job.errors());
}

BOOST_AUTO_TEST_CASE(mistakes) {
  Process job = hosts.run({"-n", "1", program, "mistakes"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
}

BOOST_AUTO_TEST_CASE(who_leaves_does_not_take_them_along) {
  Process job = hosts.run({"-n", "1", "--hosts", "a,b", program, "leave"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
  BOOST_TEST(count_of(job.output(), "task ") == 2, job.output());
}

BOOST_AUTO_TEST_CASE(they_end_with_their_job) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    Process job = hosts.run({"-n", "2", "--hosts", "a,b", program, "stay"});
    BOOST_TEST(eventually([&] { return count_of(job.output(), "spawned") == 2; }), job);
    job.signal(signal);
    BOOST_TEST(job.wait() == 128 + signal);
    BOOST_TEST(nothing_runs(hosts), hosts);
  }
}

BOOST_AUTO_TEST_CASE(they_end_with_who_was_killed) {
  Process job = hosts.run({"-n", "1", "--keep-going", program, "stay"});
  BOOST_TEST(eventually([&] { return count_of(job.output(), "spawned") == 1; }), job);
  for (const pid_t each : hosts.ranks()) kill(each, SIGKILL); // whichever it is, all end
  BOOST_TEST(job.wait() == 128 + SIGKILL);
}

BOOST_AUTO_TEST_CASE(a_rank_is_killed) {
  Process job = hosts.run({"-n", "2", "--hosts", "a,b", "--keep-going", program, "kill"});
  BOOST_TEST(job.wait() == 128 + SIGUSR2, job);
}

BOOST_AUTO_TEST_CASE(a_host_is_lost) {
  Process job = hosts.run({"-n", "1", "--hosts", "a,b", program, "stay"});
  BOOST_TEST(eventually([&] { return count_of(job.output(), "spawned") == 1; }), job);
  hosts[1].kernel().signal(SIGKILL);
  BOOST_TEST(job.wait() == 125);
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
  hosts[1].start();
}

BOOST_AUTO_TEST_CASE(who_leaves_while_it_spawns) {
  for (int i = 0; i < 40; i += rounds_of(1, 3)) {
    Process job = hosts.start({"env", "PARC_RUNTIME_DIR=" + hosts[0].runtime_dir(), program, "abandon",
                               std::to_string(i * 50), i % 2 == 0 ? "a,b" : "a"});
    BOOST_TEST(job.wait() == 0, job);
    BOOST_REQUIRE(hosts[0].kernel().running());
  }
}

BOOST_AUTO_TEST_CASE(the_host_of_a_spawner_is_lost) {
  Process job = hosts.run({"-n", "1", "--hosts", "a", "--keep-going", program, "heir"});
  BOOST_TEST(eventually([&] { return count_of(job.output(), "nested") == 1; }), job);
  hosts[1].kernel().signal(SIGKILL);
  BOOST_TEST(job.wait() == 0, job << hosts);
  hosts[1].start();
}

// What they print waits in the kernel, as each of them is over before that is read: then nothing more is
// spawned.
BOOST_AUTO_TEST_CASE(output_that_nobody_takes_holds_them_back) {
  constexpr std::size_t all = rounds_of(120, 60); // of 250 kB, of which a kernel keeps 8 MiB
  const std::string begin = hosts.directory() + "/flood";
  const std::size_t before = count_of(hosts[0].log(), ": 1 ranks of ");
  const auto spawned = [&] { return count_of(hosts[0].log(), ": 1 ranks of ") - before - 1; };
  Process job = hosts.run({"-n", "1", program, "flood", std::to_string(all), begin});
  BOOST_TEST_REQUIRE(eventually([&] { return hosts.status()["sessions"].size() == 1; }), job);
  job.signal(SIGSTOP);
  std::ofstream(begin).put('\n');
  BOOST_TEST(eventually([&] { return hosts.status()["counters"]["spawns_held"] == 1; }));
  Process text = hosts.parc("status", {});
  BOOST_TEST(text.wait() == 0);
  BOOST_TEST(count_of(text.output(), "1 program waits in parc_spawn until ") == 1, text.output());
  BOOST_TEST(spawned() < all * 3 / 4);
  job.signal(SIGCONT);
  BOOST_TEST(job.wait() == 0, job);
  BOOST_TEST(count_of(job.output(), "\n") == all);
}

// Ranks start one after the other; a signal waits for who is still to start.
BOOST_AUTO_TEST_CASE(a_rank_that_has_not_started_is_killed) {
  Process job = hosts.run({"-n", "61", "--hosts", "a:1,b:60", program, "kill-early"});
  BOOST_TEST(job.wait() == 128 + SIGUSR2, job);
}

BOOST_AUTO_TEST_CASE(by_a_program_that_was_started_by_hand) {
  Process farm =
      hosts.start({"env", "PARC_RUNTIME_DIR=" + hosts[0].runtime_dir(), program, "farm", "3", "a,b"});
  const int status = farm.wait();
  BOOST_TEST(status == 0, farm.errors() << hosts);
  BOOST_TEST(eventually([&] { return count_of(hosts[0].log(), ": task ") == 3; }), hosts);
  Process stay = hosts.start({"env", "PARC_RUNTIME_DIR=" + hosts[0].runtime_dir(), program, "stay"});
  BOOST_TEST(eventually([&] { return count_of(stay.output(), "spawned") == 1; }), stay);
  stay.signal(SIGKILL);
  BOOST_TEST(stay.wait() == 128 + SIGKILL);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
