// SPDX-License-Identifier: BSD-3-Clause
#include "system/columns.hpp"

#include <boost/test/unit_test.hpp>

namespace parc {

BOOST_AUTO_TEST_SUITE(columns)

BOOST_AUTO_TEST_CASE(each_is_as_wide_as_its_longest_text) {
  BOOST_TEST(in_columns({{"NAME", "SIZE", "FOR"}, {"a", "10", "b"}, {"longer", "1", ""}},
                        {false, true, false}) == "NAME   SIZE FOR\n"
                                                 "a        10 b\n"
                                                 "longer    1 \n");
  BOOST_TEST(in_columns({{"", "N"}, {"", "10"}, {"", ""}}, {false, true}) == "   N\n"
                                                                             "  10\n"
                                                                             "  \n");
  BOOST_TEST(in_columns({Texts{"NAME", "SIZE"}}, {false, true}).empty());
}

BOOST_AUTO_TEST_CASE(what_is_too_wide_is_cut) {
  BOOST_TEST(in_columns({"a-long-name", "1"}, {4, 2}, {false, true}) == "a-lo  1");
}

BOOST_AUTO_TEST_CASE(what_a_terminal_would_obey_is_shown_as_bytes) {
  const std::vector<Texts> lines{{"NAME"}, {"a\x1b[1m\n"}, {"\xff"}, {"\\x41"}, {"\\"}};
  BOOST_TEST(column_widths(lines)[0] == std::string("a\\x1b[1m\\x0a").size());
  BOOST_TEST(in_columns(lines, {false}) == "NAME\na\\x1b[1m\\x0a\n\\xff\n\\x5cx41\n\\\n");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc
