// SPDX-License-Identifier: BSD-3-Clause
#include "client/base/in_library.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::client {
namespace {

BOOST_AUTO_TEST_SUITE(in_library)

bool can_be_cancelled() {
  int state = 0, ours = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  pthread_setcancelstate(state, &ours);
  return state == PTHREAD_CANCEL_ENABLE;
}

BOOST_AUTO_TEST_CASE(a_call_is_not_cancelled) {
  BOOST_TEST((can_be_cancelled() && !InLibrary::is() && !InLibrary::interrupted()));
  {
    const InLibrary here;
    BOOST_TEST((!can_be_cancelled() && InLibrary::is() && !InLibrary::nested()));
    {
      const InLibrary again;
      BOOST_TEST((!can_be_cancelled() && InLibrary::nested()));
    }
    {
      const InLibrary::Brief brief;
      const InLibrary again;
      BOOST_TEST(!can_be_cancelled());
    }
    BOOST_TEST(!can_be_cancelled());
  }
  BOOST_TEST((can_be_cancelled() && !InLibrary::is()));
}

// A signal's handler that makes a call meanwhile is not cancelled there, and what is brief is as before.
BOOST_AUTO_TEST_CASE(a_call_within_a_brief_one_is_not_cancelled) {
  const InLibrary::Brief brief;
  BOOST_TEST((can_be_cancelled() && InLibrary::is() && InLibrary::interrupted()));
  {
    const InLibrary::Brief another;
    const InLibrary here;
    BOOST_TEST(!can_be_cancelled());
    const InLibrary again;
    BOOST_TEST(!can_be_cancelled());
  }
  BOOST_TEST(can_be_cancelled());
}

BOOST_AUTO_TEST_CASE(errno_is_what_it_was) {
  errno = 7;
  {
    const InLibrary here;
    errno = 9;
  }
  BOOST_TEST(errno == 7);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::client
