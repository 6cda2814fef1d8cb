// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/letterboxes.hpp"

#include <boost/test/unit_test.hpp>
#include <set>
#include <vector>

namespace parc::daemon {
namespace {

BOOST_AUTO_TEST_SUITE(letterboxes)

using protocol::Departure;

const auto nobody = [](std::uint64_t) {};

BOOST_AUTO_TEST_CASE(none_where_they_are_not_wanted) {
  Letterboxes boxes(std::nullopt);
  BOOST_TEST(boxes.open(1) == nullptr);
  BOOST_TEST(boxes.connect(1, 2, 0) == -1);
}

BOOST_AUTO_TEST_CASE(each_has_its_own_and_each_pair_one_queue) {
  Letterboxes boxes(shm::Progress::sender);
  const std::uint64_t programs = shm::area_letterboxes + 3; // in two areas
  std::set<const shm::Letterbox*> all;
  for (std::uint64_t endpoint = 1; endpoint <= programs; ++endpoint) {
    const auto* const box = boxes.open(endpoint);
    BOOST_REQUIRE(box != nullptr);
    BOOST_TEST(boxes.open(endpoint) == box);
    all.insert(box->memory);
  }
  BOOST_TEST(all.size() == programs);
  BOOST_TEST(boxes.connect(1, 2, 10) == 0);
  BOOST_TEST(boxes.connect(1, 3, 11) == 1);
  BOOST_TEST(boxes.connect(2, 3, 12) == 0);
  BOOST_TEST(boxes.connect(1, 2, 10) == 0); // as before
  const auto& third = boxes.find(3)->memory->kernel;
  BOOST_TEST(third.senders == 2U);
  BOOST_TEST(third.from[0].row == 11);
  BOOST_TEST(third.from[0].queue == 1U);
  BOOST_TEST(third.from[1].row == 12);
  BOOST_TEST(boxes.find(1)->memory->kernel.to[1].at.number == boxes.find(3)->place.number);
}

BOOST_AUTO_TEST_CASE(a_departure_is_told_to_both_sides_and_ends_what_can_be_connected) {
  Letterboxes boxes(shm::Progress::sender);
  BOOST_REQUIRE(boxes.connect(1, 2, 0) == 0);
  BOOST_REQUIRE(boxes.connect(3, 1, 0) == 0);
  std::vector<std::uint64_t> told;
  boxes.departed(1, Departure::killed, [&](std::uint64_t endpoint) { told.push_back(endpoint); });
  BOOST_TEST(told == (std::vector<std::uint64_t>{2, 3}));
  const auto killed = static_cast<std::uint32_t>(Departure::killed);
  BOOST_TEST(boxes.find(2)->memory->kernel.from[0].departed == killed);
  BOOST_TEST(boxes.find(3)->memory->kernel.to[0].departed == killed);
  for (const std::uint64_t endpoint : {2, 3}) BOOST_TEST(boxes.find(endpoint)->memory->kernel.changes == 1U);
  BOOST_TEST(boxes.connect(1, 3, 0) == -1);
  BOOST_TEST(boxes.connect(2, 1, 0) == -1);
}

BOOST_AUTO_TEST_CASE(who_sends_to_it_says_that_it_has_left) {
  Letterboxes boxes(shm::Progress::sender);
  BOOST_REQUIRE(boxes.connect(1, 2, 0) == 0);
  boxes.departed(2, Departure::left, nobody);
  boxes.released(2);
  (void)boxes.open(10);
  BOOST_TEST(boxes.find(2) != nullptr);
  boxes.find(1)->memory->owner.left[0] = 1;
  (void)boxes.open(11);
  BOOST_TEST(boxes.find(2) == nullptr);
}

// What a reader has not drained stays; then it is given to the next, without a trace.
BOOST_AUTO_TEST_CASE(a_letterbox_is_given_away_when_nobody_reads_it) {
  Letterboxes boxes(shm::Progress::sender);
  BOOST_REQUIRE(boxes.connect(1, 2, 0) == 0);
  const shm::Letterbox* const memory = boxes.find(1)->memory;
  boxes.find(1)->memory->owner.cells[5].cell.tag = 7;
  boxes.departed(1, Departure::left, nobody);
  boxes.find(2)->memory->owner.drained[0] = 0;
  (void)boxes.open(10);
  BOOST_TEST(boxes.find(1) != nullptr);
  boxes.find(2)->memory->owner.drained[0] = shm::drained_for_good;
  (void)boxes.open(12);
  BOOST_TEST(boxes.find(1) != nullptr); // its program is still there
  boxes.released(1);
  const auto* const next = boxes.open(11);
  BOOST_TEST(boxes.find(1) == nullptr);
  BOOST_TEST(next->memory == memory);
  BOOST_TEST(memory->owner.cells[5].cell.tag == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_not_drained_is_known) {
  Letterboxes boxes(shm::Progress::sender);
  BOOST_REQUIRE(boxes.connect(1, 2, 0) == 0);
  shm::Letterbox& sender = *boxes.find(1)->memory;
  sender.owner.first_cells[0] = 11;
  for (std::uint16_t i = 0; i < 5; ++i) {
    shm::StampedCell& stamped = sender.owner.cells[i + 10];
    stamped.cell.tag = i;
    stamped.cell.length = static_cast<std::uint16_t>(100 + i);
    stamped.cell.next = static_cast<std::uint16_t>(i + 11);
    stamped.stamp = shm::stamp_of(0, i);
  }
  const auto tags_from = [&](std::uint64_t drained) {
    boxes.find(2)->memory->owner.drained[0] = drained;
    std::vector<std::uint64_t> tags;
    boxes.each_unread(
        2, [&](std::uint64_t from, protocol::Space space, std::uint64_t tag, std::uint64_t length) {
          BOOST_TEST(from == 1U);
          BOOST_TEST((space == protocol::Space::programs));
          BOOST_TEST(length == 100 + tag);
          tags.push_back(tag);
        });
    return tags;
  };
  BOOST_TEST(tags_from(0) == (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  BOOST_TEST(tags_from(shm::drained_word(2, 12)) == (std::vector<std::uint64_t>{2, 3, 4}));
  BOOST_TEST(tags_from(shm::drained_word(5, 15)).empty());
  BOOST_TEST(tags_from(shm::drained_word(2, 13)).empty()); // a reader that says what is not so
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::daemon
