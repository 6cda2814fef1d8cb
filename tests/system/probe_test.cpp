// SPDX-License-Identifier: BSD-3-Clause
// parc probe: figures between two kernels, and a sentence where there are none.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <map>

namespace parc::test {
namespace {

struct Two {
  Hosts hosts{2};

  struct Said {
    int status;
    std::string output, errors;
  };
  Said probe(std::vector<std::string> words, std::size_t on = 0) {
    Process process = hosts.parc("probe", std::move(words), on);
    const int status = process.wait();
    return {status, process.output(), process.errors()};
  }
  // Its figures, by name, as numbers that can be right.
  std::map<std::string, nlohmann::json> figures(const nlohmann::json& json) {
    std::map<std::string, nlohmann::json> by_name;
    for (const auto& each : json["figures"]) {
      const double low = each["low"], median = each["median"], high = each["high"];
      BOOST_TEST(0 < low, each);
      BOOST_TEST(low <= median, each);
      BOOST_TEST(median <= high, each);
      BOOST_TEST(each["samples"] >= 3, each);
      by_name[each["figure"]] = each;
    }
    return by_name;
  }
  nlohmann::json measure(const std::string& host, std::size_t on = 0) {
    const auto said = probe({"--json", host}, on);
    BOOST_TEST_REQUIRE(said.status == 0, said.errors << hosts);
    BOOST_TEST(said.errors.empty(), said.errors);
    return nlohmann::json::parse(said.output);
  }
  void refused(std::vector<std::string> words, int status, const std::string& sentence) {
    const auto said = probe(std::move(words));
    BOOST_TEST(said.status == status, said.output << said.errors);
    BOOST_TEST(said.errors.find(sentence) != std::string::npos, said.errors);
    BOOST_TEST(said.output.empty(), said.output);
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(probe, Two)

BOOST_AUTO_TEST_CASE(between_two_hosts) {
  const auto json = measure("b");
  BOOST_TEST(json["schema"] == 1);
  BOOST_TEST(json["from"] == "a");
  BOOST_TEST(json["to"] == "b");
  auto found = figures(json);
  BOOST_TEST(found.size() == 6U);
  for (const char* name : {"round trip", "startup", "bandwidth there", "bandwidth back", "fault", "guard"})
    BOOST_TEST(found.contains(name), name);
  BOOST_TEST(found["startup"]["median"].get<double>() == found["round trip"]["median"].get<double>() / 2,
             boost::test_tools::tolerance(1e-9));
  BOOST_TEST(found["bandwidth back"]["unit"] == "MB/s");
  // They went through the kernels.
  const auto links = hosts.status()["links"];
  BOOST_TEST_REQUIRE(links.size() == 1U);
  BOOST_TEST(links[0]["bytes_out"].get<std::uint64_t>() > 1U << 19);
  BOOST_TEST(links[0]["bytes_in"].get<std::uint64_t>() > 1U << 19);
  BOOST_TEST(eventually([&] { return hosts.ranks().empty(); }));
}

BOOST_AUTO_TEST_CASE(beside_the_papers) {
  const auto said = probe({"b"});
  BOOST_TEST_REQUIRE(said.status == 0, said.errors);
  BOOST_TEST(said.output.starts_with("between host a and host b\n"), said.output);
  for (const char* line : {"\nround trip ", "\nguard ", "\na and b ", "\nSPARCstation 1+, Ethernet "})
    BOOST_TEST(said.output.find(line) != std::string::npos, line << said.output);

  std::map<std::string, nlohmann::json> machines;
  const auto json = measure("b");
  for (const auto& machine : json["papers"]) {
    BOOST_TEST(!machine["paper"].get<std::string>().empty());
    machines[machine["machine"]] = machine;
  }
  const auto& sparc = machines["SPARCstation 1+, Ethernet"];
  BOOST_TEST(sparc["startup_us"] == 2489.0);
  BOOST_TEST(sparc["guard_us"].is_null());
  BOOST_TEST(machines["PowerPC 970FX, InfiniBand"]["fault_us"] == 37.0);
}

BOOST_AUTO_TEST_CASE(of_oneself) {
  const std::size_t before = hosts.status()["links"].size();
  for (const char* name : {"localhost", "b"}) {
    const auto json = measure(name, 1);
    BOOST_TEST(json["from"] == "b");
    BOOST_TEST(json["to"] == "b");
    BOOST_TEST(figures(json).size() == 6U);
  }
  BOOST_TEST(hosts.status()["links"].size() == before);
  BOOST_TEST(probe({"localhost"})
                 .output.starts_with("between two programs of host a, whose messages take no network\n"));
}

BOOST_AUTO_TEST_CASE(without_a_kernel) {
  refused({"nowhere.invalid"}, 1, "unknown host nowhere.invalid");
  hosts[1].kernel().signal(SIGSTOP);
  refused({"b"}, 1, "host b does not answer: ");
  hosts[1].kernel().signal(SIGCONT);
  hosts[1].kernel().signal(SIGKILL);
  (void)hosts[1].kernel().wait();
  refused({"b"}, 1, "host b does not answer: ");

  // Here; and none is started.
  const auto said = probe({"a"}, 1);
  BOOST_TEST(said.status == 1);
  BOOST_TEST(said.errors.find("no parcd runs") != std::string::npos, said.errors);
  BOOST_TEST(probe({"a"}, 1).status == 1);
}

BOOST_AUTO_TEST_CASE(what_is_no_host) {
  for (const char* host : {"", "b:2", "a,b", "a:", "/tmp", "a b"})
    refused({host}, 2, "\"" + std::string(host) + "\" is no name of one host");
  refused({}, 2, "HOST");
  refused({"a", "b"}, 2, "b");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
