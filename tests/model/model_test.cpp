// SPDX-License-Identifier: BSD-3-Clause
// No interleaving of parc's kernels gets stuck, and the same exploration finds the deadlock of kernels that
// write before they read.
#define BOOST_TEST_MODULE model
#include "tests/model/cells.hpp"
#include "tests/model/model.hpp"
#include "tests/model/neighbours.hpp"
#include "tests/model/places.hpp"
#include "tests/model/resume.hpp"
#include "tests/model/subflows.hpp"
#include "tests/model/windows.hpp"

#include <boost/test/unit_test.hpp>

using namespace parc::model;

namespace {

void check_all(const Explored& found, std::size_t more_states_than) {
  BOOST_TEST(!found.stuck, found.stuck.value_or(""));
  BOOST_TEST(!found.broken, found.broken.value_or(""));
  BOOST_TEST(found.ends >= 1u);
  BOOST_TEST(found.states > more_states_than);
}

const Setting shapes[] = {
    {.hosts = 2, .room = 1, .fragments = 3, .credit = 0},
    {.hosts = 2, .room = 2, .fragments = 3, .credit = 0},
    {.hosts = 2, .room = 1, .fragments = 3, .credit = 1},
    {.hosts = 2, .room = 2, .fragments = 3, .credit = 2},
    {.hosts = 2, .room = 1, .fragments = 2, .credit = 2},
    {.hosts = 3, .ring = true, .room = 1, .fragments = 2},
    {.hosts = 3, .ring = true, .room = 2, .fragments = 2},
    {.hosts = 3, .ring = true, .room = 1, .fragments = 2, .credit = 1},
    {.hosts = 3, .room = 1, .fragments = 1},
};

} // namespace

BOOST_AUTO_TEST_CASE(parc_never_gets_stuck) {
  for (const Setting& shape : shapes) {
    const Explored found = explore(shape);
    BOOST_TEST_MESSAGE(int{shape.hosts} << " hosts, room " << int{shape.room} << ", " << int{shape.fragments}
                                        << " fragments: " << found.states << " states");
    BOOST_TEST(!found.stuck, found.stuck.value_or(""));
    BOOST_TEST(!found.broken, found.broken.value_or(""));
    BOOST_TEST(found.ends == 1u); // every run ends in the one state in which all is done
    BOOST_TEST(found.states > 100u);
  }
}

BOOST_AUTO_TEST_CASE(kernels_that_write_before_they_read_do) {
  for (const std::uint8_t room : {std::uint8_t{1}, std::uint8_t{2}}) {
    const Explored two = explore({.kernels = Kernels::blocking, .hosts = 2, .room = room, .fragments = 3});
    BOOST_REQUIRE(two.stuck.has_value());
    BOOST_TEST_MESSAGE("stuck: " << *two.stuck);
    // Around a ring, each is stuck in a write to one that is stuck itself.
    const Explored three = explore(
        {.kernels = Kernels::blocking, .hosts = 3, .ring = true, .room = room, .fragments = 3, .credit = 3});
    BOOST_TEST(three.stuck.has_value());
  }
}

BOOST_AUTO_TEST_CASE(senders_that_overdraw_their_credit_are_seen) {
  BOOST_TEST(explore({.room = 1, .fragments = 3, .credit = 1, .overdraft = 1}).broken.has_value());
}

namespace {

// All of each pair in its order, or in the other one; the pairs one after the other, from the last.
std::vector<Places::Read> reads_of(std::uint8_t pairs, std::uint8_t messages, bool backwards) {
  std::vector<Places::Read> reads;
  for (std::uint8_t pair = pairs; pair-- != 0;)
    for (std::uint8_t i = 0; i < messages; ++i)
      reads.push_back({pair, backwards ? static_cast<std::uint8_t>(messages - 1 - i) : i});
  return reads;
}

Places places(Places shape, bool backwards) {
  shape.reads = reads_of(shape.pairs, shape.messages, backwards);
  return shape;
}

} // namespace

