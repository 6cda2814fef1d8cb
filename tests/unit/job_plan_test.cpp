// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/job/job_plan.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(job_plan)

using parc::HostSlots;
using parc::daemon::JobPlan;

namespace {

JobPlan plan_of(const std::vector<HostSlots>& hosts, std::uint32_t size) {
  JobPlan plan;
  for (const HostSlots& host : hosts) plan.hosts.push_back({host.name, 0, {}});
  plan.size = size;
  plan.runs = parc::place_all({{hosts}, {{0, size}}}).runs;
  return plan;
}

} // namespace

BOOST_AUTO_TEST_CASE(hosts_in_words_say_one_round) {
  BOOST_TEST(plan_of({{"a", 1}}, 4).hosts_in_words() == "a:4");
  BOOST_TEST(plan_of({{"a", 2}, {"b", 2}}, 4).hosts_in_words() == "a:2,b:2");
  BOOST_TEST(plan_of({{"a", 2}, {"b", 1}}, 8).hosts_in_words() == "a:2,b:1");
  BOOST_TEST(plan_of({{"a", 1}, {"b", 1}}, 65536).hosts_in_words() == "a:1,b:1");
  JobPlan irregular = plan_of({{"a", 1}, {"b", 1}}, 2);
  irregular.runs = {{0, 1}, {1, 2}, {0, 3}};
  irregular.size = 6;
  BOOST_TEST(irregular.hosts_in_words() == "a:1,b:2,a:3");
  irregular.runs = {{0, 1}, {1, 2}, {0, 2}, {1, 1}}; // abba, and again ab
  BOOST_TEST(irregular.hosts_in_words() == "a:1,b:2,a:1");
}

BOOST_AUTO_TEST_SUITE_END()
