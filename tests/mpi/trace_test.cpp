// SPDX-License-Identifier: BSD-3-Clause
// Timelines of MPI programs: by parc mpi --trace, and of ranks that srun starts with PARC_TRACE.
#include "tests/mpi/fabric_environment.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace parc::test {
namespace {

// A place of examples/mpi/poisson.c: its line, where it is built with those.
bool is_of_poisson(const std::string& site) {
  return site.find("poisson.c:") != std::string::npos || site.find("result.h:") != std::string::npos ||
         site.starts_with("poisson+");
}

using Json = nlohmann::json;

const std::string program = PARC_MPI_PROGRAMS "/poisson";
const std::vector<std::string> size{"600", "90", "1", "5"}; // rows of 4800 bytes

bool any(const Json& events, const std::string& phase, const auto& is_so) {
  return std::ranges::any_of(events,
                             [&](const Json& event) { return event.at("ph") == phase && is_so(event); });
}

// Each rank exchanges rows with its neighbours, waits for them, and calculates.
void check_trace(const std::string& file, int ranks) {
  std::ifstream in(file);
  const Json trace = Json::parse(in, nullptr, false);
  BOOST_REQUIRE(trace.is_object());
  const Json& events = trace.at("traceEvents");
  BOOST_TEST(trace.at("otherData").at("ranks") == ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto is_of_rank = [&](const Json& event) { return event.at("pid") == rank; };
    const auto is_row_with = [&](const char* direction, int neighbour) {
      return any(events, "b", [&](const Json& event) {
        return is_of_rank(event) && event.at("cat") == direction && event.at("args").at("bytes") == 4800 &&
               event.at("args").at("peer") == neighbour && is_of_poisson(event.at("args").at("site"));
      });
    };
    for (const int neighbour : {rank - 1, rank + 1})
      if (neighbour >= 0 && neighbour < ranks)
        for (const char* const direction : {"read", "write"})
          BOOST_TEST(is_row_with(direction, neighbour), direction << " of " << rank << ", " << neighbour);
    BOOST_TEST(any(events, "X", [&](const Json& event) {
      return is_of_rank(event) && event.at("name") == "calculation";
    }));
  }
  BOOST_TEST(any(events, "X", [&](const Json& event) {
    return event.at("name") == "wait" && is_of_poisson(event.at("args").at("site"));
  }));
  const auto ends = [&](const char* phase) {
    return std::ranges::count_if(events, [&](const Json& event) { return event.at("ph") == phase; });
  };
  BOOST_TEST(ends("s") > 0);
  BOOST_TEST(ends("s") == ends("f"));
  BOOST_TEST(ends("b") == ends("e"));
}

void check_summary(Hosts& hosts, const std::string& file, std::vector<std::string> line = {}) {
  append(line, {PARC_TEST_BIN "/parc", "trace", file});
  Process summary = hosts.start(line);
  BOOST_TEST(summary.wait() == 0, summary);
  BOOST_TEST(summary.errors() == "");
  for (const char* const text : {"rank 0 on", "HIDDEN ms", "poisson"})
    BOOST_TEST(summary.output().find(text) != std::string::npos, text << ": " << summary.output());
  BOOST_TEST(!std::filesystem::exists(file + ".ranks"));
}

Process traced(Hosts& hosts, const std::string& file, std::vector<std::string> words) {
  std::vector<std::string> line = on_host(hosts, 0);
  append(line, {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", PARC_TEST_BIN "/parc", "mpi",
                "--mpirun", "--trace", file, "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self",
                "-np", "2"});
  append(line, words);
  return hosts.start(line);
}

} // namespace

BOOST_AUTO_TEST_SUITE(trace)

BOOST_AUTO_TEST_CASE(parc_mpi_writes_a_trace) {
  Hosts hosts(1);
  const std::string file = hosts.directory() + "/trace.json";
  std::vector<std::string> words{program};
  append(words, size);
  append(words, {":", "-np", "1", program}); // each behind a colon has variables of its own
  append(words, size);
  Process run = traced(hosts, file, words);
  const int status = run.wait();
  BOOST_REQUIRE_MESSAGE(status == 0, run.output() << run.errors());
  check_trace(file, 3);
  check_summary(hosts, file);
}

BOOST_AUTO_TEST_CASE(parc_run_writes_one_of_ranks_of_mpi) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/trace.json";
  std::vector<std::string> words{"-np", "3",    "-host",   "a,b", "--mca",
                                 "btl", "self", "--trace", file,  program};
  append(words, size);
  Process run = hosts.parc("mpi", words);
  const int status = run.wait();
  BOOST_REQUIRE_MESSAGE(status == 0, run.output() << run.errors());
  check_trace(file, 3);
  check_summary(hosts, file);
}

