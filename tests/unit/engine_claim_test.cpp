// SPDX-License-Identifier: BSD-3-Clause
// Reads that two may take a message for: whoever changes the claim word first has it, and the engine never
// answers for one that another has.
#include "tests/unit/engine_test.hpp"

#include <atomic>

BOOST_AUTO_TEST_SUITE(engine_claim)

using namespace parc::sim;

namespace {

constexpr std::uint64_t nobody = 1, engines = 2, anothers = 3;

ReadRequest shared_read(std::atomic<std::uint64_t>& word, std::int64_t source, Bytes& memory,
                        bool probe = false) {
  ReadRequest request{.source = source, .tag = 5, .memory = {memory.data(), memory.size()}};
  request.probe = probe;
  request.owner_word = {.word = &word, .open = nobody, .ours = engines};
  return request;
}

} // namespace

BOOST_DATA_TEST_CASE(the_next_read_has_what_another_takes_no_more, data::make({0, 1}), sender) {
  Hosts hosts({0, 1, 1});
  const auto from = static_cast<std::uint32_t>(sender * 2); // of another host, and of the reader's
  std::array<std::atomic<std::uint64_t>, 3> words{nobody, nobody, nobody};
  Bytes out = pattern(3000, 1), first(out.size()), second(out.size());
  Op& taken = hosts.post(1, shared_read(words[0], -1, first));
  Op& free = hosts.post(1, shared_read(words[1], from, second));
  words[0] = anothers;
  hosts.write(from, 1, 5, out);
  hosts.settle();
  BOOST_TEST((taken.finished && taken.outcome.fault == Fault::taken));
  BOOST_TEST((free.finished && free.outcome.fault == Fault::none && second == out));
  BOOST_TEST(words[1] == engines);
  BOOST_TEST(words[0] == anothers);
  BOOST_TEST(words[2] == nobody);
}

BOOST_AUTO_TEST_CASE(a_message_that_waits_is_left_to_the_next_where_its_read_is_gone) {
  Hosts hosts({0, 1});
  std::atomic<std::uint64_t> word = anothers;
  Bytes out = pattern(3000, 1), in(out.size());
  hosts.write(0, 1, 5, out);
  hosts.settle();
  Op& taken = hosts.post(1, shared_read(word, 0, in));
  BOOST_TEST((taken.finished && taken.outcome.fault == Fault::taken));
  Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST((read.finished && in == out));
}

BOOST_AUTO_TEST_CASE(a_probe_is_claimed_as_well) {
  Hosts hosts({0, 1});
  std::array<std::atomic<std::uint64_t>, 2> words{anothers, nobody};
  Bytes out = pattern(3000, 1), none;
  Op& taken = hosts.post(1, shared_read(words[0], -1, none, true));
  Op& probe = hosts.post(1, shared_read(words[1], -1, none, true));
  hosts.write(0, 1, 5, out);
  hosts.settle();
  BOOST_TEST((taken.finished && taken.outcome.fault == Fault::taken));
  BOOST_TEST((probe.finished && probe.outcome.fault == Fault::none && probe.outcome.total == out.size()));
  BOOST_TEST(words[1] == engines);
}

// The words say whose a read is also where it fails: who owns it tells that.
BOOST_AUTO_TEST_CASE(what_nobody_has_taken_is_canceled_or_fails_unclaimed) {
  Hosts hosts({0, 1});
  std::array<std::atomic<std::uint64_t>, 2> words{nobody, nobody};
  Bytes in(100);
  Op& canceled = hosts.post(1, shared_read(words[0], 0, in));
  hosts.cancel(1, canceled);
  BOOST_TEST((canceled.finished && canceled.outcome.fault == Fault::canceled));
  Op& fails = hosts.post(1, shared_read(words[1], 0, in));
  hosts.engine(0).leave(hosts.endpoint(0));
  hosts.settle();
  BOOST_TEST((fails.finished && fails.outcome.fault == Fault::peer));
  for (const auto& word : words) BOOST_TEST(word == nobody);
}

// Neighbours name a message by its write, and nobody else sees it.
BOOST_AUTO_TEST_CASE(a_message_between_neighbours_is_matched_by_its_name_alone) {
  Hosts hosts({0, 0});
  Bytes out = pattern(300'000, 1), in(out.size());
  WriteRequest write{
      .destination = 1, .tag = 77, .space = Space::neighbours, .memory = {out.data(), out.size()}};
  ReadRequest read{.source = 0, .tag = 77, .space = Space::neighbours, .memory = {in.data(), in.size()}};
  for (const bool write_first : {true, false}) {
    std::fill(in.begin(), in.end(), std::byte{0});
    Op* written = write_first ? &hosts.post(0, write) : nullptr;
    if (written != nullptr) {
      Op& probe = hosts.probe(1, -1, -1, true);
      BOOST_TEST((probe.finished && probe.outcome.source == -1));
    }
    Op& reads = hosts.post(1, read);
    if (written == nullptr) written = &hosts.post(0, write);
    hosts.settle();
    BOOST_TEST((reads.finished && written->finished && in == out));
  }
}

BOOST_AUTO_TEST_SUITE_END()
