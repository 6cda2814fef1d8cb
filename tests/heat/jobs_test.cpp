// SPDX-License-Identifier: BSD-3-Clause
// The heat program as a job of kernels on loopback: every variant gets the sequential solver's bits, whatever
// the size of a border and however many neighbours a rank has.
#include "bench/heat/hosts.hpp"
#include "bench/heat/runner.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>

using namespace parc;
using namespace parc::heat::demo;

namespace {

struct Directory {
  std::string path = std::filesystem::temp_directory_path() / fmt::format("parc-heat-{}", getpid());
  ~Directory() { std::filesystem::remove_all(path); }
};

// Empty, or why it failed.
std::string complaint(Runner& runner, const Run& what) {
  const auto sample = runner.run(what);
  if (!sample) return sample.error().text;
  return sample.value().correct ? "" : "wrong temperatures";
}

void check_all_variants(std::size_t ranks, const std::vector<std::pair<std::size_t, std::size_t>>& shapes) {
  const Directory directory;
  const auto hosts = Hosts::on_loopback(ranks, directory.path);
  if (!hosts) BOOST_FAIL(hosts.error().text);
  const auto kernels = Kernels::start(hosts.value(), {});
  if (!kernels) BOOST_FAIL(kernels.error().text);
  Runner runner(hosts.value(), ranks, 0);
  for (const auto& [points, columns] : shapes)
    for (const char* variant : {"ping-pong", "I.1", "I.2", "I.2-nocopy", "I.3"}) {
      BOOST_TEST_INFO(variant << " on " << ranks << " ranks of " << columns << " columns of " << points);
      BOOST_TEST(complaint(runner, {variant, points, columns}) == "");
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(jobs)

BOOST_AUTO_TEST_CASE(two_ranks) {
  check_all_variants(2, {{50, 7}, {10000, 4}, {300000, 2}});
}

BOOST_AUTO_TEST_CASE(three_ranks_with_one_column_each) {
  check_all_variants(3, {{64, 1}, {50000, 1}});
}

BOOST_AUTO_TEST_SUITE_END()
