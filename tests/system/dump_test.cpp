// SPDX-License-Identifier: BSD-3-Clause
// What a user is told about a job that hangs, about peers that have gone, and about what nobody read.
#include "tests/support/hosts.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace parc::test {
namespace {

using Json = nlohmann::json;

const std::string hang = PARC_TEST_PROGRAMS "/hang";

Json dump_of(Hosts& hosts, std::size_t on, const std::string& job = {}, int status = 0) {
  std::vector<std::string> words{"--json"};
  if (!job.empty()) words.push_back(job);
  Process dump = hosts.parc("dump", words, on);
  BOOST_TEST(dump.wait() == status, dump);
  return Json::parse(dump.output(), nullptr, false);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

void end(Process& job) {
  job.signal(SIGTERM);
  const int status = job.wait();
  BOOST_TEST(status == 128 + SIGTERM, "status " << status << ": " << job.errors());
}

long lines_of(const std::string& text) {
  return std::ranges::count(text, '\n');
}

} // namespace

BOOST_AUTO_TEST_SUITE(dump)

BOOST_AUTO_TEST_CASE(a_cycle_over_hosts_is_named) {
  Hosts hosts(2);
  Process job = hosts.run({"-n", "4", "--hosts", "a:2,b:2", hang, "cycle"});
  BOOST_TEST(eventually([&] { return lines_of(job.output()) == 4; }), job);
  for (const std::size_t on : {0, 1}) { // asked on any host of the job
    Json seen;
    BOOST_TEST(eventually([&] {
                 return (seen = dump_of(hosts, on))["cycle"] == Json{0, 1, 2, 3};
               }),
               seen.dump());
    BOOST_TEST(seen["silent_hosts"].empty());
    BOOST_REQUIRE(seen["ranks"].size() == 4u);
    for (int rank = 0; rank < 4; ++rank) {
      const Json& state = seen["ranks"][static_cast<std::size_t>(rank)];
      BOOST_TEST(state["rank"] == rank);
      BOOST_TEST(state["host"] == (rank < 2 ? "a" : "b"));
      BOOST_TEST(state["program"] == "hang");
      BOOST_TEST(state["resting"] == true);
      BOOST_REQUIRE(state["unfinished"].size() == 1u);
      const Json& read = state["unfinished"][0];
      BOOST_TEST(read["peer"] == (rank + 1) % 4);
      BOOST_TEST(read["tag"] == 7);
      BOOST_TEST(read["bytes"] == 100);
      BOOST_TEST(read["writes"] == false);
    }
  }
  Process text = hosts.parc("dump", {});
  BOOST_TEST(text.wait() == 0);
  for (const char* words :
       {"these ranks wait for each other: 0 -> 1 -> 2 -> 3 -> 0", "read from 1", "hang", "waits"})
    BOOST_TEST(contains(text.output(), words), text.output());
  end(job);
}

BOOST_AUTO_TEST_CASE(status_shows_what_ranks_wait_for) {
  Hosts hosts(1);
  Process job = hosts.run({"-n", "2", hang, "absent"});
  const auto sessions = [&] { return hosts.status()["sessions"]; };
  BOOST_TEST(eventually([&] {
    const Json seen = sessions();
    return seen.size() == 2 && seen[0]["more"] == 2 && seen[0]["resting"] == true;
  }));
  const Json seen = sessions();
  BOOST_TEST(seen[0]["rank"] == 0);
  BOOST_TEST(seen[0]["unfinished"].size() == 10u);
  BOOST_TEST(seen[0]["unfinished"][0]["peer"] == 1);
  BOOST_TEST(seen[1]["unfinished"].empty());
  BOOST_TEST(seen[1]["resting"] == false);
  Process text = hosts.parc("status", {});
  BOOST_TEST(text.wait() == 0);
  for (const char* words : {"read from 1", "and 2 more", "hang", "runs", "waits"})
    BOOST_TEST(contains(text.output(), words), text.output());
  BOOST_TEST(dump_of(hosts, 0)["cycle"].empty()); // rank 1 calculates
  // A kernel that hangs is not asked.
  hosts[0].kernel().signal(SIGSTOP);
  BOOST_TEST(sessions()[0]["more"] == 2);
  hosts[0].kernel().signal(SIGCONT);
  end(job);
}

// More messages than their receiver's kernel has places for: the others wait at their writer's.
BOOST_AUTO_TEST_CASE(what_stands_in_kernels_is_seen) {
  constexpr int messages = 230'000, taken = 30'000;
  Hosts hosts(2);
  const std::string files = hosts.directory() + "/files";
  std::filesystem::create_directory(files);
  Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/backlog", files, "stands",
                           std::to_string(messages), "8", std::to_string(taken)});
  BOOST_TEST_REQUIRE(eventually([&] { return std::filesystem::exists(files + "/written"); }), job);
  const auto backlog_of = [&](std::size_t rank, const char* what) {
    const Json seen = dump_of(hosts, 0);
    return seen["ranks"].size() == 2 ? seen["ranks"][rank]["backlog"].value(what, 0) : 0;
  };
  BOOST_TEST(eventually([&] {
               const int held = backlog_of(0, "kernel_held");
               return held > 10'000 && held + backlog_of(1, "kernel_unread") == messages;
             }),
             job.errors());
  Process text = hosts.parc("dump", {});
  BOOST_TEST(text.wait() == 0);
  for (const char* words :
       {"writes in the kernel without a place at receivers", "messages in the kernel that no read has taken"})
    BOOST_TEST(contains(text.output(), words), text.output());
  BOOST_TEST(eventually([&] { // a kernel tells before it sleeps
    return hosts.status(1)["sessions"][0]["backlog"].value("kernel_unread", 0) > messages / 2;
  }));
  std::ofstream(files + "/take").put('\n');
  BOOST_TEST_REQUIRE(eventually([&] { return std::filesystem::exists(files + "/taken"); }), job);
  BOOST_TEST(eventually([&] {
    return backlog_of(0, "kernel_held") == 0 && backlog_of(1, "kernel_unread") == messages - taken;
  }));
  end(job); // to read all of them takes minutes where the programs are sanitized
}

