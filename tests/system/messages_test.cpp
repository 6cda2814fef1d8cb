// SPDX-License-Identifier: BSD-3-Clause
// Messages between programs over real kernels. The programs check what they get (tests/support/programs); a
// job that ends with 0 and says nothing is right.
#include "tests/support/hosts.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace parc::test {
namespace {

// How those of one host exchange messages.
const auto ways = boost::unit_test::data::make({"direct", "kernel"});
const auto all_ways = boost::unit_test::data::make(neighbours_ways);

const std::string programs = PARC_TEST_PROGRAMS "/";

void check_job(Hosts& hosts, std::vector<std::string> words) {
  Process job = hosts.run(std::move(words));
  const int status = job.wait();
  BOOST_TEST((status == 0 && job.errors() == ""), "status " << status << ": " << job.errors() << hosts);
}

} // namespace

BOOST_AUTO_TEST_SUITE(messages)

BOOST_AUTO_TEST_CASE(all_pairs_at_once_through_tiny_buffers) {
  Hosts hosts(4, {"--send-buffer", "4096", "--receive-buffer", "4096"});
  check_job(hosts, {"--hosts", "a,b,c,d", programs + "all_pairs", "67108864"});
}

BOOST_DATA_TEST_CASE(all_pairs_on_the_same_hosts, ways, way) {
  Hosts hosts(2, options_of(way));
  check_job(hosts, {"--hosts", "a:3,b:3", programs + "all_pairs", "10000000"});
}

BOOST_DATA_TEST_CASE(random_messages_against_a_model, all_ways, way) {
  Hosts hosts(2, options_of(way));
  check_job(hosts, {"--hosts", "a:2,b:2", programs + "random_messages", "1", "10000"});
}

// More programs than a kernel looks at in every turn: those that rest ring when they go on.
BOOST_DATA_TEST_CASE(random_messages_of_many, ways, way) {
  Hosts hosts(2, options_of(way));
  check_job(hosts, {"--hosts", "a:24,b:24", programs + "random_messages", "3", "400"});
}

BOOST_AUTO_TEST_CASE(random_messages_with_little_pool_and_other_fragments) {
  Hosts hosts(3, {"--pool", "1 MiB", "--fragment-size", "1024"});
  check_job(hosts, {"--hosts", "a,b,c", programs + "random_messages", "2", "2000"});
}

BOOST_DATA_TEST_CASE(threads_wait_each_for_its_own, all_ways, way) {
  Hosts hosts(2, options_of(way));
  check_job(hosts, {"--hosts", "a,b", programs + "threads", "4", "500"});
  check_job(hosts, {"--hosts", "a:2", programs + "threads", "4", "500"});
}

BOOST_DATA_TEST_CASE(tags_with_masks_claims_and_synchronous_writes, all_ways, way) {
  Hosts hosts(2, options_of(way));
  check_job(hosts, {"--hosts", "a,b", programs + "matching"});
  check_job(hosts, {"--hosts", "a:2", programs + "matching"});
  check_job(hosts, {"--early-release=full", "--hosts", "a,b", programs + "matching"});
}

BOOST_DATA_TEST_CASE(the_completion_queue, all_ways, way) {
  Hosts hosts(2, options_of(way));
  check_job(hosts, {"--hosts", "a,b", programs + "completions"});
  check_job(hosts, {"--hosts", "a:2", programs + "completions"});
  check_job(hosts, {"--early-release=full", "--hosts", "a,b", programs + "completions"});
}

// Between hosts, on one, and both; programs that are stopped, and one that is killed.
BOOST_DATA_TEST_CASE(gets_from_windows, ways, way) {
  Hosts hosts(2, options_of(way));
  for (const char* placement : {"a,b", "a:2", "a:2,b:2"})
    for (const char* what : {"all", "stopped"})
      check_job(hosts, {"--hosts", placement, programs + "windows", what});
  check_job(hosts, {"--early-release=full", "--hosts", "a,b", programs + "windows", "all"});
  for (const char* host : {"a", "b"}) {
    Process job = hosts.run({"--hosts", "a", programs + "windows", "killed", host});
    BOOST_TEST(job.wait() == 0);
    BOOST_TEST(job.errors().starts_with("parc: warning: of the programs that were spawned"), job << hosts);
  }
}

BOOST_DATA_TEST_CASE(puts_into_windows, ways, way) {
  Hosts hosts(2, options_of(way));
  for (const char* placement : {"a,b", "a:2", "a:2,b:2"})
    for (const std::vector<std::string>& what :
         {std::vector<std::string>{"all"}, {"stopped"}, {"random", "1", "60"}}) {
      std::vector<std::string> words{"--hosts", placement, programs + "puts"};
      words.insert(words.end(), what.begin(), what.end());
      check_job(hosts, words);
    }
  for (const char* level : {"envelope", "full"})
    for (const char* placement : {"a,b", "a:2,b:2"})
      check_job(hosts, {std::string("--early-release=") + level, "--hosts", placement, programs + "puts",
                        "random", "2", "60"});
  check_job(hosts, {"--early-release=full", "--hosts", "a,b", programs + "puts", "all"});
  check_job(hosts, {"--hosts", "a:4", programs + "puts", "one-way"});
  for (const char* host : {"a", "b"}) {
    Process job = hosts.run({"--hosts", "a", programs + "puts", "killed", host});
    BOOST_TEST(job.wait() == 0);
    BOOST_TEST(job.errors().starts_with("parc: warning: of the programs that were spawned"), job << hosts);
  }
}

// Neighbours may be in the middle of a copy that they make themselves.
BOOST_DATA_TEST_CASE(windows_that_are_taken_back, ways, way) {
  Hosts hosts(2, options_of(way));
  for (const char* placement : {"a:3", "a:2,b:2"})
    check_job(hosts, {"--hosts", placement, programs + "taken_back", "100"});
  Process job = hosts.run({"--keep-going", "--hosts", "a:3", programs + "taken_back", "300", "killed"});
  BOOST_TEST(job.wait() == 128 + SIGKILL, job << hosts);
  BOOST_TEST(job.errors().find("rank 1 on host a") != std::string::npos, job);
  BOOST_TEST(job.errors().find("rank 0") == std::string::npos, job);
}

// Which the kernel shares with nobody: it reaches it through the system.
BOOST_DATA_TEST_CASE(windows_of_any_memory, ways, way) {
  Hosts hosts(2, {"--local", way});
  for (const char* placement : {"a,b", "a:2", "a:2,b:2"})
    for (const std::vector<std::string>& what : {std::vector<std::string>{"windows", "all", "own"},
                                                 {"windows", "stopped", "own"},
                                                 {"puts", "all", "own"},
                                                 {"puts", "stopped", "own"},
                                                 {"puts", "random", "3", "60", "own"}}) {
      std::vector<std::string> words{"--hosts", placement, programs + what[0]};
      words.insert(words.end(), what.begin() + 1, what.end());
      check_job(hosts, words);
    }
  check_job(hosts, {"--early-release=full", "--hosts", "a,b", programs + "puts", "all", "own"});
  for (const char* program : {"windows", "puts"}) {
    Process job = hosts.run({"--hosts", "a", programs + program, "killed", "b", "own"});
    BOOST_TEST(job.wait() == 0, job << hosts);
  }
}

BOOST_AUTO_TEST_CASE(thousands_of_operations_are_unfinished) {
  Hosts hosts(2, {"--local", "kernel"});
  check_job(hosts, {"--hosts", "a:2", programs + "unfinished", "20000"});
}

BOOST_DATA_TEST_CASE(waiting_in_the_programs_own_poll, ways, way) {
  Hosts hosts(2, options_of(way));
  check_job(hosts, {"--hosts", "a,b", programs + "event_loop"});
  check_job(hosts, {"--hosts", "a:2", programs + "event_loop"});
}

// On the same host, on others that their kernels know, and on one that they have to find.
BOOST_DATA_TEST_CASE(two_jobs_that_know_each_other_by_address, ways, way) {
  for (const auto& [servers, askers] :
       {std::pair("a:2", "a:2"), std::pair("a,b", "b,a"), std::pair("a:2", "b:2")}) {
    Hosts hosts(2, options_of(way));
    const std::string file = hosts.directory() + "/addresses";
    Process server = hosts.run({"--hosts", servers, programs + "strangers", "serve", file, "2"});
    // The one that asks is started from where its first rank runs.
    Process asker =
        hosts.run({"--hosts", askers, programs + "strangers", "ask", file, "2"}, *askers == 'b' ? 1 : 0);
    for (Process* job : {&server, &asker}) {
      const int status = job->wait();
      BOOST_TEST((status == 0 && job->errors() == ""), "status " << status << ": " << job->errors() << hosts);
    }
  }
}

