// SPDX-License-Identifier: BSD-3-Clause
// What ranks print reaches the terminal of parc run: whole, in order, and no faster than it is taken.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace parc::test {

BOOST_AUTO_TEST_SUITE(output)

// With tags, which are given to whole lines. Without, the beginning of a line is let go when all have been
// silent for a while, and a machine with much to do may be silent in the middle of any line.
BOOST_AUTO_TEST_CASE(no_line_is_lost_or_torn) {
  Hosts hosts(2);
  const int lines = 30000;
  Process job = hosts.run(
      {"-n", "4", "--hosts", "a:2,b:2", "--tag-output", "sh", "-c",
       "seq -f \"$PARC_RANK %.0f the quick brown fox jumps over the lazy dog\" " + std::to_string(lines)});
  BOOST_TEST(job.wait() == 0);
  std::map<int, int> last;
  std::istringstream text(job.output());
  int torn = 0;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    int rank = -1, number = -1;
    std::string tag, rest;
    words >> tag >> rank >> number;
    std::getline(words, rest);
    if (tag != "[" + std::to_string(rank) + "]" || rest != " the quick brown fox jumps over the lazy dog" ||
        number != last[rank] + 1)
      ++torn;
    last[rank] = number;
  }
  BOOST_TEST(torn == 0);
  for (int rank = 0; rank < 4; ++rank) BOOST_TEST(last[rank] == lines);
}

BOOST_AUTO_TEST_CASE(streams_and_tags) {
  Hosts hosts(1);
  Process job = hosts.run({"-n", "2", "--tag-output", "sh", "-c", "echo out; printf no-newline >&2"});
  BOOST_TEST(job.wait() == 0);
  BOOST_TEST((job.output() == "[0] out\n[1] out\n" || job.output() == "[1] out\n[0] out\n"));
  BOOST_TEST((job.errors() == "[0] no-newline\n[1] no-newline\n" ||
              job.errors() == "[1] no-newline\n[0] no-newline\n"));
  Process prompt = hosts.run({"sh", "-c", "printf 'name? '; exec sleep 1000"});
  BOOST_TEST(eventually([&] { return prompt.output() == "name? "; }));
  prompt.signal(SIGTERM);
  BOOST_TEST(prompt.wait() == 128 + SIGTERM);
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_text) {
  Hosts hosts(2);
  Process job = hosts.run({"--hosts", "b", "printf", "%s\\377\\000\\n", "\xff\xfe"});
  BOOST_TEST(job.wait() == 0);
  BOOST_TEST(job.output() == std::string("\xff\xfe\xff\0\n", 5));
}

// Nobody reads what parc run prints: the rank has to wait in its pipe, and no kernel keeps more than the
// credit.
BOOST_AUTO_TEST_CASE(a_reader_that_stops_stops_the_rank) {
  Hosts hosts(2);
  const std::string fifo = hosts.directory() + "/fifo";
  BOOST_REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  const std::string count = hosts.directory() + "/count";
  Process slow({.command = {"sh", "-c",
                            "exec " PARC_TEST_BIN "/parc run --runtime-dir " + hosts[0].runtime_dir() +
                                " --hosts b sh -c 'i=0; while [ $i -lt 2000 ]; do head -c 10000 /dev/zero; "
                                "i=$((i+1)); echo $i > " +
                                count + "; done' > " + fifo},
                .output = hosts.directory() + "/slow.out",
                .errors = hosts.directory() + "/slow.err",
                .environment = hosts.environment(),
                .directory = {}});
  const auto written = [&] {
    std::ifstream file(count);
    long number = 0;
    file >> number;
    return number * 10000;
  };
  // It stands still when many looks see the same.
  long before = -1;
  int same = 0;
  BOOST_TEST(eventually([&] {
    usleep(50000);
    const long seen = written();
    same = seen != 0 && seen == before ? same + 1 : 0;
    before = seen;
    return same == 10;
  }));
  BOOST_TEST(before < 4'000'000);
  // Reading lets it go on to its end.
  long got = 0;
  std::vector<char> buffer(1 << 16);
  BOOST_TEST(eventually([&] {
    for (ssize_t bytes; (bytes = read(reader, buffer.data(), buffer.size())) > 0;) got += bytes;
    return !slow.running() && read(reader, buffer.data(), buffer.size()) == 0;
  }));
  BOOST_TEST(got == 20'000'000, got << " bytes came; " << slow.errors());
  close(reader);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
