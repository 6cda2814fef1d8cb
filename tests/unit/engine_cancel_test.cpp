// SPDX-License-Identifier: BSD-3-Clause
// Giving up: a cancel wins or loses, but never both, and never loses a message that its writer believes
// delivered.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_cancel)

using namespace parc::sim;

BOOST_AUTO_TEST_CASE(a_waiting_read_or_probe_is_canceled_and_a_matched_one_is_not) {
  Hosts hosts({0, 1});
  Bytes out = pattern(400'000, 1), in(out.size());
  Op& waits = hosts.read(1, 0, 5, in);
  Op& anybody = hosts.read(1, -1, 5, in);
  Op& probe = hosts.probe(1, 0, 9);
  for (Op* op : {&waits, &anybody, &probe}) {
    hosts.cancel(1, *op);
    BOOST_TEST(op->finished);
    BOOST_TEST(op->outcome.fault == Fault::canceled);
    hosts.cancel(1, *op); // stale: harmless
  }
  Op& matched = hosts.read(1, 0, 5, in);
  Op& write = hosts.write(0, 1, 5, out);
  while (!matched.begun) hosts.step(1000);
  hosts.cancel(1, matched);
  BOOST_TEST(!matched.finished);
  hosts.settle();
  BOOST_TEST(matched.outcome.fault == Fault::none);
  BOOST_TEST((write.finished && in == out));
}

BOOST_DATA_TEST_CASE(a_write_that_has_not_left_goes_without_a_trace, data::make({0, 8, 5000, 400'000}),
                     size) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size());
  Op& write = hosts.write(0, 1, 5, out);
  hosts.cancel(0, write);
  BOOST_TEST(write.finished);
  BOOST_TEST(write.outcome.fault == Fault::canceled);
  Op& second = hosts.write(0, 1, 5, out);
  Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST((second.finished && read.finished && in == out));
}

// A cancel at any moment of any message, its read before or after: either the write is canceled and the read
// goes on waiting, or both succeed.
BOOST_DATA_TEST_CASE(a_write_on_its_way,
                     data::make({0, 8, 5000, 200'000, 400'000}) * data::make({false, true}), size, from_end) {
  for (int when = 0; when < 40; ++when) {
    for (int read_first : {0, 1, 2}) {
      Hosts hosts({0, 1});
      hosts.settle();
      Bytes out = pattern(static_cast<std::size_t>(size), 1), in(out.size());
      Op* read = read_first == 1 ? &hosts.read(1, 0, 5, in) : nullptr;
      Op& write = hosts.write(0, 1, 5, out, from_end);
      for (int i = 0; i < when; ++i) hosts.step(i % 5 == 0 ? 100'000 : 700);
      hosts.cancel(0, write);
      if (read_first == 2) hosts.step(60), hosts.step(2000), read = &hosts.read(1, 0, 5, in);
      hosts.settle();
      BOOST_TEST(write.finished);
      if (read == nullptr) read = &hosts.read(1, 0, 5, in);
      hosts.settle();
      if (write.outcome.fault == Fault::none) {
        BOOST_TEST(read->finished);
        BOOST_TEST((in == out));
      } else {
        BOOST_TEST(write.outcome.fault == Fault::canceled);
        BOOST_TEST(!read->finished);
        Op& again = hosts.write(0, 1, 5, out);
        hosts.settle();
        BOOST_TEST((again.finished && read->finished && in == out));
      }
      BOOST_TEST(hosts.engine(1).pool_in_use() == 0u);
      const Link& link = hosts.engine(1).link(hosts.link(1, 0));
      BOOST_TEST(link.granted_used == link.freed);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_local_write_is_canceled_until_it_is_matched) {
  Hosts hosts({0, 0});
  Bytes out = pattern(100'000, 1), in(out.size());
  Op& first = hosts.write(0, 1, 5, out);
  hosts.cancel(0, first);
  BOOST_TEST(first.outcome.fault == Fault::canceled);
  Op& read = hosts.read(1, 0, 5, in);
  Op& second = hosts.write(0, 1, 5, out);
  hosts.cancel(0, second);
  BOOST_TEST(!second.finished);
  hosts.settle();
  BOOST_TEST((second.finished && read.finished && in == out));
}

BOOST_AUTO_TEST_CASE(handing_over_what_is_done_is_harmless) {
  Hosts hosts({0, 1});
  Bytes out = pattern(100, 1), in(100), kept = out;
  Op& write = hosts.write(0, 1, 5, out);
  hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST(write.finished);
  hosts.engine(0).hand_over(write.handle, 0, kept.data(), kept.size());
  hosts.engine(0).cancel(write.handle);
  BOOST_TEST((in == out));
}

BOOST_AUTO_TEST_SUITE_END()
