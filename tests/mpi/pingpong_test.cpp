// SPDX-License-Identifier: BSD-3-Clause
// libfabric's own programs: fi_info says what the provider has, fi_pingpong sends by it.
#include "tests/mpi/fabric_environment.hpp"

#include <arpa/inet.h>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>

namespace parc::test {
namespace {

std::uint16_t free_port() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  BOOST_REQUIRE(bind(socket.get(), generic, length) == 0 && getsockname(socket.get(), generic, &length) == 0);
  return ntohs(address.sin_port);
}

// Without connecting: the server takes one caller only.
bool somebody_listens(std::uint16_t port) {
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state;
      words >> number >> local >> remote >> state;
      const auto colon = local.rfind(':');
      if (state == "0A" && colon != local.npos && std::stoul(local.substr(colon + 1), nullptr, 16) == port)
        return true;
    }
  }
  return false;
}

Process pingpong(Hosts& hosts, std::size_t host, const std::vector<std::string>& mode,
                 const std::vector<std::string>& where) {
  std::vector<std::string> words = on_host(hosts, host);
  append(words, {"fi_pingpong", "-p", "parc", "-e", "rdm"});
  append(words, mode);
  append(words, where);
  return hosts.start(words);
}

void check_mode(const std::vector<std::string>& mode, const std::string& last_size, std::size_t client_host) {
  Hosts hosts(2);
  const std::string port = std::to_string(free_port());
  Process server = pingpong(hosts, 0, mode, {"-B", port});
  BOOST_REQUIRE(eventually(
      [&] { return somebody_listens(static_cast<std::uint16_t>(std::stoul(port))) || !server.running(); }));
  Process client = pingpong(hosts, client_host, mode, {"-P", port, "127.0.0.1"});
  for (Process* each : {&client, &server}) {
    const int status = each->wait();
    BOOST_TEST((status == 0 && each->output().find("\n" + last_size) != std::string::npos),
               "status " << status << ": " << each->output() << each->errors() << hosts);
  }
}

} // namespace

BOOST_AUTO_TEST_SUITE(libfabric)

BOOST_AUTO_TEST_CASE(what_the_provider_has) {
  Hosts hosts(1);
  std::vector<std::string> words = on_host(hosts, 0);
  append(words, {"fi_info", "-p", "parc", "-t", "FI_EP_RDM"});
  Process info = hosts.start(words);
  BOOST_TEST(info.wait() == 0);
  for (const char* const line : {"provider: parc", "type: FI_EP_RDM"})
    BOOST_TEST(info.output().find(line) != std::string::npos, info.output() << info.errors());
}

BOOST_AUTO_TEST_CASE(who_does_not_name_it_does_not_see_it) {
  Hosts hosts(1);
  std::vector<std::string> words = on_host(hosts, 0);
  append(words, {"fi_info"});
  Process info = hosts.start(words);
  BOOST_TEST(info.wait() == 0);
  BOOST_TEST(info.output().find("parc") == std::string::npos, info.output());
}

BOOST_AUTO_TEST_CASE(pingpong_of_messages) {
  check_mode({"-m", "msg", "-c"}, "1m", 0);
  check_mode({"-m", "msg", "-c"}, "1m", 1);
}

BOOST_AUTO_TEST_CASE(pingpong_of_tagged_messages) {
  check_mode({"-m", "tagged", "-c"}, "1m", 0);
  check_mode({"-m", "tagged", "-c"}, "1m", 1);
  check_mode({"-m", "tagged", "-v"}, "1m", 1);
  check_mode({"-m", "tagged", "-I", "5000", "-S", "1"}, "1", 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
