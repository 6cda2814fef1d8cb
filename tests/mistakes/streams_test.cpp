// SPDX-License-Identifier: BSD-3-Clause
// Standard streams that are full, closed or gone.
#include "tests/mistakes/mistakes.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::test {
namespace {

constexpr const char* not_all = "cannot write all of this to standard output: No space left on device";

} // namespace

BOOST_AUTO_TEST_SUITE(streams)

BOOST_AUTO_TEST_CASE(that_are_full) {
  check({
      {"for hosts", "", "parc hosts --hosts a >/dev/full", 1, {not_all}},
      {"for jobs", "", "parc ps --hosts a >/dev/full", 1, {not_all}},
      {"for errors", "", "parc errors >/dev/full", 1, {not_all}},
      {"for metrics", "", "parc metrics >/dev/full", 1, {not_all}},
      {"for the doctor", "", "parc doctor >/dev/full", 1, {not_all}},
      {"for the top", "", "parc top -b -n 1 --interval 0.01 >/dev/full", 1, {not_all}},
      {"for settings", "", "parcd -T >/dev/full", 1, {not_all}},
      {"for ranks",
       "",
       "parc run --hosts b echo x >/dev/full",
       125,
       {"what the ranks print to standard output: No space left"}},
      {"for what is wrong", "", "parc rnu 2>/dev/full", 2, {}, 0},
      {"for what ranks complain of", "", "parc run sh -c 'echo x >&2' 2>/dev/full", 125, {}, 0},
      {"for a log",
       "",
       "exec 2>/dev/full; parcd --detach --runtime-dir $NEW --port 0 && parc stop --runtime-dir $NEW && rm "
       "-r $NEW "
       "$XDG_STATE_HOME/parc",
       0,
       {},
       0},
  });
}

// Nothing is wrong with those, and nothing is said.
BOOST_AUTO_TEST_CASE(that_are_closed) {
  check({
      {"output of a tool", "", "parc status >&-", 0, {}, 0},
      {"errors of a tool", "", "parc rnu 2>&-", 2, {}, 0},
      {"all of a job's", "", "parc run $PROGRAMS/ring 10 1 <&- >&- 2>&-", 0, {}, 0},
      {"all of a rank's", "", "parc run sh -c 'exec <&- >&- 2>&-; exec $0 10 1' $PROGRAMS/ring", 0, {}, 0},
      {"all of a kernel's",
       "",
       "parcd --detach --runtime-dir $NEW --port 0 <&- >&- 2>&- && parc stop --runtime-dir $NEW && "
       "rm -r $NEW $XDG_STATE_HOME/parc",
       0,
       {},
       0},
      {"all of a kernel's that cannot start", "", "parcd --port x <&- >&- 2>&-", 2, {}, 0},
      {"input that is a directory", "", "parc run cat <$DIR", 0, {}, 0},
      {"a reader that has gone", "", "parc metrics | true", 0, {}, 0},
      {"a reader of ranks that has gone", "", "parc run yes | head -n 1", 0, {}, 0},
      {"settings that nobody reads", "", "parcd -T | true", 0, {}, 0},
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
