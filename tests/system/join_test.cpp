// SPDX-License-Identifier: BSD-3-Clause
// parc_join, and what parc_open joins by the environment.
#include "tests/support/hosts.hpp"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <set>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace parc::test {
namespace {

const std::string program = PARC_TEST_PROGRAMS "/joiner";

// Two, of which nobody has the other ends, beside the text.
void give_pipes(int socket, std::string text) {
  std::array<int, 2> in, out;
  BOOST_REQUIRE((pipe2(in.data(), O_CLOEXEC) == 0 && pipe2(out.data(), O_CLOEXEC) == 0));
  const Fd ends[]{Fd(in[0]), Fd(in[1]), Fd(out[0]), Fd(out[1])};
  const std::array<int, 2> given{in[0], out[1]};
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof given)> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof given);
  std::memcpy(CMSG_DATA(header), given.data(), sizeof given);
  BOOST_REQUIRE(sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

struct Fixture {
  Hosts hosts;
  explicit Fixture(const char* join_timeout_s = "60") // longer than a slow machine takes to start a program
      : hosts(2, {"--join-timeout-s", join_timeout_s}) {}

  Process start(std::size_t on, const std::vector<std::string>& variables,
                const std::vector<std::string>& words = {}) {
    std::vector<std::string> all{"env", "PARC_RUNTIME_DIR=" + hosts[on].runtime_dir()};
    all.insert(all.end(), variables.begin(), variables.end());
    all.push_back(program);
    all.insert(all.end(), words.begin(), words.end());
    return hosts.start(all);
  }
  void ends_well(std::vector<Process>& all, const std::set<std::string>& said) {
    std::set<std::string> found;
    for (Process& each : all) {
      const int status = each.wait();
      BOOST_TEST(status == 0, each << hosts);
      found.insert(each.output());
    }
    BOOST_TEST(found == said, boost::test_tools::per_element());
  }
  static void fails(Process& process, int code, const std::string& sentence) {
    BOOST_TEST(process.wait() == 4);
    const std::string errors = process.errors();
    BOOST_TEST(errors.starts_with("error " + std::to_string(code) + ":"), errors);
    BOOST_TEST((errors.find(sentence) != errors.npos), errors << " does not say " << sentence);
  }
};
struct Impatient : Fixture {
  Impatient() : Fixture("3") {}
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(joined, Fixture)

BOOST_AUTO_TEST_CASE(by_the_call) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Process> all;
    for (int rank = 0; rank < 4; ++rank)
      all.push_back(start(rank % 2 == 0 ? 0 : 1, {}, {"j@b", std::to_string(rank), "4"}));
    ends_well(all, {"0 of 4 on a\n", "1 of 4 on b\n", "2 of 4 on a\n", "3 of 4 on b\n"});
  }
  std::vector<Process> alone;
  alone.push_back(start(0, {"PARC_JOB=nobody", "PARC_RANK=7", "PARC_SIZE=9"}, {"-", "0", "1"}));
  alone.push_back(start(1, {}, {"one", "0", "1"}));
  ends_well(alone, {"0 of 1 on a\n", "0 of 1 on b\n"});
}

BOOST_AUTO_TEST_CASE(by_the_environment) {
  const std::vector<std::vector<std::string>> ways{{"PARC_RANK=", "PARC_SIZE="},
                                                   {"OMPI_COMM_WORLD_RANK=", "OMPI_COMM_WORLD_SIZE="},
                                                   {"PMI_RANK=", "PMI_SIZE="}};
  for (const auto& way : ways) {
    std::vector<Process> all;
    for (int rank = 0; rank < 2; ++rank)
      all.push_back(start(static_cast<std::size_t>(rank),
                          {"PARC_JOB=j@a", way[0] + std::to_string(rank), way[1] + "2"}));
    ends_well(all, {"0 of 2 on a\n", "1 of 2 on b\n"});
  }
  std::vector<Process> step; // its first node is b
  for (int rank = 0; rank < 2; ++rank)
    step.push_back(start(static_cast<std::size_t>(rank),
                         {"SLURM_JOB_ID=12", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=b,a",
                          "SLURM_PROCID=" + std::to_string(rank), "SLURM_STEP_NUM_TASKS=2"}));
  ends_well(step, {"0 of 2 on a\n", "1 of 2 on b\n"});
}

