// SPDX-License-Identifier: BSD-3-Clause
// Who comes to a kernel's doors and is turned away: a sentence in its log, a count, and jobs go on.
#include "system/fd.hpp"
#include "tests/support/hosts.hpp"

#include <arpa/inet.h>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::test {
namespace {

struct Doors {
  Hosts hosts{2};

  // Counters are written before a sleep.
  bool counted(const char* what, int times) {
    return eventually([&] { return hosts.status()["counters"][what] == times; });
  }
  bool logged(const std::string& sentence) {
    return eventually([&] { return hosts[0].log().find(sentence) != std::string::npos; });
  }
  ~Doors() {
    Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "1000", "20"});
    BOOST_TEST(job.wait() == 0, job << hosts);
  }
};

// Connects as a user who is nobody here, and is not let in: 0. That user may not search the directories on
// the way to this one, which is why it is gone to before.
int visit_as_another(const std::string& directory, const char* name) {
  const pid_t child = fork();
  if (child == 0) {
    if (chdir(directory.c_str()) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(address.sun_path, name, sizeof address.sun_path - 1);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(3);
    char answer = 0;
    _exit(send(socket, "P", 1, MSG_NOSIGNAL) >= 0 && recv(socket, &answer, 1, 0) > 0 ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(refused, Doors)

// Their modes keep others away; this is what stands behind them.
BOOST_AUTO_TEST_CASE(another_user) {
  if (geteuid() != 0) return; // nobody else can be somebody else
  const std::string dir = hosts[0].runtime_dir();
  BOOST_REQUIRE(chmod(dir.c_str(), 0711) == 0);
  for (const char* each : {"kernel.sock", "link.sock"}) {
    BOOST_REQUIRE(chmod((dir + "/" + each).c_str(), 0666) == 0);
    BOOST_TEST(visit_as_another(dir, each) == 0);
  }
  BOOST_REQUIRE(chmod(dir.c_str(), 0700) == 0);
  const std::string why = "it is of user 65534, and this kernel serves user 0 alone";
  BOOST_TEST(logged("turned away who connected: " + why), hosts);
  BOOST_TEST(logged("refused a connection through the link socket: " + why), hosts);
  BOOST_TEST(counted("sessions_refused", 1));
  BOOST_TEST(counted("links_refused", 1));
}

// The first words of a program that speaks TLS 1.2 at most, or of who would have two kernels do so.
BOOST_AUTO_TEST_CASE(an_older_version_of_tls) {
  constexpr unsigned char hello[] = {0x16, 3,   1,    0,    47,     // a record of the greeting
                                     1,    0,   0,    43,   3,   3, // a client's hello, TLS 1.2
                                     'a',  'n', 'y',  ' ',  '3', '2',  ' ', 'b', 'y', 't', 'e',
                                     's',  ' ', 't',  'h',  'a', 't',  ' ', 'a', 'r', 'e', ' ',
                                     'r',  'a', 'n',  'd',  'o', 'm',  '.', '.', '.', '.',
                                     0,                                // no session
                                     0,    4,   0xc0, 0x2f, 0,   0x2f, // suites
                                     1,    0};                         // no compression
  static_assert(sizeof hello == 5 + 47);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(hosts[0].port());
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  BOOST_REQUIRE(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  BOOST_REQUIRE(send(socket.get(), hello, sizeof hello, 0) == sizeof hello);
  unsigned char alert[7]{};
  BOOST_TEST(recv(socket.get(), alert, sizeof alert, MSG_WAITALL) == sizeof alert);
  BOOST_TEST((alert[0] == 21 && alert[6] == 70)); // what protocol_version is called in all versions
  BOOST_TEST(logged("offers a version of TLS before 1.3, and links have no other"), hosts);
  BOOST_TEST(counted("links_refused", 1));
}

// Each of the two says that the other one leads to c: no text that one of them reads goes in circles.
BOOST_AUTO_TEST_CASE(relays_that_lead_to_each_other) {
  Hosts circle(2, {"--connect-timeout-s", "2"});
  const std::string settings = circle.directory() + "/parcd.toml";
  std::string known;
  std::getline(std::ifstream(settings), known, '\0');
  for (std::size_t host = 0; host < 2; ++host) {
    std::ofstream(settings) << known << "c = { address = \"127.0.0.1\", port = 1, via = \""
                            << circle[1 - host].name() << "\" }\n";
    circle[host].kernel().signal(SIGHUP);
    BOOST_REQUIRE(eventually(
        [&] { return circle[host].log().find("read the configuration again") != std::string::npos; }));
  }
  for (std::size_t host = 0; host < 2; ++host) {
    Process asked = circle.parc("hosts", {"--hosts", "c", "--json"}, host);
    BOOST_TEST(asked.wait() == 1, asked);
    const std::string why = nlohmann::json::parse(asked.output())["hosts"][0].value("why", "");
    BOOST_TEST(why.find(": it leads in circles") != std::string::npos, why << circle);
  }
  Process job = circle.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "1000", "20"});
  BOOST_TEST(job.wait() == 0, job << circle);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
