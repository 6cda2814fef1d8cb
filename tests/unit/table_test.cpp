// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/screen/table.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::tools {

BOOST_AUTO_TEST_SUITE(table)

namespace {

constexpr Display terminal{.columns = 20, .terminal = true}, pipe_of_20{.columns = 20};

Table one_row(std::string name) {
  return {{{.title = "NAME", .name = true},
           {.title = "SPARE", .spare = 2},
           {.title = "LESS", .spare = 1},
           {.title = "SIZE", .number = true}},
          {Row({std::move(name), "spare", "less", "10 MiB"}, Style::bad)}};
}

} // namespace

BOOST_AUTO_TEST_CASE(what_is_spare_goes_first_and_then_names_are_cut) {
  const auto lines = table_lines(one_row("short"), terminal);
  BOOST_REQUIRE(lines.size() == 2U);
  BOOST_TEST(lines[0].text == "NAME  LESS   SIZE");
  BOOST_TEST(lines[1].text == "short less 10 MiB");
  BOOST_TEST((lines[0].style == Style::title && lines[1].style == Style::bad));
  BOOST_TEST(table_lines(one_row("a-name-that-is-long"), terminal)[1].text == "a-name-that-i 10 MiB");
  BOOST_TEST(table_lines(one_row("a-name-that-is-long"), {.columns = 80, .terminal = true})[1].text ==
             "a-name-that-is-long spare less 10 MiB");
}

BOOST_AUTO_TEST_CASE(in_a_pipe_nothing_is_cut) {
  BOOST_TEST(table_lines(one_row("a-name-that-is-long"), pipe_of_20)[1].text == "a-name-that-is-long 10 MiB");
}

BOOST_AUTO_TEST_CASE(numbers_stay_where_they_are) {
  Table shown{{{.title = "NAME"}, {.title = "IN/s", .number = true, .longest = 8}}, {{"a", "0 B"}}};
  BOOST_TEST(table_lines(shown, terminal)[0].text == "NAME     IN/s");
  BOOST_TEST(table_lines(shown, terminal)[1].text == "a         0 B");
  shown.rows = {{"a", "1023 KiB"}};
  BOOST_TEST(table_lines(shown, terminal)[1].text == "a    1023 KiB");
}

BOOST_AUTO_TEST_CASE(sentences_are_broken_at_blanks_on_a_terminal) {
  Page page(terminal), file(pipe_of_20);
  const std::string sentence = "it is stopped by a signal or a debugger";
  page.add(sentence, Style::bad);
  file.add(sentence);
  BOOST_REQUIRE(page.lines().size() == 3U);
  BOOST_TEST(page.lines()[0].text == "it is stopped by a");
  BOOST_TEST(page.lines()[1].text == "  signal or a");
  BOOST_TEST(page.lines()[2].text == "  debugger");
  BOOST_TEST((page.lines()[2].style == Style::bad));
  BOOST_REQUIRE(file.lines().size() == 1U);
  BOOST_TEST(file.lines()[0].text == sentence);
}

BOOST_AUTO_TEST_CASE(a_word_that_is_longer_is_broken) {
  const auto lines = wrapped(std::string(50, 'x'), 20);
  BOOST_REQUIRE(lines.size() == 3U);
  for (const std::string& line : lines) BOOST_TEST(line.size() <= 20U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools
