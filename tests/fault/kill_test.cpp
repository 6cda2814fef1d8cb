// SPDX-License-Identifier: BSD-3-Clause
// kill -9 of a rank, of a kernel, of parc run, in the middle of transfers and at any moment of a job's life:
// the others end with a clear error, and nothing of the job is left.
#include "shm/segment.hpp"
#include "tests/support/hosts.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>
#include <sys/shm.h>
#include <thread>

namespace parc::test {
namespace {

bool is_dead(pid_t process) {
  return kill(process, 0) != 0;
}

bool is_key_of(pid_t process, std::uint32_t key) {
  for (std::uint32_t number = 0; number < shm::keys_of_process; ++number)
    if (shm::key_of(process, number) == key) return true;
  return false;
}

// Segments of ours that one of these processes made, or somebody who is dead and nobody has attached.
std::size_t segments_of(const std::set<pid_t>& processes) {
  shm_info info{};
  const int last = shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&info));
  std::size_t count = 0;
  for (int index = 0; index <= last; ++index) {
    shmid_ds segment{};
    if (shmctl(index, SHM_STAT, &segment) < 0) continue;
    if (!is_key_of(segment.shm_cpid, static_cast<std::uint32_t>(segment.shm_perm.__key))) continue;
    const bool abandoned = segment.shm_nattch == 0 && is_dead(segment.shm_cpid);
    if (abandoned || processes.contains(segment.shm_cpid)) ++count;
  }
  return count;
}

struct Job {
  Hosts hosts{2};
  std::set<pid_t> seen; // ranks, from what they said

  Process start() {
    return hosts.run({"-n", "4", "--hosts", "a:2,b:2", PARC_TEST_PROGRAMS "/ring", "3000000", "0"});
  }
  // The process of a rank, from what it said when it was under way; 0: not yet.
  pid_t rank(const Process& run, int wanted) {
    std::istringstream text(run.output());
    std::string word;
    int number = 0;
    pid_t process = 0, found = 0;
    while (text >> word >> number >> process) {
      seen.insert(process);
      if (number == wanted) found = process;
    }
    return found;
  }
  bool under_way(const Process& run) {
    for (int each = 0; each < 4; ++each)
      if (rank(run, each) == 0) return false;
    return true;
  }
  Process start_and_wait() {
    Process run = start();
    BOOST_REQUIRE_MESSAGE(eventually([&] { return under_way(run) || !run.running(); }), run);
    BOOST_REQUIRE_MESSAGE(under_way(run), run.errors());
    return run;
  }
  void check_nothing_left() {
    BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
    BOOST_TEST(eventually([&] {
      if (segments_of(seen) == 0) return true;
      Process clean = hosts.parc("clean", {}); // takes only what is some seconds old
      (void)clean.wait();
      return false;
    }));
    const auto has_no_job = [&](std::size_t host) {
      return !hosts[host].kernel().running() || hosts.status(host)["jobs"].empty();
    };
    const bool over = eventually([&] { return has_no_job(0) && has_no_job(1); });
    BOOST_TEST(over, (over ? "" : hosts.status(0).dump() + hosts.status(1).dump()) << hosts);
  }
  void check_kernels_work() {
    Process after = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "10000", "3"});
    BOOST_TEST(after.wait() == 0);
    BOOST_TEST(after.errors() == "");
  }
};

// Programs that serve windows to those of other jobs.
struct Windows : Job {
  const std::string file = hosts.directory() + "/address";
  int word = 0; // each asker has its own

  Process serve(std::size_t on) {
    Process server = hosts.run({"-n", "1", program, "serve", file}, on);
    BOOST_REQUIRE(eventually([&] { return std::filesystem::exists(file); }));
    return server;
  }
  Process start_asker(const std::string& what, std::size_t on) {
    word += 2;
    return hosts.run({"-n", "2", program, what, file, std::to_string(word - 2)}, on);
  }
  // Their processes, once both have got, put and added something.
  std::vector<pid_t> wait_for(Process& askers) {
    std::vector<pid_t> ranks;
    BOOST_REQUIRE(eventually([&] {
      std::istringstream text(askers.output());
      ranks.assign(std::istream_iterator<pid_t>(text), {});
      return ranks.size() == 2 || !askers.running();
    }));
    BOOST_REQUIRE_MESSAGE(askers.running(), askers << hosts);
    seen.insert(ranks.begin(), ranks.end());
    return ranks;
  }
  // Those that were not killed have found nothing wrong.
  void end(Process& askers, Process& server, std::size_t on) {
    std::ofstream(file + ".over").close();
    BOOST_TEST(askers.wait() == 0, askers << hosts);
    Process stop = hosts.run({"-n", "1", program, "stop", file}, on);
    BOOST_TEST(stop.wait() == 0, stop << hosts);
    BOOST_TEST(server.wait() == 0, server << hosts);
  }

