// SPDX-License-Identifier: BSD-3-Clause
// The model of hiding, held against what the report of 1994 says of it, and against its own formulas by
// trying values around what they claim.
#include "model/gain.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

namespace parc::gain_test {
namespace {

using namespace parc::model;

const auto to_a_millionth = boost::test_tools::tolerance(1e-6);

// Of the largest gain in steps of a thousandth.
double found_largest(const Hiding& hiding) {
  double best = 0;
  for (int i = 0; i <= 8000; ++i) best = std::max(best, gain(i * 1e-3, hiding));
  return best;
}

constexpr Hiding hidings[] = {{1, 0}, {1, 0.2}, {1, 1}, {0.5, 0}, {0.5, 0.3}, {0.1, 0.05}, {0, 0}, {0, 0.5}};

} // namespace

BOOST_AUTO_TEST_SUITE(gain_model)

BOOST_AUTO_TEST_CASE(equal_times_gain_two) {
  BOOST_TEST(gain(1, {}) == 2.0);
  BOOST_TEST(gain(0.25, {}) == 1.25);
  BOOST_TEST(gain(4, {}) == 1.25);
  BOOST_TEST(gain(0, {}) == 1.0);
  BOOST_TEST(gain_of_times(50, 50) == 2.0);
  BOOST_TEST(gain_of_times(25, 100) == 1.25);
  BOOST_TEST(gain_of_times(400, 100) == 1.25);
  BOOST_TEST(gain_of_times(0, 100) == 1.0);
  BOOST_TEST(gain_of_times(100, 0) == 1.0);
  BOOST_TEST(gain_of_times(0, 0) == 1.0);
}

// Figure 4: half the calculation hides, the largest gain is 1 + f, for gamma = 1 / f.
BOOST_AUTO_TEST_CASE(a_fraction_hides) {
  const Hiding half{0.5, 0};
  BOOST_TEST(best_x(half) == 0.5);
  BOOST_TEST(largest_gain(half) == 1.5);
  BOOST_TEST(gain(0.5, half) == 1.5);
  BOOST_TEST(gain(3, {0, 0}) == 1.0);
}

BOOST_AUTO_TEST_CASE(nothing_gains_more_than_at_the_best) {
  for (const Hiding& each : hidings) {
    BOOST_TEST(largest_gain(each) == (1 + each.f + each.omega) / (1 + each.omega), to_a_millionth);
    BOOST_TEST(found_largest(each) == largest_gain(each), to_a_millionth);
  }
  for (const double omega : {0.0, 0.2, 1.0, 7.0})
    BOOST_TEST(largest_gain({1, omega}) == 2 - omega / (1 + omega), to_a_millionth);
}

BOOST_AUTO_TEST_CASE(less_than_omega_loses) {
  for (const Hiding& each : hidings) {
    const double least = least_x(each);
    if (least > 0) BOOST_TEST(gain(least * 0.99, each) < 1);
    BOOST_TEST(gain(least, each) <= 1.0, to_a_millionth);
    if (each.f > 0) BOOST_TEST(gain(least + 0.01, each) > 1);
  }
}

// 2.3.1: for gamma_h = 1 a gain of 1.5 wants 0.5 <= gamma_s <= 2.
BOOST_AUTO_TEST_CASE(ranges_of_granularity) {
  const auto paper = range_of_x(1.5, {});
  BOOST_REQUIRE(paper);
  BOOST_TEST(paper->least == 0.5);
  BOOST_TEST(paper->most == 2.0);
  BOOST_TEST(!range_of_x(2.1, {}));
  BOOST_TEST(!range_of_x(1.6, {0.5, 0}));
  BOOST_TEST(std::isinf(range_of_x(1, {})->most));
  for (const Hiding& each : hidings)
    for (const double wanted : {1.05, 1.2, 1.5, 1.9}) {
      const auto range = range_of_x(wanted, each);
      BOOST_TEST(range.has_value() == (wanted <= largest_gain(each)));
      if (!range) continue;
      BOOST_TEST(gain(range->least, each) == wanted, to_a_millionth);
      BOOST_TEST(gain(range->most, each) == wanted, to_a_millionth);
      BOOST_TEST(gain((range->least + range->most) / 2, each) >= wanted);
      BOOST_TEST(gain(range->most * 1.01, each) < wanted);
    }
}

// 2.3.1, examples 1 and 2. At gamma_s = 10 H3 of the second gains nothing and loses nothing.
BOOST_AUTO_TEST_CASE(examples_of_the_paper) {
  BOOST_TEST(gain(1.0 / 5, {1, 1}) == 3.0 / 5, to_a_millionth);
  BOOST_TEST(gain(5.0 / 5, {1, 0.2}) == 5.0 / 3, to_a_millionth);
  BOOST_TEST(gain(10.0 / 5, {1, 0}) == 3.0 / 2, to_a_millionth);
  BOOST_TEST(gain(10.0 / 10, {1, 1}) == 1.0);
  for (double gamma_s = 2; gamma_s < 10; gamma_s += 0.125) {
    BOOST_TEST(gain(5 / gamma_s, {}) > 1);
    BOOST_TEST(gain(10 / gamma_s, {1, 1}) > 1);
  }
  BOOST_TEST(gain(1.0 / 10, {1, 0.2}) < 1);
}

BOOST_AUTO_TEST_CASE(times_of_messages) {
  const Link link{0.01, 1e6};
  BOOST_TEST(transfer_time(0, link) == 0.01);
  BOOST_TEST(transfer_time(1e6, link) == 1.01);
}

// 2.3.2: with q = p the largest gain, 2, is there where lambda = p^2.
BOOST_AUTO_TEST_CASE(all_to_all) {
  const Program program{.alone = 10'000, .message = 1, .messages = [](double p) { return p; }};
  BOOST_TEST(program.x(100) == 1.0);
  const auto gained = [&](double p) { return speedup(program, p, {}) / speedup(program, p); };
  BOOST_TEST(gained(100) == 2.0);
  const Best gains = largest(1000, gained),
             hidden = largest(1000, [&](double p) { return speedup(program, p, {}); });
  BOOST_TEST(gains.p == 100u);
  BOOST_TEST(hidden.p == 100u); // the same processors are the fastest (figure 9.1)
  BOOST_TEST(hidden.value == 100.0);
  BOOST_TEST(largest(1000, [&](double p) { return speedup(program, p); }).p == 100u);
}

// Figure 9.2: with two messages whatever p, hiding keeps its speedup.
BOOST_AUTO_TEST_CASE(constant_volume_never_loses_speed) {
  const Program program{.alone = 1000, .message = 1, .messages = [](double) { return 2.0; }};
  double last = 0;
  for (double p = 1; p < 2000; ++p) {
    const double now = speedup(program, p, {});
    BOOST_TEST(now >= last * (1 - 1e-12));
    last = now;
  }
  BOOST_TEST(last == 500.0, to_a_millionth);
}

BOOST_AUTO_TEST_CASE(efficient_processors) {
  const auto half_of_p = [](double p) { return p <= 7 ? p : 7.0; };
  BOOST_TEST(most_with_efficiency(100, 0.5, half_of_p).value() == 14u);
  BOOST_TEST(most_with_efficiency(10, 0.5, half_of_p).value() == 10u);
  BOOST_TEST(!most_with_efficiency(10, 1.5, half_of_p));
}

// 4.3, with the machine of de Sturler and van der Vorst.
BOOST_AUTO_TEST_CASE(conjugate_gradients) {
  const ConjugateGradients cg{
      .flop = 3e-6, .startup = 5.3e-6, .word = 4.8e-6, .unknowns = 1e4, .nonzeroes = 5};
  const auto s = [&](double p) { return cg.time(1) / cg.time(p); };
  const auto s_lh = [&](double p) { return cg.hidden_time(1) / cg.hidden_time(p); };
  const auto g = [&](double p) { return cg.time(p) / cg.hidden_time(p); };
  const auto to_the_digits = boost::test_tools::tolerance(5e-6);
  BOOST_TEST(largest(1000, g).p == 229u);
  BOOST_TEST(g(229) == 1.30624, to_the_digits);
  BOOST_TEST(s(229) == 155.717, to_the_digits);
  BOOST_TEST(s_lh(229) == 203.487, to_the_digits);
  BOOST_TEST(largest(1000, s).p == 601u);
  BOOST_TEST(largest(1000, s).value == 200.244, to_the_digits);
  BOOST_TEST(largest(1000, s_lh).p == 453u);
  BOOST_TEST(largest(1000, s_lh).value == 230.649, to_the_digits);
  BOOST_TEST(g(15) < 1);
  BOOST_TEST(g(16) == 1.0, to_a_millionth);
  BOOST_TEST(g(17) > 1);
  // Of the general form.
  const Program program{
      .alone = cg.a(), .message = cg.b(), .messages = [](double p) { return std::sqrt(p); }};
  for (const double p : {1.0, 16.0, 229.0, 601.0})
    BOOST_TEST(gain(program.x(p), {cg.f(), cg.omega() * p / cg.a()}) == g(p), to_a_millionth);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::gain_test
