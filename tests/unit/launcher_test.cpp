// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/launcher.hpp"

#include "tests/unit/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>

namespace parc {

BOOST_AUTO_TEST_SUITE(launchers)

namespace {

using Words = Launcher::Words;

} // namespace

// What is behind the host is read once more, by the shell there.
BOOST_AUTO_TEST_CASE(ssh_and_its_options) {
  const Launcher ssh = by_ssh("ssh  -F file");
  BOOST_TEST((ssh.command("a", {"echo", "its", ""}) == Words{"ssh", "-F", "file", "-o", "BatchMode=yes", "-o",
                                                             "ConnectTimeout=10", "a", "'echo' 'its' ''"}));
  BOOST_TEST(ssh.question("a").back() == "a");
  BOOST_TEST(ssh.address("user me\nhostname 10.0.0.2\nport 22\n") == "10.0.0.2");
  BOOST_TEST(ssh.address("hostname\n") == "");
  BOOST_TEST(ssh.address("") == "");
  BOOST_TEST(!ssh.keeps);
}

// Whatever shell somebody has chosen there.
BOOST_AUTO_TEST_CASE(every_shell_reads_the_same_words) {
  const std::string odd = "it's $HOME `id` \"a\\b\" !x %s\nnext line\t";
  const std::string line = by_ssh("ssh").command("a", {"printf", "%s|", odd, "", "-n"}).back();
  const test::Scratch scratch;
  for (const char* const shell : {"sh", "bash", "tcsh"}) {
    std::ofstream(scratch / "line") << line;
    const std::string command =
        std::string(shell) + " -c \"$(cat " + (scratch / "line") + ")\" >" + (scratch / "out");
    BOOST_TEST(std::system(command.c_str()) == 0, shell);
    BOOST_TEST(test::read_file(scratch / "out") == odd + "||-n|", shell);
  }
}

BOOST_AUTO_TEST_CASE(srun_of_a_node) {
  const Launcher srun = by_srun();
  const Words words = srun.command("n1", {"sh", "-c", "echo 'a b'"});
  BOOST_TEST(words.front() == "srun");
  BOOST_TEST(words[words.size() - 5] == "--nodelist=n1");
  BOOST_TEST((Words(words.end() - 4, words.end()) == Words{"--", "sh", "-c", "echo 'a b'"}));
  BOOST_TEST(srun.address("address 10.0.0.2\n") == "10.0.0.2");
  BOOST_TEST(srun.address("sinfo: error\n") == "");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc
