// SPDX-License-Identifier: BSD-3-Clause
// The module for Fortran and the package for Python: each call between two ranks, and the heat equation,
// whose plate is that of examples/heat/heat.cpp bit for bit.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <parc/parc.h>

namespace parc::test {
namespace {

struct Placement {
  std::vector<std::string> words;
  int ranks;
};
const Placement on_one_host{{"-n", "2"}, 2};
const Placement on_two_hosts{{"--hosts", "a,b"}, 2};

// Debian's, which has Debian's NumPy; with the package and the library of this build alone.
std::vector<std::string> python(const std::string& program, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"/usr/bin/python3", "-B", "-s"});
  options.push_back(program);
  return options;
}

std::string output_of(Hosts& hosts, const Placement& placement, const std::vector<std::string>& command) {
  std::vector<std::string> words = placement.words;
  words.insert(words.end(),
               {"--env", "PYTHONPATH=" PARC_PYTHON_PACKAGES, "--env", "LD_LIBRARY_PATH=" PARC_LIBRARIES});
  words.insert(words.end(), command.begin(), command.end());
  Process job = hosts.run(words);
  const int status = job.wait();
  BOOST_TEST(status == 0, command.back() << " on " << placement.words.back() << ": status " << status << ": "
                                         << job.output() << job.errors() << hosts);
  return job.output();
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string sizes() {
  return fmt::format("{} {} {} {}", sizeof(parc_envelope), sizeof(parc_status), sizeof(parc_completion),
                     sizeof(parc_release_counts));
}

// heat.cpp's plate after as many steps, calculated alone, and what `program` has of it with so many ranks.
void check_heat(const std::vector<std::string>& program) {
  Hosts hosts(2);
  for (const Placement& placement :
       {Placement{{"-n", "1"}, 1}, Placement{{"-n", "4"}, 4}, Placement{{"--hosts", "a:2,b:1"}, 3}}) {
    const std::string plate = hosts.directory() + "/plate", expected = hosts.directory() + "/expected";
    Process alone = hosts.start({PARC_TEST_BIN "/heat", "--variant", "sequential", "--ranks",
                                 std::to_string(placement.ranks), "--field", expected});
    BOOST_REQUIRE_MESSAGE(alone.wait() == 0, alone);
    std::vector<std::string> command = program;
    command.push_back(plate);
    BOOST_TEST(output_of(hosts, placement, command) ==
               fmt::format("{} ranks: equal to what one calculates alone, bit for bit\n", placement.ranks));
    BOOST_TEST(std::filesystem::file_size(expected) ==
               64u * 1000 * 8 * static_cast<unsigned>(placement.ranks));
    BOOST_TEST((contents(plate) == contents(expected)), program.back() << " has another plate than heat.cpp");
    std::filesystem::remove(plate);
    std::filesystem::remove(expected);
  }
}

} // namespace

BOOST_AUTO_TEST_SUITE(bindings)

BOOST_AUTO_TEST_CASE(python_calls) {
  const std::string twice = "12 groups of calls with NumPy\n";
  Hosts hosts(2);
  for (const Placement& placement : {on_one_host, on_two_hosts})
    BOOST_TEST(output_of(hosts, placement, python(PARC_BINDING_PROGRAMS "/calls.py")) == twice + twice);
}

// -S: without the directory where NumPy is.
BOOST_AUTO_TEST_CASE(python_without_numpy) {
  const std::string twice = "11 groups of calls without NumPy\n";
  Hosts hosts(1);
  BOOST_TEST(output_of(hosts, on_one_host, python(PARC_BINDING_PROGRAMS "/calls.py", {"-S"})) ==
             twice + twice);
}

BOOST_AUTO_TEST_CASE(python_mistakes) {
  Hosts hosts(1);
  BOOST_TEST(output_of(hosts, {{"-n", "1"}, 1}, python(PARC_BINDING_PROGRAMS "/mistakes.py")) ==
             "36 of 36 mistakes are named\n");
}

BOOST_AUTO_TEST_CASE(python_structures) {
  Hosts hosts(1);
  const std::string ask = "from ctypes import sizeof; from parc import _abi as c; "
                          "print(*map(sizeof, (c.Envelope, c.Status, c.Completion, c.ReleaseCounts)))";
  BOOST_TEST(output_of(hosts, {{"-n", "1"}, 1}, python(ask, {"-c"})) == sizes() + "\n");
}

BOOST_AUTO_TEST_CASE(python_without_a_kernel) {
  Hosts hosts(1);
  Process alone = hosts.start({"/usr/bin/env", "PARC_RUNTIME_DIR=/nowhere",
                               "PYTHONPATH=" PARC_PYTHON_PACKAGES, "LD_LIBRARY_PATH=" PARC_LIBRARIES,
                               "/usr/bin/python3", "-B", "-c", "import parc; parc.open()"});
  BOOST_TEST(alone.wait() == 1);
  BOOST_TEST(alone.errors().find("parc.Error: ") != std::string::npos, alone.errors());
  BOOST_TEST(alone.errors().find("no runtime directory /nowhere): start it with parcd --detach") !=
                 std::string::npos,
             alone.errors());
  Process homeless =
      hosts.start({"/usr/bin/env", "-u", "LD_LIBRARY_PATH", "PYTHONPATH=" PARC_PYTHON_PACKAGES,
                   "/usr/bin/python3", "-B", "-c",
                   "import ctypes; ctypes.CDLL = lambda name: (_ for _ in ()).throw(OSError(name))\n"
                   "import parc"});
  BOOST_TEST(homeless.wait() == 1);
  BOOST_TEST(homeless.errors().find("cannot load parc's library: libparc.so.0; install it") !=
                 std::string::npos,
             homeless.errors());
}

// With what it has printed before.
BOOST_AUTO_TEST_CASE(python_abort) {
  Hosts hosts(1);
  Process job = hosts.run({"-n", "2", "--env", "PYTHONPATH=" PARC_PYTHON_PACKAGES, "--env",
                           "LD_LIBRARY_PATH=" PARC_LIBRARIES, "/usr/bin/python3", "-B", "-c",
                           "import parc\np = parc.open()\nprint('until here')\n"
                           "p.abort(7) if p.rank == 0 else p.read(0, 0, bytearray(1))"});
  BOOST_TEST(job.wait() == 7, job);
  BOOST_TEST(job.output() == "until here\n", job.output() << job.errors());
}

BOOST_AUTO_TEST_CASE(python_heat) {
  check_heat(python(PARC_HEAT_PY));
}

#ifdef PARC_FORTRAN_HEAT
BOOST_AUTO_TEST_CASE(fortran_calls) {
  Hosts hosts(2);
  for (const Placement& placement : {on_one_host, on_two_hosts})
    BOOST_TEST(output_of(hosts, placement, {PARC_FORTRAN_CALLS}) ==
               fmt::format("sizes {} {}\n", sizes(), sizeof(parc_lost)));
}

BOOST_AUTO_TEST_CASE(fortran_heat) {
  check_heat({PARC_FORTRAN_HEAT});
}
#endif

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
