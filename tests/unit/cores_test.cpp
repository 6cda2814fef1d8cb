// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/process/cores.hpp"

#include <boost/test/unit_test.hpp>
#include <sched.h>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(cores)

namespace {

using Numbers = std::vector<std::size_t>;

Cores three() {
  return Cores([]() -> Result<std::vector<Processors>> { return std::vector<Processors>{{1}, {2}, {12}}; });
}

} // namespace

BOOST_AUTO_TEST_CASE(the_first_are_given_first_and_to_one_job_only) {
  Cores cores = three();
  const Numbers first = cores.take(1).value();
  BOOST_TEST((first == Numbers{0}));
  const Numbers second = cores.take(1).value();
  BOOST_TEST((second == Numbers{1}));
  cores.give_back(first);
  BOOST_TEST((cores.take(2).value() == Numbers{0, 2}));
  BOOST_TEST((cores.processors(2) == Processors{12}));
}

BOOST_AUTO_TEST_CASE(too_few) {
  Cores cores = three();
  BOOST_TEST(cores.take(4).error().text ==
             "--bind core gives each a core of its own, and there are 3; run fewer "
             "ranks there, or leave --bind out");
  BOOST_TEST(cores.take(2).has_value());
  BOOST_TEST(cores.take(2).error().text.find("there are 3, of which ranks of other jobs have 2;") !=
             std::string::npos);
  BOOST_TEST((cores.take(1).value() == Numbers{2})); // who was refused has taken none
}

BOOST_AUTO_TEST_CASE(cores_that_cannot_be_told) {
  Cores cores([]() -> Result<std::vector<Processors>> { return error(ENOSYS, "no hwloc"); });
  BOOST_TEST(cores.take(1).error().text == "no hwloc");
  cores.give_back({});
}

// Of this process's own processors each is in one core, and no other is in any.
BOOST_AUTO_TEST_CASE(cores_of_this_process) {
  cpu_set_t before, one;
  BOOST_REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const auto all = own_cores();
  BOOST_REQUIRE(all.has_value());
  std::size_t processors = 0;
  for (const Processors& core : all.value()) {
    std::size_t of_core = 0;
    for (std::size_t cpu = 0; cpu < core.size() * 64; ++cpu)
      if ((core[cpu / 64] >> cpu % 64 & 1) != 0) {
        BOOST_TEST(CPU_ISSET(cpu, &before));
        ++of_core;
      }
    BOOST_TEST(of_core > 0U);
    processors += of_core;
  }
  BOOST_TEST(processors == static_cast<std::size_t>(CPU_COUNT(&before)));

  CPU_ZERO(&one);
  for (std::size_t cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  BOOST_REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const auto mine = own_cores();
  sched_setaffinity(0, sizeof before, &before);
  BOOST_TEST(mine.value().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
