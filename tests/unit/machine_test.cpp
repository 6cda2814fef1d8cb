// SPDX-License-Identifier: BSD-3-Clause
#include "system/observe/machine.hpp"

#include <boost/test/unit_test.hpp>

namespace parc {

BOOST_AUTO_TEST_SUITE(machine)

BOOST_AUTO_TEST_CASE(it_is_told_in_words) {
  BOOST_TEST(
      text_of({.processor = "Some(R) Processor", .cores = 2, .memory = 24ull << 30, .system = "Linux 6.1"}) ==
      "2 cores (Some(R) Processor), 24 GiB, Linux 6.1");
  BOOST_TEST(text_of({.processor = "", .cores = 1, .memory = 1ull << 30, .system = "Linux 6.1"}) ==
             "1 core, 1 GiB, Linux 6.1");
}

BOOST_AUTO_TEST_CASE(this_one_has_cores_memory_and_a_system) {
  const Machine here = this_machine();
  BOOST_TEST(here.cores >= 1U);
  BOOST_TEST(here.memory > 0U);
  BOOST_TEST(here.system.starts_with("Linux "));
  BOOST_TEST(load_average() >= 0);
}

BOOST_AUTO_TEST_CASE(its_cores_work_while_this_does) {
  const auto before = core_times();
  BOOST_REQUIRE(before.has_value());
  while (core_times()->worked == before->worked)
    ;
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc
