// SPDX-License-Identifier: BSD-3-Clause
// Less than is needed: of descriptors, files, processes and shared memory.
#include "tests/mistakes/mistakes.hpp"

#include <boost/test/unit_test.hpp>
#include <unistd.h>

namespace parc::test {
namespace {

// A limit of this IPC namespace, lowered for one command.
std::string with(const std::string& limit, const std::string& value, const std::string& command) {
  const std::string file = "/proc/sys/kernel/" + limit;
  return "was=$(cat " + file + "); echo " + value + " >" + file + "; " + command + "; s=$?; echo $was >" +
         file + "; exit $s";
}

} // namespace

BOOST_AUTO_TEST_SUITE(limits)

// UBSan needs descriptors of its own for each look at an object's type.
#ifndef __SANITIZE_ADDRESS__
BOOST_AUTO_TEST_CASE(of_a_tool_without_descriptors) {
  check({
      {"descriptors of parc",
       "",
       "exec 3>&- 4>&-; ulimit -n 4; parc run true",
       125,
       {"Too many open files", "(ulimit -n)"}},
      {"descriptors for other hosts",
       "",
       "ulimit -n 6; parc up --hosts c",
       1,
       {"cannot start", "Too many open files"}},
      {"hardly any descriptors of parcd",
       "",
       "ulimit -n 5; parcd --runtime-dir $NEW --port 0",
       1,
       {"parcd needs 64 descriptors at least; the limit is 5 (RLIMIT_NOFILE)", "ulimit -n"}},
  });
}
#endif

BOOST_AUTO_TEST_CASE(of_a_process) {
  check({
      {"descriptors of parcd",
       "",
       "ulimit -n 20; parcd --runtime-dir $NEW --port 0",
       1,
       {"parcd needs 64 descriptors at least; the limit is 20 (RLIMIT_NOFILE)", "ulimit -n"}},
      {"descriptors of a parcd that nobody sees",
       "",
       "ulimit -n 40; parcd --detach --runtime-dir $NEW --port 0; s=$?; rm -r $XDG_STATE_HOME/parc; exit $s",
       1,
       {"parcd needs 64 descriptors at least; the limit is 40"}},
      {"size of a trace",
       "",
       "small 0 parc run --trace t true",
       125,
       {"cannot write the trace to t: File too large", "ulimit -f"}},
      {"size of the end of a trace",
       "touch o",
       "small 1 parc run --trace t $PROGRAMS/ring 100 100 >o",
       125,
       {"trace to t: File too large"}},
      {"size of what ranks print",
       "touch o",
       "small 0 parc run echo x >o",
       125,
       {"standard output: File too large"}},
      {"size of what parc prints",
       "touch o",
       "small 0 parc status >o",
       1,
       {"to standard output: File too large"}},
      {"size of a kernel's files",
       "",
       "small 0 parcd --runtime-dir $NEW --port 0",
       1,
       {"kernel.pid: File too large", "ulimit -f"}},
      {"size of counters",
       "",
       "small 1 parcd --runtime-dir $NEW --port 0",
       1,
       {"counters /", "File too large"}},
  });
}

// Not in a user namespace, which may not change them.
BOOST_AUTO_TEST_CASE(of_shared_memory, *boost::unit_test::precondition([](boost::unit_test::test_unit_id) {
                       return access("/proc/sys/kernel/shmmni", W_OK) == 0;
                     })) {
  const std::string segments = with("shmmni", "0", "$PROGRAMS/mistaken open");
  const std::string size = with("shmmax", "4096", "$PROGRAMS/mistaken open");
  const std::string pages = with("shmall", "1", "$PROGRAMS/mistaken open");
  const std::string rank = with("shmall", "1", "parc run $PROGRAMS/mistaken open");
  check({
      {"another IPC namespace",
       "",
       "unshare --ipc $PROGRAMS/mistaken open",
       1,
       {"it is in another IPC namespace (ipc_namespaces(7))"}},
      {"segments", "", segments.c_str(), 2, {"all 0 segments of this system are taken", "run parc clean"}},
      {"size of a segment",
       "",
       size.c_str(),
       2,
       {"a segment may have 4096 bytes (/proc/sys/kernel/shmmax); raise it"}},
      {"pages",
       "",
       pages.c_str(),
       2,
       {"at its limit of 1 pages (/proc/sys/kernel/shmall); run parc clean, or raise"}},
      {"pages of a rank", "", rank.c_str(), 2, {"at its limit of 1 pages"}, 2},
  });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