BOOST_AUTO_TEST_CASE(hosts_that_do_not_answer_are_named) {
  Hosts hosts(2);
  Process job = hosts.run({"-n", "2", "--hosts", "a,b", hang, "cycle"});
  BOOST_TEST(eventually([&] { return lines_of(job.output()) == 2; }), job);
  hosts[1].kernel().signal(SIGSTOP);
  const Json seen = dump_of(hosts, 0, {}, 1);
  BOOST_TEST(seen["silent_hosts"] == Json{"b"});
  BOOST_TEST(seen["ranks"].size() == 1u);
  hosts[1].kernel().signal(SIGCONT);
  end(job);
}

BOOST_AUTO_TEST_CASE(a_kernel_that_hangs) {
  Hosts hosts(2);
  Process job = hosts.run({"-n", "3", "--hosts", "a:2,b", hang, "cycle"});
  BOOST_TEST(eventually([&] { return lines_of(job.output()) == 3; }), job);
  const std::string name = dump_of(hosts, 0)["job"];
  hosts[0].kernel().signal(SIGSTOP);
  for (const std::string& asked : {std::string(), name}) {
    const Json seen = dump_of(hosts, 0, asked, 1);
    BOOST_TEST(seen["job"] == name);
    BOOST_TEST(seen["silent_hosts"] == Json{"a"});
    BOOST_TEST(seen["ranks"].size() == 2u);
  }
  Process text = hosts.parc("dump", {});
  BOOST_TEST(text.wait() == 1);
  BOOST_TEST(contains(text.output(), "is stopped"), text.output());
  BOOST_TEST(contains(text.output(), "the ranks of other hosts are missing here"), text.output());
  Process none = hosts.parc("dump", {"1"});
  BOOST_TEST(none.wait() == 1);
  BOOST_TEST(contains(none.errors(), "is stopped"), none.errors());
  hosts[0].kernel().signal(SIGCONT);
  end(job);
}

// As MPI's processes, which mpirun starts.
BOOST_AUTO_TEST_CASE(programs_that_joined_by_themselves) {
  Hosts hosts(1);
  std::vector<Process> programs;
  for (int i = 0; i < 2; ++i)
    programs.push_back(hosts.start({"env", "PARC_RUNTIME_DIR=" + hosts[0].runtime_dir(), "setpriv",
                                    "--pdeathsig", "TERM", hang, "cycle"}));
  BOOST_TEST(eventually([&] {
               const Json ranks = hosts.status()["sessions"];
               return ranks.size() == 2 && std::ranges::all_of(ranks, [](const Json& each) {
                        return each["resting"] == true && !each["unfinished"].empty(); // else it still joins
                      });
             }),
             hosts.status().dump());
  const Json seen = dump_of(hosts, 0);
  BOOST_TEST(seen["job"].is_null());
  BOOST_TEST(seen["cycle"].empty());
  BOOST_TEST(seen["silent_hosts"].empty());
  BOOST_REQUIRE(seen["ranks"].size() == 2U);
  for (const Json& each : seen["ranks"]) {
    BOOST_TEST(each["host"] == "a");
    BOOST_TEST(each["program"] == "hang");
    BOOST_TEST_REQUIRE(each["unfinished"].size() == 1u);
    BOOST_TEST(each["unfinished"][0]["tag"] == 7);
    const Json alone = dump_of(hosts, 0, each["job"]);
    BOOST_REQUIRE(alone["ranks"].size() == 1U);
    BOOST_TEST(alone["ranks"][0]["pid"] == each["pid"]);
  }
  Process text = hosts.parc("dump", {});
  BOOST_TEST(text.wait() == 0);
  BOOST_TEST(contains(text.output(), "programs of host a that joined by themselves"), text.output());
  BOOST_TEST(contains(text.output(), "read from 0"), text.output());
  Process none = hosts.parc("dump", {"1"});
  BOOST_TEST(none.wait() == 1);
  BOOST_TEST(contains(none.errors(), "takes part in no job"), none.errors());
  for (Process& each : programs) end(each);
}

