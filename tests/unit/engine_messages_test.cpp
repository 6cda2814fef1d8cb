// SPDX-License-Identifier: BSD-3-Clause
// Messages of every size and shape between two engines arrive whole, whichever came first, read or write.
#include "tests/unit/engine_test.hpp"

BOOST_AUTO_TEST_SUITE(engine_messages)

using namespace parc::sim;

namespace {
const std::size_t sizes[] = {0,    1,    8,    191,    192,     193,     511,     512,
                             4095, 4096, 4097, 65'536, 262'143, 262'144, 300'001, 3'000'000};

void check_exchange(Hosts& hosts, Op& read, Op& write, const Bytes& in, const Bytes& out) {
  BOOST_TEST(read.finished);
  BOOST_TEST(write.finished);
  BOOST_TEST(read.outcome.fault == Fault::none);
  BOOST_TEST(write.outcome.fault == Fault::none);
  BOOST_TEST(read.begun);
  BOOST_TEST(read.outcome.source == 0);
  BOOST_TEST(read.outcome.tag == 5);
  BOOST_TEST(read.outcome.total == out.size());
  BOOST_TEST(read.progress.front + read.progress.back == out.size());
  BOOST_TEST((in == out));
  BOOST_TEST(hosts.engine(0).pool_in_use() == 0u);
  BOOST_TEST(hosts.engine(1).pool_in_use() == 0u);
}
} // namespace

BOOST_DATA_TEST_CASE(the_read_came_first, data::make(sizes) * data::make({0, 1, 2, 3}), size, ends) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(size, 1), in(size);
  Op& read = hosts.read(1, 0, 5, in, (ends & 1) != 0);
  Op& write = hosts.write(0, 1, 5, out, (ends & 2) != 0);
  BOOST_TEST(!write.finished);
  hosts.settle();
  check_exchange(hosts, read, write, in, out);
}

BOOST_DATA_TEST_CASE(the_read_came_late, data::make(sizes) * data::make({0, 1, 2, 3}), size, ends) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(size, 1), in(size);
  Op& write = hosts.write(0, 1, 5, out, (ends & 2) != 0);
  hosts.settle();
  BOOST_TEST(write.finished == (size <= 262'144)); // within the window it travels whole
  Op& read = hosts.read(1, 0, 5, in, (ends & 1) != 0);
  hosts.settle();
  check_exchange(hosts, read, write, in, out);
}

BOOST_DATA_TEST_CASE(the_read_came_in_the_middle,
                     data::make({0, 1, 2, 3}) * data::make({1, 7, 48, 1000, 4144}), ends, step) {
  for (std::size_t size : {200u, 10'000u, 290'000u}) {
    for (int moves : {1, 2, 5, 20}) {
      Hosts hosts({0, 1});
      hosts.settle();
      Bytes out = pattern(size, 1), in(size);
      Op& write = hosts.write(0, 1, 5, out, (ends & 2) != 0);
      for (int i = 0; i < moves; ++i) hosts.step(static_cast<std::size_t>(step));
      Op& read = hosts.read(1, 0, 5, in, (ends & 1) != 0);
      hosts.settle(static_cast<std::size_t>(step) * 16);
      check_exchange(hosts, read, write, in, out);
    }
  }
}

BOOST_DATA_TEST_CASE(local_messages, data::make(sizes) * data::make({0, 1, 2, 3}), size, ends) {
  Hosts hosts({0, 0});
  Bytes out = pattern(size, 1), in(size);
  const bool late = (ends & 2) != 0;
  Op* write = late ? &hosts.write(0, 1, 5, out) : nullptr;
  Op& read = hosts.read(1, 0, 5, in, (ends & 1) != 0);
  if (!late) write = &hosts.write(0, 1, 5, out);
  BOOST_TEST(read.finished == (size <= 8192));
  hosts.settle();
  BOOST_TEST(read.finished);
  BOOST_TEST(write->finished);
  BOOST_TEST((in == out));
}

// Behind the first ones short messages wait in the pool, and leave that when they are read, thrown away or
// their reader goes.
BOOST_DATA_TEST_CASE(short_local_messages_wait_in_the_pool, data::make({0, 1, 8192}), size) {
  constexpr std::size_t kept_from = 8, kept = 24;
  Hosts hosts({0, 0}, {.waiting_writes = kept_from});
  const auto bytes = static_cast<std::size_t>(size);
  std::vector<Bytes> out(kept_from + kept), in(out.size(), Bytes(bytes));
  std::vector<Op*> writes;
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    out[i] = pattern(bytes, i);
    writes.push_back(&hosts.write(0, 1, static_cast<std::int32_t>(i), out[i]));
    BOOST_TEST(writes.back()->finished == (i >= kept_from));
    if (i >= kept_from) std::ranges::fill(out[i], std::byte{0}); // its memory is its program's again
  }
  BOOST_TEST(hosts.engine(0).pool_in_use() == kept * bytes);
  for (auto i = static_cast<std::uint32_t>(out.size()); i-- != kept_from + 1;) {
    Op& read = hosts.read(1, 0, static_cast<std::int32_t>(i), in[i]);
    hosts.settle();
    BOOST_TEST((read.finished && writes[i]->finished && in[i] == pattern(bytes, i)));
  }
  BOOST_TEST(hosts.engine(0).pool_in_use() == bytes);
  hosts.engine(0).leave(hosts.endpoint(1));
  hosts.settle();
  BOOST_TEST(hosts.engine(0).pool_in_use() == 0u);
}

