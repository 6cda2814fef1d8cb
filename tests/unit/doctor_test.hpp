// SPDX-License-Identifier: BSD-3-Clause
// Looking at findings.
#pragma once

#include "tools/parc/doctor/doctor.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <ostream>

namespace parc::tools::diagnosis {

inline std::ostream& operator<<(std::ostream& out, Level level) {
  return out << name(level);
}

inline bool holds(const std::string& text, const std::string& part) {
  BOOST_TEST_INFO("\"" << text << "\" should hold \"" << part << "\"");
  return text.find(part) != text.npos;
}

inline const Finding& of(const Findings& findings, const std::string& check) {
  const auto found = std::ranges::find(findings, check, &Finding::check);
  BOOST_TEST_REQUIRE((found != findings.end()), "no finding about " + check);
  return *found;
}

// What is found, and that who reads it is told what to do where something has to be done.
inline void expect(const Finding& finding, Level level, const std::string& found,
                   const std::string& mend = {}) {
  BOOST_TEST_CONTEXT(finding.check << ": " << finding.found << "; " << finding.mend) {
    BOOST_TEST(finding.level == level);
    BOOST_TEST(holds(finding.found, found));
    BOOST_TEST(holds(finding.mend, mend));
    BOOST_TEST((level < Level::warning || !finding.mend.empty()));
  }
}

} // namespace parc::tools::diagnosis
