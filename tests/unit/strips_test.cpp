// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/strips.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::client {
namespace {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(strips)

constexpr std::uint64_t page = 4096, length = 256 * page;
constexpr auto wake = 10us;

Guard get_of(std::uint64_t bytes = length) {
  Guard guard{};
  guard.gets = true;
  guard.envelope.peer = 3;
  guard.length = bytes;
  guard.missing = {0, bytes};
  return guard;
}

bool is(const Stretch& found, std::uint64_t low, std::uint64_t high) {
  BOOST_TEST_INFO("[" << found.low << ", " << found.high << ")");
  return found.low == low && found.high == high;
}

BOOST_AUTO_TEST_CASE(a_page_where_nothing_is_known) {
  const Strips strips;
  BOOST_TEST(is(strips.awaited(get_of(), {5 * page, 6 * page}, wake), 5 * page, 6 * page));
}

BOOST_AUTO_TEST_CASE(equal_strips_are_counted_from_the_beginning) {
  Strips strips;
  strips.set(4 * page);
  Guard guard = get_of();
  BOOST_TEST(is(strips.awaited(guard, {5 * page, 6 * page}, wake), 4 * page, 8 * page));
  BOOST_TEST(is(strips.awaited(guard, {7 * page + 8, 8 * page + 8}, wake), 4 * page, 12 * page));
  guard.missing = {6 * page, length - 3};
  BOOST_TEST(is(strips.awaited(guard, {6 * page, 7 * page}, wake), 6 * page, 8 * page));
  BOOST_TEST(is(strips.awaited(guard, {length - page, length - 3}, wake), length - 4 * page, length - 3));
}

BOOST_AUTO_TEST_CASE(strips_of_any_size_are_at_least_the_page_and_at_most_the_buffer) {
  Strips strips;
  for (const std::uint64_t bytes : {std::uint64_t{1}, page - 1, page}) {
    strips.set(bytes);
    const Stretch found = strips.awaited(get_of(), {5 * page, 6 * page}, wake);
    BOOST_TEST(
        (found.low <= 5 * page && found.low > 4 * page && found.high >= 6 * page && found.high < 7 * page));
  }
  for (const std::uint64_t bytes : {length, std::uint64_t{1} << 63, UINT64_MAX}) {
    strips.set(bytes);
    BOOST_TEST(is(strips.awaited(get_of(), {5 * page, 6 * page}, wake), 0, length));
  }
}

BOOST_AUTO_TEST_CASE(variable_strips_are_what_comes_while_a_program_is_woken) {
  Strips strips;
  strips.note(3, 250, 1us); // 20,000 bytes in eight wake-ups
  Guard guard = get_of();
  const Stretch touched{40 * page, 41 * page};
  BOOST_TEST(is(strips.awaited(guard, touched, wake), 40 * page, 40 * page + 20'000));
  guard.from_end = true;
  BOOST_TEST(is(strips.awaited(guard, touched, wake), 41 * page - 20'000, 41 * page));
  guard.missing.low = 39 * page;
  BOOST_TEST(is(strips.awaited(guard, touched, wake), 39 * page, 41 * page));
  Guard another = get_of();
  another.envelope.peer = 4;
  BOOST_TEST(is(strips.awaited(another, touched, wake), 40 * page, 41 * page));
}

BOOST_AUTO_TEST_CASE(variable_strips_have_bounds) {
  Strips strips;
  strips.note(3, 1'000'000, 1us);
  const Stretch touched{page, 2 * page};
  BOOST_TEST(is(strips.awaited(get_of(), touched, wake), page, page + Strips::longest));
  BOOST_TEST(is(strips.awaited(get_of(16 * page), touched, wake), page, 5 * page));
  strips.note(3, 0, 1us); // says nothing
  strips.note(3, 1, 0us);
  BOOST_TEST(is(strips.awaited(get_of(), touched, wake), page, page + Strips::longest));
}

BOOST_AUTO_TEST_CASE(a_rate_follows_what_is_seen) {
  Strips strips;
  strips.note(3, 250, 1us);
  for (int i = 0; i < 40; ++i) strips.note(3, 100, 1us);
  const Stretch found = strips.awaited(get_of(), {0, page}, wake);
  BOOST_TEST((found.high >= 8'000 && found.high < 8'100));
}

// A strip takes eight wake-ups: with more gets than that under way strips cost more than they hide.
BOOST_AUTO_TEST_CASE(behind_many_gets_one_is_waited_for_whole) {
  Strips strips;
  BOOST_TEST((strips.grain_of(get_of(), 1000, wake) == Grain::strips)); // nothing is known
  strips.note(3, 250, 1us);
  BOOST_TEST((strips.grain_of(get_of(), 7, wake) == Grain::strips));
  BOOST_TEST((strips.grain_of(get_of(), 9, wake) == Grain::whole));
  Guard read = get_of();
  read.gets = false;
  BOOST_TEST((strips.grain_of(read, 9, wake) == Grain::strips));
  Guard whole = get_of();
  whole.grain = Grain::whole;
  BOOST_TEST(is(strips.awaited(whole, {page, 2 * page}, wake), 0, length));
  strips.set(page); // so the program wants it
  BOOST_TEST((strips.grain_of(get_of(), 9, wake) == Grain::strips));
}

BOOST_AUTO_TEST_CASE(trains_are_made_under_an_order_alone) {
  Strips strips;
  strips.set_train(2);
  Guard guard = get_of();
  for (const Order order : {Order::any, Order::up, Order::down}) {
    guard.order = order;
    BOOST_TEST((strips.grain_of(guard, 1, wake) == Grain::strips));
    BOOST_TEST((strips.grain_of(guard, 2, wake) == (order == Order::any ? Grain::whole : Grain::train)));
  }
  BOOST_TEST(strips.together(guard, wake) == 0u); // nothing is known: each for itself
  strips.note(3, 250, 1us);
  BOOST_TEST(strips.together(guard, wake) == 20'000u);
  strips.set(12'345);
  BOOST_TEST(strips.together(guard, wake) == 12'345u);
  strips.set(0);
  strips.set_train(0);
  BOOST_TEST((strips.grain_of(guard, 2, wake) == Grain::strips));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::client
