// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/windows.hpp"

#include "include/parc/parc.h"

#include <boost/test/unit_test.hpp>
#include <vector>

namespace parc::daemon {
namespace {

struct WindowsFixture {
  static constexpr std::uint64_t base = 1 << 20, length = 64 << 10; // of two segments, one behind the other

  shm::Segment first = std::move(shm::Segment::create(length)).value();
  shm::Segment second = std::move(shm::Segment::create(length)).value();
  Extents extents;
  std::vector<Windows::Neighbour> closed;
  bool inside = false; // somebody is, of those that are closed
  Windows windows{extents, [this](const Windows::Neighbour& neighbour, bool) {
                    closed.push_back(neighbour);
                    return inside;
                  }};

  WindowsFixture() {
    BOOST_REQUIRE(extents.map(base, length, first.id()).has_value());
    BOOST_REQUIRE(extents.map(base + length, length, second.id()).has_value());
  }
  std::int32_t expose(std::uint64_t number, std::uint64_t address, std::uint64_t bytes,
                      std::uint64_t rights = PARC_MAY_GET) {
    shm::Request request{};
    request.address = address;
    request.length = bytes;
    request.exposed = {number, rights};
    return windows.expose(request, nullptr);
  }
  std::optional<std::size_t> hold(const protocol::Place& place, bool acquainted = true) {
    protocol::Pieces memory;
    const auto index = windows.hold(place, acquainted, memory);
    BOOST_TEST((!index || memory.size() == place.length));
    return index;
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(windows, WindowsFixture)

BOOST_AUTO_TEST_CASE(what_cannot_be_exposed) {
  BOOST_TEST(expose(1, base, 100) == PARC_OK);
  BOOST_TEST(expose(1, base, 100) == PARC_EINVAL);
  BOOST_TEST(expose(2, base, 100, 0) == PARC_EINVAL);
  BOOST_TEST(expose(2, base, 100, PARC_MAY_ANYBODY) == PARC_EINVAL);
  BOOST_TEST(expose(2, base, 100, PARC_MAY_GET | 8) == PARC_EINVAL);
  BOOST_TEST(expose(2, base - 1, 100) == PARC_ENOMEM);
  BOOST_TEST(expose(2, base, 2 * length + 1) == PARC_ENOMEM);
  BOOST_TEST(expose(2, base, ~std::uint64_t{0}) == PARC_ENOMEM);
  for (std::uint64_t number = 2; number <= shm::most_windows; ++number)
    if (expose(number, base, 0) != PARC_OK) BOOST_ERROR("window " << number << " is not exposed");
  BOOST_TEST(expose(shm::most_windows + 1, base, 0) == PARC_EAGAIN);
}

BOOST_AUTO_TEST_CASE(places_are_inside) {
  BOOST_REQUIRE(expose(7, base + 10, 2 * length - 20) == PARC_OK); // over both
  BOOST_TEST(hold({7, 0, 2 * length - 20}).has_value());
  BOOST_TEST(hold({7, 2 * length - 20, 0}).has_value());
  BOOST_TEST(!hold({7, 2 * length - 20, 1}).has_value());
  BOOST_TEST(!hold({7, 1, 2 * length - 20}).has_value());
  BOOST_TEST(!hold({7, ~std::uint64_t{0}, 2}).has_value());
  BOOST_TEST(!hold({7, 2, ~std::uint64_t{0}}).has_value());
  BOOST_TEST(!hold({8, 0, 0}).has_value());
}

BOOST_AUTO_TEST_CASE(rows_are_inside) {
  BOOST_REQUIRE(expose(7, base + 10, 2 * length - 20) == PARC_OK); // over both
  const protocol::Rows up{100, 200}, down{100, -200};
  const std::uint64_t all = (2 * length - 20 - 100) / 200 + 1;
  BOOST_TEST(hold({7, 0, all * 100, false, &up}).has_value());
  BOOST_TEST(!hold({7, 200, all * 100, false, &up}).has_value());
  BOOST_TEST(hold({7, (all - 1) * 200, all * 100, false, &down}).has_value());
  BOOST_TEST(!hold({7, (all - 1) * 200 - 1, all * 100, false, &down}).has_value());
}

BOOST_AUTO_TEST_CASE(strangers_get_what_is_anybodys) {
  BOOST_REQUIRE(expose(1, base, 100) == PARC_OK);
  BOOST_REQUIRE(expose(2, base, 100, PARC_MAY_GET | PARC_MAY_ANYBODY) == PARC_OK);
  BOOST_TEST(!hold({1, 0, 1}, false).has_value());
  BOOST_TEST(hold({2, 0, 1}, false).has_value());
}

BOOST_AUTO_TEST_CASE(each_does_what_it_may) {
  BOOST_REQUIRE(expose(1, base, 100) == PARC_OK);
  BOOST_REQUIRE(expose(2, base, 100, PARC_MAY_PUT) == PARC_OK);
  BOOST_REQUIRE(expose(3, base, 100, PARC_MAY_GET | PARC_MAY_PUT) == PARC_OK);
  for (const std::uint64_t window : {1, 2, 3}) {
    BOOST_TEST(hold({window, 0, 1, false}).has_value() == (window != 2));
    BOOST_TEST(hold({window, 0, 1, true}).has_value() == (window != 1));
  }
}

BOOST_AUTO_TEST_CASE(one_that_is_held_is_taken_back_when_it_is_let_go) {
  BOOST_REQUIRE(expose(1, base, 100) == PARC_OK);
  bool over = false;
  BOOST_TEST(!windows.unexpose(2, 50, over));
  const auto one = hold({1, 0, 100}), two = hold({1, 0, 10});
  BOOST_REQUIRE((one && two));
  BOOST_TEST((windows.unexpose(1, 50, over) && !over));
  BOOST_TEST(!hold({1, 0, 1}).has_value());
  BOOST_TEST(!windows.unexpose(1, 51, over));
  BOOST_TEST(expose(1, base, 50) == PARC_OK); // another of that number
  BOOST_TEST(!windows.let_go(*one).has_value());
  BOOST_TEST((windows.let_go(*two) == std::uint64_t{50}));
  BOOST_TEST((windows.unexpose(1, 52, over) && over));
}

BOOST_AUTO_TEST_CASE(neighbours_attach_what_lies_in_one_segment) {
  BOOST_REQUIRE(expose(1, base + 100, 1000, PARC_MAY_PUT) == PARC_OK);
  BOOST_REQUIRE(expose(2, base, 2 * length) == PARC_OK);
  BOOST_REQUIRE(expose(3, base, 0) == PARC_OK);
  const auto window = windows.attach(1, {7, 0});
  BOOST_REQUIRE(window);
  BOOST_TEST((window->where.segment == first.id() && window->where.offset == 100u));
  BOOST_TEST((window->length == 1000u && window->rights == PARC_MAY_PUT));
  BOOST_TEST(!windows.attach(2, {7, 1}));
  BOOST_TEST(!windows.attach(3, {7, 1}));
  BOOST_TEST(!windows.attach(4, {7, 1}));
}

BOOST_AUTO_TEST_CASE(one_that_is_taken_back_waits_for_who_is_inside) {
  BOOST_REQUIRE(expose(1, base, 100) == PARC_OK);
  bool over = false;
  BOOST_REQUIRE((windows.attach(1, {7, 3}) && windows.attach(1, {8, 4})));
  BOOST_TEST((windows.unexpose(1, 50, over) && over)); // nobody was
  BOOST_TEST(closed.size() == 2u);
  BOOST_REQUIRE(expose(1, base, 100) == PARC_OK);
  const auto attached = windows.attach(1, {7, 3});
  BOOST_REQUIRE(attached);
  const auto held = hold({1, 0, 10});
  inside = true;
  BOOST_TEST((windows.unexpose(1, 51, over) && !over));
  BOOST_TEST((closed.back() == Windows::Neighbour{7, 3}));
  BOOST_TEST(!windows.attach(1, {7, 4}));
  BOOST_TEST(!windows.let_go(*held).has_value());
  BOOST_TEST(!windows.detach(attached->index, {9, 9}).has_value());
  BOOST_TEST((windows.detach(attached->index, {7, 3}) == std::uint64_t{51}));
}

BOOST_AUTO_TEST_CASE(a_program_that_ends_waits_for_nobody) {
  BOOST_REQUIRE(expose(1, base, 100) == PARC_OK);
  const auto attached = windows.attach(1, {7, 3});
  BOOST_REQUIRE(attached);
  inside = true;
  windows.close_all();
  BOOST_TEST(closed.size() == 1u);
  BOOST_TEST(!windows.detach(attached->index, {7, 3}).has_value());
}

// It stays attached while something of it is read, and no longer.
BOOST_AUTO_TEST_CASE(segments_that_go) {
  BOOST_REQUIRE(expose(1, base, 2 * length) == PARC_OK);
  BOOST_REQUIRE(expose(2, base, 100) == PARC_OK);
  const auto held = hold({1, 0, 10});
  BOOST_REQUIRE(held);
  BOOST_REQUIRE(extents.unmap(base + length));
  windows.memory_went();
  BOOST_TEST(extents.mapped(base + length));
  BOOST_TEST(!hold({1, 0, 1}).has_value());
  BOOST_TEST(hold({2, 0, 1}).has_value());
  BOOST_TEST(!windows.let_go(*held).has_value());
  BOOST_TEST(!extents.mapped(base + length));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
