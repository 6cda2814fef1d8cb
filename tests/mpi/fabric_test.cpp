// SPDX-License-Identifier: BSD-3-Clause
// Programs over libfabric (libfabric/) by our provider: they check themselves what they get.
#include "tests/mpi/fabric_environment.hpp"
#include "tests/unit/fake_kernel.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace parc::test {
namespace {

Process start(Hosts& hosts, std::size_t host, const std::string& program,
              const std::vector<std::string>& arguments) {
  std::vector<std::string> words = on_host(hosts, host);
  append(words, {"FI_LOG_LEVEL=warn", PARC_MPI_PROGRAMS "/fabric_" + program});
  append(words, arguments);
  return hosts.start(words);
}

void check_end(Hosts& hosts, Process& process) {
  const int status = process.wait();
  BOOST_TEST((status == 0 && process.output() == "ok\n"),
             "status " << status << ": " << process.output() << process.errors() << hosts);
}

void check_alone(const std::string& program, const std::vector<std::string>& arguments = {}) {
  Hosts hosts(1);
  Process process = start(hosts, 0, program, arguments);
  check_end(hosts, process);
}

// With more in its environment, of which the last word counts.
Process refusal(Hosts& hosts, const std::vector<std::string>& environment,
                const std::vector<std::string>& arguments) {
  std::vector<std::string> words = on_host(hosts, 0);
  append(words, environment);
  append(words, {PARC_MPI_PROGRAMS "/fabric_refusals"});
  append(words, arguments);
  return hosts.start(words);
}

// Without a word of libfabric's log, which is off by default: once, whatever else fails.
void check_said(const Process& process, const std::string& sentence) {
  const std::string said = process.errors();
  BOOST_TEST((said.starts_with("parc: process ") && std::ranges::count(said, '\n') == 1), said);
  BOOST_TEST(said.find(sentence) != std::string::npos, said);
}

void check_refusal(Process& process, const std::string& sentence) {
  const int status = process.wait();
  BOOST_TEST((status == 0 && process.output() == "ok\n"),
             "status " << status << ": " << process.output() << process.errors());
  check_said(process, sentence);
}

// Two processes, which find each other by files in a directory.
void check_both(const std::string& program, std::size_t on_hosts) {
  Hosts hosts(on_hosts);
  Process first = start(hosts, 0, program, {hosts.directory(), "0"});
  Process second = start(hosts, on_hosts - 1, program, {hosts.directory(), "1"});
  check_end(hosts, first);
  check_end(hosts, second);
}

} // namespace

BOOST_AUTO_TEST_SUITE(libfabric)

BOOST_AUTO_TEST_CASE(waits_by_every_wait_object) {
  check_alone("waiting");
}

BOOST_AUTO_TEST_CASE(a_buffer_takes_several_messages) {
  check_both("several", 1);
  check_both("several", 2);
}

BOOST_AUTO_TEST_CASE(remote_memory_is_reached_without_its_program) {
  check_both("remote", 1);
  check_both("remote", 2);
}

BOOST_AUTO_TEST_CASE(an_endpoint_may_be_for_both) {
  check_both("both", 1);
  check_both("both", 2);
}

BOOST_AUTO_TEST_CASE(remote_data_is_there_where_it_was_sent) {
  check_both("data", 1);
  check_both("data", 2);
}

BOOST_AUTO_TEST_CASE(endpoints_begin_and_end) {
  check_both("ends", 1);
}