BOOST_DATA_TEST_CASE(endings, all_ways, way) {
  Hosts hosts(2, options_of(way));
  check_job(hosts, {"--hosts", "a,b", programs + "endings"});
  check_job(hosts, {"--hosts", "a:2", programs + "endings"});
}

BOOST_DATA_TEST_CASE(what_was_accepted_before_an_exit_arrives, ways, way) {
  Hosts hosts(2, options_of(way));
  for (const char* how : {"objects", "thread"})
    for (const char* placement : {"a,b", "a:2"})
      check_job(hosts, {"--hosts", placement, programs + "exiting", how});
}

// Between neighbours.
BOOST_AUTO_TEST_CASE(more_messages_than_cells) {
  Hosts hosts(1, {"--local", "direct"});
  const auto words_for = [&](const char* ranks, std::vector<std::string> words) {
    const std::string files = hosts.directory() + "/" + words[0];
    std::filesystem::create_directory(files);
    words.insert(words.begin(), {"--hosts", ranks, programs + "backlog", files});
    return words;
  };
  const auto check = [&](const char* ranks, std::vector<std::string> words) {
    check_job(hosts, words_for(ranks, std::move(words)));
  };
  check("a:2", {"last_first", "20000", "1000"});
  check("a:3", {"others", "3000"});
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which take address space themselves
  check("a:2", {"starved"});
#endif
  check("a:2", {"queued"});
  check("a:2", {"gone"});
  check("a:2", {"closing"});
  Process crossed = hosts.run(words_for("a:2", {"crossed"})); // both leave what the other one wrote
  BOOST_TEST(crossed.wait() == 0);
  BOOST_TEST(crossed.errors().find("more messages were never read") != std::string::npos, crossed.errors());
}

// A script around a program has used the number of a descriptor that it has inherited.
BOOST_AUTO_TEST_CASE(nothing_is_written_into_a_file_of_the_programs) {
  Hosts hosts(1);
  const std::string file = hosts.directory() + "/file";
  for (const std::string& redirection : {"20<" + file, "21>" + file, "21> >(cat >" + file + ")"}) {
    Process job = hosts.run({"-n", "1", "bash", "-c",
                             ": >" + file + "; exec " + redirection + "; exec " + programs + "ring 1 1"});
    BOOST_TEST(job.wait() != 0);
    BOOST_TEST(job.errors().find("is not the pipe any more that parc run has left") != std::string::npos,
               redirection << ": " << job.errors());
    BOOST_TEST(std::filesystem::file_size(file) == 0u);
  }
  Process job = hosts.run({"-n", "1", "--trace", hosts.directory() + "/trace", "bash", "-c",
                           "exec 22>" + file + "; exec " + programs + "ring 1 1"});
  (void)job.wait();
  BOOST_TEST(job.errors().find("file descriptor 22 is not the pipe") != std::string::npos, job.errors());
  BOOST_TEST(std::filesystem::file_size(file) == 0u);
}

BOOST_DATA_TEST_CASE(an_exit_in_a_signal_handler_ends_the_job, ways, way) {
  Hosts hosts(2, options_of(way));
  for (int round = 0; round < 5; ++round)
    for (const char* how : {"waiting", "talking"})
      for (const char* placement : {"a,b", "a:2"}) {
        Process job = hosts.run({"--timeout", "60", "--hosts", placement, programs + "exiting", how});
        const int status = job.wait();
        BOOST_TEST(status == 7, how << " on " << placement << ": " << job.errors() << hosts);
      }
}

BOOST_DATA_TEST_CASE(reads_that_are_left_alone, ways, way) {
  Hosts hosts(2, options_of(way));
  check_job(hosts, {"--hosts", "a,b", programs + "quiet_reads"});
  check_job(hosts, {"--hosts", "a:2", programs + "quiet_reads"});
}

BOOST_AUTO_TEST_CASE(long_reads_that_are_left_alone_and_interrupted) {
  Hosts hosts(1, {"--local", "signal"});
  check_job(hosts, {"--hosts", "a:2", programs + "quiet_reads", "long"});
}

