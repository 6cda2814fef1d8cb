// SPDX-License-Identifier: BSD-3-Clause
// parc model: its answers, its reproduction of the report of 1994, and sentences about what makes no sense.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>

namespace parc::test {
namespace {

struct Alone {
  Hosts hosts{1};

  struct Said {
    int status;
    std::string output, errors;
  };
  Said model(std::vector<std::string> words) {
    words.insert(words.begin(), {PARC_TEST_BIN "/parc", "model"});
    Process process = hosts.start(std::move(words));
    const int status = process.wait();
    return {status, process.output(), process.errors()};
  }
  nlohmann::json ask(std::vector<std::string> words) {
    words.emplace_back("--json");
    const auto said = model(std::move(words));
    BOOST_TEST_REQUIRE(said.status == 0, said.errors);
    return nlohmann::json::parse(said.output);
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(model, Alone)

BOOST_AUTO_TEST_CASE(links_and_processors) {
  const auto links = ask({"--link", "wan=20ms,100mbit", "--link", "lan=0.2ms,1gbit", "--bytes", "800000",
                          "--calculation", "74ms"});
  BOOST_TEST(links["schema"] == 1);
  BOOST_TEST(links["fastest"] == "wan"); // 74 ms on both
  BOOST_TEST(ask({"--link", "wan=20ms,100mbit", "--link", "lan=0.2ms,1gbit", "--bytes", "800000",
                  "--calculation", "10ms"})["fastest"] == "lan");
  const auto& wan = links["links"][0];
  BOOST_TEST(wan["link"] == "wan");
  BOOST_TEST(wan["communication_ms"].get<double>() == 74.0, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(wan["gain"].get<double>() == 2.0, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(links["granularities"][0]["calculation_ms"].get<double>() == 74.0,
             boost::test_tools::tolerance(1e-9));
  BOOST_TEST(links["granularities"][0]["loses_above_ms"].is_null());

  // q = p: the most, 2, with 100 processors, where lambda is p^2.
  const auto processors = ask({"--link", "x=0,8gbit", "--bytes", "1000000", "--alone", "10s", "--messages",
                               "p", "--processors", "500"})["processors"][0];
  BOOST_TEST(processors["best"][1]["calls"] == "hidden");
  BOOST_TEST(processors["best"][1]["fastest_processors"] == 100);
}

BOOST_AUTO_TEST_CASE(the_report_is_reproduced) {
  const std::string pictures = hosts.directory() + "/pictures";
  const auto said = model({"--reproduce", "--pictures", pictures});
  BOOST_TEST(said.status == 0, said.output << said.errors);
  BOOST_TEST(said.output.find("DIFFERS") == std::string::npos, said.output);
  for (const char* const figure : {"3", "4", "5", "6", "7", "8", "9.1", "9.2", "9.3", "24"}) {
    const std::string picture = pictures + "/figure-" + figure + ".svg";
    BOOST_TEST_REQUIRE(std::filesystem::exists(picture), picture);
    BOOST_TEST(std::filesystem::file_size(picture) > 10'000U, picture);
  }
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense) {
  const std::map<std::string, std::vector<std::string>> wrong{
      {"name a link", {}},
      {"say what a step is", {"--link", "20ms,1gbit"}},
      {"like 70ms", {"--link", "20ms,1gbit", "--bytes", "8", "--calculation", "70"}},
      {"like 20ms", {"--link", "20,1gbit", "--bytes", "8", "--calculation", "70ms"}},
      {"nothing to hide behind", {"--link", "20ms,1gbit", "--bytes", "8", "--calculation", "0s"}},
      {"no number from 0 to 1", {"--link", "20ms,1gbit", "--hidden", "1.5"}},
      {"out of range", {"--link", "20ms,1gbit", "--bytes", "1e30", "--calculation", "70ms"}},
      {"requires --granularity", {"--machine", "5,0.2"}},
      {"no number of messages", {"--machine", "5,0.2", "--granularity", "5", "--messages", "many"}},
      {"is not what parc probe", {"--probe", "/etc/hostname", "--bytes", "8", "--calculation", "70ms"}},
      {"requires --reproduce", {"--pictures", "x"}}};
  for (const auto& [sentence, words] : wrong) {
    const auto said = model(words);
    BOOST_TEST(said.status == 2, sentence << ": " << said.output << said.errors);
    BOOST_TEST(said.errors.find(sentence) != std::string::npos, said.errors);
    BOOST_TEST(said.output.empty(), said.output);
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