  static constexpr const char* program = PARC_TEST_PROGRAMS "/strange_windows";
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(killed, Job)

BOOST_AUTO_TEST_CASE(a_rank_here_or_there) {
  for (const int victim : {0, 3}) {
    Process run = start_and_wait();
    kill(rank(run, victim), SIGKILL);
    BOOST_TEST(run.wait() == 128 + SIGKILL);
    const std::string sentence =
        "rank " + std::to_string(victim) + " on host " + (victim < 2 ? "a" : "b") + " was killed by signal 9";
    BOOST_TEST(contains(run.errors(), sentence), run.errors());
    check_nothing_left();
  }
  check_kernels_work();
}

BOOST_AUTO_TEST_CASE(parc_run) {
  Process run = start_and_wait();
  run.signal(SIGKILL);
  BOOST_TEST(run.wait() == 128 + SIGKILL);
  check_nothing_left();
  check_kernels_work();
}

BOOST_AUTO_TEST_CASE(the_kernel_of_another_host) {
  Process run = start_and_wait();
  hosts[1].kernel().signal(SIGKILL);
  BOOST_TEST(run.wait() == 125);
  BOOST_TEST(contains(run.errors(), "parc: host b was lost"), run.errors());
  BOOST_TEST(hosts[1].kernel().wait() == 128 + SIGKILL);
  check_nothing_left();
  hosts[1].start();
  check_kernels_work();
}

BOOST_AUTO_TEST_CASE(the_kernel_of_parc_run) {
  Process run = start_and_wait();
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(run.wait() == 125);
  BOOST_TEST(contains(run.errors(), "the kernel of this host (parcd) has gone"), run.errors());
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  check_nothing_left();
  hosts[0].start();
  check_kernels_work();
}

BOOST_AUTO_TEST_CASE(all_at_once) {
  Process run = start_and_wait();
  for (const pid_t process : {rank(run, 1), run.id(), hosts[1].kernel().id(), hosts[0].kernel().id()})
    kill(process, SIGKILL);
  BOOST_TEST(run.wait() == 128 + SIGKILL);
  check_nothing_left();
  for (const std::size_t host : {0u, 1u}) {
    BOOST_TEST(hosts[host].kernel().wait() == 128 + SIGKILL);
    hosts[host].start();
  }
  check_kernels_work();
}

BOOST_AUTO_TEST_CASE(a_kernel_that_is_stopped_says_so) {
  for (const std::size_t host : {1u, 0u}) {
    Process run = start_and_wait();
    hosts[host].kernel().signal(SIGTERM);
    BOOST_TEST(run.wait() == 125);
    BOOST_TEST(
        contains(run.errors(), std::string("the kernel of host ") + (host == 0 ? "a" : "b") + " was stopped"),
        run.errors());
    BOOST_TEST(hosts[host].kernel().wait() == 0);
    check_nothing_left();
    hosts[host].start();
  }
  check_kernels_work();
}

// A kernel that hangs is as good as dead, once it should have killed its ranks.
BOOST_AUTO_TEST_CASE(a_kernel_that_hangs) {
  Process run = start_and_wait();
  hosts[1].kernel().signal(SIGSTOP);
  run.signal(SIGTERM);
  BOOST_TEST(run.wait() > 0);
  hosts[1].kernel().signal(SIGCONT);
  check_nothing_left();
}

// That it hangs came after the rank that failed, which is why the job has.
BOOST_AUTO_TEST_CASE(a_rank_fails_and_another_kernel_hangs) {
  const std::string fails = hosts.directory() + "/fails";
  Process run = hosts.run({"--hosts", "a:1,b:1", "sh", "-c",
                           "echo ready; [ $PARC_RANK = 0 ] || exec sleep 1000; until [ -e " + fails +
                               " ]; do sleep 0.05; done; exit 3"});
  BOOST_REQUIRE(eventually([&] { return run.output() == "ready\nready\n"; }));
  hosts[1].kernel().signal(SIGSTOP);
  std::ofstream(fails).close();
  BOOST_TEST(run.wait() == 3, run);
  BOOST_TEST(contains(run.errors(), "rank 0 on host a ended with exit status 3"), run.errors());
  hosts[1].kernel().signal(SIGCONT);
  check_nothing_left();
}

// The others get from it, or it from them: what they had been released from is lost, or their barrier fails.
BOOST_AUTO_TEST_CASE(one_of_those_that_get_from_each_other) {
  std::mt19937 random(20261128);
  for (int round = 0; round < 12; ++round) {
    Process run = hosts.run({"-n", "4", "--hosts", "a:2,b:2", PARC_TEST_PROGRAMS "/early_gets", "random",
                             std::to_string(round), "100000"});
    BOOST_REQUIRE(eventually([&] { return hosts.ranks().size() == 4 || !run.running(); }));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100'000)); // the moment, not a condition
    const auto ranks = hosts.ranks();
    BOOST_REQUIRE(ranks.size() == 4U);
    seen.insert(ranks.begin(), ranks.end());
    kill(ranks[random() % 4], SIGKILL);
    const int status = run.wait();
    BOOST_TEST((status == 128 + SIGKILL || status == 128 + SIGABRT || status == 3), status << run);
    BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
  }
  check_nothing_left();
  check_kernels_work();
}

// Whose gets, puts and atomic operations are under way.
BOOST_FIXTURE_TEST_CASE(one_that_uses_windows_of_another_host, Windows) {
  std::mt19937 random(20261201);
  Process server = serve(1);
  Process others = start_asker("ask", 0);
  wait_for(others);
  for (int round = 0; round < 20; ++round) {
    Process askers = start_asker("ask", 0);
    const std::vector<pid_t> ranks = wait_for(askers);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000)); // the moment, not a condition
    kill(ranks[random() % 2], SIGKILL);
    BOOST_TEST(askers.wait() == 128 + SIGKILL, askers);
    BOOST_REQUIRE_MESSAGE(server.running() && others.running(), server << others << hosts);
  }
  end(others, server, 0);
  BOOST_TEST(eventually([&] { return hosts.status(0)["sessions"].empty(); }));
  BOOST_TEST(eventually([&] { return hosts.status(1)["sessions"].empty(); }));
  check_nothing_left();
  check_kernels_work();
}