BOOST_AUTO_TEST_CASE(two_launchers) {
  const auto launch = [&](std::size_t on, const std::string& first) {
    return hosts.start({"env", "PARC_RUNTIME_DIR=" + hosts[on].runtime_dir(), "PARC_JOB=sites@a",
                        "PARC_SIZE=4", "PARC_FIRST_RANK=" + first, "timeout", "40", "mpiexec.mpich", "-n",
                        "2", program});
  };
  Process a = launch(0, "0"), b = launch(1, "2");
  BOOST_TEST(a.wait() == 0, a << hosts);
  BOOST_TEST(b.wait() == 0, b << hosts);
  BOOST_TEST((a.output().find("1 of 4 on a\n") != std::string::npos), a.output());
  BOOST_TEST((b.output().find("3 of 4 on b\n") != std::string::npos), b.output());
}

BOOST_FIXTURE_TEST_CASE(who_is_missing_is_named, Impatient) {
  Process a = start(0, {}, {"j", "1", "8"}), b = start(1, {}, {"j@a", "4", "8"});
  fails(a, -5, "rank 0, 2-3, 5-7 of 8 of job j did not come to host a within 3 s");
  fails(b, -5, "rank 0, 2-3, 5-7 of 8");
}

BOOST_AUTO_TEST_CASE(mistakes) {
  Process nowhere = start(0, {}, {"j@nowhere.invalid", "0", "2"});
  fails(nowhere, -5, "nowhere.invalid");
  for (const auto& words : {std::vector<std::string>{"j", "2", "2"}, {"j", "-1", "2"}, {"j", "0", "0"}}) {
    Process strange = start(0, {}, words);
    fails(strange, -1, "there is no rank");
  }
  for (const char* const name : {"", "@a", "j@"}) {
    Process strange = start(0, {}, {name, "0", "2"});
    fails(strange, -1, "names no job");
  }
  Process large = start(0, {}, {"j", "0", "4097"});
  fails(large, -1, "at most 4096 ranks");
  Process half = start(0, {"PARC_JOB=j", "PARC_RANK=1"});
  fails(half, -1, "PARC_SIZE");
  Process odd = start(0, {"PARC_JOB=j", "PARC_RANK=one", "PARC_SIZE=2"});
  fails(odd, -1, "PARC_RANK=one");
  Process nameless = start(0, {"PMI_RANK=1", "PMI_SIZE=2"});
  fails(nameless, -1, "set PARC_JOB=NAME@HOST");
}

// Another host would be told another name than this one has, or none.
BOOST_AUTO_TEST_CASE(names_that_are_none) {
  for (const std::string& name : {std::string("a b"), std::string("j\xff"), std::string("j\xc3\xb6"),
                                  std::string("j\x7f"), std::string(256, 'x'), std::string(5000, 'x')})
    for (const char* const where : {"", "@a"}) {
      Process strange = start(1, {}, {name + where, "0", "2"});
      fails(strange, -1, "1 to 255");
    }
  Process host = start(0, {}, {"j@" + std::string(5000, 'x'), "0", "2"});
  fails(host, -1, "a host's name has at most");
  Process slurm = start(0, {"SLURM_JOB_ID=1 2", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=a", "SLURM_PROCID=0",
                            "SLURM_STEP_NUM_TASKS=2"});
  fails(slurm, -1, "1 to 255");
}

