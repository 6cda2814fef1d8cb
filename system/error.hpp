// SPDX-License-Identifier: BSD-3-Clause
// Errors are one value that travels up: a code that a program can test and a sentence for a person. Each
// level may put what it tried in front, so that the end prints one sentence: "cannot start parcd: cannot
// listen on port 7272: address already in use; stop the other parcd or choose --port".
#pragma once

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/terminate.hpp>
#include <boost/outcome/success_failure.hpp>
#include <boost/outcome/try.hpp>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace parc {

struct Error {
  int code = 0; // an errno value, or a negative PARC_E* of <parc/parc.h>
  std::string text;

  // This error, with what was tried in front of its text: "tried: text".
  [[nodiscard]] Error in(std::string_view tried) && {
    text.insert(0, ": ").insert(0, tried);
    return std::move(*this);
  }
};

template <class T> using Result =
    boost::outcome_v2::basic_result<T, Error, boost::outcome_v2::policy::terminate>;
using boost::outcome_v2::success;

template <class... Args> Error error(int code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

// The error of a system call that has just failed (errno): what was tried, then the system's own words.
template <class... Args> Error system_error(fmt::format_string<Args...> format, Args&&... args) {
  const int code = errno;
  const char* const advice = code == EFBIG ? "; raise the limit of file sizes (ulimit -f)" : "";
  return {code, fmt::format(format, std::forward<Args>(args)...) + ": " + std::strerror(code) + advice};
}

} // namespace parc

// PARC_TRY(name, EXPR): returns the error of EXPR from the enclosing function, or declares `name` as its
// value. PARC_TRY(EXPR): the same where the value is void.
#define PARC_TRY(...) BOOST_OUTCOME_TRY(__VA_ARGS__)
