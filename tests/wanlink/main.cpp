// SPDX-License-Identifier: BSD-3-Clause
// The entry of wanlink's unit tests.
#define BOOST_TEST_MODULE wanlink
#include <boost/test/unit_test.hpp>
