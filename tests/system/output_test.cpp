// SPDX-License-Identifier: BSD-3-Clause
// What ranks print reaches the terminal of parc run: whole, in order, and no faster than it is taken.
#include "tests/support/hosts.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
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
}

BOOST_AUTO_TEST_CASE(prompts) {
  Hosts hosts(1);
  for (const bool tagged : {false, true}) {
    const std::string go = hosts.directory() + (tagged ? "/go-tagged" : "/go"), tag = tagged ? "[0] " : "";
    std::vector<std::string> words{"sh", "-c",
                                   "printf 'name? '; until [ -e " + go +
                                       " ]; do sleep 0.05; done; echo parc; " + "printf 'and yours? '"};
    if (tagged) words.insert(words.begin(), "--tag-output");
    Process job = hosts.run(std::move(words));
    BOOST_TEST(eventually([&] { return job.output() == tag + "name? "; }));
    std::ofstream(go).flush();
    BOOST_TEST(job.wait() == 0);
    BOOST_TEST(job.output() == tag + "name? parc\n" + tag + "and yours? " + (tagged ? "\n" : ""));
  }
}

// As for no_line_is_lost_or_torn.
BOOST_AUTO_TEST_CASE(long_lines_are_not_torn) {
  Hosts hosts(1);
  Process job = hosts.run({"--tag-output", "-n", "3", "sh", "-c",
                           "for line in 1 2 3 4 5 6 7 8; do head -c 300000 /dev/zero | tr '\\0' $PARC_RANK; "
                           "echo; done"});
  BOOST_TEST(job.wait() == 0);
  std::istringstream text(job.output());
  int whole = 0;
  for (std::string line; std::getline(text, line);)
    whole += line.size() == 300'004 && line.find_first_not_of(line.back(), 4) == line.npos;
  BOOST_TEST(whole == 24);
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
                                " --hosts b sh -c 'i=0; while [ $i -lt 200 ]; do head -c 100000 /dev/zero; "
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
    return number * 100000;
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
    ssize_t bytes = 0;
    while ((bytes = read(reader, buffer.data(), buffer.size())) > 0) got += bytes;
    return bytes == 0 && !slow.running();
  }));
  BOOST_TEST(got == 20'000'000, got << " bytes came; " << slow.errors());
  close(reader);
}

// What is printed into a place that takes nothing: said once, and the status says so too.
BOOST_AUTO_TEST_CASE(output_that_cannot_be_written_is_no_success) {
  Hosts hosts(1);
  const std::string bin = PARC_TEST_BIN "/", at = " --runtime-dir " + hosts[0].runtime_dir();
  const auto check = [&](const std::string& command, int status, const std::string& sentence) {
    Process process = hosts.start({"sh", "-c", command});
    const int found = process.wait();
    const std::string said = process.errors();
    BOOST_TEST(found == status, command << " ended with " << found);
    BOOST_TEST(said.find(sentence) != std::string::npos, command << " said \"" << said << "\"");
    BOOST_TEST(std::ranges::count(said, '\n') == 1, command << " said \"" << said << "\"");
  };
  const std::string full = " >/dev/full";
  const std::string lost = "cannot write what the ranks print to standard output: No space left on device";
  check(bin + "parc run" + at + " -n 1 seq 100000" + full, 125, "parc: " + lost);
  check(bin + "parc run" + at + " -n 2 echo once" + full, 125, "parc: " + lost);
  // The job's own failure counts more; what it prints elsewhere is not lost with it.
  Process failing = hosts.start(
      {"sh", "-c", bin + "parc run" + at + " -n 1 sh -c 'echo x; sleep 0.1; echo seen >&2; exit 3'" + full});
  BOOST_TEST(failing.wait() == 3);
  BOOST_TEST(failing.errors().find(lost) != std::string::npos, failing.errors());
  BOOST_TEST(failing.errors().find("seen") != std::string::npos, failing.errors());
  const std::string not_all = ": cannot write all of this to standard output: No space left on device";
  check(bin + "parc status" + at + full, 1, "parc" + not_all);
  check(bin + "parc status --json" + at + full, 1, "parc" + not_all);
  check(bin + "parc --version" + full, 1, "parc" + not_all);
  check(bin + "parc run --help" + full, 125, "parc" + not_all);
  check(bin + "parcd -T" + full, 1, "parcd" + not_all);
  check(bin + "parcd --help" + full, 1, "parcd" + not_all);
  check(bin + "parcd --version" + full, 1, "parcd" + not_all);
  check(bin + "wanlink --version" + full, 1, "wanlink" + not_all);
  check(bin + "parc-demo --help" + full, 1, "parc-demo" + not_all);
  const std::string trace = hosts.directory() + "/trace.json";
  Process traced = hosts.run({"--trace", trace, PARC_TEST_PROGRAMS "/ring", "8", "1"});
  BOOST_TEST(traced.wait() == 0, traced);
  check(bin + "parc trace " + trace + full, 1, "parc" + not_all);
  // Enough to fail in the middle, not only at the end.
  check(bin + "parc status --json" + at + " >/dev/null && " + bin + "parc run" + at +
            " --tag-output -n 3 seq 20000" + full,
        125, lost);
}

