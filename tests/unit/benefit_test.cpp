// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/benefit.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::client {

BOOST_AUTO_TEST_SUITE(benefit)

BOOST_AUTO_TEST_CASE(stops_after_releases_in_vain_and_tries_again) {
  Benefit benefit;
  int buffer = 0;
  for (unsigned i = 0; i < Benefit::patience; ++i) {
    BOOST_TEST(benefit.expected(&buffer));
    benefit.ended(&buffer, false);
  }
  for (int round = 0; round < 3; ++round) {
    for (unsigned i = 1; i < Benefit::pause; ++i) BOOST_TEST(!benefit.expected(&buffer));
    BOOST_TEST(benefit.expected(&buffer));
    benefit.ended(&buffer, false); // in vain once more is enough
  }
  for (unsigned i = 1; i < Benefit::pause; ++i) BOOST_TEST(!benefit.expected(&buffer));
  BOOST_TEST(benefit.expected(&buffer));
  benefit.ended(&buffer, true);
  for (unsigned i = 1; i < Benefit::patience; ++i) {
    BOOST_TEST(benefit.expected(&buffer));
    benefit.ended(&buffer, false);
  }
  BOOST_TEST(benefit.expected(&buffer));
}

BOOST_AUTO_TEST_CASE(each_buffer_for_itself) {
  Benefit benefit;
  int buffers[2]{};
  for (unsigned i = 0; i < Benefit::patience; ++i) benefit.ended(&buffers[0], false);
  BOOST_TEST(!benefit.expected(&buffers[0]));
  BOOST_TEST(benefit.expected(&buffers[1]));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::client
