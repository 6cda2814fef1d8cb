// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/extents.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <fstream>
#include <string>

BOOST_AUTO_TEST_SUITE(extents)

using namespace parc;         // NOLINT
using namespace parc::daemon; // NOLINT

namespace {

// Of this process, in KiB.
long shared_pages() {
  std::ifstream status("/proc/self/status");
  long kib = 0;
  for (std::string word; status >> word;)
    if (word == "RssShmem:") status >> kib;
  return kib;
}

} // namespace

// Twice mapped here: as the program's, and as the kernel's.
BOOST_AUTO_TEST_CASE(pages_of_what_rests_go_and_the_bytes_stay) {
  constexpr std::size_t length = 8 << 20;
  constexpr std::uint64_t address = 1 << 20;
  auto segment = shm::Segment::create(length);
  BOOST_REQUIRE(segment.has_value());
  Extents extents;
  BOOST_REQUIRE(extents.map(address, length, segment.value().id()).has_value());
  protocol::Pieces pieces;
  Extents::Used used;
  BOOST_REQUIRE(extents.resolve(address, length, pieces, used));
  const std::string bytes(length, 'x');
  const auto write = [&] { pieces.copy_in(0, reinterpret_cast<const std::byte*>(bytes.data()), length); };
  const long before = shared_pages();
  constexpr long size = length / 1024;
  const auto grown = [&] { return shared_pages() - before; };

  BOOST_TEST(!extents.let_go());
  extents.hold(used);
  write();
  BOOST_TEST(extents.let_go()); // in use
  BOOST_TEST(extents.let_go());
  BOOST_TEST(grown() >= size);
  extents.drop(used);
  BOOST_TEST(extents.let_go()); // it was, when it was looked at last
  BOOST_TEST(grown() >= size);
  BOOST_TEST(!extents.let_go());
  BOOST_TEST(grown() < size / 2);
  BOOST_TEST(std::memcmp(segment.value().data(), bytes.data(), length) == 0);
  extents.hold(used);
  BOOST_TEST(extents.let_go());
  extents.drop(used);
}

BOOST_AUTO_TEST_SUITE_END()
