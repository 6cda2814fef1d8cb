// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/view/exposition.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::tools {

BOOST_AUTO_TEST_SUITE(exposition)

BOOST_AUTO_TEST_CASE(a_family_has_one_head_and_its_kind_follows_from_its_name) {
  Exposition out(Exposition::Labels{{"host", "a"}});
  out.family("parc_up", "whether it runs");
  out.sample({}, std::uint64_t{1});
  out.family("parc_turns_total", "rounds");
  out.sample({{"rank", "0"}}, std::uint64_t{18446744073709551615U});
  out.sample({{"rank", "1"}}, 0.25);
  BOOST_TEST(out.text() == "# HELP parc_up whether it runs\n# TYPE parc_up gauge\nparc_up{host=\"a\"} 1\n"
                           "# HELP parc_turns_total rounds\n# TYPE parc_turns_total counter\n"
                           "parc_turns_total{host=\"a\",rank=\"0\"} 18446744073709551615\n"
                           "parc_turns_total{host=\"a\",rank=\"1\"} 0.25\n");
}

BOOST_AUTO_TEST_CASE(no_label_breaks_the_line_that_it_stands_in) {
  Exposition out(Exposition::Labels{});
  out.family("x", "y");
  out.sample({{"program", "a\"b\\c\nd"}}, std::uint64_t{0});
  BOOST_TEST(out.text().ends_with("x{program=\"a\\\"b\\\\c\\nd\"} 0\n"));
}

BOOST_AUTO_TEST_CASE(a_label_is_utf8_whatever_the_program_is_called) {
  Exposition out(Exposition::Labels{});
  out.family("x", "y");
  out.sample({{"program", "\xff\xc3\xa4"}}, std::uint64_t{0});
  BOOST_TEST(out.text().ends_with("x{program=\"\xef\xbf\xbd\xc3\xa4\"} 0\n"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools
