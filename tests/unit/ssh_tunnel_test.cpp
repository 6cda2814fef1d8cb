// SPDX-License-Identifier: BSD-3-Clause
// What a tunnel makes of what an ssh says, which here is a test's: signs are found among whatever else is
// said at a login, and the way is named where there is none.
#include "daemon/ssh/ssh_tunnel.hpp"

#include "tests/unit/scratch.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <functional>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace parc::daemon {

BOOST_AUTO_TEST_SUITE(ssh_tunnel)

namespace {

const std::string sign = "parc-tunnel-is-open\r\n";

struct Tunnel {
  Tunnel() { spdlog::set_level(spdlog::level::off); } // what ssh says is what these tests are made of
  ~Tunnel() { spdlog::set_level(level); }

  struct Said {
    std::string output, errors;
    std::optional<std::uint32_t> status; // it ends with this
  };

  spdlog::level::level_enum level = spdlog::get_level();
  Loop loop;
  test::Scratch scratch;
  std::string near = scratch / "near";
  std::function<Said(const std::vector<std::string>& words)> ssh; // what it says when it is run so
  std::vector<std::string> words;                                 // it was run last with
  std::uint32_t status = 0;
  Fd output, errors;                // of the one that runs
  std::vector<std::string> answers; // "open", or why not
  Processes processes{
      .start = [this](const Program& program, const std::vector<std::string>&, bool,
                      const Processors*) { return start(program); },
      .signal = [](pid_t, int) {},
      .reap = [this](const Fd&) { return RankExit{.status = status}; },
  };

  static Fd pipe_to(Fd& writer) {
    int ends[2];
    BOOST_REQUIRE(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    writer.reset(ends[1]);
    return Fd(ends[0]);
  }
  Result<StartedProcess> start(const Program& program) {
    words = program.arguments;
    const Said said = ssh(words);
    StartedProcess made;
    made.id = 1'000'000'000; // nobody
    made.process.reset(eventfd(said.status ? 1 : 0, EFD_NONBLOCK | EFD_CLOEXEC));
    made.output = pipe_to(output);
    made.errors = pipe_to(errors);
    Fd nothing;
    made.report = pipe_to(nothing); // it runs
    for (const auto& [to, text] : {std::pair(&output, &said.output), std::pair(&errors, &said.errors)})
      BOOST_REQUIRE(write(to->get(), text->data(), text->size()) == static_cast<ssize_t>(text->size()));
    if (said.status) {
      status = *said.status;
      output.reset();
      errors.reset();
    }
    return made;
  }

  // How a tunnel to host far answers who asks for it. `socket`: of the kernel there, where that is known.
  std::string open(const std::string& socket = "/run/parc/link.sock") {
    SshTunnel tunnel(loop, processes, {.host = "far", .command = {}, .socket = socket}, "ssh", near);
    tunnel.open([this](const Result<std::vector<Address>>& found) {
      answers.push_back(found ? "open" : found.error().text);
    });
    while (answers.empty()) {
      event_base_loop(loop.events(), EVLOOP_ONCE);
      loop.end_step();
    }
    return answers.back();
  }
  void has_socket() const { test::write_file(near, ""); }
};

} // namespace

// Nobody is there to answer it. ssh is told so, and says what it would have asked for.
BOOST_FIXTURE_TEST_CASE(one_that_would_ask_for_a_password, Tunnel) {
  ssh = [](const auto&) { return Said{{}, "me@far: Permission denied (publickey,password).\r\n", 255}; };
  BOOST_TEST(open() == "ssh to far: me@far: Permission denied (publickey,password).");
  BOOST_TEST((std::ranges::find(words, "BatchMode=yes") != words.end()));
}

// Another program in its place, which reads the end of its input.
BOOST_FIXTURE_TEST_CASE(one_that_asks_for_a_password, Tunnel) {
  ssh = [](const auto&) { return Said{{}, "me@far's password: ", 255}; };
  BOOST_TEST(open() == "ssh to far: me@far's password:");
}

// On both its streams, in front of the sign; some of it looks like one.
BOOST_FIXTURE_TEST_CASE(one_that_prints_a_banner, Tunnel) {
  std::string banner = "*** Authorized use only ***\r\n\x1b[1mparc-tunnel-is-open?\x1b[0m\r\n";
  for (int line = 0; line < 500; ++line) banner += "line of a banner\r\n";
  ssh = [&](const auto&) {
    has_socket();
    return Said{banner + "unfinished: " + sign + sign + banner, "Banner of the site\r\n", {}};
  };
  BOOST_TEST(open() == "open");
}

// In front of where the kernel over there listens, too.
BOOST_FIXTURE_TEST_CASE(a_banner_before_the_answer, Tunnel) {
  const std::string banner = "Last login: today; parc-link-socket /etc/motd\r\n";
  ssh = [&](const std::vector<std::string>& run) {
    const bool opens = std::ranges::find(run, "-tt") != run.end();
    if (!opens) return Said{banner + "parc-link-socket /far/link.sock\n" + banner, "a banner\n", 0};
    BOOST_TEST((std::ranges::find(run, near + ":/far/link.sock") != run.end()));
    has_socket();
    return Said{banner + sign, "a banner\n", {}};
  };
  BOOST_TEST(open("") == "open");
}

// Nothing of it is kept, and why it ended is said.
BOOST_FIXTURE_TEST_CASE(a_banner_without_an_end, Tunnel) {
  ssh = [&](const auto&) { return Said{std::string(60'000, 'x'), "no shell for you\r\n", 1}; };
  BOOST_TEST(open() == "ssh to far: no shell for you");
}

BOOST_FIXTURE_TEST_CASE(a_banner_alone, Tunnel) {
  ssh = [&](const auto&) { return Said{"Welcome\r\n", {}, 0}; };
  BOOST_TEST(open() == "ssh to far: it ended with 0");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::daemon
