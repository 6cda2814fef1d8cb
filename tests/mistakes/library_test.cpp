// SPDX-License-Identifier: BSD-3-Clause
// Arguments of calls and variables that programs find. The statuses are the codes of parc.h.
#include "tests/mistakes/mistakes.hpp"

#include <boost/test/unit_test.hpp>

namespace parc::test {

BOOST_AUTO_TEST_SUITE(library)

BOOST_AUTO_TEST_CASE(arguments) {
  constexpr int invalid = 1, no_memory = 2, truncated = 4;
  check({
      {"nowhere to put a context", "", "$PROGRAMS/mistaken open-nowhere", invalid, {}},
      {"opened twice", "", "$PROGRAMS/mistaken open-twice", invalid, {"already"}},
      {"a rank beyond the last", "", "$PROGRAMS/mistaken rank-beyond", invalid, {"7"}},
      {"a rank below the first", "", "$PROGRAMS/mistaken rank-below", invalid, {"-7"}},
      {"a tag below the first", "", "$PROGRAMS/mistaken tag-below", invalid, {"-7"}},
      {"no buffer", "", "$PROGRAMS/mistaken no-buffer", invalid, {"8"}},
      {"fewer than no bytes", "", "$PROGRAMS/mistaken negative-length", invalid, {"bytes"}},
      {"fewer than no operations", "", "$PROGRAMS/mistaken negative-count", invalid, {"-1"}},
      {"no list of operations", "", "$PROGRAMS/mistaken no-operations", invalid, {}},
      {"no operation", "", "$PROGRAMS/mistaken no-operation", invalid, {"operation"}},
      {"no level of release", "", "$PROGRAMS/mistaken no-level", invalid, {"99"}},
      {"no order", "", "$PROGRAMS/mistaken no-order", invalid, {"99"}},
      {"no train", "", "$PROGRAMS/mistaken no-train", invalid, {"-1"}},
      {"no counts", "", "$PROGRAMS/mistaken no-counts", invalid, {}},
      {"no room for completions", "", "$PROGRAMS/mistaken no-room", invalid, {}},
      {"the address of nobody", "", "$PROGRAMS/mistaken address-of-nobody", invalid, {"7"}},
      {"no room for an address",
       "",
       "$PROGRAMS/mistaken address-in-no-room",
       truncated,
       {"there is room for 3"}},
      {"no address", "", "$PROGRAMS/mistaken no-address", invalid, {}},
      {"an address that is none", "", "$PROGRAMS/mistaken bad-address", invalid, {"zebra"}},
      {"the host of nobody", "", "$PROGRAMS/mistaken host-of-nobody", invalid, {"7"}},
      {"closed twice", "", "$PROGRAMS/mistaken close-twice", invalid, {"context"}},
      {"read after closing", "", "$PROGRAMS/mistaken read-after-close", invalid, {"context"}},
      {"all memory", "", "$PROGRAMS/mistaken alloc-everything", no_memory, {"bytes"}},
      {"no context", "", "$PROGRAMS/mistaken nobody", invalid, {"context"}},
  });
}

BOOST_AUTO_TEST_CASE(variables) {
  constexpr int invalid = 1, kernel = 6, no_kernel = 10;
  check({
      {"no runtime directory",
       "",
       "PARC_RUNTIME_DIR=/nowhere $PROGRAMS/mistaken open",
       no_kernel,
       {"no runtime directory /nowhere", "start it with parcd --detach"}},
      {"a runtime directory of everybody",
       "",
       "PARC_RUNTIME_DIR=/usr $PROGRAMS/mistaken open",
       no_kernel,
       {"directory /usr "}},
      {"nobody runs there",
       "mkdir -m 700 $NEW",
       "PARC_RUNTIME_DIR=$NEW $PROGRAMS/mistaken open",
       no_kernel,
       {"no parcd answers on /", "start one with parcd --detach"}},
      {"nobody may be started",
       "",
       "PARC_AUTOSTART=off PARC_RUNTIME_DIR=$NEW $PROGRAMS/mistaken start",
       no_kernel,
       {"PARC_AUTOSTART=off forbids to start a kernel"}},
      {"nobody knows whether one may be",
       "",
       "PARC_AUTOSTART=maybe PARC_RUNTIME_DIR=$NEW $PROGRAMS/mistaken start",
       no_kernel,
       {"PARC_AUTOSTART=maybe in the environment is neither on nor off"}},
      {"nobody can be started",
       "",
       "PARC_PORT=x PARC_RUNTIME_DIR=$NEW $PROGRAMS/mistaken start",
       no_kernel,
       {"none could be started: parcd: environment variable PARC_PORT"}},
      {"pipes that are none",
       "",
       "PARC_PIPES=x $PROGRAMS/mistaken open",
       invalid,
       {"PARC_PIPES=x in the environment makes no sense"}},
      {"one pipe twice",
       "",
       "PARC_PIPES=7,7 $PROGRAMS/mistaken open",
       invalid,
       {"PARC_PIPES=7,7 in the environment"}},
      {"pipes that are closed",
       "",
       "PARC_PIPES=7,8 $PROGRAMS/mistaken open",
       invalid,
       {"cannot use file descriptor 7 as a pipe"}},
      {"files in the place of pipes",
       "",
       "PARC_PIPES=7,8 $PROGRAMS/mistaken open 7</dev/null 8>/dev/null",
       invalid,
       {"file descriptor 7 is not the pipe any more", "use another number"}},
      {"pipes to nobody",
       "",
       "f=$(mktemp -u); mkfifo $f; true | PARC_PIPES=7,8 $PROGRAMS/mistaken open 7<&0 8<>$f; s=$?; rm $f; "
       "exit $s",
       kernel,
       {"or the kernel of this host (parcd) has gone"}},
      {"a rank that is no number",
       "",
       "PARC_JOB=j PARC_RANK=x PARC_SIZE=2 $PROGRAMS/mistaken open",
       invalid,
       {"PARC_RANK=x in the environment"}},
      {"a job without a size",
       "",
       "PARC_JOB=j PARC_RANK=1 $PROGRAMS/mistaken open",
       invalid,
       {"nothing says its size", "PARC_SIZE"}},
      {"a level that is none",
       "",
       "PARC_EARLY_RELEASE=x $PROGRAMS/mistaken open",
       invalid,
       {"PARC_EARLY_RELEASE=x in the environment is none of"}},
      {"a trace nowhere", "", "PARC_TRACE=/nowhere/x $PROGRAMS/mistaken open", invalid, {"/nowhere/x"}},
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
