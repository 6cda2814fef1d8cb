// SPDX-License-Identifier: BSD-3-Clause
// parc run --advise: what it says of a program's waits, the lines that it names, and what it says where it
// can say little. How true its times are is for bench/advice.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace parc::test {
namespace {

const std::filesystem::path sources =
    std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();

// "examples/poisson/poisson.cpp:80", of the only line that has this text; as a place may end.
std::string place_of(const std::string& file, const std::string& text) {
  std::ifstream in(sources / file);
  int number = 0, found = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find(text) == std::string::npos) continue;
    BOOST_TEST_REQUIRE(found == 0, text << " stands in " << file << " more than once");
    found = number;
  }
  BOOST_TEST_REQUIRE(found != 0, text << " is not in " << file);
  return file + ":" + std::to_string(found);
}

struct Two {
  Hosts hosts{2};

  struct Said {
    int status;
    std::string output, errors;
  };
  Said run(std::vector<std::string> words) {
    Process job = hosts.run(std::move(words));
    const int status = job.wait();
    return {status, job.output(), job.errors()};
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(advice, Two)

BOOST_AUTO_TEST_CASE(it_names_the_line_that_waits) {
  const auto said = run({"--hosts", "a,b", "--advise=json", "--link", "slow=40ms,10mbit",
                         PARC_TEST_BIN "/poisson", "--size", "2048", "--steps", "20", "--check"});
  BOOST_TEST_REQUIRE(said.status == 0, said.errors << hosts);
  const auto advice = nlohmann::json::parse(said.errors);
  BOOST_TEST(advice["schema"] == 1);
  BOOST_TEST(advice["ranks"] == 2);
  BOOST_TEST(advice["steps"] >= 15);
  BOOST_TEST(advice["messages_a_step"] == 1); // that a rank of two sends
  for (const char* key :
       {"step_ms", "replayed_ms", "hidden_ms", "early_release_ms", "at_best_ms", "calculation_ms"})
    BOOST_TEST(advice[key].get<double>() > 0, key);
  BOOST_TEST(advice["at_best_ms"].get<double>() <= advice["step_ms"].get<double>());
  BOOST_TEST(advice["others"]["slow"].get<double>() > 20); // its latency alone, whatever the machine does
  const std::string line = place_of("examples/poisson/poisson.cpp", "parc.wait_all(reads)");
  bool named = false;
  for (const auto& each : advice["lines"])
    if (each["line"].get<std::string>().ends_with(line)) {
      named = true;
      const std::string touched = each["touched_at"];
      BOOST_TEST(touched.find("examples/poisson/poisson.cpp:") != std::string::npos, touched);
    }
  BOOST_TEST(named, advice.dump(1));
  BOOST_TEST(!advice["sentences"].empty());
}

BOOST_AUTO_TEST_CASE(for_people_it_says_what_and_why) {
  const auto said =
      run({"--hosts", "a,b", "--advise", PARC_TEST_BIN "/poisson", "--size", "512", "--steps", "10"});
  BOOST_TEST_REQUIRE(said.status == 0, said.errors << hosts);
  for (const char* part :
       {"2 ranks on 2 hosts", "now, as it was measured", "What limits it is", "poisson.cpp:"})
    BOOST_TEST(said.errors.find(part) != std::string::npos, said.errors);
  BOOST_TEST(said.output.find("ms per step") != std::string::npos, said.output);
}

BOOST_AUTO_TEST_CASE(a_program_without_its_symbols) {
  const std::string stripped = hosts.directory() + "/stripped";
  Process strip = hosts.start({"strip", "-o", stripped, PARC_TEST_BIN "/poisson"});
  BOOST_TEST_REQUIRE(strip.wait() == 0, strip);
  const auto said = run({"--hosts", "a,b", "--advise", stripped, "--size", "512", "--steps", "10"});
  BOOST_TEST_REQUIRE(said.status == 0, said.errors << hosts);
  BOOST_TEST(said.errors.find("stripped+0x") != std::string::npos, said.errors);
  BOOST_TEST(said.errors.find("has no debug information") != std::string::npos, said.errors);
}

// Nor lines, but the names of its functions, as long as they are.
BOOST_AUTO_TEST_CASE(a_program_without_its_lines) {
  const std::string named = hosts.directory() + "/named";
  Process strip = hosts.start({"strip", "-g", "-o", named, PARC_TEST_BIN "/poisson"});
  BOOST_TEST_REQUIRE(strip.wait() == 0, strip);
  const auto said = run({"--hosts", "a,b", "--advise", named, "--size", "512", "--steps", "10"});
  BOOST_TEST_REQUIRE(said.status == 0, said.errors << hosts);
  BOOST_TEST(said.errors.find("std::_Function_handler<void (int), ") != std::string::npos, said.errors);
}

BOOST_AUTO_TEST_CASE(where_there_is_nothing_to_say) {
  const auto alone = run({"-n", "1", "--advise", PARC_TEST_BIN "/poisson", "--size", "64", "--steps", "3"});
  BOOST_TEST(alone.status == 125, alone.errors);
  BOOST_TEST(alone.errors.find("no rank has sent a message") != std::string::npos, alone.errors);
  const auto stranger = run({"-n", "2", "--advise", "true"});
  BOOST_TEST(stranger.status == 125, stranger.errors);
  BOOST_TEST(stranger.errors.find("there is no advice") != std::string::npos, stranger.errors);
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--link", "20ms,1gbit", "true"}, "--link requires --advise"},
      {{"--advise", "--link", "20,1gbit", "true"}, "like 20ms"},
      {{"--advise", "--early-release", "true"}, "excludes"},
      {{"--advise=often", "true"}, "often"},
      {{"--advise=", "true"}, "--advise"}};
  for (const auto& [words, sentence] : wrong) {
    const auto said = run(words);
    BOOST_TEST(said.status == 125, sentence << ": " << said.output << said.errors);
    BOOST_TEST(said.errors.find(sentence) != std::string::npos, said.errors);
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