BOOST_AUTO_TEST_CASE(what_the_pool_has_no_room_for_waits_in_its_writers_memory) {
  Hosts hosts({0, 0}, {.pool = 65'536, .waiting_writes = 16});
  Bytes out = pattern(8192, 1), in(out.size());
  std::vector<Op*> writes;
  for (int i = 0; i < 32; ++i) writes.push_back(&hosts.write(0, 1, 5, out));
  BOOST_TEST((writes[16]->finished && !writes.back()->finished));
  BOOST_TEST(hosts.engine(0).pool_in_use() <= 65'536u / 8 * 7);
  for (int i = 0; i < 32; ++i) hosts.read(1, 0, 5, in);
  hosts.settle();
  BOOST_TEST((writes.back()->finished && in == out && hosts.engine(0).pool_in_use() == 0u));
}

BOOST_AUTO_TEST_CASE(local_copies_take_turns_in_slices) {
  Hosts hosts({0, 0, 0});
  Bytes out = pattern(1 << 20, 1), in1(out.size()), in2(out.size());
  hosts.read(1, 0, 5, in1);
  hosts.read(2, 0, 5, in2);
  Op& first = hosts.write(0, 1, 5, out);
  Op& second = hosts.write(0, 2, 5, out);
  BOOST_TEST(hosts.engine(0).copy() <= (std::uint64_t{256} << 10) + 1);
  hosts.engine(0).copy();
  BOOST_TEST(first.progress.front != 0u);
  BOOST_TEST(second.progress.front != 0u);
  hosts.settle();
  BOOST_TEST((in1 == out && in2 == out));
}

BOOST_AUTO_TEST_CASE(a_rank_may_write_to_itself) {
  Hosts hosts({0});
  Bytes out = pattern(100'000, 1), in(out.size());
  Op& write = hosts.write(0, 0, 5, out);
  Op& read = hosts.read(0, -1, -1, in);
  hosts.settle();
  BOOST_TEST((read.finished && write.finished && in == out));
}

// What does not fit is cut, wherever the message came from and in whatever direction.
BOOST_DATA_TEST_CASE(truncation, data::make({0, 1, 2, 3, 4, 5, 6, 7}) * data::make({0, 100, 5000, 270'000}),
                     way, room) {
  for (std::size_t size : {150u, 1000u, 10'000u, 300'000u, 1'000'000u}) {
    if (size <= static_cast<std::size_t>(room)) continue;
    Hosts hosts({0, (way & 4) != 0 ? 0u : 1u}, {}, 1024);
    hosts.settle();
    Bytes out = pattern(size, 1), in(static_cast<std::size_t>(room) + 64, std::byte{0x55});
    Op& write = hosts.write(0, 1, 5, out, (way & 1) != 0);
    if (size % 3 != 0) hosts.settle();
    Op& read = hosts.post(1, ReadRequest{.source = 0,
                                         .tag = 5,
                                         .flags = when((way & 2) != 0, MessageFlags::from_end),
                                         .memory = {in.data(), static_cast<std::size_t>(room)}});
    hosts.settle();
    BOOST_TEST(read.finished);
    BOOST_TEST(write.finished);
    BOOST_TEST(read.outcome.fault == Fault::truncated);
    BOOST_TEST(write.outcome.fault == Fault::none);
    BOOST_TEST(read.outcome.total == size);
    BOOST_TEST(std::equal(out.begin(), out.begin() + room, in.begin()));
    BOOST_TEST(std::count(in.begin() + room, in.end(), std::byte{0x55}) == 64);
  }
}

BOOST_AUTO_TEST_CASE(a_short_message_completes_a_long_read) {
  Hosts hosts({0, 1});
  Bytes out = pattern(1000, 1), in(5000);
  Op& read = hosts.read(1, 0, -1, in, true);
  hosts.write(0, 1, 5, out, true);
  hosts.settle();
  BOOST_TEST(read.finished);
  BOOST_TEST(read.outcome.fault == Fault::none);
  BOOST_TEST(read.outcome.total == 1000u);
  BOOST_TEST(std::equal(out.begin(), out.end(), in.begin()));
}

BOOST_AUTO_TEST_CASE(lists_of_pieces) {
  std::mt19937 random(2);
  for (int round = 0; round < 40; ++round) {
    Hosts hosts({0, round % 4 == 0 ? 0u : 1u}, {}, 512u << round % 4);
    Bytes out = pattern(50'000, 1), in(out.size());
    const auto cut = [&](Bytes& bytes) {
      Pieces pieces;
      const std::size_t longest = round % 3 == 0 ? 1 : 1 + random() % 3000;
      for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t n = std::min<std::size_t>(1 + random() % longest, bytes.size() - at);
        pieces.append({bytes.data() + at, n});
        at += n;
      }
      return pieces;
    };
    const bool late = random() % 2 == 0;
    const Pieces into = cut(in);
    ReadRequest want{
        .source = 0, .tag = 5, .flags = when(random() % 2 == 0, MessageFlags::from_end), .memory = into};
    if (!late) hosts.post(1, want);
    Op& write = hosts.post(0, WriteRequest{.destination = 1,
                                           .tag = 5,
                                           .flags = when(random() % 2 == 0, MessageFlags::from_end),
                                           .memory = cut(out)});
    if (late) hosts.settle(1 + random() % 5000), hosts.post(1, want);
    hosts.settle(1 + random() % 5000);
    BOOST_TEST(write.finished);
    BOOST_TEST((in == out));
  }
}

BOOST_AUTO_TEST_CASE(handed_over_memory_is_named_no_more) {
  for (std::size_t steps = 0; steps < 40; ++steps) {
    Hosts hosts({0, 1});
    hosts.settle();
    Bytes out = pattern(600'000, 1), in(out.size());
    const Bytes expected = out;
    Op& read = hosts.read(1, 0, 5, in);
    Op& write = hosts.write(0, 1, 5, out);
    for (std::size_t i = 0; i < steps; ++i) hosts.step(20'011);
    Bytes kept;
    if (!write.finished) {
      const std::size_t begin = write.progress.front;
      kept.assign(out.begin() + static_cast<long>(begin), out.end());
      hosts.engine(0).hand_over(write.handle, begin, kept.data(), kept.size());
    }
    std::fill(out.begin(), out.end(), std::byte{0xdd});
    hosts.settle();
    BOOST_TEST((read.finished && write.finished));
    BOOST_TEST((in == expected));
  }
}

BOOST_AUTO_TEST_CASE(a_write_is_done_only_when_it_is_acknowledged) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(8, 1), in(8);
  Op& write = hosts.write(0, 1, 5, out);
  Op& read = hosts.read(1, 0, 5, in);
  while (hosts.step()) {
  }
  BOOST_TEST(read.finished);
  BOOST_TEST(!write.finished);
  BOOST_TEST(hosts.engine(1).owes_acknowledgement());
  BOOST_TEST(!hosts.engine(0).owes_acknowledgement());
  hosts.settle();
  BOOST_TEST(write.finished);
  BOOST_TEST(!hosts.engine(1).owes_acknowledgement());
}

// Who wrote a short message has it back when it is started.
BOOST_AUTO_TEST_CASE(acknowledgements_that_nobody_waits_for_may_wait) {
  Hosts hosts({0, 1});
  hosts.settle();
  const auto may_wait_behind = [&](std::size_t bytes) {
    Bytes out = pattern(bytes, 1), in(bytes);
    Op& write = hosts.write(0, 1, 5, out);
    Op& read = hosts.read(1, 0, 5, in);
    while (hosts.step()) {
    }
    BOOST_TEST((read.finished && !write.finished));
    BOOST_TEST(hosts.engine(1).owes_acknowledgement());
    const bool may_wait = hosts.engine(1).acknowledgements_may_wait();
    Bytes back(8);
    (void)hosts.read(0, 1, 6, back);
    (void)hosts.write(1, 0, 6, back); // its train carries the acknowledgement
    while (hosts.step()) {
    }
    BOOST_TEST(write.finished);
    BOOST_TEST(!hosts.engine(1).owes_acknowledgement());
    hosts.settle();
    return may_wait;
  };
  BOOST_TEST(may_wait_behind(0));
  BOOST_TEST(may_wait_behind(8));
  BOOST_TEST(may_wait_behind(1024));
  BOOST_TEST(!may_wait_behind(1025));
}

BOOST_AUTO_TEST_CASE(acknowledgements_of_many_short_messages_do_not_wait) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out(8);
  int trains = 0;
  for (; trains < 100 && (trains == 0 || hosts.engine(1).acknowledgements_may_wait()); ++trains) {
    (void)hosts.write(0, 1, 5, out);
    while (hosts.step()) {
    }
  }
  BOOST_TEST(trains == 16);
  hosts.settle();
}

// A train's header may be here long before its payload: that is not yet received.
BOOST_AUTO_TEST_CASE(half_a_train_is_not_acknowledged) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out = pattern(100'000, 1), in(out.size()), back(8);
  Op& read = hosts.read(1, 0, 5, in);
  Op& write = hosts.write(0, 1, 5, out);
  hosts.read(0, 1, 6, back);
  Refusal refusal = Refusal::none;
  hosts.pipe(0, 1).fill(hosts.engine(0), hosts.link(0, 1), 3000);
  while (hosts.pipe(0, 1).drain(hosts.engine(1), hosts.link(1, 0), 3000, 64, refusal) != 0) {
  }
  Op& answer = hosts.write(1, 0, 6, back); // its train carries the acknowledgement
  hosts.pipe(1, 0).fill(hosts.engine(1), hosts.link(1, 0), 3000);
  while (hosts.pipe(1, 0).drain(hosts.engine(0), hosts.link(0, 1), 3000, 64, refusal) != 0) {
  }
  BOOST_TEST((refusal == Refusal::none));
  BOOST_TEST(!write.finished);
  hosts.settle();
  BOOST_TEST((read.finished && write.finished && answer.finished && in == out));
}

// A kernel asks before it sleeps: what only a full socket keeps back is nothing to do.
BOOST_AUTO_TEST_CASE(a_released_acknowledgement_is_owed_once) {
  Hosts hosts({0, 1});
  hosts.settle();
  Bytes out(8), in(8);
  (void)hosts.read(1, 0, 5, in);
  Op& write = hosts.write(0, 1, 5, out);
  (void)hosts.pipe(0, 1).fill(hosts.engine(0), hosts.link(0, 1), 1 << 20);
  Refusal refusal = Refusal::none;
  (void)hosts.pipe(0, 1).drain(hosts.engine(1), hosts.link(1, 0), 1 << 20, 64, refusal);
  Engine& engine = hosts.engine(1);
  BOOST_TEST(engine.owes_acknowledgement());
  engine.flush_acknowledgements();
  BOOST_TEST(!engine.owes_acknowledgement()); // the socket is full: it has not been written
  engine.flush_acknowledgements();
  BOOST_TEST(!engine.plan_write(hosts.link(1, 0)).empty());
  hosts.settle();
  BOOST_TEST(write.finished);
}

BOOST_AUTO_TEST_SUITE_END()