BOOST_AUTO_TEST_CASE(clean_says_what_it_could_not_say) {
  Hosts hosts(1);
  hosts[0].kernel().signal(SIGKILL);
  BOOST_TEST(hosts[0].kernel().wait() == 128 + SIGKILL);
  Process clean = hosts.start(
      {"sh", "-c", PARC_TEST_BIN "/parc clean --runtime-dir " + hosts[0].runtime_dir() + " >/dev/full"});
  BOOST_TEST(clean.wait() == 1);
  BOOST_TEST(clean.errors().find("cannot write all of this") != std::string::npos, clean.errors());
}

// As any Unix tool: quiet, and by SIGPIPE, also where somebody had that ignored.
BOOST_AUTO_TEST_CASE(a_reader_that_has_had_enough) {
  Hosts hosts(1);
  const std::string at = " --runtime-dir " + hosts[0].runtime_dir();
  for (const std::string& command : {"run" + at + " yes", "run" + at + " --tag-output -n 2 yes"})
    for (const std::string ignored : {"", "trap '' PIPE; "}) {
      // `head` ends before all has been written: what parc ends with is written behind it.
      Process job = hosts.start({"sh", "-c",
                                 ignored + "(" PARC_TEST_BIN "/parc " + command + "; echo $? >&3) 3>&2 2>" +
                                     hosts.directory() + "/said | head -n 1"});
      BOOST_TEST(job.wait() == 0);
      BOOST_TEST(eventually([&] { return job.errors() == std::to_string(128 + SIGPIPE) + "\n"; }),
                 job.errors());
      std::ifstream said(hosts.directory() + "/said");
      BOOST_TEST(std::string(std::istreambuf_iterator<char>(said), {}) == "");
    }
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
}

// The numbers of closed descriptors must not go to sockets, or what is printed goes there.
BOOST_AUTO_TEST_CASE(closed_descriptors_stay_out_of_the_way) {
  Hosts hosts(1);
  const std::string at = " --runtime-dir " + hosts[0].runtime_dir();
  for (const std::string closed : {">&-", "<&- >&-", "<&- >&- 2>&-", "2>&-"}) {
    Process job =
        hosts.start({"sh", "-c", PARC_TEST_BIN "/parc run" + at + " sh -c 'echo x; echo y >&2' " + closed});
    BOOST_TEST(job.wait() == 0, closed << ": " << job);
    BOOST_TEST(job.output() == (closed == "2>&-" ? "x\n" : ""), closed);
    BOOST_TEST(job.errors() == (closed.find("2>") == std::string::npos ? "y\n" : ""), closed);
    Process status = hosts.start({"sh", "-c", PARC_TEST_BIN "/parc status" + at + " " + closed});
    BOOST_TEST(status.wait() == 0, closed << ": " << status);
  }
  // A kernel whose log has no place to go keeps its listeners to itself.
  const std::string dir = hosts.directory() + "/closed";
  Process kernel =
      hosts.start({"sh", "-c",
                   "exec " PARC_TEST_BIN "/parcd --name z --port 0 --config " + hosts.directory() +
                       "/parcd.toml --runtime-dir " + dir + " <&- >&- 2>&-"});
  BOOST_TEST(eventually([&] { return std::filesystem::exists(dir + "/kernel.sock"); }));
  for (const int number : {0, 1, 2})
    BOOST_TEST(std::filesystem::read_symlink("/proc/" + std::to_string(kernel.id()) + "/fd/" +
                                             std::to_string(number)) == "/dev/null");
  kernel.signal(SIGTERM);
  BOOST_TEST(kernel.wait() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
