// SPDX-License-Identifier: BSD-3-Clause
// Who connects to a kernel and proves nothing: silent, with garbage, in any number; and hosts that come all
// at once. The hosts of a job find each other all the same, and no kernel keeps itself busy with it.
#include "system/fd.hpp"
#include "tests/support/hosts.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>

namespace parc::test {
namespace {

constexpr std::size_t most_strangers = 64; // daemon/link/peers.cpp

Fd connect_to(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  BOOST_REQUIRE(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

bool is_closed(const Fd& socket) {
  char byte = 0;
  const ssize_t got = recv(socket.get(), &byte, 1, MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN);
}

std::size_t descriptors_of(pid_t process) {
  const std::filesystem::directory_iterator open("/proc/" + std::to_string(process) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(open), end(open)));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t number = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++number;
  return number;
}

void check_works(Hosts& hosts) {
  Process job = hosts.run({"--hosts", "a,b", PARC_TEST_PROGRAMS "/ring", "10000", "3"});
  BOOST_TEST(job.wait() == 0, job << hosts);
}

} // namespace

BOOST_AUTO_TEST_SUITE(strangers)

BOOST_AUTO_TEST_CASE(more_hosts_than_strangers_start_at_once) {
  constexpr std::size_t count = most_strangers + 8;
  // All on one machine: they take turns, and nobody is to give up meanwhile.
  Hosts hosts(count, {"--connect-timeout-s", "50", "--realtime", "off"});
  std::string names;
  for (std::size_t i = 0; i < count; ++i) names += (i == 0 ? "" : ",") + hosts[i].name();
  Process job = hosts.run({"--hosts", names, "true"});
  const int status = job.wait();
  BOOST_TEST(status == 0, status << ": " << job.errors() << hosts);
}

BOOST_AUTO_TEST_CASE(silent_connections_keep_no_host_out) {
  Hosts hosts(2);
  std::vector<Fd> silent;
  const auto fill = [&] {
    std::erase_if(silent, is_closed);
    while (silent.size() < most_strangers + 16) silent.push_back(connect_to(hosts[1].port()));
  };
  fill();
  Process job = hosts.run({"--hosts", "a,b", "true"});
  BOOST_TEST(eventually([&] { // who was closed comes again
    fill();
    return !job.running();
  }));
  BOOST_TEST(job.wait() == 0, job);
}

BOOST_AUTO_TEST_CASE(garbage_is_bounded_and_does_not_fill_the_log) {
  Hosts hosts(2);
  const std::size_t before = descriptors_of(hosts[0].kernel().id());
  std::vector<Fd> rude;
  std::size_t most = 0;
  for (int i = 0; i < 300; ++i) {
    rude.push_back(connect_to(hosts[0].port()));
    (void)send(rude.back().get(), "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL); // and stays
    most = std::max(most, descriptors_of(hosts[0].kernel().id()));
  }
  BOOST_TEST(most <= before + most_strangers + 1);
  BOOST_TEST(eventually([&] { return std::ranges::all_of(rude, is_closed); }));
  check_works(hosts);
  BOOST_TEST(count(hosts[0].log(), "what answers there is not a parcd") <= 3u, hosts[0].log());
}

// It reads the refusal, or does not; the kernel has said what it had to say, and sleeps until it lets go of
// it. One that is busy for that long makes millions of turns, one that polls a little after every event
// thousands on a fast machine.
BOOST_AUTO_TEST_CASE(who_is_refused_and_stays_keeps_no_kernel_busy) {
  Hosts hosts(1);
  const auto turns = [&] { return hosts.status()["counters"]["turns"].get<std::uint64_t>(); };
  const std::uint64_t before = turns();
  const std::size_t descriptors = descriptors_of(hosts[0].kernel().id());
  std::vector<Fd> rude;
  for (int i = 0; i < 3; ++i) {
    rude.push_back(connect_to(hosts[0].port()));
    (void)send(rude.back().get(), "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
    BOOST_TEST(eventually([&] { return is_closed(rude.back()); }));
  }
  BOOST_TEST(eventually([&] { return descriptors_of(hosts[0].kernel().id()) <= descriptors; }));
  BOOST_TEST(turns() - before < 100'000u);
}

BOOST_AUTO_TEST_CASE(visitors_wait_for_their_turn) {
  Hosts hosts(2);
  std::vector<Fd> silent;
  for (int i = 0; i < 70; ++i) silent.push_back(visit(hosts[0].runtime_dir() + "/kernel.sock"));
  check_works(hosts);
}

BOOST_AUTO_TEST_CASE(without_descriptors_they_wait_and_the_kernel_rests) {
  Hosts hosts(2);
  const pid_t kernel = hosts[0].kernel().id();
  rlimit before{};
  BOOST_REQUIRE(prlimit(kernel, RLIMIT_NOFILE, nullptr, &before) == 0);
  const rlimit none{3, before.rlim_max}; // those that it has stay
  BOOST_REQUIRE(prlimit(kernel, RLIMIT_NOFILE, &none, nullptr) == 0);
  const Fd peer = connect_to(hosts[0].port());
  Process job = hosts.run({"--hosts", "a,b", "true"});
  BOOST_TEST(eventually([&] { return count(hosts[0].log(), "(RLIMIT_NOFILE)") != 0; }));
  const auto turns = [&] { return hosts.status()["counters"]["turns"].get<std::uint64_t>(); };
  const std::uint64_t before_it = turns();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(300));       // in which it would turn a hundred thousand times
  BOOST_TEST(turns() - before_it < 20'000u); // a few rests, each with some polling before it
  BOOST_TEST(job.running());
  BOOST_REQUIRE(prlimit(kernel, RLIMIT_NOFILE, &before, nullptr) == 0);
  BOOST_TEST(job.wait() == 0, job);
  BOOST_TEST(count(hosts[0].log(), "(RLIMIT_NOFILE)") <= 4u, hosts[0].log());
}

BOOST_AUTO_TEST_CASE(a_host_that_is_just_starting_is_tried_again) {
  Hosts hosts(2, {"--connect-timeout-s", "50"});
  hosts[1].kernel().signal(SIGKILL);
  BOOST_TEST(hosts[1].kernel().wait() == 128 + SIGKILL);
  Process job = hosts.start({"env", "PARC_AUTOSTART=off", PARC_TEST_BIN "/parc", "run", "--runtime-dir",
                             hosts[0].runtime_dir(), "--hosts", "a,b", "true"});
  hosts[1].start();
  BOOST_TEST(job.wait() == 0, job);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