// Nobody reads from one pair until another is through, and there are fewer places than messages.
BOOST_AUTO_TEST_CASE(what_lies_unread_stops_no_other_pair) {
  const Places shapes[] = {
      places({.messages = 4}, false), // in order, one waits behind the other
      places({.messages = 4, .of_link = 2}, false),
      places({.messages = 4, .of_link = 3, .room = 2}, false),
      places({.pairs = 3, .messages = 3, .own = 1, .of_link = 2}, false),
      places({.messages = 2}, true), // in the other order, as many as a pair may always have
      places({.pairs = 3, .messages = 2, .of_link = 1, .room = 2}, true),
      places({.messages = 4, .own = 1, .of_link = 12}, true), // or as the link has places for
      places({.messages = 6, .own = 4, .told_after = 2}, false),
  };
  for (const Places& shape : shapes) {
    const Explored found = explore(shape);
    BOOST_TEST_MESSAGE(int{shape.pairs} << " pairs of " << int{shape.messages} << ": " << found.states
                                        << " states");
    check_all(found, 30);
  }
}

BOOST_AUTO_TEST_CASE(places_that_are_shared_without_care_are_seen) {
  // The pair that is read last has taken all.
  BOOST_TEST(explore(places({.sharing = Sharing::first_come, .messages = 4, .of_link = 4}, false))
                 .stuck.has_value());
  // The sender misses places of which it is not told.
  BOOST_TEST(explore(places({.messages = 4, .told_after = 3}, false)).stuck.has_value());
  // In the other order the bound is one.
  BOOST_TEST(explore(places({.messages = 4}, true)).stuck.has_value());
}

// One and two trains, both sides losing their carriers at any token.
BOOST_AUTO_TEST_CASE(nothing_is_lost_or_doubled_when_carriers_end) {
  const Resuming shapes[] = {{.fragments = 2, .trains = 1, .breaks = 3},
                             {.fragments = 3, .trains = 1},
                             {.fragments = 3, .trains = 2},
                             {.fragments = 4, .trains = 2},
                             {.fragments = 2, .train = 1, .trains = 2, .breaks = 3}};
  for (const Resuming& shape : shapes) {
    const Explored found = explore(shape);
    BOOST_TEST_MESSAGE(int{shape.fragments} << " fragments, " << int{shape.trains} << " trains, "
                                            << int{shape.breaks} << " breaks: " << found.states << " states");
    check_all(found, 1000);
  }
}

BOOST_AUTO_TEST_CASE(receivers_that_forget_what_is_missing_are_seen) {
  const Explored found = explore({.forgetful = true});
  BOOST_TEST((found.broken.has_value() || found.stuck.has_value()));
}

// The first carrier and one to two subflows, which end at any token.
BOOST_AUTO_TEST_CASE(messages_come_once_over_several_streams) {
  const Subflows shapes[] = {{.fragments = 2, .subflows = 1, .doubts = 2},
                             {.fragments = 2, .trains = 1},
                             {.fragments = 2, .breaks = 1},
                             {.trains = 1, .breaks = 1, .doubts = 0},
                             {.subflows = 1, .breaks = 1}};
  for (const Subflows& shape : shapes) {
    const Explored found = explore(shape);
    BOOST_TEST_MESSAGE(int{shape.fragments} << " fragments, " << int{shape.subflows} << " subflows, "
                                            << int{shape.breaks} << " breaks: " << found.states << " states");
    check_all(found, 1000);
  }
}

BOOST_AUTO_TEST_CASE(what_several_streams_are_used_without_is_seen) {
  const Subflows few{.fragments = 2, .breaks = 1};
  const auto without = [&](bool Subflows::*what) {
    Subflows shape = few;
    shape.*what = true;
    return explore(shape);
  };
  BOOST_TEST(without(&Subflows::keeps_log).stuck.has_value());
  BOOST_TEST(without(&Subflows::writes_over).broken.has_value());
  BOOST_TEST(without(&Subflows::once_decided).broken.has_value());
  BOOST_TEST(without(&Subflows::unnamed).broken.has_value());
  BOOST_TEST(without(&Subflows::silent).broken.has_value());
}

