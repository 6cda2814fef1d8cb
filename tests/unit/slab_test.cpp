// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/slab.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

BOOST_AUTO_TEST_SUITE(slab)

namespace {
struct Thing {
  std::uint64_t id = 0;
  int value = 0;
};
} // namespace

BOOST_AUTO_TEST_CASE(handles_never_name_a_later_object) {
  parc::protocol::Slab<Thing> slab;
  std::set<std::uint64_t> used;
  for (int i = 0; i < 1000; ++i) {
    Thing& thing = slab.make();
    thing.value = i;
    BOOST_TEST(thing.id != 0u);
    BOOST_TEST((thing.id >> 63) == 0u);
    BOOST_TEST(used.insert(thing.id).second);
    BOOST_TEST(slab.find(thing.id) == &thing);
    const std::uint64_t id = thing.id;
    slab.drop(thing);
    BOOST_TEST(slab.find(id) == nullptr);
  }
  BOOST_TEST(slab.size() == 0u);
  BOOST_TEST(slab.find(0) == nullptr);
  BOOST_TEST(slab.find(~std::uint64_t{0}) == nullptr);
}

BOOST_AUTO_TEST_CASE(each_may_drop_what_it_is_given) {
  parc::protocol::Slab<Thing> slab;
  for (int i = 0; i < 10; ++i) slab.make().value = i;
  slab.each([&](Thing& thing) {
    if (thing.value % 2 != 0) slab.drop(thing);
  });
  int sum = 0;
  slab.each([&](const Thing& thing) { sum += thing.value; });
  BOOST_TEST(sum == 20);
  BOOST_TEST(slab.size() == 5u);
}

BOOST_AUTO_TEST_SUITE_END()