// Of waits that MPI makes by looking again and again, in a run whose traces are nobody's.
BOOST_AUTO_TEST_CASE(parc_mpi_gives_advice) {
  Hosts hosts(1);
  const auto left = [] {
    return std::ranges::count_if(std::filesystem::directory_iterator("/tmp"), [](const auto& entry) {
      return entry.path().filename().string().starts_with("parc-advise-");
    });
  };
  const auto before = left();
  std::vector<std::string> line = on_host(hosts, 0);
  append(line,
         {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", PARC_TEST_BIN "/parc", "mpi",
          "--advise", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self", "-np", "2", program});
  append(line, size);
  Process run = hosts.start(line);
  const int status = run.wait();
  BOOST_REQUIRE_MESSAGE(status == 0, run.output() << run.errors());
  for (const char* const text :
       {"2 ranks on 1 host,", "now, as it was measured", "What limits it", "poisson"})
    BOOST_TEST(run.errors().find(text) != std::string::npos, text << ": " << run.errors());
  BOOST_TEST(left() == before);
}

BOOST_AUTO_TEST_CASE(ranks_of_srun_leave_what_parc_trace_gathers,
                     *boost::unit_test::precondition(may_start_slurm)) {
  Hosts hosts(0);
  const std::string file = hosts.directory() + "/trace.json";
  std::vector<std::string> words{"env",
                                 "FI_PROVIDER_PATH=" PARC_PROVIDERS,
                                 "OMPI_MCA_pml=cm",
                                 "OMPI_MCA_mtl=ofi",
                                 "OMPI_MCA_mtl_ofi_provider_include=parc",
                                 "OMPI_MCA_btl=self",
                                 "PARC_TRACE=" + file + ".ranks",
                                 PARC_SLURM,
                                 "timeout",
                                 "100",
                                 "srun",
                                 "--mpi=pmix",
                                 "--nodes=2",
                                 "--ntasks=4",
                                 program};
  append(words, size);
  Process run = hosts.start(words);
  BOOST_REQUIRE_MESSAGE(run.wait() == 0, run);
  check_summary(hosts, file);
  check_trace(file, 4);
}

// Whether a mount can be one namespace's alone: in a chroot, whose root is no mount, it may be everybody's.
boost::test_tools::assertion_result may_mount_alone(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result may(
      getuid() == 0 && std::system("unshare --mount --propagation private true 2>/dev/null") == 0);
  may.message() << "this system does not let this user make a mount of its own";
  return may;
}

// Of two ranks' files one lies on a host that does not see this one's directory.
BOOST_AUTO_TEST_CASE(what_ranks_leave_on_other_hosts_is_fetched,
                     *boost::unit_test::precondition(may_mount_alone)) {
  Hosts hosts(2);
  const std::string own = hosts.directory() + "/far", file = own + "/trace.json", ranks = file + ".ranks";
  std::filesystem::create_directory(own);
  std::vector<std::string> words = on_host(hosts, 0);
  append(words, {"OMPI_ALLOW_RUN_AS_ROOT=1",
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                 "PARC_TRACE=" + ranks,
                 "mpirun",
                 "--oversubscribe",
                 "--bind-to",
                 "none",
                 "--mca",
                 "pml",
                 "cm",
                 "--mca",
                 "mtl",
                 "ofi",
                 "--mca",
                 "mtl_ofi_provider_include",
                 "parc",
                 "--mca",
                 "btl",
                 "self",
                 "-np",
                 "2",
                 program});
  append(words, size);
  Process run = hosts.start(words);
  BOOST_REQUIRE_MESSAGE(run.wait() == 0, run);
  std::string second;
  for (const auto& entry : std::filesystem::directory_iterator(ranks))
    if (entry.path().string().ends_with(".1.2")) second = entry.path();
  BOOST_REQUIRE(!second.empty());
  std::filesystem::rename(second, hosts.directory() + "/second");

  hosts[1].kernel().signal(SIGKILL);
  (void)hosts[1].kernel().wait();
  Process far =
      hosts.start({"unshare",
                   "--mount",
                   "--propagation",
                   "private",
                   "sh",
                   "-c",
                   R"(mount -t tmpfs none "$1" && mkdir -p "$2" && mv "$3" "$4" && shift 4 && exec "$@")",
                   "sh",
                   own,
                   ranks,
                   hosts.directory() + "/second",
                   second,
                   PARC_TEST_BIN "/parcd",
                   "--name",
                   "b",
                   "--port",
                   std::to_string(hosts[1].port()),
                   "--listen",
                   "127.0.0.1",
                   "--runtime-dir",
                   hosts[1].runtime_dir(),
                   "--config",
                   hosts.directory() + "/parcd.toml"});
  const auto is_up = [&] { // it alone: parc run would look for a way to start one, where it is not up yet
    Process status = hosts.parc("status", {"--json"}, 1);
    return status.wait() == 0 && status.output().find("\"alive\": true") != std::string::npos;
  };
  BOOST_REQUIRE_MESSAGE(eventually(is_up), far);
  Process reached = hosts.run({"--hosts", "b", "true"});
  BOOST_REQUIRE_MESSAGE(reached.wait() == 0, reached << far << hosts);
  check_summary(hosts, file, on_host(hosts, 0));
  check_trace(file, 2);
  Process left = hosts.run({"--hosts", "b", "ls", own});
  BOOST_TEST(left.wait() == 0, left);
  BOOST_TEST(left.output() == "");
  far.signal(SIGTERM);
  BOOST_TEST(far.wait() == 0, far);
}

BOOST_AUTO_TEST_CASE(what_is_no_job_over_parc_is_said) {
  Hosts hosts(1);
  const std::string file = hosts.directory() + "/trace.json";
  Process run = traced(hosts, file, {"true"});
  BOOST_TEST(run.wait() == 125);
  BOOST_TEST(run.errors().find("no rank has written a trace") != std::string::npos, run.errors());
  Process failed = traced(hosts, file, {"sh", "-c", "exit 3"});
  BOOST_TEST(failed.wait() == 3, failed);
  std::filesystem::create_directory(file + ".ranks");
  std::ofstream(file + ".ranks/left.0.1");
  Process again = traced(hosts, file, {"true"});
  BOOST_TEST(again.wait() == 125);
  BOOST_TEST(again.errors().find("of an earlier job") != std::string::npos, again.errors());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