BOOST_AUTO_TEST_CASE(jobs_are_told_apart) {
  Hosts hosts(2);
  const auto fails = [&](std::vector<std::string> words, std::size_t on, const std::string& sentence) {
    Process dump = hosts.parc("dump", std::move(words), on);
    BOOST_TEST(dump.wait() == 1);
    BOOST_TEST(contains(dump.errors(), sentence), dump.errors());
  };
  fails({}, 0, "takes part in no job");
  const std::string script = "echo $PARC_JOB; exec sleep 1000";
  Process one = hosts.run({"sh", "-c", script}), two = hosts.run({"--hosts", "b", "sh", "-c", script});
  BOOST_TEST(eventually([&] { return one.output().ends_with('\n') && two.output().ends_with('\n'); }));
  const std::string first = one.output().substr(0, one.output().size() - 1),
                    second = two.output().substr(0, two.output().size() - 1);
  fails({}, 0, "more than one job; say which");
  fails({"1"}, 0, "takes part in no job 1");
  const Json here = dump_of(hosts, 0, first);
  BOOST_TEST(here["job"] == first);
  BOOST_TEST(here["ranks"][0]["joined"] == false);
  // This host started it, and has none of its ranks.
  BOOST_TEST(dump_of(hosts, 0, second)["ranks"][0]["host"] == "b");
  BOOST_TEST(dump_of(hosts, 1)["job"] == second);
  end(one);
  end(two);
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  fails({}, 0, "no parcd runs on ");
}

BOOST_AUTO_TEST_CASE(how_a_peer_has_gone_is_told) {
  Hosts hosts(2);
  const std::string why = " failed: that rank has left the job\n";
  for (const auto& [where, host] : {std::pair("a,b", "b"), std::pair("a:2", "a")}) {
    Process job = hosts.run({"--hosts", where, hang, "peer"});
    BOOST_TEST(job.wait() == 0, job);
    const std::string rank = std::string("rank 1 on host ") + host;
    BOOST_TEST(job.output() ==
               "the read from " + rank + " (tag 7)" + why + "the write to " + rank + " (tag 8)" + why +
                   "the barrier failed, which waits for " + rank +
                   ": that rank has left the job\nthe read from any rank (any tag) failed: every "
                   "other rank has left the job, was killed or is lost\n");
  }
}

BOOST_AUTO_TEST_CASE(what_nobody_read_is_told_once) {
  Hosts hosts(2);
  for (const char* where : {"a:2", "a,b"}) {
    Process few = hosts.run({"--hosts", where, hang, "unread", "2"});
    BOOST_TEST(few.wait() == 0);
    BOOST_TEST(few.errors() ==
               "parc: warning: a message from rank 0 to rank 1 was never read (tag 30, 100 bytes)\n"
               "parc: warning: a message from rank 0 to rank 1 was never read (tag 31, 100 bytes)\n");
    Process many = hosts.run({"--hosts", where, hang, "unread", "100"});
    BOOST_TEST(many.wait() == 0);
    BOOST_TEST(lines_of(many.errors()) == 6);
    BOOST_TEST(contains(many.errors(), "parc: warning: 95 more messages were never read"), many.errors());
    Process strange = hosts.run({"--hosts", where, hang, "envelope"});
    BOOST_TEST(strange.wait() == 0);
    BOOST_TEST(strange.errors() ==
               "parc: warning: a message from rank 0 to rank 1 was never read (tag -5, 100 bytes)\n");
  }
}

// Ended in the middle of a wait, which it says itself when it has rested for 100 ms: its trace says which
// reads never came.
BOOST_AUTO_TEST_CASE(the_trace_of_a_hang_has_the_reads_that_never_came) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/trace.json";
  Process job = hosts.run({"--trace", file, "--hosts", "a,b", hang, "cycle"});
  BOOST_TEST(eventually([&] { return lines_of(job.output()) == 2; }), job);
  Json seen;
  BOOST_TEST(eventually([&] {
               seen = dump_of(hosts, 0)["ranks"];
               return std::ranges::all_of(seen, [](const Json& rank) {
                 return rank["unfinished"].size() == 1 && rank["unfinished"][0]["age_ms"] >= 1000;
               });
             }),
             seen.dump());
  end(job);
  std::ifstream in(file);
  const Json trace = Json::parse(in, nullptr, false);
  int never = 0;
  for (const Json& event : trace.at("traceEvents"))
    if (event["ph"] == "b" && event["cat"] == "read" && !event["args"].contains("last_byte_us")) {
      ++never;
      BOOST_TEST(event["args"]["tag"] == 7);
      BOOST_TEST(event["args"]["bytes"] == 100);
      const std::string site = event["args"]["site"]; // its line, where it is built with those
      BOOST_TEST((site.find("hang.cpp:") != std::string::npos || site.starts_with("hang+")), site);
    }
  BOOST_TEST(never == 2);
  Process summary = hosts.start({PARC_TEST_BIN "/parc", "trace", file});
  BOOST_TEST(summary.wait() == 0, summary);
  BOOST_TEST(contains(summary.output(), "reads that never came"), summary.output());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
