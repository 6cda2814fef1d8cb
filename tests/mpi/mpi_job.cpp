// SPDX-License-Identifier: BSD-3-Clause
#include "tests/mpi/mpi_job.hpp"

#include <boost/test/unit_test.hpp>
#include <map>

namespace parc::test {

std::vector<std::string> mpirun(Hosts& hosts, const std::vector<std::string>& transport, const Job& job) {
  std::vector<std::string> words = on_host(hosts, 0); // of what the ranks start, too
  append(words, {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "timeout", "200", "setpriv",
                 "--pdeathsig", "TERM", "mpirun.openmpi", "--oversubscribe", "--bind-to", "none"});
  append(words, transport);
  for (std::size_t rank = 0; rank < job.ranks; ++rank) {
    if (rank != 0) words.emplace_back(":");
    append(words, {"-np", "1"});
    append(words, on_host(hosts, rank % job.hosts));
    append(words, job.environment);
    words.push_back(PARC_MPI_PROGRAMS "/" + job.program);
    append(words, job.words);
  }
  return words;
}

std::string output_of(Hosts& hosts, const std::vector<std::string>& transport, const Job& job) {
  Process run = hosts.start(mpirun(hosts, transport, job));
  const int status = run.wait();
  BOOST_REQUIRE_MESSAGE(status == 0, job.program << " of " << job.ranks << " on " << job.hosts << ": status "
                                                 << status << ": " << run.output() << run.errors() << hosts);
  return run.output();
}

std::string expected_of(Hosts& hosts, const Job& job) {
  static std::map<std::vector<std::string>, std::string> known;
  std::vector<std::string> key{job.program, std::to_string(job.ranks)};
  append(key, job.words);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = output_of(hosts, by_tcp, job);
}

void compare(const Job& job) {
  Hosts hosts(job.hosts);
  const std::string ours = output_of(hosts, by_parc, job);
  BOOST_TEST(!ours.empty());
  BOOST_TEST(ours == expected_of(hosts, job));
}

} // namespace parc::test
