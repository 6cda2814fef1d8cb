// SPDX-License-Identifier: BSD-3-Clause
// Moments at which a test does something to a job, drawn from a seed: by the bytes that have passed over a
// link.
#pragma once

#include "tests/support/process.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>

namespace parc::test {

// Bytes that a kernel, of which parc status said this, has read and written over its link to that host.
inline std::uint64_t bytes_over_link(const nlohmann::json& status, const std::string& host) {
  for (const auto& link : status["links"])
    if (link["host"] == host)
      return link["bytes_in"].get<std::uint64_t>() + link["bytes_out"].get<std::uint64_t>();
  return 0;
}

// What is given behind `--` to a test: how many messages its job exchanges, where that is to be more.
inline std::string messages_of_test(const char* otherwise) {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  return suite.argc > 1 ? suite.argv[1] : otherwise;
}

class Moments {
public:
  explicit Moments(std::function<std::uint64_t()> passed) : passed_(std::move(passed)) {}

  [[nodiscard]] unsigned seed() const { return seed_; }
  [[nodiscard]] std::size_t any_of(std::size_t count) { return random_() % count; }
  // Waits until less than so many more bytes have passed. False: the job has ended.
  [[nodiscard]] bool comes(Process& job, std::uint64_t most) {
    const std::uint64_t until = passed_() + random_() % most;
    BOOST_REQUIRE(eventually([&] { return !job.running() || passed_() >= until; }));
    return job.running();
  }
  // Waits until nothing has passed between two looks.
  void stand_still() {
    std::uint64_t before = UINT64_MAX;
    BOOST_REQUIRE(eventually([&] {
      const std::uint64_t now = passed_();
      return std::exchange(before, now) == now;
    }));
  }

private:
  std::function<std::uint64_t()> passed_;
  unsigned seed_ = std::random_device()();
  std::mt19937_64 random_{seed_};
};

} // namespace parc::test