BOOST_AUTO_TEST_CASE(an_address_as_text_is_a_name) {
  check_alone("names");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which take address space themselves
// It is seen while it waits, and said once.
BOOST_AUTO_TEST_CASE(what_there_is_no_memory_for_is_started_later) {
  Hosts hosts(1);
  Process process = start(hosts, 0, "later", {hosts.directory()});
  const auto put_off = [&] {
    const auto sessions = hosts.status()["sessions"];
    return sessions.empty() ? 0 : sessions[0]["backlog"].value("put_off", 0);
  };
  BOOST_TEST(eventually([&] { return put_off() > 16; }), process);
  const std::string words = " operations, the oldest of them for peer ";
  BOOST_TEST(eventually([&] { return process.errors().find(words) != std::string::npos; }), process);
  BOOST_TEST(put_off() > 16);
  Process dump = hosts.parc("dump", {"--json"}); // MPI's processes join by themselves
  BOOST_TEST(dump.wait() == 0, dump);
  const auto seen = nlohmann::json::parse(dump.output());
  BOOST_REQUIRE(seen["ranks"].size() == 1U);
  BOOST_TEST(seen["ranks"][0]["backlog"]["put_off"] > 16);
  std::ofstream(hosts.directory() + "/memory").put('\n');
  check_end(hosts, process);
  BOOST_TEST(process.errors().find(words) == process.errors().rfind(words), process.errors());
}
#endif

// ---- What bad input gets: the program checks the code, here is the sentence.

BOOST_AUTO_TEST_CASE(no_kernel_and_starting_forbidden) {
  Hosts hosts(1);
  Process process =
      refusal(hosts, {"PARC_RUNTIME_DIR=" + hosts.directory() + "/nowhere", "PARC_AUTOSTART=off"},
              {"no_domain", std::to_string(ENODEV)});
  check_refusal(process, "PARC_AUTOSTART=off forbids to start a kernel");
}

BOOST_AUTO_TEST_CASE(the_kernel_of_another_user) {
  if (geteuid() != 0) return; // nobody else can be somebody else
  Hosts hosts(1);
  const std::string directory = hosts.directory() + "/another";
  BOOST_REQUIRE((mkdir(directory.c_str(), 0700) == 0 && chown(directory.c_str(), 65'534, 65'534) == 0));
  Process process = refusal(hosts, {"PARC_RUNTIME_DIR=" + directory}, {"no_domain", std::to_string(ENODEV)});
  check_refusal(process, "belongs to user 65534");
}

// Of a kernel that is older or newer than the library, and so of a provider from another parc.
BOOST_AUTO_TEST_CASE(a_kernel_of_another_version) {
  for (const std::uint32_t version : {shm::layout_version - 1, shm::layout_version + 1}) {
    FakeKernel kernel(1, version);
    Hosts hosts(1);
    Process process = refusal(hosts, {}, {"no_domain", std::to_string(EOPNOTSUPP)});
    check_refusal(process, "upgrade");
  }
}

BOOST_AUTO_TEST_CASE(hints_that_cannot_be_met) {
  Hosts hosts(1);
  Process process =
      refusal(hosts, {"FI_LOG_LEVEL=info"}, {"hints"}); // others may have it: that is no failure
  BOOST_TEST(process.wait() == 0, process);
  BOOST_TEST(process.output() == "ok\n");
  BOOST_TEST(process.errors().find("parc does not have what is asked for: messages that long") !=
                 std::string::npos,
             process.errors());
}

BOOST_AUTO_TEST_CASE(an_address_that_cannot_be_reached) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/address";
  Process gone = start(hosts, 1, "refusals", {"leave_address", file});
  check_end(hosts, gone);
  hosts[1].kernel().signal(SIGTERM);
  (void)hosts[1].kernel().wait();
  Process process = refusal(hosts, {}, {"address", file});
  check_refusal(process, ": cannot insert an address: ");
  Process logs = refusal(hosts, {"FI_LOG_LEVEL=warn"}, {"address", file}); // all of them
  BOOST_TEST(logs.wait() == 0, logs);
  for (const char* sentence : {"no program can be reached", "is no address that"})
    BOOST_TEST(logs.errors().find(sentence) != std::string::npos, logs);
}

BOOST_AUTO_TEST_CASE(memory_that_is_not_there) {
  Hosts hosts(1);
  Process process = refusal(hosts, {}, {"memory"});
  check_refusal(process, ": cannot register memory: ");
}

BOOST_AUTO_TEST_CASE(more_completions_than_a_queue_was_to_hold) {
  check_alone("refusals", {"queue"});
}

BOOST_AUTO_TEST_CASE(buffers_that_nobody_can_reach) {
  Hosts hosts(1);
  Process process = refusal(hosts, {}, {"buffers"});
  check_refusal(process, "is a null pointer");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
