// SPDX-License-Identifier: BSD-3-Clause
// Puts: what is put into a window is there, before whatever its program sends there behind it.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_put)

using namespace parc::sim;

namespace {

bool holds(const Bytes& window, std::size_t offset, const Bytes& bytes) {
  return std::equal(bytes.begin(), bytes.end(), window.begin() + static_cast<std::ptrdiff_t>(offset));
}
bool ended_well(const Op& op) {
  return op.finished && op.outcome.fault == Fault::none;
}

} // namespace

BOOST_DATA_TEST_CASE(it_is_there_and_nothing_else,
                     distances* data::make({0, 1, 8, 192, 4096, 5000, 400'000}) * data::make({false, true}),
                     far, size, from_end) {
  Hosts hosts({0, far});
  Bytes window = pattern(1'000'000, 1), out = pattern(static_cast<std::size_t>(size), 2);
  Bytes expected = window;
  std::copy(out.begin(), out.end(), expected.begin() + 12'345);
  hosts.expose(1, window);
  const Op& put = hosts.put(0, 1, 12'345, out, from_end);
  hosts.settle(1000);
  BOOST_TEST(ended_well(put));
  BOOST_TEST(put.outcome.source == 1);
  BOOST_TEST(put.outcome.total == out.size());
  BOOST_TEST(put.progress.front + put.progress.back == out.size());
  BOOST_TEST((window == expected));
  check_idle(hosts, far + 1);
}

// Messages, gets and puts; at any moment.
BOOST_DATA_TEST_CASE(what_follows_waits, distances* data::make({100, 5000, 400'000}), far, size) {
  Hosts hosts({0, far});
  const auto length = static_cast<std::size_t>(size);
  Bytes window(500'000), first = pattern(length, 1), second = pattern(length, 2), third = pattern(10, 3);
  Bytes text = pattern(20, 4), in(20), got(length);
  hosts.expose(1, window);
  const Op& read = hosts.read(1, 0, 5, in);
  const Op& one = hosts.put(0, 1, 0, first);
  const Op& two = hosts.put(0, 1, 50, second);
  const Op& get = hosts.get(0, 1, 50, got);
  const Op& write = hosts.write(0, 1, 5, text);
  const Op& three = hosts.put(0, 1, 480'000, third);
  bool seen = false;
  for (int i = 0; i < 100'000 && !(three.finished && write.finished && get.finished); ++i) {
    hosts.step(i % 5 == 0 ? 100'000 : 700);
    if (!read.begun || seen) continue;
    seen = true;
    BOOST_TEST((window[0] == first[0] && window[49] == first[49] && window[50] == second[0]));
    BOOST_TEST((window[49 + length] == second[length - 1]));
  }
  hosts.settle();
  for (const Op* op : {&one, &two, &three, &get, &write, &read}) BOOST_TEST(ended_well(*op));
  BOOST_TEST((in == text));
  BOOST_TEST((got == second));
  BOOST_TEST(holds(window, 480'000, third));
  check_idle(hosts, far + 1);
}

// Those of others go on meanwhile.
BOOST_AUTO_TEST_CASE(nobody_else_waits) {
  Hosts hosts({0, 1, 0});
  Bytes window(500'000), out = pattern(400'000, 1), text = pattern(10, 2), in(10);
  hosts.expose(1, window);
  const Op& put = hosts.put(0, 1, 0, out);
  const Op& read = hosts.read(1, 2, 5, in);
  (void)hosts.write(2, 1, 5, text);
  while (!read.finished) (void)hosts.step(700);
  BOOST_TEST(!put.finished);
  hosts.settle();
  BOOST_TEST(ended_well(put));
  check_idle(hosts);
}

BOOST_DATA_TEST_CASE(what_has_no_place_is_refused, distances* data::make({10, 400'000}), far, size) {
  Hosts hosts({0, far});
  const auto length = static_cast<std::size_t>(size);
  Bytes window = pattern(1000, 1), out = pattern(length, 2), few = pattern(10, 3), text = pattern(20, 4),
        in(20);
  const Bytes before = window;
  const Op& early = hosts.put(0, 1, 0, out);
  hosts.settle();
  hosts.expose(1, window);
  const Op& number = hosts.put(0, 1, 0, out, false, 2);
  const Op& behind = hosts.put(0, 1, 991, out);
  const Op& around = hosts.put(0, 1, ~std::uint64_t{0}, out);
  const Op& write = hosts.write(0, 1, 5, text);
  const Op& read = hosts.read(1, 0, 5, in);
  hosts.settle();
  for (const Op* op : {&early, &number, &behind, &around}) {
    BOOST_TEST(op->finished);
    BOOST_TEST(op->outcome.fault == Fault::place);
    BOOST_TEST(op->outcome.source == 1);
  }
  BOOST_TEST((ended_well(write) && ended_well(read) && in == text));
  BOOST_TEST((window == before));
  const Op& last = hosts.put(0, 1, 990, few);
  hosts.settle();
  BOOST_TEST((ended_well(last) && holds(window, 990, few)));
  check_idle(hosts, far + 1);
}

// At any moment; what it had sent behind the put is not heard of where that is not whole.
BOOST_DATA_TEST_CASE(its_writer_goes, distances* data::make({10, 400'000}) * data::make({false, true}), far,
                     size, cleanly) {
  for (int when = 0; when < 40; ++when) {
    Hosts hosts({0, far});
    Bytes window(500'000), out = pattern(static_cast<std::size_t>(size), 1), text = pattern(20, 2), in(20);
    hosts.expose(1, window);
    const Op& put = hosts.put(0, 1, 1000, out);
    const Op& write = hosts.write(0, 1, 5, text);
    const Op& read = hosts.read(1, 0, 5, in);
    hosts.steps(when);
    hosts.depart(0, cleanly);
    if (!cleanly) BOOST_TEST((put.finished && write.finished));
    hosts.settle();
    BOOST_TEST((put.finished && write.finished && read.finished));
    if (cleanly) BOOST_TEST((ended_well(put) && ended_well(read)));
    if (ended_well(read)) BOOST_TEST((in == text && holds(window, 1000, out)));
    BOOST_TEST((ended_well(read) || read.outcome.fault == Fault::peer));
    BOOST_TEST(hosts.record(0).gone.size() == 1u);
    check_idle(hosts, far + 1);
  }
}

// Who has left and is killed before all of it was delivered: nobody waits for what was behind.
BOOST_DATA_TEST_CASE(its_writer_is_killed_after_it_has_left, distances, far) {
  for (int when = 0; when < 40; ++when) {
    Hosts hosts({0, far});
    Bytes window(500'000), out = pattern(400'000, 1), text = pattern(20, 2), in(20);
    hosts.expose(1, window);
    (void)hosts.put(0, 1, 1000, out);
    (void)hosts.write(0, 1, 5, text);
    const Op& read = hosts.read(1, 0, 5, in);
    hosts.engine(0).leave(hosts.endpoint(0));
    hosts.steps(when);
    hosts.engine(0).kill(hosts.endpoint(0));
    hosts.settle();
    BOOST_TEST((ended_well(read) ? holds(window, 1000, out) : read.outcome.fault == Fault::peer));
    check_idle(hosts, far + 1);
  }
}

BOOST_DATA_TEST_CASE(its_target_goes, distances* data::make({10, 400'000}) * data::make({false, true}), far,
                     size, cleanly) {
  for (int when = 0; when < 40; ++when) {
    Hosts hosts({0, far});
    Bytes window(500'000), out = pattern(static_cast<std::size_t>(size), 1), text = pattern(20, 2), got(300);
    hosts.expose(1, window);
    const Op& put = hosts.put(0, 1, 1000, out);
    const Op& behind = hosts.put(0, 1, 0, text);
    const Op& write = hosts.write(0, 1, 5, text);
    const Op& get = hosts.get(0, 1, 7, got);
    hosts.steps(when);
    hosts.depart(1, cleanly);
    if (!cleanly) BOOST_TEST(hosts.record(far).held == 0u);
    hosts.settle();
    for (const Op* op : {&put, &behind, &write, &get})
      BOOST_TEST((op->finished && (op->outcome.fault == Fault::none || op->outcome.fault == Fault::peer)));
    if (ended_well(put)) BOOST_TEST(holds(window, 1000, out));
    check_idle(hosts, far + 1);
  }
}

BOOST_DATA_TEST_CASE(a_link_ends_or_goes_on, data::make({false, true}), ends) {
  for (int when = 0; when < 60; ++when) {
    Hosts hosts({0, 1});
    Bytes window(500'000), out = pattern(400'000, 1), more = pattern(300, 2), text = pattern(20, 3), in(20);
    hosts.expose(1, window);
    const Op& put = hosts.put(0, 1, 1000, out);
    const Op& other = hosts.put(0, 1, 7, more);
    const Op& write = hosts.write(0, 1, 5, text);
    const Op& read = hosts.read(1, 0, 5, in);
    hosts.steps(when);
    hosts.cut(0, 1, ends);
    if (ends) BOOST_TEST(hosts.record(1).held == 0u);
    hosts.settle();
    for (const Op* op : {&put, &other, &write, &read}) {
      BOOST_TEST(op->finished);
      BOOST_TEST((op->outcome.fault == Fault::none || (ends && op->outcome.fault == Fault::peer)));
    }
    if (ended_well(put)) BOOST_TEST(holds(window, 1000, out));
    if (ended_well(other)) BOOST_TEST(holds(window, 7, more));
    if (ended_well(read)) BOOST_TEST((holds(window, 1000, out) && holds(window, 7, more) && in == text));
    check_idle(hosts);
  }
}

// They stand among the pair's envelopes, and give their places back without anybody's reading.
BOOST_AUTO_TEST_CASE(more_puts_than_there_are_places) {
  Settings settings = Hosts::small_window();
  settings.unmatched = 0;
  Hosts hosts({0, 1}, settings);
  Bytes window(1000), out = pattern(100, 1);
  hosts.expose(1, window);
  std::vector<const Op*> puts;
  for (std::size_t i = 0; i < 1000; ++i) puts.push_back(&hosts.put(0, 1, i % 900, out));
  hosts.settle();
  for (const Op* put : puts) BOOST_TEST(ended_well(*put));
  check_idle(hosts);
}

// A get would not see what the gate keeps.
BOOST_DATA_TEST_CASE(gated_ones_go_when_they_may, distances, far) {
  Hosts hosts({0, far});
  Bytes window(1000), out = pattern(100, 1), got(100), other(100);
  hosts.expose(1, window);
  WriteRequest put{
      .destination = 1, .tag = 1, .data = 3, .memory = {out.data(), out.size()}, .gated = true, .put = true};
  const Op& kept = hosts.post(0, put);
  const std::uint64_t cookie = hosts.record(0).make();
  const std::uint64_t get = hosts.engine(0).get(hosts.endpoint(0), {.cookie = cookie,
                                                                    .target = 1,
                                                                    .window = 1,
                                                                    .offset = 3,
                                                                    .memory = {got.data(), got.size()},
                                                                    .gated = true});
  hosts.settle();
  BOOST_TEST((!kept.finished && !hosts.record(0).op(cookie).finished));
  hosts.engine(0).pass(kept.handle);
  hosts.engine(0).pass(get);
  hosts.engine(0).pass(get);
  hosts.settle();
  BOOST_TEST((ended_well(kept) && ended_well(hosts.record(0).op(cookie)) && got == out));
  check_idle(hosts, far + 1);
}

// Its link breaks while its gate is shut, or its asker goes.
BOOST_DATA_TEST_CASE(gated_gets_end_with_their_peer, data::make({0, 1, 2, 3}), how) {
  Hosts hosts({0, 1});
  Bytes window(1000), got(100);
  hosts.expose(1, window);
  const std::uint64_t cookie = hosts.record(0).make();
  (void)hosts.engine(0).get(
      hosts.endpoint(0),
      {.cookie = cookie, .target = 1, .window = 1, .memory = {got.data(), got.size()}, .gated = true});
  hosts.settle();
  switch (how) {
  case 0: hosts.break_link(0, 1); break;
  case 1: hosts.engine(1).kill(hosts.endpoint(1)); break;
  case 2: hosts.engine(0).kill(hosts.endpoint(0)); break;
  default: hosts.engine(0).leave(hosts.endpoint(0)); break;
  }
  hosts.settle();
  const Op& get = hosts.record(0).op(cookie);
  BOOST_TEST(get.finished);
  BOOST_TEST(get.outcome.fault == (how < 2 ? Fault::peer : Fault::canceled));
  check_idle(hosts);
}

// Its program may have it back before it has left, and not later.
BOOST_DATA_TEST_CASE(only_what_has_not_left_is_canceled, distances, far) {
  Hosts hosts({0, far});
  Bytes window(500'000), out = pattern(400'000, 1);
  hosts.expose(1, window);
  const Op& put = hosts.put(0, 1, 0, out);
  while (put.progress.front == 0) (void)hosts.step(700);
  hosts.engine(0).cancel(put.handle);
  hosts.settle();
  BOOST_TEST((ended_well(put) && holds(window, 0, out)));
  WriteRequest request{
      .destination = 1, .tag = 1, .memory = {out.data(), out.size()}, .gated = true, .put = true};
  const Op& kept = hosts.post(0, request);
  hosts.engine(0).cancel(kept.handle);
  BOOST_TEST((kept.finished && kept.outcome.fault == Fault::canceled));
  check_idle(hosts, far + 1);
}

BOOST_AUTO_TEST_CASE(its_own_window) {
  Hosts hosts({0, 1});
  Bytes window(100'000), out = pattern(50'000, 1), text = pattern(20, 2), in(20), got(50'000);
  hosts.expose(0, window);
  const Op& put = hosts.put(0, 0, 100, out);
  const Op& get = hosts.get(0, 0, 100, got);
  const Op& write = hosts.write(0, 0, 5, text);
  const Op& read = hosts.read(0, 0, 5, in);
  hosts.settle();
  for (const Op* op : {&put, &get, &write, &read}) BOOST_TEST(ended_well(*op));
  BOOST_TEST((holds(window, 100, out) && got == out && in == text));
  check_idle(hosts);
}

BOOST_AUTO_TEST_SUITE_END()
