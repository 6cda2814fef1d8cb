// SPDX-License-Identifier: BSD-3-Clause
#include "shm/letterbox.hpp"

#include "client/local/stored_message.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <set>
#include <vector>

namespace parc::shm {
namespace {

BOOST_AUTO_TEST_SUITE(letterbox)

BOOST_AUTO_TEST_CASE(a_stamp_is_its_queues_and_counts_alone) {
  const std::uint64_t counts[] = {0, 1, most_published, std::uint64_t{1} << 47};
  std::set<std::uint64_t> seen{0}; // of zeroed memory
  for (const std::uint32_t queue : {0U, 1U, max_neighbours - 1})
    for (const std::uint64_t count : counts) BOOST_TEST(seen.insert(stamp_of(queue, count)).second);
  for (const std::uint64_t count : counts) {
    const std::uint64_t word = drained_word(count, letterbox_cells - 1);
    BOOST_TEST(count_in(word) == count);
    BOOST_TEST(cell_in(word) == letterbox_cells - 1);
    BOOST_TEST(word != drained_for_good);
  }
}

BOOST_AUTO_TEST_CASE(a_claim_word_says_whose_and_of_which_operation) {
  const std::uint64_t generation = 0x123456789abc;
  const std::uint64_t word = owner_word(generation, Owner::neighbour, max_neighbours - 1);
  BOOST_TEST(is(word, generation, Owner::neighbour));
  BOOST_TEST(!is(word, generation + 1, Owner::neighbour));
  BOOST_TEST(place_in(word) == max_neighbours - 1);
  for (const Owner owner : {Owner::nobody, Owner::library, Owner::kernel, Owner::given_up})
    BOOST_TEST(!is(owner_word(generation, owner), generation, Owner::neighbour));
}

// A neighbour may write anything there: readers that took a kind which there is not for two different ones
// read from where no body was.
BOOST_AUTO_TEST_CASE(a_copied_cell_is_of_a_kind_that_there_is_and_short) {
  shm::Cell cell{};
  for (int kind = 0; kind < 4; ++kind) {
    cell.kind = static_cast<shm::CellKind>(kind);
    cell.length = 100'000;
    const shm::Cell copy = shm::copy_of(cell);
    BOOST_TEST((copy.kind == (kind == 0   ? shm::CellKind::whole
                              : kind == 2 ? shm::CellKind::fragment
                                          : shm::CellKind::rendezvous)));
    BOOST_TEST(copy.length == shm::huge_body);
  }
}

BOOST_AUTO_TEST_CASE(stored_messages_keep_their_bytes_and_give_their_memory_back) {
  client::StoredMessages memory;
  for (int round = 0; round < 3; ++round) {
    std::vector<client::StoredMessage*> all;
    for (std::uint32_t length = 0; length <= huge_body; length += 41) {
      client::StoredMessage* const message = memory.make(length > cell_bytes ? length : 0);
      BOOST_REQUIRE(message != nullptr);
      BOOST_TEST((message->body != nullptr) == (length > cell_bytes));
      message->cell.length = length & 0x1ffff;
      if (message->body != nullptr) std::memset(message->body, static_cast<int>(length % 251), length);
      all.push_back(message);
    }
    for (client::StoredMessage* const message : all) {
      const auto* const body = message->body;
      if (body != nullptr) { // each byte is the first
        BOOST_REQUIRE(body[0] == static_cast<std::byte>(message->cell.length % 251));
        BOOST_REQUIRE(std::memcmp(body, body + 1, message->cell.length - 1) == 0);
      }
      memory.drop(*message);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::shm
