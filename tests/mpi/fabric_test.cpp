// SPDX-License-Identifier: BSD-3-Clause
// Programs over libfabric (libfabric/) by our provider: they check themselves what they get.
#include "tests/mpi/fabric_environment.hpp"

#include <boost/test/unit_test.hpp>

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
             "status " << status << ": " << process.output() << process.errors() << hosts.logs());
}

void check_alone(const std::string& program, const std::vector<std::string>& arguments = {}) {
  Hosts hosts(1);
  Process process = start(hosts, 0, program, arguments);
  check_end(hosts, process);
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

BOOST_AUTO_TEST_CASE(remote_data_is_there_where_it_was_sent) {
  check_both("data", 1);
  check_both("data", 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