// Of rank 1, at the job's end.
std::uint64_t interrupts_of(Hosts& hosts, const char* when) {
  Process job = hosts.run({"--hosts", "a:2", programs + "interrupts", when});
  BOOST_TEST(eventually([&] { return job.output() == "done\n"; }), when << ": " << job);
  const auto seen = hosts.status()["sessions"];
  BOOST_TEST_REQUIRE(seen.size() == 2);
  BOOST_TEST(seen[0]["neighbours"]["interrupts"] == 0);
  BOOST_TEST(seen[0]["neighbours"]["bytes"] >= 1'000'000);
  job.signal(SIGTERM);
  (void)job.wait();
  BOOST_TEST(eventually([&] { return hosts.status()["sessions"].empty(); }));
  return seen[1]["neighbours"]["interrupts"].get<std::uint64_t>();
}

// One interrupt for a message that finds its read posted, none for one that does not. Who has not sat down
// yet when the message comes sees it by itself.
BOOST_AUTO_TEST_CASE(a_receiver_is_interrupted_where_that_helps) {
  Hosts hosts(1, {"--local", "signal"});
  std::uint64_t interrupts = 0;
  for (int round = 0; round < 20 && interrupts == 0; ++round) interrupts = interrupts_of(hosts, "in_time");
  BOOST_TEST(interrupts == 1u);
  BOOST_TEST(interrupts_of(hosts, "late") == 0u);
}

