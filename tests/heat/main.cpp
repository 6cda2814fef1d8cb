// SPDX-License-Identifier: BSD-3-Clause
// The entry of the heat equation's tests; each *_test.cpp beside it adds a suite of its own.
#define BOOST_TEST_MODULE heat
#include <boost/test/unit_test.hpp>
