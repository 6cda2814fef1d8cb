// SPDX-License-Identifier: BSD-3-Clause
// All shared-memory segments of the system are taken: programs cannot join and say why, the kernel lives on.
// And no program leaves one, whenever it is killed.
// Runs in an IPC namespace of its own, which has its own limit and takes everything along when it ends.
#define BOOST_TEST_MODULE exhausted
#define BOOST_TEST_NO_MAIN
#include "tests/support/hosts.hpp"
#include "tests/support/namespaces.hpp"

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sys/shm.h>

namespace parc::test {
namespace {

constexpr int status_skipped = 77; // CMakeLists.txt tells ctest

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

// Takes all segments but `spare`.
class Hoard {
public:
  explicit Hoard(std::size_t spare) {
    for (int id = take(); id >= 0; id = take()) ids_.push_back(id);
    BOOST_REQUIRE(errno == ENOSPC);
    BOOST_REQUIRE(ids_.size() > spare);
    for (; spare > 0; --spare) release();
  }
  Hoard(const Hoard&) = delete;
  Hoard& operator=(const Hoard&) = delete;
  ~Hoard() {
    while (!ids_.empty()) release();
  }

private:
  static int take() { return shmget(IPC_PRIVATE, 1, IPC_CREAT | 0600); } // memory only when it is touched
  void release() {
    shmctl(ids_.back(), IPC_RMID, nullptr);
    ids_.pop_back();
  }
  std::vector<int> ids_;
};

std::string table() {
  std::ifstream file("/proc/sysvipc/shm");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void check_works(Hosts& hosts) {
  Process job = hosts.run({"--hosts", "a:2,b", PARC_TEST_PROGRAMS "/ring", "10000", "3"});
  BOOST_TEST(job.wait() == 0);
  BOOST_TEST(job.errors() == "");
}

} // namespace

BOOST_AUTO_TEST_CASE(no_segment_is_left) {
  Hosts hosts(2);
  check_works(hosts);
  BOOST_TEST(eventually([] { return segments() == 0; }));
  // None at all; enough for some ranks' control segments; enough for those but not for their memory.
  for (const std::size_t spare : {0u, 2u, 3u}) {
    {
      const Hoard hoard(spare);
      const int held = segments();
      Process job = hosts.run({"--hosts", "a:2,b", PARC_TEST_PROGRAMS "/ring", "10000", "3"});
      BOOST_TEST(job.wait() == 3); // what the rank that noticed exits with
      BOOST_TEST(contains(job.errors(), "segments of this system are taken (/proc/sys/kernel/shmmni); run "
                                        "parc clean"),
                 job.errors());
      BOOST_TEST(contains(job.errors(), "sysctl kernel.shmmni="), job.errors());
      BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
      BOOST_TEST(eventually([&] { return segments() == held; }), segments() << " instead of " << held);
      BOOST_TEST(hosts[0].kernel().running());
      BOOST_TEST(hosts[1].kernel().running());
    }
    BOOST_TEST(segments() == 0, table() << hosts);
    check_works(hosts);
    BOOST_TEST(eventually([] { return segments() == 0; }));
  }
}

// Ranks that are killed between creating a segment and marking it.
BOOST_AUTO_TEST_CASE(killed_while_they_begin) {
  Hosts hosts(1);
  for (int repeat = 0; repeat < 60; ++repeat) {
    const std::string seconds = std::to_string(0.002 + 0.0005 * repeat);
    Process job = hosts.run({"-n", "6", "--timeout", seconds, PARC_TEST_PROGRAMS "/ring", "1000", "100000"});
    const int status = job.wait();
    BOOST_TEST((status == 124 || status == 0), status << ": " << job.errors());
    BOOST_TEST(eventually([] { return segments() == 0; }), segments() << " left after " << seconds << " s");
  }
}

} // namespace parc::test

int main(int argc, char** argv) {
  if (!parc::test::enter_namespaces(CLONE_NEWIPC)) {
    std::printf("skipped: no IPC namespace of its own, as neither root nor user namespaces are here (%s)\n",
                std::strerror(errno));
    return parc::test::status_skipped;
  }
  return boost::unit_test::unit_test_main(init_unit_test, argc, argv);
}
