// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/errors.hpp"

#include "daemon/base/counters.hpp"
#include "tests/unit/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <ctime>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace parc::daemon {
namespace {

struct ErrorsFixture {
  ErrorsFixture() { errors.show_in(counters.errors()); }
  CounterSnapshot read() const { return CounterReader::open(dir).value().read(); }

  test::Scratch scratch;
  RuntimeDir dir = make_runtime_dir(scratch / "run").value();
  Counters counters = Counters::create(dir, {.host = "alpha", .scheduling = {}, .listens = {}}).value();
  Errors errors;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(errors_of_a_kernel, ErrorsFixture)

namespace {

constexpr std::size_t rows = counters::error_rows - 8; // of all but strangers

} // namespace

BOOST_AUTO_TEST_CASE(an_error_is_its_kind_its_code_and_its_text) {
  const auto before = static_cast<std::uint64_t>(std::time(nullptr));
  errors.note(ErrorKind::Link, ECONNRESET, "the connection to host b ended");
  errors.note(ErrorKind::Request, -5, "a read failed");
  errors.note(ErrorKind::Link, ECONNRESET, "the connection to host b ended");
  errors.note(ErrorKind::Link, ECONNRESET, "the connection to host c ended");
  errors.note(ErrorKind::Link, ETIMEDOUT, "the connection to host b ended");
  errors.note(ErrorKind::Job, ECONNRESET, "the connection to host b ended");
  const auto seen = read();
  BOOST_REQUIRE(seen.errors.size() == 5U);
  BOOST_TEST(seen.errors[0].count == 2U);
  BOOST_TEST((seen.errors[0].kind == ErrorKind::Link));
  BOOST_TEST(seen.errors[0].code == ECONNRESET);
  BOOST_TEST(seen.errors[0].text == "the connection to host b ended");
  BOOST_TEST(seen.errors[0].first_s >= before);
  BOOST_TEST(seen.errors[0].last_s >= seen.errors[0].first_s);
  BOOST_TEST(seen.errors[1].code == -5);
  for (std::size_t i = 1; i < 5; ++i) BOOST_TEST(seen.errors[i].count == 1U);
  BOOST_TEST(seen.other_errors == 0U);
}

BOOST_AUTO_TEST_CASE(who_was_not_met_for_longest_gives_way_and_stays_in_the_sum) {
  const auto text = [](std::size_t number) { return "error " + std::to_string(number); };
  for (std::size_t i = 0; i < rows; ++i) errors.note(ErrorKind::Job, 1, text(i));
  errors.note(ErrorKind::Job, 1, text(0)); // met again: 1 is the oldest
  errors.note(ErrorKind::Job, 1, "one more");
  auto seen = read();
  BOOST_TEST(seen.errors.size() == rows);
  BOOST_TEST(seen.other_errors == 1U);
  BOOST_TEST(seen.errors[0].text == text(0));
  BOOST_TEST(seen.errors[0].count == 2U);
  BOOST_TEST(seen.errors[1].text == "one more");
  for (std::size_t i = 0; i < 1000; ++i) errors.note(ErrorKind::Job, 2, text(i));
  seen = read();
  const std::uint64_t shown =
      std::accumulate(seen.errors.begin(), seen.errors.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const auto& each) { return sum + each.count; });
  BOOST_TEST(shown + seen.other_errors == rows + 2 + 1000);
  BOOST_TEST(seen.error_totals[static_cast<std::size_t>(ErrorKind::Job)] == rows + 2 + 1000);
  BOOST_TEST(seen.error_totals[static_cast<std::size_t>(ErrorKind::Link)] == 0U);
}

BOOST_AUTO_TEST_CASE(strangers_push_nobody_out) {
  for (std::size_t i = 0; i < rows; ++i) errors.note(ErrorKind::Refused, 1, "error " + std::to_string(i));
  for (std::size_t i = 0; i < 1000; ++i) errors.note_stranger(2, "stranger " + std::to_string(i));
  const auto seen = read();
  BOOST_TEST(std::ranges::count(seen.errors, 1, &CounterSnapshot::Error::code) == long{rows});
  BOOST_TEST(seen.errors.size() == counters::error_rows);
  BOOST_TEST(seen.other_errors == 1000U - 8);
}

BOOST_AUTO_TEST_CASE(long_texts_are_one_where_they_are_cut_alike) {
  const std::string begin = std::string(counters::error_text - 10, 'x') + " then ";
  errors.note(ErrorKind::Link, 1, begin + "onewords");
  errors.note(ErrorKind::Link, 1, begin + "twowords");
  const auto seen = read();
  BOOST_REQUIRE(seen.errors.size() == 1U);
  BOOST_TEST(seen.errors[0].text == begin + "...");
  BOOST_TEST(seen.errors[0].count == 2U);
}

BOOST_AUTO_TEST_CASE(texts_are_cut_where_they_do_not_fit) {
  const std::string fits(counters::error_text, 'x');
  errors.note(ErrorKind::Link, 1, fits);
  errors.note(ErrorKind::Link, 2, fits + 'x');
  const auto seen = read();
  BOOST_REQUIRE(seen.errors.size() == 2U);
  BOOST_TEST(seen.errors[0].text == fits);
  BOOST_TEST(seen.errors[1].text == fits.substr(4) + " ...");
}

BOOST_AUTO_TEST_CASE(without_a_file_notes_go_nowhere) {
  Errors alone;
  alone.note(ErrorKind::Link, 1, "nobody sees this");
  BOOST_TEST(read().errors.empty());
}

BOOST_AUTO_TEST_CASE(readable_after_the_kernel_was_killed) {
  const pid_t kernel = fork();
  if (kernel == 0) {
    errors.note(ErrorKind::Link, 1, "the last words");
    raise(SIGKILL);
  }
  waitpid(kernel, nullptr, 0);
  BOOST_REQUIRE(read().errors.size() == 1U);
  BOOST_TEST(read().errors[0].text == "the last words");
}

BOOST_AUTO_TEST_CASE(a_reader_never_mixes_two_errors) {
  const auto reader = CounterReader::open(dir).value();
  std::atomic<bool> done{false};
  std::size_t seen = 0, mixed = 0;
  std::thread watcher([&] {
    while (!done || seen == 0) {
      for (const auto& error : reader.read().errors) {
        ++seen;
        mixed += error.text != std::string(100, error.code % 2 == 0 ? 'e' : 'o') + std::to_string(error.code);
      }
    }
  });
  for (std::int64_t i = 0; i < 100'000; ++i)
    errors.note(ErrorKind::Request, i, std::string(100, i % 2 == 0 ? 'e' : 'o') + std::to_string(i));
  done = true;
  watcher.join();
  BOOST_TEST(mixed == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
