// SPDX-License-Identifier: BSD-3-Clause
// <parc/parc.hpp>: what owns what, and what throws.
#include "fake_kernel.hpp"
#include "parc/parc.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <numeric>

BOOST_AUTO_TEST_SUITE(client_cpp)

using parc::test::FakeKernel;

BOOST_AUTO_TEST_CASE(an_exchange_reads_as_in_the_header) {
  FakeKernel kernel;
  parc::Context p;
  auto ghost = p.buffer<double>(1000), border = p.buffer<double>(1000);
  BOOST_TEST(ghost[999] == 0.0);
  std::iota(border.begin(), border.end(), 1.0);
  auto read = p.initread(0, 5, ghost);
  auto write = p.initwrite(0, 5, std::as_const(border));
  write.wait();
  BOOST_TEST(read.wait().length == 8000u);
  BOOST_TEST(!read);
  BOOST_TEST(ghost[999] == 1000.0);
}

BOOST_AUTO_TEST_CASE(failures_carry_code_and_sentence) {
  FakeKernel kernel;
  parc::Context p;
  auto one = p.buffer<int>(1);
  BOOST_CHECK_EXCEPTION((void)p.initread(3, 0, one.span()), parc::Failure, [](const parc::Failure& failure) {
    return failure.code() == PARC_EINVAL &&
           std::string(failure.what()).find("no rank 3") != std::string::npos;
  });
}

// What can be read into, and what written from, for as long as the operation lasts.
template <class Range>
concept readable = requires(parc::Context& p, Range&& range) {
  p.initread(0, 0, std::forward<Range>(range));
};
template <class Range>
concept writable = requires(parc::Context& p, Range&& range) {
  p.initwrite(0, 0, std::forward<Range>(range));
};
struct Owner {
  std::string text;
};
static_assert(readable<std::vector<int>&> && readable<int (&)[3]> && readable<std::array<double, 4>&>);
static_assert(readable<std::span<int>> && readable<std::span<int, 3>> && readable<parc::Buffer<int>&>);
static_assert(writable<const std::vector<int>&> && writable<const int (&)[3]> && writable<std::string&>);
static_assert(writable<std::span<const int, 3>> && writable<std::string_view>);
static_assert(!readable<const std::vector<int>&> && !readable<std::span<const int>>);
static_assert(!readable<std::vector<int>> && !writable<std::vector<int>> && !writable<parc::Buffer<int>>);
static_assert(!writable<std::vector<Owner>&> && !writable<std::vector<bool>&> && !writable<int&>);

BOOST_AUTO_TEST_CASE(any_contiguous_range_is_a_message) {
  FakeKernel kernel;
  parc::Context p;
  int plain[3] = {1, 2, 3};
  std::array<int, 3> array{};
  std::vector<int> vector(3);
  p.write(0, 1, plain);
  BOOST_TEST(p.read(0, 1, array).length == sizeof plain);
  p.initwrite(0, 2, std::as_const(array)).wait();
  BOOST_TEST(p.initread(0, 2, vector).wait().source == 0);
  BOOST_TEST(vector == (std::vector{1, 2, 3}));
  p.write(0, 3, std::string("gone"));
  p.settle(vector);
  std::string text(4, ' ');
  (void)p.read(0, 3, std::span(text).first(4));
  BOOST_TEST(text == "gone");
}

BOOST_AUTO_TEST_CASE(a_failed_operation_tells_its_status) {
  FakeKernel kernel;
  parc::Context p;
  p.write(0, 1, std::vector<char>(100));
  char little[10];
  BOOST_CHECK_EXCEPTION((void)p.read(0, 1, little), parc::Failure, [](const parc::Failure& failure) {
    return failure.code() == PARC_ETRUNCATE && failure.status() && failure.status()->length == 100;
  });
}

BOOST_AUTO_TEST_CASE(some_are_waited_for_and_all_have_statuses) {
  FakeKernel kernel;
  parc::Context p;
  int values[3] = {};
  std::vector<parc::Operation> reads;
  for (int i = 0; i < 3; ++i) reads.push_back(p.initread(0, i, std::span(&values[i], 1)));
  reads[2].cancel();
  const int value = 7;
  p.write(0, 1, std::span(&value, 1));
  std::size_t finished = 0;
  while (finished < 2)
    for (const auto& [index, status] : p.wait_some(reads)) {
      ++finished;
      BOOST_TEST(status.error == (index == 2 ? PARC_ECANCELED : PARC_OK));
      BOOST_TEST(!reads[index]);
    }
  BOOST_TEST((values[1] == 7 && reads[0]));
  p.write(0, 0, std::span(&value, 1));
  std::vector<parc::Status> statuses(3);
  p.wait_all(reads, statuses);
  BOOST_TEST((statuses[0].length == sizeof value && values[0] == 7));
  BOOST_TEST(p.wait_some(reads).empty());
  p.set_order(PARC_ORDER_UP);
  p.set_strip(1 << 16);
  p.set_train(2);
  p.on_lost([](const parc_lost&) {});
  p.on_lost(nullptr);
}

BOOST_AUTO_TEST_CASE(an_operation_that_is_dropped_gives_its_buffer_back) {
  FakeKernel kernel;
  parc::Context p;
  std::vector<char> buffer(10, 'x');
  { const auto dropped = p.initread(0, 1, std::span(buffer)); }
  p.write(0, 1, std::span<const char>("y", 1));
  BOOST_TEST(buffer[0] == 'x');
  BOOST_TEST(p.iprobe(parc_envelope_of(0, 0, 1))->length == 1u);
  BOOST_TEST(!p.iprobe(parc_envelope_of(0, 0, 2)));
}

BOOST_AUTO_TEST_CASE(several_are_waited_for_together) {
  FakeKernel kernel;
  parc::Context p;
  int first = 0, second = 0;
  std::vector<parc::Operation> reads;
  reads.push_back(p.initread(0, 1, std::span(&first, 1)));
  reads.push_back(p.initread(0, 2, std::span(&second, 1)));
  const int value = 7;
  p.write(0, 2, std::span(&value, 1));
  const auto ready = p.wait_any(reads);
  BOOST_REQUIRE(ready.has_value());
  BOOST_TEST(ready->first == 1u);
  BOOST_TEST(second == 7);
  auto write = p.initwrite(0, 1, std::span(&value, 1));
  p.wait_all({reads[0], write});
  BOOST_TEST(first == 7);
  BOOST_TEST(!p.wait_any(reads).has_value());
  p.barrier();
}

BOOST_AUTO_TEST_SUITE_END()
