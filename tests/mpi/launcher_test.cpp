// SPDX-License-Identifier: BSD-3-Clause
// parc run --mpi: parc starts the ranks of MPI itself. They print what they print where mpirun starts them,
// and the job ends as one of parc's own does.
#include "tests/mpi/mpi_job.hpp"
#include "tools/parc/run/mpi_library.hpp"

#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <thread>

namespace parc::test {
namespace {

std::vector<std::string> words_of(const Job& job) {
  std::vector<std::string> words{"--mpi", "-n", std::to_string(job.ranks), "--hosts", "a"};
  for (std::size_t host = 1; host < job.hosts; ++host) words.back() += fmt::format(",{}", char('a' + host));
  for (const std::string& variable : job.environment) append(words, {"-x", variable});
  words.push_back(PARC_MPI_PROGRAMS "/" + job.program);
  append(words, job.words);
  return words;
}

void compare_with_mpirun(const Job& job) {
  Hosts hosts(job.hosts);
  Process run = hosts.run(words_of(job));
  BOOST_TEST(run.wait() == 0, job.program << ": " << run.output() << run.errors() << hosts);
  BOOST_TEST(run.output() == expected_of(hosts, job));
}

// Of what a kernel has started the one with this name; 0: there is none.
pid_t child_of(Hosts& hosts, std::size_t host, const std::string& name) {
  for (const pid_t each : hosts.ranks()) {
    std::string status, word;
    std::ifstream file(fmt::format("/proc/{}/status", each));
    const bool named = std::getline(file, status) && status == "Name:\t" + name;
    while (named && file >> word && word != "PPid:") {
    }
    if (pid_t parent = 0; named && file >> parent && parent == hosts[host].kernel().id()) return each;
  }
  return 0;
}

// Directories of jobs in a kernel's.
std::size_t job_directories(const std::string& runtime_dir) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(runtime_dir))
    count += entry.path().filename().string().starts_with("parc-mpi-") ? 1 : 0;
  return count;
}

struct Two {
  Hosts hosts{2};

