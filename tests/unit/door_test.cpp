// SPDX-License-Identifier: BSD-3-Clause
#include "control/words/door.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::control::door {

BOOST_AUTO_TEST_SUITE(words_at_the_door)

using namespace std::string_literals;

// As libparc and kernels of before have said them.
BOOST_AUTO_TEST_CASE(a_wish_comes_back) {
  const std::string said = joiner_says({"job", "", "1", "2"});
  BOOST_TEST(said.front() == 'J');
  BOOST_TEST(said.substr(begin_of_wish) == "job\0\0"
                                           "1\0"
                                           "2\0"s);
  BOOST_TEST(length_of_wish(said) == said.size() - begin_of_wish);
  const auto wish = wish_in(std::string_view(said).substr(begin_of_wish));
  BOOST_REQUIRE(wish);
  BOOST_TEST(wish->name == "job");
  BOOST_TEST(wish->host == "");
  BOOST_TEST(wish->rank == "1");
  BOOST_TEST(wish->size == "2");
}

BOOST_AUTO_TEST_CASE(what_is_no_wish_is_none) {
  for (const std::string& texts : {""s, "a\0b\0c\0"s, "a\0b\0c\0d"s, "a\0b\0c\0d\0e\0"s, "a\0b\0c\0d\0e"s})
    BOOST_TEST(!wish_in(texts).has_value());
}

BOOST_AUTO_TEST_CASE(a_refusal_comes_back) {
  BOOST_TEST(refusal_says(-5, "it is full") == "E-5 it is full");
  const auto refusal = refusal_in("-5 it is full");
  BOOST_REQUIRE(refusal);
  BOOST_TEST(refusal->code == -5);
  BOOST_TEST(refusal->text == "it is full");
  BOOST_TEST(!refusal_in("").has_value());
  BOOST_TEST(!refusal_in("-5").has_value());
  BOOST_TEST(refusal_in("x y")->code == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::control::door
