// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/screen/units.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>

namespace parc::tools {

BOOST_AUTO_TEST_SUITE(units)

BOOST_AUTO_TEST_CASE(numbers_have_three_digits_and_a_unit) {
  BOOST_TEST(bytes_text(0) == "0 B");
  BOOST_TEST(bytes_text(1023) == "1023 B");
  BOOST_TEST(bytes_text(1024) == "1.0 KiB");
  BOOST_TEST(bytes_text(102'349) == "100 KiB"); // 99.95, which would be 100.0 with its decimal
  BOOST_TEST(bytes_text(1'048'575) == "1024 KiB");
  BOOST_TEST(count_text(999'999) == "999999");
  BOOST_TEST(count_text(1'000'000) == "1.0 M");
  BOOST_TEST(count_text(123'456'789'012) == "123 G");
  BOOST_TEST(age_text(999) == "999 ms");
  BOOST_TEST(age_text(119'000) == "119.0 s");
  BOOST_TEST(age_text(180'000) == "3 min");
  BOOST_TEST(age_text(7'200'000) == "2 h");
  BOOST_TEST(round_trip_text(64) == "0.064 ms");
  BOOST_TEST(round_trip_text(21'915) == "21.9 ms");
  BOOST_TEST(round_trip_text(123'456) == "123 ms");
  BOOST_TEST(duration_text(59) == "59 s");
  BOOST_TEST(duration_text(86399) == "23 h 59 min");
  BOOST_TEST(duration_text(8'640'000) == "100 days");
}

BOOST_AUTO_TEST_CASE(they_have_room_in_their_columns) {
  for (int bits = 0; bits < 64; ++bits)
    for (const std::uint64_t less : {0, 1}) {
      const std::uint64_t number = (std::uint64_t{1} << bits) - less;
      BOOST_TEST(bytes_text(number).size() <= 8U, number);
      BOOST_TEST(count_text(number).size() <= 6U, number);
      const std::uint64_t time = number % (std::uint64_t{1} << 36); // 795 days of ms
      BOOST_TEST(age_text(time).size() <= 8U, time);
      BOOST_TEST(round_trip_text(time).size() <= 8U, time);
      BOOST_TEST(duration_text(time / 1000).size() <= 12U, time);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools
