// SPDX-License-Identifier: BSD-3-Clause
// Gets: what is in a window comes, whoever goes meanwhile, and its program has no part in it.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_get)

using namespace parc::sim;

namespace {

Bytes part(const Bytes& window, std::size_t offset, std::size_t length) {
  const auto from = window.begin() + static_cast<std::ptrdiff_t>(offset);
  return {from, from + static_cast<std::ptrdiff_t>(length)};
}
} // namespace

BOOST_DATA_TEST_CASE(what_is_in_a_window_comes,
                     distances* data::make({0, 1, 8, 192, 4096, 5000, 400'000}) * data::make({false, true}),
                     far, size, from_end) {
  Hosts hosts({0, far});
  Bytes window = pattern(1'000'000, 1), in(static_cast<std::size_t>(size));
  hosts.expose(1, window);
  const Op& get = hosts.get(0, 1, 12'345, in, from_end);
  hosts.settle(1000);
  BOOST_TEST(get.finished);
  BOOST_TEST(get.outcome.fault == Fault::none);
  BOOST_TEST(get.outcome.source == 1);
  BOOST_TEST(get.outcome.total == in.size());
  BOOST_TEST(get.outcome.data == 0u);
  BOOST_TEST(get.progress.front + get.progress.back == in.size());
  BOOST_TEST((in == part(window, 12'345, in.size())));
  check_idle(hosts, far + 1);
}

// Each is whole before more of the next one comes than a train brings; one that is short waits for none.
BOOST_DATA_TEST_CASE(long_ones_come_one_after_the_other, distances, far) {
  Hosts hosts({0, far});
  Bytes window = pattern(2'000'000, 1), first(1'000'000), second(900'000), third(800'000), last(100);
  hosts.expose(1, window);
  const Op* const gets[] = {&hosts.get(0, 1, 0, first), &hosts.get(0, 1, 1, second),
                            &hosts.get(0, 1, 2, third)};
  const Op& brief = hosts.get(0, 1, 3, last);
  const auto here = [](const Op& op) { return op.progress.front + op.progress.back; };
  while (!gets[2]->finished) {
    (void)hosts.step(50'000);
    for (std::size_t i = 1; i < 3; ++i)
      if (here(*gets[i]) != 0 && !gets[i]->finished)
        BOOST_TEST((gets[i - 1]->finished || here(*gets[i]) < 100'000));
    if (here(*gets[1]) != 0) BOOST_TEST(brief.finished);
  }
  hosts.settle();
  BOOST_TEST((third == part(window, 2, third.size())));
  check_idle(hosts, far + 1);
}

// The one that others wait for ends otherwise.
BOOST_DATA_TEST_CASE(those_behind_one_that_is_given_up_are_answered, distances, far) {
  Hosts hosts({0, far});
  hosts.start(8, {0, far});
  Bytes window = pattern(2'000'000, 1), first(1'000'000), second(900'000);
  hosts.expose(1, window);
  const Op& get = hosts.get(0, 1, 0, first);
  const Op& next = hosts.get(0, 1, 1, second);
  while (get.progress.front == 0) (void)hosts.step(50'000);
  hosts.engine(far).kill(hosts.endpoint(1));
  hosts.settle();
  BOOST_TEST((get.finished && next.finished));
  check_idle(hosts, far + 1);
}

BOOST_DATA_TEST_CASE(what_is_not_there_is_refused, distances, far) {
  Hosts hosts({0, far});
  Bytes window = pattern(1000, 1), in(100), none;
  const Op& early = hosts.get(0, 1, 0, in);
  hosts.settle();
  hosts.expose(1, window);
  const Op& number = hosts.get(0, 1, 0, in, false, 2);
  const Op& behind = hosts.get(0, 1, 901, in);
  const Op& around = hosts.get(0, 1, ~std::uint64_t{0}, in);
  const Op& nothing_behind = hosts.get(0, 1, 1001, none);
  const Op& last = hosts.get(0, 1, 900, in);
  const Op& nothing = hosts.get(0, 1, 1000, none);
  hosts.settle();
  for (const Op* op : {&early, &number, &behind, &around, &nothing_behind}) {
    BOOST_TEST(op->finished);
    BOOST_TEST(op->outcome.fault == Fault::place);
    BOOST_TEST(op->outcome.source == 1);
  }
  BOOST_TEST((last.finished && last.outcome.fault == Fault::none && in == part(window, 900, 100)));
  BOOST_TEST((nothing.finished && nothing.outcome.fault == Fault::none));
  check_idle(hosts, far + 1);
}

// Somebody of another job knows where it is, and nobody has added him.
BOOST_DATA_TEST_CASE(strangers_are_refused_until_they_are_added, distances, far) {
  Hosts hosts({0, far});
  hosts.start(8, {0});
  Bytes window = pattern(1000, 1), in(10);
  hosts.expose(1, window);
  Engine& at = hosts.engine(0);
  const std::int32_t row = at.add_row(hosts.endpoint(0, 8), hosts.address(0, 1));
  for (const auto expected : {Fault::place, Fault::none}) {
    const std::uint64_t cookie = hosts.record(0).make();
    at.get(hosts.endpoint(0, 8), {.cookie = cookie,
                                  .target = static_cast<std::uint32_t>(row),
                                  .window = 1,
                                  .memory = {in.data(), in.size()}});
    hosts.settle();
    BOOST_TEST(hosts.record(0).op(cookie).outcome.fault == expected);
    Engine& there = hosts.engine(far);
    there.acquaint(hosts.endpoint(1), there.add_row(hosts.endpoint(1), hosts.address(far, 0, 8)));
  }
}

// Its host has made it, and nobody knows yet of which group.
BOOST_AUTO_TEST_CASE(its_target_is_of_no_group_yet) {
  Hosts hosts({0, 1});
  hosts.settle();
  Engine& there = hosts.engine(1);
  const std::uint64_t target = there.add_endpoint();
  const std::int32_t row =
      hosts.engine(0).add_row(hosts.endpoint(0), {static_cast<std::int32_t>(hosts.link(0, 1)), target});
  Bytes in(10);
  const std::uint64_t cookie = hosts.record(0).make();
  hosts.engine(0).get(hosts.endpoint(0), {.cookie = cookie,
                                          .target = static_cast<std::uint32_t>(row),
                                          .window = 1,
                                          .memory = {in.data(), in.size()}});
  while (there.link(hosts.link(1, 0)).ends.empty()) hosts.hear();
  const Address members[] = {{here, target}};
  BOOST_TEST(there.add_group(members) != Engine::no_group);
  hosts.settle();
  BOOST_TEST(hosts.record(0).op(cookie).outcome.fault == Fault::place);
}

// Nobody had the number: what was asked of it before was for nobody, and its first word is not out of order.
BOOST_AUTO_TEST_CASE(its_target_is_made_later) {
  Hosts hosts({0, 1});
  hosts.settle();
  Engine &at = hosts.engine(0), &there = hosts.engine(1);
  const std::uint64_t number = hosts.endpoint(1) + 1;
  const std::int32_t row =
      at.add_row(hosts.endpoint(0), {static_cast<std::int32_t>(hosts.link(0, 1)), number});
  Bytes in(10);
  for (const auto expected : {Fault::place, Fault::place}) {
    const std::uint64_t cookie = hosts.record(0).make();
    at.get(hosts.endpoint(0), {.cookie = cookie,
                               .target = static_cast<std::uint32_t>(row),
                               .window = 1,
                               .memory = {in.data(), in.size()}});
    hosts.settle();
    BOOST_TEST(hosts.record(0).op(cookie).outcome.fault == expected);
    if (!there.is_there(number)) BOOST_TEST(there.add_endpoint() == number);
  }
}

// At any moment: either all of it is there, or it fails; nobody waits, and the window is let go.
BOOST_DATA_TEST_CASE(its_target_goes, distances* data::make({10, 400'000}) * data::make({false, true}), far,
                     size, cleanly) {
  for (int when = 0; when < 40; ++when) {
    Hosts hosts({0, far});
    Bytes window = pattern(500'000, 1), in(static_cast<std::size_t>(size));
    hosts.expose(1, window);
    const Op& get = hosts.get(0, 1, 1000, in);
    hosts.steps(when);
    hosts.depart(1, cleanly);
    if (!cleanly) BOOST_TEST(hosts.record(far).held == 0u);
    hosts.settle();
    BOOST_TEST(get.finished);
    if (get.outcome.fault == Fault::none) {
      BOOST_TEST((in == part(window, 1000, in.size())));
    } else {
      BOOST_TEST(get.outcome.fault == Fault::peer);
      BOOST_TEST(get.outcome.departure == (cleanly ? Departure::left : Departure::killed));
    }
    BOOST_TEST(hosts.record(far).gone.size() == 1u);
    check_idle(hosts, far + 1);
    const Op& later = hosts.get(0, 1, 1000, in);
    BOOST_TEST((later.finished && later.outcome.fault == Fault::peer));
  }
}

BOOST_DATA_TEST_CASE(its_asker_goes, distances* data::make({0, 10, 400'000}) * data::make({false, true}), far,
                     size, cleanly) {
  for (int when = 0; when < 40; ++when) {
    Hosts hosts({0, far});
    Bytes window = pattern(500'000, 1), in(static_cast<std::size_t>(size));
    hosts.expose(1, window);
    const Op& get = hosts.get(0, 1, 1000, in);
    hosts.steps(when);
    const bool before = get.finished;
    hosts.depart(0, cleanly);
    BOOST_TEST(get.finished);
    BOOST_TEST((before || get.outcome.fault == Fault::canceled));
    in.clear(); // nobody names it any more
    in.shrink_to_fit();
    hosts.settle();
    BOOST_TEST(hosts.record(0).gone.size() == 1u);
    check_idle(hosts, far + 1);
  }
}

BOOST_DATA_TEST_CASE(a_link_ends_or_goes_on, data::make({false, true}), ends) {
  for (int when = 0; when < 60; ++when) {
    Hosts hosts({0, 1});
    Bytes window = pattern(500'000, 1), in(400'000), more(300);
    hosts.expose(1, window);
    const Op& get = hosts.get(0, 1, 1000, in);
    const Op& other = hosts.get(0, 1, 7, more);
    hosts.steps(when);
    hosts.cut(0, 1, ends);
    if (ends) BOOST_TEST(hosts.record(1).held == 0u);
    hosts.settle();
    for (const Op* op : {&get, &other}) {
      BOOST_TEST(op->finished);
      BOOST_TEST((op->outcome.fault == Fault::none || (ends && op->outcome.fault == Fault::peer)));
    }
    BOOST_TEST((get.outcome.fault != Fault::none || in == part(window, 1000, in.size())));
    BOOST_TEST((other.outcome.fault != Fault::none || more == part(window, 7, more.size())));
    check_idle(hosts);
  }
}

// They stand among the pair's envelopes, and give their places back without anybody's reading.
BOOST_AUTO_TEST_CASE(more_gets_than_there_are_places) {
  Settings settings = Hosts::small_window();
  settings.unmatched = 0;
  Hosts hosts({0, 1}, settings);
  Bytes window = pattern(1000, 1);
  hosts.expose(1, window);
  std::deque<Bytes> in(1000, Bytes(100));
  std::vector<const Op*> gets;
  for (std::size_t i = 0; i < in.size(); ++i) gets.push_back(&hosts.get(0, 1, i % 900, in[i]));
  hosts.settle();
  for (std::size_t i = 0; i < in.size(); ++i)
    BOOST_TEST((gets[i]->finished && in[i] == part(window, i % 900, 100)));
  check_idle(hosts);
}

BOOST_AUTO_TEST_CASE(its_own_window) {
  Hosts hosts({0, 1});
  Bytes window = pattern(100'000, 1), in(50'000);
  hosts.expose(0, window);
  const Op& get = hosts.get(0, 0, 10, in);
  hosts.settle();
  BOOST_TEST((get.finished && in == part(window, 10, in.size())));
}

BOOST_AUTO_TEST_CASE(one_that_has_left_is_not_canceled) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes window = pattern(100'000, 1), in(50'000);
  hosts.expose(1, window);
  const Op& get = hosts.get(0, 1, 10, in);
  hosts.step();
  hosts.cancel(0, get);
  BOOST_TEST(!get.finished);
  hosts.settle();
  BOOST_TEST((get.finished && get.outcome.fault == Fault::none && in == part(window, 10, in.size())));
}

// Behind messages that nobody reads.
BOOST_AUTO_TEST_CASE(one_that_waits_for_a_place_is_canceled) {
  Settings settings = Hosts::small_window();
  settings.unmatched = 0;
  Hosts hosts({0, 1}, settings);
  Bytes window = pattern(1000, 1), in(10), out(10);
  hosts.expose(1, window);
  for (std::uint64_t i = 0; i < pair_envelopes; ++i) hosts.write(0, 1, 1, out);
  const Op &first = hosts.get(0, 1, 10, in), &second = hosts.get(0, 1, 20, in);
  hosts.settle();
  BOOST_TEST((!first.finished && !second.finished));
  hosts.cancel(0, first);
  BOOST_TEST((first.finished && first.outcome.fault == Fault::canceled));
  hosts.read(1, 0, 1, out);
  hosts.settle();
  for (std::uint64_t i = 1; i < pair_envelopes; ++i) hosts.read(1, 0, 1, out);
  hosts.settle();
  BOOST_TEST((second.finished && second.outcome.fault == Fault::none && in == part(window, 20, 10)));
  check_idle(hosts);
}

BOOST_AUTO_TEST_SUITE_END()