BOOST_FIXTURE_TEST_CASE(the_kernel_of_windows_that_others_use, Windows) {
  for (int round = 0; round < 3; ++round) {
    Process server = serve(1);
    Process askers = start_asker("lose", 0);
    wait_for(askers);
    hosts[1].kernel().signal(SIGKILL);
    BOOST_TEST(askers.wait() == 0, askers << hosts);
    BOOST_TEST(server.wait() == 125, server);
    BOOST_TEST(hosts[1].kernel().wait() == 128 + SIGKILL);
    std::filesystem::remove(file);
    check_nothing_left();
    hosts[1].start();
  }
  check_kernels_work();
}

BOOST_FIXTURE_TEST_CASE(the_kernel_of_those_that_use_windows, Windows) {
  Process server = serve(1);
  Process others = start_asker("ask", 1);
  wait_for(others);
  for (int round = 0; round < 3; ++round) {
    Process askers = start_asker("ask", 0);
    wait_for(askers);
    hosts[0].kernel().signal(SIGKILL);
    BOOST_TEST(askers.wait() == 125, askers);
    BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
    BOOST_REQUIRE_MESSAGE(server.running() && others.running(), server << others << hosts);
    hosts[0].start();
  }
  end(others, server, 1);
  check_nothing_left();
  check_kernels_work();
}

// At moments from before the job is asked for until it is well under way.
BOOST_AUTO_TEST_CASE(at_any_moment) {
  std::mt19937 random(20261121);
  for (int round = 0; round < 24; ++round) {
    Process run = start();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60000)); // the moment, not a condition
    const unsigned victim = random() % 4;
    BOOST_TEST_CONTEXT("round " << round << ", victim " << victim) {
      pid_t process = run.id();
      if (victim == 1) process = hosts[0].kernel().id();
      if (victim == 2) process = hosts[1].kernel().id();
      if (victim == 3) {
        const auto ranks = hosts.ranks();
        process = ranks.empty() ? run.id() : ranks[random() % ranks.size()];
      }
      kill(process, SIGKILL);
      const int status = run.wait();
      if (victim == 1 || victim == 2)
        (void)hosts[victim - 1].kernel().wait(); // its sockets close before it ends
      BOOST_TEST((status == 125 || status == 128 + SIGKILL), "status " << status << ": " << run.errors());
      if (status == 125) BOOST_TEST(contains(run.errors(), "parc: "), run.errors());
      (void)under_way(run); // for the segments
      BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
      for (const std::size_t host : {0u, 1u})
        if (!hosts[host].kernel().running()) hosts[host].start();
    }
  }
  check_nothing_left();
  check_kernels_work();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
