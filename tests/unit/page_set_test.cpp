// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/page_set.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::client {

BOOST_AUTO_TEST_SUITE(page_set)

BOOST_AUTO_TEST_CASE(ranges_are_cut_and_overlap) {
  PageSet set;
  BOOST_TEST(!set.overlaps(0, UINTPTR_MAX));
  set.add(100, 200);
  set.add(150, 300);
  BOOST_TEST((set.overlaps(0, 101) && set.overlaps(299, 400)));
  BOOST_TEST((!set.overlaps(0, 100) && !set.overlaps(300, 400)));
  set.remove(120, 250);
  BOOST_TEST((set.overlaps(100, 120) && !set.overlaps(120, 250) && set.overlaps(250, 300)));
  set.remove(0, 400);
  BOOST_TEST(!set.overlaps(0, UINTPTR_MAX));
}

BOOST_AUTO_TEST_CASE(too_many_are_all) {
  PageSet set;
  for (std::uintptr_t i = 0; i <= PageSet::most; ++i) set.add(10 * i, 10 * i + 5);
  BOOST_TEST(set.overlaps(6, 7));
  set.remove(0, UINTPTR_MAX);
  BOOST_TEST(!set.overlaps(6, 7));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::client
