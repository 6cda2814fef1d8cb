// SPDX-License-Identifier: BSD-3-Clause
// Early release over a link of several streams, one of which is silent: what the others bring can be read,
// and they bring all of it.
#include "tests/support/hosts.hpp"
#include "tests/support/path.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>
#include <memory>

namespace parc::test {
namespace {

struct Streams {
  std::map<std::uint16_t, std::unique_ptr<Path>> paths; // by port of the kernel that one leads to
  Hosts hosts{2, {"--streams", "4"}, {}, [this](std::uint16_t port) {
                return paths.emplace(port, std::make_unique<Path>(port)).first->second->port();
              }};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(early_streams, Streams)

BOOST_AUTO_TEST_CASE(pages_that_others_bring_can_be_read) {
  const std::string file = hosts.directory() + "/go";
  Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/early_streams", file});
  const auto has_all = [&](std::size_t host) {
    const auto links = hosts.status(host)["links"];
    return !links.empty() && links[0]["streams"] == 4;
  };
  BOOST_TEST_REQUIRE(
      eventually([&] { return job.output().starts_with("released") && has_all(0) && has_all(1); }),
      job << hosts);
  for (const auto& [port, path] : paths) path->hold_newest();
  std::ofstream{file};
  const int status = job.wait(); // it ends before the silence does
  BOOST_TEST((status == 0 && job.errors() == ""), job << hosts);
  for (const auto& [port, path] : paths) path->go_on();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
