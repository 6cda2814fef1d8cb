// SPDX-License-Identifier: BSD-3-Clause
// The entry of the unit tests; each *_test.cpp beside it adds a suite of its own.
#define BOOST_TEST_MODULE parc
#include <boost/test/unit_test.hpp>
