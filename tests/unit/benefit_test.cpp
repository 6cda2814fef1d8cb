// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/benefit.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::client {

BOOST_AUTO_TEST_SUITE(benefit)

BOOST_AUTO_TEST_CASE(stops_after_releases_in_vain_and_tries_again) {
  Benefit benefit;
  int buffer = 0;
  for (unsigned i = 0; i < Benefit::patience; ++i) {
    BOOST_TEST(benefit.expected({&buffer, 1}));
    benefit.ended({&buffer, 1}, false);
  }
  for (int round = 0; round < 3; ++round) {
    for (unsigned i = 1; i < Benefit::pause; ++i) BOOST_TEST(!benefit.expected({&buffer, 1}));
    BOOST_TEST(benefit.expected({&buffer, 1}));
    benefit.ended({&buffer, 1}, false); // in vain once more is enough
  }
  for (unsigned i = 1; i < Benefit::pause; ++i) BOOST_TEST(!benefit.expected({&buffer, 1}));
  BOOST_TEST(benefit.expected({&buffer, 1}));
  benefit.ended({&buffer, 1}, true);
  for (unsigned i = 1; i < Benefit::patience; ++i) {
    BOOST_TEST(benefit.expected({&buffer, 1}));
    benefit.ended({&buffer, 1}, false);
  }
  BOOST_TEST(benefit.expected({&buffer, 1}));
}

BOOST_AUTO_TEST_CASE(each_buffer_and_site_for_itself) {
  Benefit benefit;
  int buffers[2]{};
  for (unsigned i = 0; i < Benefit::patience; ++i) benefit.ended({&buffers[0], 1}, false);
  BOOST_TEST(!benefit.expected({&buffers[0], 1}));
  BOOST_TEST(benefit.expected({&buffers[1], 1}));
  BOOST_TEST(benefit.expected({&buffers[0], 2}));
}

// A clock that the test moves, of milliseconds; it wraps soon.
struct Clock {
  std::uint32_t ms = UINT32_MAX - 500;
  std::uint32_t operator()() const { return ms; }
};

BOOST_AUTO_TEST_CASE(a_program_stops_after_reads_in_vain_and_tries_some_again) {
  Budget budget;
  Clock now;
  const auto in_vain = [&](unsigned most) {
    unsigned allowed = 0;
    while (allowed < most && budget.allows(now)) {
      budget.ended_in_vain(now);
      ++allowed;
    }
    return allowed;
  };
  BOOST_TEST(in_vain(UINT32_MAX) == Budget::most_in_vain);
  for (std::uint32_t pause = Budget::first_pause; pause <= Budget::longest_pause; pause *= 2) {
    now.ms += pause - 1;
    BOOST_TEST(budget.pauses(now));
    BOOST_TEST(in_vain(UINT32_MAX) == 0U);
    now.ms += 1;
    BOOST_TEST(!budget.pauses(now));
    BOOST_TEST(in_vain(UINT32_MAX) == Budget::tried_again, pause);
  }
  now.ms += Budget::longest_pause;
  BOOST_TEST(in_vain(3) == 3U);
  for (int i = 0; i < 1000; ++i) budget.paid(std::chrono::milliseconds(1), std::chrono::microseconds(5));
  BOOST_TEST(in_vain(UINT32_MAX) == Budget::most_in_vain); // as at the beginning
  now.ms += Budget::first_pause;
  BOOST_TEST(budget.allows(now));
}

BOOST_AUTO_TEST_CASE(reads_that_were_under_way_make_no_pause_longer) {
  Budget budget;
  Clock now;
  for (unsigned i = 0; i < 3 * Budget::most_in_vain; ++i) budget.ended_in_vain(now);
  BOOST_TEST(!budget.allows(now));
  now.ms += Budget::first_pause;
  BOOST_TEST(budget.allows(now));
  for (unsigned i = 0; i < Budget::tried_again; ++i) budget.ended_in_vain(now);
  BOOST_TEST(!budget.allows(now));
  budget.paid(std::chrono::seconds(1), std::chrono::microseconds(5)); // one of them has
  BOOST_TEST(budget.allows(now));
}

BOOST_AUTO_TEST_CASE(a_release_that_paid_makes_good_for_some) {
  Budget budget;
  Clock now;
  const auto stops_after = [&](unsigned each) { // of so many one pays
    for (unsigned i = 1; i < 100'000; ++i) {
      if (!budget.allows(now)) return i;
      if (i % each == 0)
        budget.paid(std::chrono::milliseconds(10), std::chrono::microseconds(5));
      else
        budget.ended_in_vain(now);
    }
    return 0U;
  };
  BOOST_TEST(stops_after(Budget::good_for) == 0U);
  BOOST_TEST(stops_after(4 * Budget::good_for) < 2 * Budget::most_in_vain);
}

BOOST_AUTO_TEST_CASE(a_program_stops_when_it_has_lost_too_much_time) {
  using namespace std::chrono_literals;
  Budget budget;
  Clock now;
  for (int i = 0; i < 50; ++i) { // what is gained is not lost
    budget.spend(4ms);
    budget.paid(3900us, 5us);
  }
  BOOST_TEST(budget.allows(now));
  int reads = 0;
  for (; budget.allows(now); ++reads) {
    budget.spend(1s); // counts as most_of_one
    budget.ended_in_vain(now);
  }
  BOOST_TEST(reads == 10); // with the 5 ms that were lost before
  now.ms += Budget::first_pause;
  for (reads = 0; budget.allows(now); ++reads) {
    budget.spend(Budget::most_lost / 20);
    budget.ended_in_vain(now);
  }
  BOOST_TEST(reads == 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::client