  // Ranks that go on until they are ended, with a server on each host.
  Process start_endless() {
    Process job = hosts.run({"--mpi", "-n", "4", "--hosts", "a:2,b:2", "sleep", "1000"});
    BOOST_REQUIRE(
        eventually([&] { return child_of(hosts, 0, "sleep") != 0 && child_of(hosts, 1, "sleep") != 0; }));
    return job;
  }
  void check_nothing_is_left() {
    BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
    BOOST_TEST(eventually([&] {
      return job_directories(hosts[0].runtime_dir()) + job_directories(hosts[1].runtime_dir()) == 0;
    }));
  }
  void check_end(Process& job, int status, const std::string& sentence) {
    BOOST_TEST(job.wait() == status, job.errors());
    BOOST_TEST(job.errors().find(sentence) != std::string::npos, job.errors());
    check_nothing_is_left();
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(launcher)

BOOST_AUTO_TEST_CASE(programs_print_what_they_print_under_mpirun) {
  compare_with_mpirun({"point_to_point", 5, 2});
  compare_with_mpirun({"collectives", 8, 3});
  compare_with_mpirun({"windows", 5, 3});
  compare_with_mpirun({"threads", 3, 3});
  compare_with_mpirun({"fortran_mpi_f08", 3, 2});
  compare_with_mpirun({"objects.py", 4, 3});
}

// As mpirun's are, and what is parc's own only where the caller has not set it.
BOOST_FIXTURE_TEST_CASE(the_callers_parameters_of_open_mpi_are_those_of_ranks, Two) {
  std::vector<std::string> line = on_host(hosts, 0);
  append(line, {"OMPI_MCA_btl=self", "OMPI_MCA_x_y=1", PARC_TEST_BIN "/parc", "mpi", "--mca", "x_z", "2",
                "-np", "1", "-x", "PARC_TEST_NO_SUCH_VARIABLE", "env"});
  Process job = hosts.start(line);
  BOOST_TEST(job.wait() == 0, job.errors());
  for (const char* const each :
       {"OMPI_MCA_btl=self\n", "OMPI_MCA_x_y=1\n", "OMPI_MCA_x_z=2\n", "OMPI_MCA_pml=cm\n"})
    BOOST_TEST(job.output().find(each) != std::string::npos, each << job.output());
  BOOST_TEST(job.errors().find("PARC_TEST_NO_SUCH_VARIABLE is not set") != std::string::npos, job.errors());
}

// Which costs a second at their end.
BOOST_AUTO_TEST_CASE(programs_that_make_no_windows_do_without_their_transport) {
  const auto may = [](const char* program) {
    return tools::may_make_windows(std::string(PARC_MPI_PROGRAMS "/") + program);
  };
  for (const char* const each : {"slack", "collectives", "fortran_mpi", "fortran_mpif"})
    BOOST_TEST(!may(each), each);
  for (const char* const each :
       {"windows", "fortran_mpi_f08", "spawning", "coarrays", "threads_mixed", "objects.py"})
    BOOST_TEST(may(each), each);
  BOOST_TEST(tools::may_make_windows("python3")); // it loads what it needs
}

// Where there are more than cores, so that those who wait leave these to the others.
BOOST_FIXTURE_TEST_CASE(ranks_wait_with_patience_until_all_are_there, Two) {
  const std::string many = std::to_string(std::thread::hardware_concurrency() + 1);
  for (const auto& [ranks, before] : {std::pair{std::string("1"), "short"}, {many, "long"}}) {
    Process job = hosts.run({"--mpi", "-n", ranks, PARC_MPI_PROGRAMS "/slack"});
    BOOST_TEST(job.wait() == 0, job.errors());
    const std::string expected = fmt::format("-- rank 0 of {}\n{}, then 50000 ns\n", ranks, before);
    BOOST_TEST(job.output().starts_with(expected), job.output());
  }
}

// Which Open MPI's own windows over messages do not allow.
BOOST_FIXTURE_TEST_CASE(threads_use_windows_beside_everything_else, Two) {
  std::string first;
  for (const char* const where : {"a", "a,b"}) {
    Process run = hosts.run({"--mpi", "-n", "3", "--hosts", where, PARC_MPI_PROGRAMS "/threads_mixed"});
    BOOST_TEST(run.wait() == 0, run.errors());
    if (first.empty()) first = run.output();
    BOOST_TEST(run.output().find("-- rank 2 of 3\nthread 0: ") != std::string::npos, run.output());
    BOOST_TEST(run.output() == first);
  }
}

BOOST_AUTO_TEST_CASE(programs_spawn_others) {
  compare_with_mpirun({"spawning", 3, 2});
  compare_with_mpirun({"spawning", 4, 3});
}

BOOST_AUTO_TEST_CASE(programs_spawn_several_at_once) {
  compare_with_mpirun({"apps", 3, 2, {"spawn"}});
}

// Which knows its place among them, also where parc run --mpi is called as mpirun is.
BOOST_FIXTURE_TEST_CASE(a_job_may_have_several_programs, Two) {
  const std::string program = PARC_MPI_PROGRAMS "/apps";
  Process run = hosts.run({"--mpi", "-n", "1",   "--hosts", "a:2,b:2", "-x", "PARC_TEST_APP=one",
                           program, "x",  ":",   "-n",      "2",       "-x", "PARC_TEST_APP=two",
                           program, ":",  "-np", "1",       "-host",   "a",  program,
                           "y",     "z"});
  BOOST_TEST(run.wait() == 0, run.errors());
  const std::string_view expected =
      "-- rank 0 of 4\napp 0, 1 words, one\n-- rank 1 of 4\napp 1, 0 words, two\n"
      "-- rank 2 of 4\napp 1, 0 words, two\n-- rank 3 of 4\napp 2, 2 words, one\n";
  BOOST_TEST(run.output() == expected, run.output());
  std::vector<std::string> line = on_host(hosts, 0);
  append(line, {PARC_TEST_BIN "/parc", "mpi", "-np", "1", "--oversubscribe", "--mca", "a_b", "c", program,
                ":", "-c", "1", "--mca", "PARC", "d", program});
  Process job = hosts.start(line);
  BOOST_TEST(job.wait() == 0, job.errors());
  BOOST_TEST(job.output().find("-- rank 1 of 2\napp 1, 0 words") != std::string::npos, job.output());
}

BOOST_FIXTURE_TEST_CASE(a_program_of_mpich_is_refused_with_a_sentence, Two) {
  Process run = hosts.run({"--mpi", "-n", "2", "--hosts", "a,b", PARC_MPI_PROGRAMS "/of_mpich"});
  check_end(run, 125, "was built for MPICH or one of its kin (it needs libmpich.so.12)");
  Process second = hosts.run({"--mpi", "-n", "1", "true", ":", "-n", "1", PARC_MPI_PROGRAMS "/of_mpich"});
  check_end(second, 125, "was built for MPICH");
}

BOOST_FIXTURE_TEST_CASE(what_cannot_be_spawned_is_told, Two) {
  Process none =
      hosts.run({"--mpi", "-n", "2", "--hosts", "a,b", PARC_MPI_PROGRAMS "/spawning_badly", "nothing"});
  BOOST_TEST(none.wait() == 0, none.errors());
  BOOST_TEST(none.output() == "-- rank 0 of 2\nspawned: 0\n-- rank 1 of 2\nspawned: 0\n", none.output());
  BOOST_TEST(none.errors().find("/nonexistent/program") != std::string::npos, none.errors());
}

BOOST_FIXTURE_TEST_CASE(a_spawned_rank_that_aborts_ends_its_spawner, Two) {
  Process job =
      hosts.run({"--mpi", "-n", "2", "--hosts", "a,b", PARC_MPI_PROGRAMS "/spawning_badly", "aborting"});
  check_end(job, 23, "of the programs that were spawned, rank 1 on host b called MPI_Abort");
}

// Whichever kernel has started them.
BOOST_FIXTURE_TEST_CASE(two_jobs_meet_by_a_name, Two) {
  for (const std::size_t callers_at : {0u, 1u}) {
    Process serves =
        hosts.run({"--mpi", "-n", "3", "--hosts", "a,b", PARC_MPI_PROGRAMS "/meeting", "serve", "tea"});
    Process calls = hosts.run(
        {"--mpi", "-n", "2", "--hosts", "b,a", PARC_MPI_PROGRAMS "/meeting", "call", "tea"}, callers_at);
    BOOST_TEST(calls.wait() == 0, calls.errors());
    BOOST_TEST(serves.wait() == 0, serves.errors());
    BOOST_TEST(serves.output() == "-- rank 0 of 3\nmet 2\n-- rank 1 of 3\nmet 2\n-- rank 2 of 3\nmet 2\n",
               serves.output());
    BOOST_TEST(calls.output() == "-- rank 0 of 2\nmet 3\n-- rank 1 of 2\nmet 3\n", calls.output());
    check_nothing_is_left();
  }
}

BOOST_FIXTURE_TEST_CASE(events_reach_ranks_of_all_hosts, Two) {
  Process job = hosts.run({"--mpi", "-n", "4", "--hosts", "a,b", PARC_MPI_PROGRAMS "/pmix_events"});
  BOOST_TEST(job.wait() == 0, job.errors());
  BOOST_TEST(job.output() == "heard\nheard\nheard\nheard\n", job.output());
}

BOOST_FIXTURE_TEST_CASE(who_aborts_ends_the_job, Two) {
  Process job = hosts.run({"--mpi", "-n", "4", "--hosts", "a:2,b:2", PARC_MPI_PROGRAMS "/aborting"});
  check_end(job, 17, "rank 1 on host a called MPI_Abort");
  Process well = hosts.run({"--mpi", "-n", "4", "--hosts", "a:2,b:2", PARC_MPI_PROGRAMS "/aborting", "0"});
  check_end(well, 0, "rank 1 on host a called MPI_Abort");
  Process crashed =
      hosts.run({"--mpi", "-n", "4", "--hosts", "a:2,b:2", PARC_MPI_PROGRAMS "/aborting", "0", "crash"});
  check_end(crashed, 128 + SIGKILL, "rank 3 on host b was killed by signal 9");
}

BOOST_FIXTURE_TEST_CASE(who_leaves_early_ends_the_job, Two) {
  Process job = hosts.run({"--mpi", "-n", "4", "--hosts", "a:2,b:2", PARC_MPI_PROGRAMS "/leaving"});
  check_end(job, 1, "rank 3 on host b has ended without MPI_Finalize");
  Process none = hosts.run({"--mpi", "-n", "4", "--hosts", "a:2,b:2", "true"}); // has none to do with MPI
  BOOST_TEST(none.wait() == 0, none.errors());
  Process kept = hosts.run({"--mpi", "--keep-going", "-n", "2", PARC_MPI_PROGRAMS "/aborting"});
  check_end(kept, 125, "--keep-going is not for programs of MPI");
}

BOOST_FIXTURE_TEST_CASE(a_rank_that_is_killed_ends_the_job, Two) {
  Process job = start_endless();
  kill(child_of(hosts, 1, "sleep"), SIGKILL);
  check_end(job, 128 + SIGKILL, "on host b was killed by signal 9");
}

BOOST_FIXTURE_TEST_CASE(a_server_that_is_killed_ends_the_job, Two) {
  Process job = start_endless();
  kill(child_of(hosts, 1, "pmix"), SIGKILL);
  check_end(job, 125, "the PMIx server of host b has ended");
}

// Its directory goes when the next one starts.
BOOST_FIXTURE_TEST_CASE(a_kernel_that_is_killed_ends_the_job, Two) {
  Process job = start_endless();
  hosts[1].kernel().signal(SIGKILL);
  BOOST_TEST(job.wait() == 125);
  BOOST_TEST(job.errors().find("host b was lost") != std::string::npos, job.errors());
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
  hosts[1].start();
  check_nothing_is_left();
}

boost::test_tools::assertion_result may_be_another(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result may(geteuid() == 0);
  may.message() << "only root can be another user";
  return may;
}

// libpmix would believe what it says.
BOOST_FIXTURE_TEST_CASE(another_user_of_the_host_is_not_let_in, Two,
                        *boost::unit_test::precondition(may_be_another)) {
  for (const auto& [who, answer] : {std::pair{"self", "in\n"}, {"another", "out\n"}, {"self", "in\n"}}) {
    Process job = hosts.run({"--mpi", PARC_MPI_PROGRAMS "/pmix_stranger", who});
    BOOST_TEST(job.wait() == 0);
    BOOST_TEST(job.output() == answer, who << ": " << job.output() << job.errors());
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
