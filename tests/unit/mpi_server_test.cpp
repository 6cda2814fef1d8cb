// SPDX-License-Identifier: BSD-3-Clause
// What a kernel hears from the PMIx server of a job, played by a shell.
#include "daemon/job/mpi_server.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/syscall.h>
#include <unistd.h>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(mpi_server)

namespace {

// By a fork: the threads that a kernel starts processes from would stay, and other tests fork.
Result<StartedProcess> start_by_fork(const Program& program, const std::vector<std::string>& variables) {
  std::array<std::array<int, 2>, 4> pipes{}; // output, errors, report, input
  for (auto& ends : pipes)
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("cannot make a pipe");
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    dup2(pipes[0][1], STDOUT_FILENO);
    dup2(pipes[1][1], STDERR_FILENO);
    dup2(pipes[3][0], STDIN_FILENO);
    for (const std::string& variable : variables) putenv(strdup(variable.c_str()));
    const auto& words = program.arguments;
    execl(words[0].c_str(), words[0].c_str(), words[1].c_str(), words[2].c_str(), nullptr);
    const StartReport report{StartReport::Stage::program, errno};
    (void)!write(pipes[2][1], &report, sizeof report);
    _exit(127);
  }
  StartedProcess started;
  started.id = child;
  started.process.reset(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  const std::array<Fd*, 4> kept{&started.output, &started.errors, &started.report, &started.input};
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    const std::size_t own = i == 3 ? 1 : 0;
    close(pipes[i][1 - own]);
    fcntl(pipes[i][own], F_SETFL, O_NONBLOCK);
    kept[i]->reset(pipes[i][own]);
  }
  return started;
}

struct Played {
  EventBase loop{event_base_new()};
  Processes processes{.start = [](const Program& program, const std::vector<std::string>& more, bool,
                                  const Processors*) { return start_by_fork(program, more); }};
  std::string directory =
      (std::filesystem::temp_directory_path() / fmt::format("parc-mpi-server-{}", getpid())).string();
  std::optional<std::vector<std::string>> variables;
  std::vector<std::pair<std::int32_t, int>> aborts;
  std::vector<MpiServer::Spawn> spawns;
  std::optional<std::string> why;
  std::unique_ptr<MpiServer> server;

  void start(const std::string& script, const std::string& shell = "/bin/sh") {
    Program program{.arguments = {shell, "-c", script}, .environment = {}, .directory = "/", .limits = {}};
    auto started = MpiServer::start(
        loop.get(), processes, program, directory,
        {.variables = {"X=1"}, .ranks = 3, .hosts = "a:2,b:1", .host = "a"},
        {.ready = [this](std::vector<std::string> all) { variables = std::move(all); },
         .aborted = [this](std::int32_t rank, int status) { aborts.emplace_back(rank, status); },
         .spawn = [this](const MpiServer::Spawn& wanted) { spawns.push_back(wanted); },
         .ended = [this](std::string text) { why = std::move(text); }});
    BOOST_REQUIRE(started);
    server = std::move(started.value().server);
  }
  template <class Condition> void run_until(const Condition& condition) {
    while (!condition()) event_base_loop(loop.get(), EVLOOP_ONCE);
  }
};

using Texts = std::vector<std::string>;

} // namespace

BOOST_FIXTURE_TEST_CASE(ranks_may_start_when_it_has_said_their_variables, Played) {
  start("echo A=b; echo nonsense; echo C=$PARC_MPI_RANKS/$PARC_MPI_HOSTS/$X; echo; echo D=late; exec sleep "
        "100");
  run_until([&] { return variables.has_value(); });
  BOOST_TEST(*variables == (Texts{"A=b", "C=3/a:2,b:1/1"}));
  BOOST_TEST(server->alive());
  BOOST_TEST(!why.has_value());
  BOOST_TEST(std::filesystem::is_directory(directory));
  server->kill();
  run_until([&] { return why.has_value(); });
  BOOST_TEST(!server->alive());
  server.reset();
  BOOST_TEST(!std::filesystem::exists(directory));
}

BOOST_FIXTURE_TEST_CASE(a_rank_that_aborts_is_told_of_and_nonsense_is_not, Played) {
  start("echo; echo abort; echo abort 1; echo abort x 2; echo abort 1 2 3; echo abort 2 77; echo abort 1 0; "
        "exec sleep 100");
  run_until([&] { return aborts.size() == 2; });
  BOOST_TEST(aborts[0].first == 2);
  BOOST_TEST(aborts[0].second == 77);
  BOOST_TEST(aborts[1].second == 0);
}

BOOST_FIXTURE_TEST_CASE(who_has_not_finished_with_mpi_is_missed, Played) {
  start("echo; echo in 0; echo in 1; echo in 2; echo out 1; echo abort 2 256; exec sleep 100");
  run_until([&] { return !aborts.empty(); });
  BOOST_TEST(aborts[0].second == 1); // it is no success, which 0 is
  BOOST_TEST(server->is_missed(0));
  BOOST_TEST(!server->is_missed(1));
  BOOST_TEST(!server->is_missed(2));
  BOOST_TEST(!server->is_missed(3));
}

BOOST_FIXTURE_TEST_CASE(what_is_to_be_spawned_comes_behind_its_line, Played) {
  start("echo; printf 'spawn 7 10 2 1 0\na:2'; sleep 0.1; printf '\\0true\\0\\0abort 1 2\n'; exec sleep 100");
  run_until([&] { return !aborts.empty(); });
  BOOST_REQUIRE(spawns.size() == 1);
  BOOST_TEST(spawns[0].token == 7);
  BOOST_TEST((spawns[0].apps == std::vector<std::uint64_t>{2, 1, 0}));
  BOOST_TEST(spawns[0].texts == std::string("a:2\0true\0\0", 10));
}

BOOST_FIXTURE_TEST_CASE(it_hears_what_it_is_told, Played) {
  start("echo; read one; read two; echo abort ${one#job } ${two#job }; exec sleep 100");
  server->tell("job 1\njo");
  server->tell("b 2\n");
  run_until([&] { return !aborts.empty(); });
  BOOST_TEST(aborts[0].first == 1);
  BOOST_TEST(aborts[0].second == 2);
}

BOOST_FIXTURE_TEST_CASE(one_that_cannot_become_ready_is_ended, Played) {
  start("echo A=b; exec >&-; sleep 100");
  run_until([&] { return why.has_value(); });
  BOOST_TEST(!variables.has_value());
}

BOOST_FIXTURE_TEST_CASE(one_that_cannot_be_started_says_why, Played) {
  start("", "/nonexistent/pmix");
  run_until([&] { return why.has_value(); });
  BOOST_TEST(why->find("/nonexistent/pmix") != std::string::npos, *why);
}

BOOST_FIXTURE_TEST_CASE(one_that_fails_says_why, Played) {
  start("echo it cannot >&2; echo at all >&2; exit 1");
  run_until([&] { return why.has_value(); });
  BOOST_TEST(*why == "it cannot at all");
  BOOST_TEST(!variables.has_value());
}

BOOST_FIXTURE_TEST_CASE(its_files_go_with_it, Played) {
  start("mkdir $PARC_MPI_DIRECTORY/x; echo > $PARC_MPI_DIRECTORY/x/y; echo; exec sleep 100");
  run_until([&] { return variables.has_value(); });
  BOOST_TEST(std::filesystem::exists(directory + "/x/y"));
  server.reset();
  BOOST_TEST(!std::filesystem::exists(directory));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