// What another library could ask.
BOOST_AUTO_TEST_CASE(what_is_no_question_gets_a_sentence) {
  const auto answer = [&](const std::string& texts) {
    const Fd socket = visit(hosts[0].runtime_dir() + "/kernel.sock");
    const auto length = static_cast<std::uint16_t>(texts.size());
    std::string asked = "J";
    asked.append(reinterpret_cast<const char*>(&length), sizeof length) += texts;
    (void)send(socket.get(), asked.data(), asked.size(), MSG_NOSIGNAL);
    std::string said;
    for (char byte; recv(socket.get(), &byte, 1, 0) == 1;) said += byte;
    return said;
  };
  for (const std::string& texts :
       {std::string(5000, 'x'), std::string(60'000, '\0'), std::string("j"), std::string()})
    BOOST_TEST(answer(texts).starts_with("E-1 "), answer(texts));
}

// As of a large allocation with holes.
BOOST_AUTO_TEST_CASE(a_long_list_of_nodes) {
  std::string nodes = "b,a";
  for (int node = 1; node < 4000; node += 2) nodes += ",n" + std::to_string(node);
  std::vector<Process> step;
  for (int rank = 0; rank < 2; ++rank)
    step.push_back(start(static_cast<std::size_t>(rank),
                         {"SLURM_JOB_ID=12", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=" + nodes,
                          "SLURM_PROCID=" + std::to_string(rank), "SLURM_STEP_NUM_TASKS=2"}));
  ends_well(step, {"0 of 2 on a\n", "1 of 2 on b\n"});
  Process strange = start(0, {"SLURM_JOB_ID=12", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=b[",
                              "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2"});
  fails(strange, -1, "\"b[\" is no list of nodes");
}

// Of a kernel whose socket took only a part of it.
BOOST_AUTO_TEST_CASE(a_list_of_hosts_that_is_cut) {
  const std::string directory = hosts.directory() + "/cuts", path = directory + "/kernel.sock";
  BOOST_REQUIRE(mkdir(directory.c_str(), 0700) == 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  BOOST_REQUIRE(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  BOOST_REQUIRE(listen(listener.get(), 1) == 0);
  Process program = start(0, {"PARC_RUNTIME_DIR=" + directory}, {"j", "0", "2"});
  pollfd somebody{.fd = listener.get(), .events = POLLIN, .revents = 0};
  BOOST_REQUIRE(poll(&somebody, 1, 1000 * static_cast<int>(patience.count())) == 1);
  {
    const Fd visitor(accept(listener.get(), nullptr, nullptr));
    std::array<char, 4096> asked;
    BOOST_REQUIRE(recv(visitor.get(), asked.data(), asked.size(), 0) > 0);
    give_pipes(visitor.get(), "Pa:1,b");
  }
  fails(program, -6, "has not told all of the job's hosts");
}

// A child is made while another thread waits for the others: it has no part in that, and may open by itself.
BOOST_AUTO_TEST_CASE(a_fork_while_another_thread_joins) {
  for (const char* const way : {"forks", "opens-and-forks"}) {
    Process first = start(0, {}, {"j@b", "0", "2", way});
    BOOST_TEST(eventually([&] { return !first.output().empty() || !first.running(); }));
    BOOST_TEST(first.output() == "0 of 1 on a\n", first.output() << first.errors());
    Process second = start(1, {}, {"j@b", "1", "2"});
    BOOST_TEST(second.wait() == 0, second);
    BOOST_TEST(first.wait() == 0, first);
    BOOST_TEST(first.output() == "0 of 1 on a\n0 of 2 on a\n");
  }
}

// The child keeps nothing of the connection, by which the kernel knows that its parent waits.
BOOST_AUTO_TEST_CASE(who_forks_and_is_killed_has_gone) {
  Process first = start(0, {}, {"j", "0", "2", "forks-a-sleeper"});
  BOOST_TEST(eventually([&] { return !first.output().empty() || !first.running(); }));
  first.signal(SIGKILL);
  BOOST_TEST(first.wait() == 128 + SIGKILL);
  Process again = start(0, {}, {"j", "0", "2"}), second = start(1, {}, {"j@a", "1", "2"});
  BOOST_TEST(again.wait() == 0, again);
  BOOST_TEST(second.wait() == 0, second);
  kill(std::stoi(first.output()), SIGKILL); // the sleeper
}

BOOST_AUTO_TEST_CASE(silent_visitors_that_join) {
  const std::string descriptors = "/proc/" + std::to_string(hosts[0].kernel().id()) + "/fd";
  const auto open = [&] { return std::distance(std::filesystem::directory_iterator(descriptors), {}); };
  const auto before = open();
  constexpr int most = 64; // as of others who do not say what they are
  std::vector<Fd> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(visit(hosts[0].runtime_dir() + "/kernel.sock"));
    BOOST_REQUIRE(send(silent.back().get(), i % 2 == 0 ? "J" : "J\xff\0", i % 2 == 0 ? 1 : 3, MSG_NOSIGNAL) >
                  0);
  }
  Process program = start(0, {}, {"one", "0", "1"}); // comes in behind them
  BOOST_TEST(eventually([&] {
    BOOST_TEST_REQUIRE(open() <= before + most + 8); // and what the program needs
    return !program.running();
  }));
  BOOST_TEST(program.wait() == 0, program);
  for (const Fd& each : silent) { // and nobody is kept for ever
    char byte;
    BOOST_TEST(recv(each.get(), &byte, 1, 0) <= 0);
  }
}

BOOST_AUTO_TEST_CASE(who_comes_twice_is_refused) {
  Process first = start(0, {}, {"j", "0", "2"});
  // One of the two is told so; the other waits, and the job begins.
  Process second = start(0, {}, {"j", "0", "2"});
  BOOST_TEST(eventually([&] { return !first.running() || !second.running(); }));
  Process& twice = first.running() ? second : first;
  fails(twice, -1, "rank 0 of job j is there already, from host a");
  Process other = start(1, {}, {"j@a", "1", "3"});
  fails(other, -1, "3 ranks, and others have said 2");
  Process last = start(1, {}, {"j@a", "1", "2"});
  BOOST_TEST(last.wait() == 0, last);
  Process& good = &twice == &first ? second : first;
  BOOST_TEST(good.wait() == 0, good);
}

BOOST_AUTO_TEST_CASE(who_gives_up_may_come_again) {
  {
    Process first = start(0, {}, {"j@b", "0", "2"});
    BOOST_TEST(eventually([&] { return hosts[0].log().find("link to host b") != std::string::npos; }));
    first.signal(SIGKILL);
    BOOST_TEST(first.wait() == 128 + SIGKILL);
  }
  std::vector<Process> all;
  all.push_back(start(0, {}, {"j@b", "0", "2"}));
  all.push_back(start(1, {}, {"j@b", "1", "2"}));
  ends_well(all, {"0 of 2 on a\n", "1 of 2 on b\n"});
}

BOOST_AUTO_TEST_CASE(who_is_killed_has_departed) {
  std::vector<Process> all;
  for (int rank = 0; rank < 2; ++rank)
    all.push_back(start(static_cast<std::size_t>(rank), {}, {"j@a", std::to_string(rank), "2", "sits"}));
  BOOST_TEST(eventually([&] { return !all[1].output().empty(); }));
  all[1].signal(SIGKILL);
  BOOST_TEST(all[1].wait() == 128 + SIGKILL);
  BOOST_TEST(all[0].wait() == 0, all[0]);
  BOOST_TEST(all[0].output() == "0 of 2 on a\nalone\n");
}

// As those of any other job: seen, looked at and ended from each of its hosts.
BOOST_AUTO_TEST_CASE(tools_know_them) {
  const auto said = [&](const char* command, std::vector<std::string> words, std::size_t on, int status = 0) {
    Process tool = hosts.parc(command, std::move(words), on);
    BOOST_TEST(tool.wait() == status, tool);
    return tool.output() + tool.errors();
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    BOOST_TEST((text.find(part) != text.npos), text << " does not say " << part);
  };
  std::vector<Process> all;
  all.push_back(start(0, {}, {"heat@a", "0", "3", "sits"}));
  BOOST_TEST(eventually([&] {
    return said("ps", {"--hosts", "a,b"}, 1)
               .find("job heat begins on host a when rank 1-2 of 3 has joined it") != std::string::npos;
  }));
  for (int rank = 1; rank < 3; ++rank)
    all.push_back(start(1, {}, {"heat@a", std::to_string(rank), "3", "sits"}));
  BOOST_TEST(eventually(
      [&] { return std::ranges::none_of(all, [](Process& each) { return each.output().empty(); }); }));

  const auto listed = nlohmann::json::parse(said("ps", {"--hosts", "a,b", "--json"}, 0));
  BOOST_TEST(listed["waiting"].empty());
  BOOST_REQUIRE(listed["jobs"].size() == 1U);
  const auto& job = listed["jobs"][0];
  const std::string number = job["job"];
  BOOST_TEST(job["program"] == "joiner (heat)");
  BOOST_TEST(job["from"] == "a");
  BOOST_TEST(job["ranks"] == 3);
  BOOST_TEST((job["hosts"] == nlohmann::json{{"a", 1}, {"b", 2}}));
  for (std::size_t on : {0U, 1U}) {
    const auto seen = nlohmann::json::parse(said("dump", {"--json"}, on));
    BOOST_TEST(seen["job"] == number);
    BOOST_TEST(seen["ranks"].size() == 3U);
    BOOST_TEST(seen["ranks"][2]["program"] == "joiner");
    BOOST_TEST(hosts.status(on)["jobs"][0]["job"] == number);
  }
  contains(said("kill", {"-s", "USR1", number}, 1), "signal");
  for (Process& each : all) BOOST_TEST(each.wait() == 128 + SIGUSR1);
  BOOST_TEST(eventually([&] { return said("ps", {"--hosts", "a,b"}, 0) == "no jobs\n"; }));
  contains(said("kill", {"--hosts", "a,b", number}, 0, 1), "no job " + number + " runs");
}

BOOST_AUTO_TEST_CASE(the_kernel_where_they_meet_stops) {
  Process here = start(1, {}, {"j", "0", "3"}), there = start(0, {}, {"j@b", "1", "3"});
  BOOST_TEST(eventually([&] { return hosts[0].log().find("link to host b") != std::string::npos; }));
  BOOST_TEST(hosts.parc("stop", {}, 1).wait() == 0);
  BOOST_TEST(here.wait() == 4);
  BOOST_TEST(there.wait() == 4);
  BOOST_TEST(hosts[1].kernel().wait() == 0);
  hosts[1].start();
}

// It has the rank's variables, and is no rank.
BOOST_AUTO_TEST_CASE(what_a_rank_starts_is_by_hand) {
  Process job = hosts.run({"-n", "2", "sh", "-c", "exec 3>&-; env -u PARC_PIPES " + program});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors());
  BOOST_TEST(job.output() == "0 of 1 on a\n0 of 1 on a\n");
}

BOOST_AUTO_TEST_SUITE_END()

// Nobody runs there while it waits. Kernel b, which was started after a, ends when it has been idle so long.
BOOST_AUTO_TEST_CASE(who_waits_keeps_an_idle_kernel) {
  Hosts hosts{2, {"--idle-timeout-s", "3"}};
  const auto join = [&](const char* rank) {
    return hosts.start({"env", "PARC_RUNTIME_DIR=" + hosts[0].runtime_dir(), program, "j", rank, "2"});
  };
  Process first = join("0");
  BOOST_TEST(hosts[1].kernel().wait() == 0);
  BOOST_TEST(hosts[0].kernel().running());
  Process second = join("1");
  BOOST_TEST(first.wait() == 0, first << hosts);
  BOOST_TEST(second.wait() == 0, second);
  BOOST_TEST(hosts[0].kernel().wait() == 0); // and then it ends
}

} // namespace parc::test
