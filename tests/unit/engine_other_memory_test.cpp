// SPDX-License-Identifier: BSD-3-Clause
// Windows in memory that only its process has (CrossMemory).
#include "protocol/atomic_operation.hpp"
#include "tests/unit/engine_test.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <cstring>

BOOST_AUTO_TEST_SUITE(engine_other_memory)

using namespace parc::sim;

namespace {

// Of a process that is reached, until it is not; and makes an atomic operation when it is told to.
struct Other final : CrossMemory {
  bool read(std::byte* to, const std::byte* from, std::uint64_t length, std::uint64_t) override {
    if (reached) std::memcpy(to, from, length);
    return reached;
  }
  bool write(std::byte* to, const std::byte* from, std::uint64_t length, std::uint64_t) override {
    if (reached) std::memcpy(to, from, length);
    return reached;
  }
  Operated operate(std::byte* word, const Atomic& atomic, std::uint64_t name,
                   std::uint64_t& before) override {
    asked = name;
    if (!makes) return Operated::not_yet;
    if (!reached) return Operated::no_word;
    before = parc::protocol::operate(word, atomic);
    return Operated::made;
  }
  bool busy(std::uint64_t) const override { return false; }
  void forget(std::uint64_t name) override { forgotten = name; }
  bool reached = true, makes = false;
  std::uint64_t asked = 0, forgotten = 0;
};

} // namespace

// What a carrier has brought of a run is there, or comes anew.
BOOST_DATA_TEST_CASE(into_other_memory_over_carriers_that_end, data::xrange(30), seed) {
  Hosts hosts({0, 1});
  Other other;
  hosts.record(1).of = &other;
  Bytes out = pattern(600'000, static_cast<std::uint32_t>(seed)), window(700'000), in(out.size());
  hosts.expose(1, window);
  const Op& put = hosts.put(0, 1, 5, out, seed % 2 != 0);
  const Op& get = hosts.get(0, 1, 5, in, seed % 3 == 0);
  for (int i = 0; !get.finished && i < 10'000; ++i) {
    (void)hosts.step(static_cast<std::size_t>(5'003 * (seed + 1)));
    if (i % 7 == seed % 7) hosts.break_carrier(0, 1);
  }
  hosts.settle();
  BOOST_TEST((put.finished && put.outcome.fault == Fault::none));
  BOOST_TEST((get.finished && get.outcome.fault == Fault::none));
  BOOST_TEST(std::equal(out.begin(), out.end(), window.begin() + 5));
  BOOST_TEST(in == out);
  check_idle(hosts);
}

// It has no place there, on either host; what is behind goes on.
BOOST_DATA_TEST_CASE(other_memory_that_is_not_reached_any_more, data::make({0u, 1u}), of_host) {
  Hosts hosts({0, of_host});
  Other other;
  hosts.record(of_host).of = &other;
  Bytes out = pattern(600'000, 1), window(700'000), in(600'000), text = pattern(10, 2), read(10);
  hosts.expose(1, window);
  const Op& put = hosts.put(0, 1, 0, out);
  if (of_host == 1) hosts.steps(3);
  other.reached = false;
  const Op& get = hosts.get(0, 1, 0, in);
  const Op& message = hosts.write(0, 1, 5, text);
  const Op& reads = hosts.read(1, 0, 5, read);
  hosts.settle();
  BOOST_TEST((put.finished && put.outcome.fault == Fault::place));
  BOOST_TEST((get.finished && get.outcome.fault == Fault::place));
  BOOST_TEST((message.finished && reads.finished && read == text));
  check_idle(hosts, of_host + 1);
}

// Until its program has made it what is behind waits, whatever becomes of who asks.
BOOST_DATA_TEST_CASE(an_atomic_that_its_program_makes, data::make({0u, 1u}) * data::xrange(4), of_host,
                     ends) {
  Hosts hosts({0, of_host});
  Other other;
  hosts.record(of_host).of = &other;
  Bytes window(64), text = pattern(8, 2);
  hosts.expose(1, window);
  const Op& add = hosts.atomic(0, 1, 8, {5, 0, Atomic::What::add, 8, 0, 0});
  const Op& put = hosts.put(0, 1, 16, text);
  hosts.settle();
  BOOST_TEST(other.asked != 0u);
  BOOST_TEST((!add.finished && !put.finished && window[16] == std::byte{}));
  if (ends == 0) {
    other.makes = true;
    hosts.engine(of_host).resume_copies();
  } else {
    hosts.depart(ends == 1 ? 1 : 0, ends != 3);
  }
  hosts.settle();
  BOOST_TEST(add.finished);
  BOOST_TEST(put.finished == (ends != 2));
  BOOST_TEST((window[8] == std::byte{5}) == (ends == 0));
  BOOST_TEST(other.forgotten == (ends == 1 ? other.asked : 0u));
  if (ends > 1) { // who asked has gone: it is made all the same, for nobody
    other.makes = true;
    hosts.engine(of_host).resume_copies();
    hosts.settle();
    BOOST_TEST((window[8] == std::byte{5}));
    BOOST_TEST(put.finished);
  }
  BOOST_TEST(hosts.record(of_host).held == 0u);
  check_idle(hosts, of_host + 1);
}

BOOST_DATA_TEST_CASE(an_atomic_whose_program_finds_no_word, data::make({0u, 1u}), of_host) {
  Hosts hosts({0, of_host});
  Other other;
  other.reached = false;
  other.makes = true;
  hosts.record(of_host).of = &other;
  Bytes window(64), text = pattern(10, 2), read(10);
  hosts.expose(1, window);
  const Op& add = hosts.atomic(0, 1, 8, {5, 0, Atomic::What::add, 8, 0, 0});
  const Op& message = hosts.write(0, 1, 5, text);
  const Op& reads = hosts.read(1, 0, 5, read);
  hosts.settle();
  BOOST_TEST((add.finished && add.outcome.fault == Fault::place));
  BOOST_TEST((message.finished && reads.finished && read == text));
  BOOST_TEST(hosts.record(of_host).held == 0u);
  check_idle(hosts, of_host + 1);
}

BOOST_AUTO_TEST_SUITE_END()
