// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations on words of windows: each is made once, in its order, and says what was there before.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_atomic)

using namespace parc::sim;

namespace {

Atomic of(Atomic::What what, std::uint64_t operand, std::uint8_t width = 8, std::uint64_t compare = 0) {
  return {operand, compare, what, width, 0, 0};
}

template <class Word> Word word_at(const Bytes& window, std::size_t offset) {
  Word word{};
  std::memcpy(&word, window.data() + offset, sizeof word);
  return word;
}
} // namespace

BOOST_DATA_TEST_CASE(each_does_what_it_says, distances, far) {
  Hosts hosts({0, far});
  Bytes window(64);
  hosts.expose(1, window);
  using What = Atomic::What;
  const struct {
    Atomic atomic;
    std::uint64_t before, after;
  } steps[] = {{of(What::add, 7), 0, 7},
               {of(What::add, ~std::uint64_t{0}), 7, 6},
               {of(What::swap, 12), 6, 12},
               {of(What::compare_swap, 99, 8, 11), 12, 12},
               {of(What::compare_swap, 99, 8, 12), 12, 99},
               {of(What::bit_and, 0xf0), 99, 96},
               {of(What::bit_or, 3), 96, 99},
               {of(What::bit_xor, 1), 99, 98}};
  std::vector<const Op*> all;
  for (const auto& step : steps) all.push_back(&hosts.atomic(0, 1, 8, step.atomic));
  hosts.settle();
  for (std::size_t i = 0; i < all.size(); ++i) {
    BOOST_TEST((all[i]->finished && all[i]->outcome.fault == Fault::none));
    BOOST_TEST(all[i]->outcome.source == 1);
    BOOST_TEST(all[i]->outcome.data == steps[i].before);
  }
  BOOST_TEST(word_at<std::uint64_t>(window, 8) == 98u);
  const Op& narrow = hosts.atomic(0, 1, 20, of(What::add, ~std::uint64_t{0}, 4));
  const Op& next = hosts.atomic(0, 1, 20, of(What::compare_swap, 5, 4, 0xffffffff));
  hosts.settle();
  BOOST_TEST((narrow.outcome.data == 0u && next.outcome.data == 0xffffffffu));
  BOOST_TEST(word_at<std::uint64_t>(window, 16) == std::uint64_t{5} << 32);
  check_idle(hosts, far + 1);
}

BOOST_DATA_TEST_CASE(what_has_no_place_is_refused, distances, far) {
  Hosts hosts({0, far});
  Bytes window(64);
  const Bytes before = window;
  hosts.expose(1, window);
  const Atomic add = of(Atomic::What::add, 1);
  std::vector<const Op*> all;
  for (const std::uint64_t offset :
       {std::uint64_t{57}, std::uint64_t{64}, ~std::uint64_t{7}, std::uint64_t{4}})
    all.push_back(&hosts.atomic(0, 1, offset, add)); // the last is not at a multiple of 8
  all.push_back(&hosts.atomic(0, 1, 0, add, 2));
  hosts.settle();
  for (const Op* op : all) BOOST_TEST((op->finished && op->outcome.fault == Fault::place));
  BOOST_TEST((window == before));
  check_idle(hosts, far + 1);
}

// Behind a put, and before what follows.
BOOST_DATA_TEST_CASE(they_keep_the_order_of_puts, distances, far) {
  Hosts hosts({0, far});
  Bytes window(500'000), out(400'000, std::byte{1}), text = pattern(20, 4), in(20), got(8);
  hosts.expose(1, window);
  const Op& put = hosts.put(0, 1, 0, out);
  const Op& add = hosts.atomic(0, 1, 392'000, of(Atomic::What::add, 1));
  const Op& get = hosts.get(0, 1, 392'000, got);
  const Op& read = hosts.read(1, 0, 5, in);
  (void)hosts.write(0, 1, 5, text);
  for (int i = 0; i < 100'000 && !read.begun; ++i) hosts.step(i % 5 == 0 ? 100'000 : 700);
  BOOST_TEST(word_at<std::uint64_t>(window, 392'000) == 0x0101010101010102u);
  hosts.settle();
  BOOST_TEST((put.finished && add.outcome.data == 0x0101010101010101u && get.finished));
  BOOST_TEST(word_at<std::uint64_t>(got, 0) == 0x0101010101010102u);
  check_idle(hosts, far + 1);
}

// At any moment: it has been made once, or it fails; where its link goes on, it is made.
BOOST_DATA_TEST_CASE(a_link_ends_or_goes_on, data::make({false, true}), ends) {
  for (int when = 0; when < 40; ++when) {
    Hosts hosts({0, 1});
    Bytes window(64);
    hosts.expose(1, window);
    std::vector<const Op*> all;
    for (int i = 0; i < 30; ++i) {
      all.push_back(&hosts.atomic(0, 1, 0, of(Atomic::What::add, 1)));
      if (i < when) hosts.step(i % 5 == 0 ? 100'000 : 100);
    }
    hosts.cut(0, 1, ends);
    hosts.settle();
    std::uint64_t made = 0;
    for (const Op* op : all) {
      BOOST_TEST(op->finished);
      BOOST_TEST((op->outcome.fault == Fault::none || (ends && op->outcome.fault == Fault::peer)));
      if (op->outcome.fault == Fault::none) BOOST_TEST(op->outcome.data == made++);
    }
    BOOST_TEST(word_at<std::uint64_t>(window, 0) >= made);
    if (!ends) BOOST_TEST(word_at<std::uint64_t>(window, 0) == all.size());
    check_idle(hosts);
  }
}

BOOST_DATA_TEST_CASE(who_goes_meanwhile, distances* data::make({false, true}) * data::make({false, true}),
                     far, asker, cleanly) {
  for (int when = 0; when < 20; ++when) {
    Hosts hosts({0, far});
    Bytes window(500'000), out(400'000);
    hosts.expose(1, window);
    (void)hosts.put(0, 1, 0, out);
    const Op& add = hosts.atomic(0, 1, 0, of(Atomic::What::add, 1));
    hosts.steps(when);
    hosts.depart(asker ? 0 : 1, cleanly);
    hosts.settle();
    BOOST_TEST(add.finished);
    const Fault fault = asker ? Fault::canceled : Fault::peer;
    BOOST_TEST((add.outcome.fault == Fault::none || add.outcome.fault == fault));
    check_idle(hosts, far + 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
