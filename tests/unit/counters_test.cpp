// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/counters.hpp"
#include "tests/unit/scratch.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace parc::daemon {
namespace {

struct CounterFileFixture {
  Counters create() const {
    return Counters::create(dir, {.host = "alpha",
                                  .identity = 42,
                                  .port = 7272,
                                  .scheduling = "normal",
                                  .listens = "::1, port 7272"})
        .value();
  }
  CounterSnapshot read() const { return CounterReader::open(dir).value().read(); }

  test::Scratch scratch;
  RuntimeDir dir = make_runtime_dir(scratch / "run").value();
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(counter_file, CounterFileFixture)

BOOST_AUTO_TEST_CASE(labels_are_distinct) {
  for (const auto& one : counter_table)
    for (const auto& two : counter_table) {
      BOOST_TEST((one.counter == two.counter) == (one.label == two.label));
      BOOST_TEST((one.counter == two.counter) == (one.metric == two.metric));
    }
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  auto counters = create();
  counters.add(Counter::Turns);
  counters.add(Counter::Turns, 9);
  counters.set(Counter::PoolBytes, 500);
  counters.subtract(Counter::PoolBytes, 100);
  counters.raise(Counter::PoolPeak, 500);
  counters.raise(Counter::PoolPeak, 400);
  const auto snapshot = read();
  BOOST_TEST(snapshot.alive);
  BOOST_TEST(snapshot.pid == static_cast<std::uint64_t>(getpid()));
  BOOST_TEST(snapshot.host == "alpha");
  BOOST_TEST(snapshot.identity == 42U);
  BOOST_TEST(snapshot.port == 7272U);
  BOOST_TEST(snapshot.program == PARC_VERSION);
  BOOST_TEST(snapshot.scheduling == "normal");
  BOOST_TEST(snapshot.listens == "::1, port 7272");
  BOOST_TEST(snapshot[Counter::Turns] == 10U);
  BOOST_TEST(snapshot[Counter::PoolBytes] == 400U);
  BOOST_TEST(snapshot[Counter::PoolPeak] == 500U);
  BOOST_TEST(snapshot.links.empty());
}

BOOST_AUTO_TEST_CASE(rows_come_and_go_with_their_owners) {
  auto counters = create();
  {
    auto link = counters.link("beta", 7, LinkState::Up);
    link->bytes_in.add(100);
    link->rtt_us.set(20'000);
    auto job = counters.job(3, 2, JobState::Running);
    auto session = counters.session(3, 1, 4711, 99);
    session->reads.set(5);
    const auto snapshot = read();
    BOOST_REQUIRE(snapshot.links.size() == 1U);
    BOOST_TEST(snapshot.links[0].peer == "beta");
    BOOST_TEST(snapshot.links[0].identity == 7U);
    BOOST_TEST((snapshot.links[0].state == LinkState::Up));
    BOOST_TEST(snapshot.links[0].bytes_in == 100U);
    BOOST_TEST(snapshot.links[0].rtt_us == 20'000U);
    BOOST_REQUIRE(snapshot.jobs.size() == 1U);
    BOOST_TEST(snapshot.jobs[0].id == 3U);
    BOOST_TEST(snapshot.jobs[0].ranks == 2U);
    BOOST_REQUIRE(snapshot.sessions.size() == 1U);
    BOOST_TEST(snapshot.sessions[0].pid == 4711U);
    BOOST_TEST(snapshot.sessions[0].reads == 5U);
    BOOST_TEST(snapshot.sessions[0].segment == 99U);
  }
  BOOST_TEST(read().links.empty());
  BOOST_TEST(read().jobs.empty());
  BOOST_TEST(read().sessions.empty());
  const auto again = counters.link("gamma", 8, LinkState::Reconnecting);
  BOOST_TEST(read().links.at(0).bytes_in == 0U);
}

BOOST_AUTO_TEST_CASE(a_slot_that_moves_keeps_its_row) {
  auto counters = create();
  LinkCounters kept;
  kept->bytes_in.add(1); // into nowhere
  {
    auto link = counters.link("beta", 7, LinkState::Up);
    kept = std::move(link);
  }
  kept->bytes_out.add(3);
  BOOST_REQUIRE(read().links.size() == 1U);
  BOOST_TEST(read().links[0].bytes_out == 3U);
}

BOOST_AUTO_TEST_CASE(a_full_table_takes_no_more_and_breaks_nothing) {
  auto counters = create();
  std::vector<JobCounters> jobs;
  for (std::uint64_t id = 0; id < counters::job_rows + 10; ++id)
    jobs.push_back(counters.job(id, 1, JobState::Running));
  jobs.back()->ranks.set(99);
  BOOST_TEST(read().jobs.size() == counters::job_rows);
  jobs.clear();
  BOOST_TEST(read().jobs.empty());
}

BOOST_AUTO_TEST_CASE(readable_after_the_kernel_was_killed) {
  const pid_t kernel = fork();
  if (kernel == 0) {
    auto counters = create();
    counters.add(Counter::Turns, 77);
    auto link = counters.link("beta", 7, LinkState::Up);
    raise(SIGKILL);
  }
  waitpid(kernel, nullptr, 0);
  const auto snapshot = read();
  BOOST_TEST(!snapshot.alive);
  BOOST_TEST(snapshot[Counter::Turns] == 77U);
  BOOST_TEST(snapshot.links.size() == 1U);
  // The next kernel begins at zero; who still reads the old file sees the old figures.
  const auto old_reader = CounterReader::open(dir).value();
  const auto counters = create();
  BOOST_TEST(read()[Counter::Turns] == 0U);
  BOOST_TEST(read().alive);
  BOOST_TEST(old_reader.read()[Counter::Turns] == 77U);
}

BOOST_AUTO_TEST_CASE(a_reader_never_mixes_two_owners) {
  auto counters = create();
  const auto reader = CounterReader::open(dir).value();
  std::atomic<bool> done{false};
  std::size_t seen = 0, mixed = 0;
  std::thread watcher([&] {
    while (!done || seen == 0) {
      for (const auto& link : reader.read().links) {
        ++seen;
        mixed += link.peer != std::string(40, link.identity % 2 == 0 ? 'e' : 'o');
      }
    }
  });
  LinkCounters last;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    last = LinkCounters(); // frees the row, so that the next owner gets the same
    last = counters.link(std::string(40, i % 2 == 0 ? 'e' : 'o'), i, LinkState::Up);
  }
  done = true;
  watcher.join();
  BOOST_TEST(mixed == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_not_ours_is_refused) {
  BOOST_TEST(CounterReader::open(dir).error().code == ENOENT);
  test::write_file(dir.counters(), "hello");
  BOOST_TEST(CounterReader::open(dir).error().code == EBADMSG);
  { const auto counters = create(); }
  std::filesystem::resize_file(dir.counters(), 4096);
  BOOST_TEST(CounterReader::open(dir).error().code == EBADMSG);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
