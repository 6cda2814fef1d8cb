// SPDX-License-Identifier: BSD-3-Clause
// <parc/parc.hpp>: what owns what, and what throws.
#include "fake_kernel.hpp"
#include "parc/parc.hpp"

#include <boost/test/unit_test.hpp>
#include <numeric>

using parc::test::FakeKernel;

BOOST_AUTO_TEST_SUITE(client_cpp)

BOOST_AUTO_TEST_CASE(an_exchange_reads_as_in_the_header) {
  FakeKernel kernel;
  parc::Context p;
  auto ghost = p.buffer<double>(1000), border = p.buffer<double>(1000);
  BOOST_TEST(ghost[999] == 0.0);
  std::iota(border.begin(), border.end(), 1.0);
  auto read = p.initread(0, 5, ghost.span());
  auto write = p.initwrite(0, 5, std::as_const(border).span());
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

BOOST_AUTO_TEST_CASE(an_operation_that_is_dropped_gives_its_buffer_back) {
  FakeKernel kernel;
  parc::Context p;
  std::vector<char> buffer(10, 'x');
  { const auto dropped = p.initread(0, 1, std::span(buffer)); }
  p.write(0, 1, std::span<const char>("y", 1));
  BOOST_TEST(buffer[0] == 'x');
  BOOST_TEST(p.iprobe({0, 1, 0})->length == 1u);
  BOOST_TEST(!p.iprobe({0, 2, 0}));
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
