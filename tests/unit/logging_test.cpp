// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/base/logging.hpp"
#include "tests/unit/scratch.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace parc::daemon {
namespace {

struct LoggingFixture {
  LoggingFixture() { std::signal(SIGPIPE, SIG_IGN); }
  ~LoggingFixture() { std::signal(SIGPIPE, SIG_DFL); }
  test::Scratch scratch;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(logging, LoggingFixture)

namespace {

struct Ends {
  Fd read, write;
};

Ends make_pipe() {
  int ends[2];
  BOOST_REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

Ends make_sockets() {
  int ends[2];
  BOOST_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

// All that is there to be read, without waiting for more.
std::string drain(int fd) {
  fcntl(fd, F_SETFL, O_NONBLOCK);
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A reader that reads nothing: every line is either in the stream or counted.
void check_overrun(Ends ends) {
  constexpr std::size_t lines = 5000;
  const int flags_before = fcntl(ends.write.get(), F_GETFL);
  Logging logging(ends.write.get(), "info", Logging::Form::Plain);
  for (std::size_t i = 0; i < lines; ++i) spdlog::info("line {} {}", i, std::string(100, 'x'));
  BOOST_TEST(fcntl(ends.write.get(), F_GETFL) == flags_before);
  BOOST_TEST(logging.lines_dropped() > 0U);
  const std::uint64_t dropped = logging.lines_dropped();
  std::string text = drain(ends.read.get());
  spdlog::info("at last");
  text += drain(ends.read.get());
  // A report is shorter than a line and may have found room where a line did not.
  std::uint64_t reported = 0;
  std::size_t passed = 0;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    passed += contains(line, "info: line ");
    if (const auto at = line.find("warning: "); at != std::string::npos)
      reported += std::stoul(line.substr(at + 9));
  }
  BOOST_TEST(passed + dropped == lines);
  BOOST_TEST(reported == dropped);
  BOOST_TEST(text.ends_with("at last\n"));
}

} // namespace

BOOST_AUTO_TEST_CASE(a_line_with_time_and_level) {
  auto ends = make_pipe();
  {
    Logging logging(ends.write.get(), "info", Logging::Form::Plain);
    spdlog::warn("link to {} broken", "b");
    spdlog::debug("not asked for");
    logging.set_level("debug");
    spdlog::debug("asked for");
    logging.set_level("off");
    spdlog::critical("nothing");
  }
  spdlog::error("after the end");
  const auto text = drain(ends.read.get());
  BOOST_TEST(contains(text, " warning: link to b broken\n"));
  BOOST_TEST(text.starts_with("20"));
  BOOST_TEST(contains(text, " debug: asked for\n"));
  BOOST_TEST(lines_in(text) == 2U);
}

BOOST_AUTO_TEST_CASE(priorities_for_the_journal) {
  auto ends = make_pipe();
  const Logging logging(ends.write.get(), "trace", Logging::Form::Journal);
  spdlog::critical("a");
  spdlog::error("b");
  spdlog::warn("c");
  spdlog::info("d");
  spdlog::debug("e");
  BOOST_TEST(drain(ends.read.get()) == "<2>a\n<3>b\n<4>c\n<6>d\n<7>e\n");
}

BOOST_AUTO_TEST_CASE(the_journal_is_known_by_its_stream) {
  test::Environment environment;
  environment.unset("JOURNAL_STREAM");
  const auto ends = make_sockets();
  BOOST_TEST((form_for(ends.write.get()) == Logging::Form::Plain));
  struct stat status {};
  BOOST_REQUIRE(fstat(ends.write.get(), &status) == 0);
  environment.set("JOURNAL_STREAM", fmt::format("{}:{}", status.st_dev, status.st_ino));
  BOOST_TEST((form_for(ends.write.get()) == Logging::Form::Journal));
  BOOST_TEST((form_for(ends.read.get()) == Logging::Form::Plain));
}

BOOST_AUTO_TEST_CASE(words_of_others_cannot_make_lines) {
  auto ends = make_pipe();
  const Logging logging(ends.write.get(), "info", Logging::Form::Journal);
  spdlog::info("peer says: {}", "x\n<0>all is lost\x1b[2J");
  spdlog::info(std::string(100'000, 'y'));
  const auto text = drain(ends.read.get());
  BOOST_TEST(text.starts_with("<6>peer says: x <0>all is lost [2J\n"));
  BOOST_TEST(lines_in(text) == 2U);
  BOOST_TEST(text.size() < 5000U);
}

BOOST_AUTO_TEST_CASE(a_full_pipe_never_blocks) {
  check_overrun(make_pipe());
}
BOOST_AUTO_TEST_CASE(a_full_socket_never_blocks) {
  check_overrun(make_sockets());
}

BOOST_AUTO_TEST_CASE(a_reader_that_went_is_counted) {
  auto ends = make_pipe();
  const Logging logging(ends.write.get(), "info", Logging::Form::Plain);
  ends.read.reset();
  spdlog::info("a");
  spdlog::info("b");
  BOOST_TEST(logging.lines_dropped() == 2U);
}

BOOST_AUTO_TEST_CASE(a_log_file_is_appended_to) {
  test::Environment environment;
  environment.set("XDG_STATE_HOME", scratch / "state");
  const auto path = log_path("alpha").value();
  BOOST_TEST(path == scratch / "state/parc/alpha.log");
  for (const char* text : {"first", "second"}) {
    const auto file = open_log(path).value();
    const Logging logging(file.get(), "info", Logging::Form::Plain);
    spdlog::info(text);
  }
  const auto text = test::read_file(path);
  BOOST_TEST(contains(text, "first\n"));
  BOOST_TEST(contains(text, "second\n"));
  struct stat status {};
  BOOST_REQUIRE(stat(path.c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 0777) == 0600U);
}

BOOST_AUTO_TEST_CASE(a_flood_fills_no_disk) {
  const auto path = scratch / "flood";
  {
    const auto file = open_log(path).value();
    const Logging logging(file.get(), "info", Logging::Form::Plain, path);
    for (unsigned i = 0; i < 5 * Logging::most_at_once; ++i) spdlog::info("line");
  }
  const std::size_t passed = lines_in(test::read_file(path));
  BOOST_TEST(passed > 0U);
  BOOST_TEST(passed < 2 * Logging::most_at_once);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_large_is_begun_anew) {
  const auto path = scratch / "large";
  const auto file = open_log(path).value();
  BOOST_REQUIRE(ftruncate(file.get(), static_cast<off_t>(Logging::most_bytes - 10)) == 0);
  {
    const Logging logging(file.get(), "info", Logging::Form::Plain, path);
    spdlog::info("the first one");
    spdlog::info("the second one");
  }
  const auto text = test::read_file(path);
  BOOST_TEST(contains(text, "the first one\n"));
  BOOST_TEST(contains(text, "the second one\n"));
  struct stat before {};
  BOOST_REQUIRE(stat((path + ".1").c_str(), &before) == 0);
  BOOST_TEST(before.st_size == static_cast<off_t>(Logging::most_bytes - 10));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
