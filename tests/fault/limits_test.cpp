// SPDX-License-Identifier: BSD-3-Clause
// Jobs that are larger than what the system gives: descriptors are taken as far as they go, and what does not
// fit is refused by name before anything runs.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/resource.h>

namespace parc::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

// Of this process, and of what it starts.
class SoftLimit {
public:
  explicit SoftLimit(rlim_t descriptors) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower{descriptors, before_.rlim_max};
    BOOST_REQUIRE(setrlimit(RLIMIT_NOFILE, &lower) == 0);
  }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;
  ~SoftLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  [[nodiscard]] rlim_t hard() const { return before_.rlim_max; }

private:
  rlimit before_{};
};

} // namespace

BOOST_AUTO_TEST_SUITE(limits)

BOOST_AUTO_TEST_CASE(descriptors) {
  const SoftLimit soft(256);
  if (soft.hard() < 4096) return;
  Hosts hosts(1);
  Process many = hosts.run({"-n", "300", "true"});
  BOOST_TEST(many.wait() == 0, many);
  Process rank = hosts.run({"sh", "-c", "ulimit -Sn"}); // as its caller, not as parcd
  BOOST_TEST(rank.wait() == 0);
  BOOST_TEST(rank.output() == "256\n");

  const rlimit few{256, 256};
  BOOST_REQUIRE(prlimit(hosts[0].kernel().id(), RLIMIT_NOFILE, &few, nullptr) == 0);
  for (const char* ranks : {"300", "40000"}) {
    Process refused = hosts.run({"-n", ranks, "echo", "ran"});
    BOOST_TEST(refused.wait() == 125);
    BOOST_TEST(refused.output() == "");
    BOOST_TEST(contains(refused.errors(), "host a cannot run " + std::string(ranks) + " ranks of a job: "),
               refused.errors());
    BOOST_TEST(contains(refused.errors(), "the limit is 256 (RLIMIT_NOFILE): start parcd with a higher one"),
               refused.errors());
  }
  Process fits = hosts.run({"-n", "10", "true"});
  BOOST_TEST(fits.wait() == 0, fits);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