// A sanitizer's runtime needs address space itself.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
BOOST_AUTO_TEST_CASE(one_that_cannot_hear_a_neighbour_is_told) {
  Hosts hosts(1);
  Process job = hosts.run({"-n", "18", programs + "unheard", hosts.directory() + "/file"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts); // it says what was not read
}

// Whether a kernel copies to the memory of programs is what it measured when it began, unless it is told.
BOOST_AUTO_TEST_CASE(little_memory) {
  Hosts hosts(2, {"--cross-memory", "off"});
  for (const char* where : {"a,b", "a:2"})
    for (const char* how : {"exchange", "anybody", "looks", "too_much"})
      check_job(hosts, {"--hosts", where, programs + "little_memory", how});
}

BOOST_AUTO_TEST_CASE(little_memory_that_the_kernel_reaches) {
  Hosts hosts(1, {"--cross-memory", "on"});
  for (const char* how : {"exchange", "anybody", "looks", "in_place"})
    check_job(hosts, {"-n", "2", programs + "little_memory", how});
}
#endif

BOOST_AUTO_TEST_CASE(memory_that_the_kernel_reaches) {
  Hosts hosts(1, {"--cross-memory", "on"});
  for (const char* how : {"leave", "wait", "barriers", "exchange", "elsewhere", "untraceable"})
    check_job(hosts, {"-n", "2", programs + "own_memory", how});
  for (const char* how : {"no_target", "no_source"}) {
    Process job = hosts.run({"-n", "2", programs + "own_memory", how});
    const int status = job.wait();
    BOOST_TEST(status == 0, job.errors() << hosts);
  }
  BOOST_TEST(hosts.logs().find("it copies messages itself now") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_becomes_of_memory_is_said) {
  for (const auto& [cross_memory, said] : {std::pair("on", "in place"), std::pair("off", "copied")}) {
    Hosts hosts(1, {"--cross-memory", cross_memory});
    Process job = hosts.run({"-n", "2", programs + "hang", "cycle"});
    BOOST_TEST(eventually([&] { return hosts.status()["sessions"].size() == 2; }));
    BOOST_TEST(hosts.status()["sessions"][0]["neighbours"]["memory"] == said);
  }
}

// Of a kernel that may trace nobody who forbids it, as any but the superuser's: what it cannot reach is
// copied from the first message on.
BOOST_AUTO_TEST_CASE(memory_that_the_kernel_may_not_reach) {
  Hosts hosts(1);
  const std::string dir = hosts.directory() + "/plain", file = hosts.directory() + "/go";
  std::vector<std::string> words;
  if (geteuid() == 0) words = {"setpriv", "--inh-caps=-sys_ptrace", "--bounding-set=-sys_ptrace"};
  for (const char* const word :
       {PARC_TEST_BIN "/parcd", "--detach", "--name", "plain", "--port", "0", "--cross-memory", "on"})
    words.emplace_back(word);
  words.insert(words.end(), {"--config", hosts.directory() + "/parcd.toml", "--runtime-dir", dir});
  Process kernel = hosts.start(words);
  BOOST_TEST_REQUIRE(kernel.wait() == 0, kernel);
  Process job = hosts.start({PARC_TEST_BIN "/parc", "run", "--runtime-dir", dir, "-n", "2",
                             programs + "own_memory", "refused", file});
  BOOST_TEST(eventually([&] { return job.output() == "exchanged\n" || !job.running(); }), job);
  Process asked = hosts.start({PARC_TEST_BIN "/parc", "status", "--runtime-dir", dir, "--json"});
  BOOST_TEST(asked.wait() == 0, asked);
  const auto sessions = nlohmann::json::parse(asked.output())["sessions"];
  BOOST_TEST_REQUIRE(sessions.size() == 2, asked);
  for (const auto& each : sessions) BOOST_TEST(each["neighbours"]["memory"] == "copied (not permitted)");
  std::ofstream{file};
  BOOST_TEST(job.wait() == 0, job);
  Process stop = hosts.start({PARC_TEST_BIN "/parc", "stop", "--runtime-dir", dir});
  BOOST_TEST(stop.wait() == 0, stop);
}

BOOST_DATA_TEST_CASE(long_messages_to_who_waits, all_ways, way) {
  Hosts hosts(1, options_of(way));
  for (const char* how : {"waits", "looks", "both_ways", "pieces", "truncated", "stopped", "leaves"})
    check_job(hosts, {"-n", "2", programs + "awaited", how});
  for (int round = 0; round < 10; ++round) check_job(hosts, {"-n", "5", programs + "awaited", "gathers"});
}

// Some of them: who has just begun to wait, or does not get a core, is not seen to.
// Reads of which the kernel was not told, as neighbours alone could answer them.
BOOST_AUTO_TEST_CASE(reads_from_anybody_on_one_host) {
  Hosts hosts(2);
  for (const std::string how : {"kernel", "left"}) {
    const std::string file = hosts.directory() + "/go-" + how;
    Process job = hosts.run({"-n", "3", programs + "anybody", how, file});
    BOOST_TEST(eventually([&] { return job.output().find("waits") != std::string::npos || !job.running(); }));
    BOOST_TEST(eventually([&] { return hosts.ranks_sleep() || !job.running(); }));
    std::ofstream{file};
    BOOST_TEST(job.wait() == 0, job << hosts);
  }
  for (const std::string how : {"computes", "cancels"})
    check_job(hosts, {"-n", "2", programs + "anybody", how, hosts.directory() + "/go-" + how});
  for (int round = 0; round < 3; ++round) check_job(hosts, {"-n", "3", programs + "anybody", "mixed"});
  check_job(hosts, {"--hosts", "a", programs + "anybody", "spawned", "b"});
}

BOOST_AUTO_TEST_CASE(long_messages_to_who_waits_come_in_fragments) {
  Hosts hosts(1);
  for (const char* how : {"waits", "looks"}) {
    Process job = hosts.run({"-n", "2", programs + "awaited", how, "stays"});
    BOOST_TEST(eventually([&] { return job.output() == "done\n" || !job.running(); }), how << ": " << job);
    const auto seen = hosts.status()["sessions"];
    BOOST_TEST_REQUIRE(seen.size() == 2);
    BOOST_TEST(seen[1]["neighbours"]["received_bytes"] > 1'000'000, how);
    BOOST_TEST(seen[1]["neighbours"]["received"] <= 35u, how); // a message is one
    job.signal(SIGTERM);
    (void)job.wait();
    BOOST_TEST(eventually([&] { return hosts.status()["sessions"].empty(); }));
  }
}

// It looks at every byte of what it measures.
BOOST_DATA_TEST_CASE(overlap_is_measured_of_messages_that_are_right, all_ways, way) {
  Hosts hosts(2, options_of(way));
  for (const std::string where : {"a:2", "a,b"})
    for (const std::string what : {"receiver", "sender", "both", "bandwidth"})
      for (const bool plain : {false, true}) {
        std::vector<std::string> words{"--hosts", where, PARC_TEST_BIN "/bench-rendezvous", what, "16384",
                                       "2",       "1"};
        if (plain) words.emplace_back("malloc");
        Process job = hosts.run(words);
        const int status = job.wait();
        BOOST_TEST((status == 0 && job.errors() == ""),
                   where << ' ' << what << ", status " << status << ": " << job.errors() << hosts);
        std::istringstream figures(job.output());
        int count = 0;
        double figure = 0;
        while (figures >> figure) ++count;
        BOOST_TEST(count == (what == "bandwidth" ? 1 : 3), where << ' ' << what << ": " << job.output());
        BOOST_TEST(figure > 0); // what the exchange takes, or its bandwidth
      }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