BOOST_AUTO_TEST_CASE(puts_take_effect_in_order_over_two_carriers) {
  for (const Windows& shape : {Windows{.parts = 3, .ends = 0}, Windows{.ends = 1}, Windows{}}) {
    const Explored found = explore(shape);
    BOOST_TEST_MESSAGE(int{shape.parts} << " parts, " << int{shape.ends} << " carriers end: " << found.states
                                        << " states");
    check_all(found, 1000);
  }
}

BOOST_AUTO_TEST_CASE(windows_that_are_stored_into_without_care_are_seen) {
  BOOST_TEST(explore(Windows{.ends = 0, .overtakes = true}).broken.has_value());
  BOOST_TEST(explore(Windows{.ends = 0, .asks_at_once = true}).broken.has_value());
  BOOST_TEST(explore(Windows{.stores_late = true}).broken.has_value());
  BOOST_TEST(explore(Windows{.forgets = true}).stuck.has_value());
}

// Who sends to a neighbour and who receives take reads by the same word, and each may stop at any step.
BOOST_AUTO_TEST_CASE(neighbours_match_every_message_once_and_in_order) {
  const Neighbours shapes[] = {{},
                               {.stays = true},
                               {.stays = true, .barriers = true},
                               {.threads = 2, .stays = true},
                               {.senders = 2, .messages = 1, .stays = true, .barriers = true},
                               {.senders = 2, .messages = 1, .threads = 2, .stays = true},
                               {.threads = 2},
                               {.remote = true},
                               {.messages = 1, .remote = true, .stays = true},
                               {.dies = true},
                               {.messages = 1, .remote = true, .dies = true},
                               {.senders = 2},
                               {.senders = 2, .dies = true},
                               {.senders = 2, .messages = 1, .threads = 2, .dies = true},
                               {.senders = 2, .messages = 1, .remote = true, .dies = true},
                               {.senders = 2, .messages = 1, .threads = 2, .remote = true, .dies = true}};
  for (const Neighbours& shape : shapes) {
    const Explored found = explore(shape);
    BOOST_TEST_MESSAGE(int{shape.senders} << " senders of " << int{shape.messages} << ", "
                                          << int{shape.threads} << " threads: " << found.states << " states");
    check_all(found, 1000);
  }
}

BOOST_AUTO_TEST_CASE(what_neighbours_leave_out_is_seen) {
  BOOST_TEST(explore(Neighbours{.overtakes = true}).broken.has_value());
  BOOST_TEST(explore({.threads = 2, .posts_unlocked = true}).broken.has_value());
  BOOST_TEST(explore({.dies = true, .leaves_claims = true}).stuck.has_value());
  BOOST_TEST(explore(Neighbours{.stays = true, .publishes_unfenced = true}).stuck.has_value());
  BOOST_TEST(explore(Neighbours{.stays = true, .sleeps_unfenced = true}).stuck.has_value());
  BOOST_TEST(explore(Neighbours{.stays = true, .barriers = true, .sleeps_unfenced = true}).stuck.has_value());
  BOOST_TEST(
      explore({.messages = 1, .remote = true, .stays = true, .sleeps_unasked = true}).stuck.has_value());
  BOOST_TEST(
      explore({.messages = 1, .remote = true, .stays = true, .asks_silently = true}).stuck.has_value());
}

BOOST_AUTO_TEST_CASE(a_pair_gets_on_whatever_another_one_leaves_undrained) {
  for (const Cells& shape : {Cells{}, Cells{.cells = 2}, Cells{.cells = 4, .messages = 9}}) {
    const Explored found = explore(shape);
    BOOST_TEST_MESSAGE(int{shape.cells} << " cells, " << int{shape.messages} << " messages: " << found.states
                                        << " states");
    BOOST_TEST(!found.stuck, found.stuck.value_or(""));
    BOOST_TEST(found.ends >= 1u);
    BOOST_TEST(found.states > 50u);
  }
}

BOOST_AUTO_TEST_CASE(what_cells_are_shared_without_is_seen) {
  BOOST_TEST(explore(Cells{.shared_by_all = true}).stuck.has_value());
  BOOST_TEST(explore(Cells{.one_queue = true}).stuck.has_value());
  BOOST_TEST(explore(Cells{.looks_first = true}).stuck.has_value());
}
