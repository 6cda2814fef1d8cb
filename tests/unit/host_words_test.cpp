// SPDX-License-Identifier: BSD-3-Clause
#include "control/words/host_words.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::control {

BOOST_AUTO_TEST_SUITE(hosts_in_words)

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  const std::vector<std::string> names{"a", "b", "::1"};
  for (const std::vector<std::uint32_t>& hosts : std::vector<std::vector<std::uint32_t>>{
           {0}, {0, 0, 0}, {0, 1}, {0, 1, 0, 1, 0}, {2, 2, 1, 0, 2, 2, 1}}) {
    const auto read = hosts_in(host_words(hosts, names), hosts.size());
    BOOST_REQUIRE(read);
    BOOST_REQUIRE(read->size() == hosts.size());
    for (std::size_t i = 0; i < hosts.size(); ++i) BOOST_TEST((*read)[i] == names[hosts[i]]);
  }
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_refused) {
  for (const char* const words : {"", "a", "a:", "a:x", "a:-1", "a:0", "a:5", "a:2,b:3", "a:1,,b:1", "a:1 "})
    BOOST_TEST(!hosts_in(words, 4).has_value(), words);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::control
