// SPDX-License-Identifier: BSD-3-Clause
// Hosts that [hosts] says are reached via others: the same text at all of them, as ssh's ProxyJump has it.
#include "tests/support/hosts.hpp"
#include "tests/support/moments.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <fstream>
#include <sys/stat.h>

namespace parc::test {
namespace {

using Json = nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

std::size_t times_in(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++times;
  return times;
}

struct TwoHeads {
  Hosts hosts{4};
  const std::string read = "read the configuration again";
  // a | b, a head of its site | c, one of the other site | d, which only c can dial
  TwoHeads() { say(true); }

  [[nodiscard]] std::string port(std::size_t host) { return std::to_string(hosts[host].port()); }
  // The text at all hosts, which read it again.
  void say(bool is_up) {
    std::ofstream(hosts.directory() + "/parcd.toml")
        << "key_file = \"" << hosts.directory() << "/key\"\n[hosts]\n"
        << "a = \"127.0.0.1:" << port(0) << "\"\nb = \"127.0.0.1:" << port(1) << "\"\n"
        << "c = { address = \"127.0.0.1\", port = " << port(2) << ", via = \"b\" }\n"
        << "d = { address = \"127.0.0.1\", port = " << (is_up ? port(3) : "1") << ", via = \"c\" }\n";
    read_again({0, 1, 2, 3});
  }
  void read_again(std::initializer_list<std::size_t> which) {
    for (const std::size_t i : which) {
      const std::size_t before = times_in(hosts[i].log(), read);
      hosts[i].kernel().signal(SIGHUP);
      BOOST_REQUIRE(eventually([&] { return times_in(hosts[i].log(), read) > before; }));
    }
  }
  Json row(const std::string& host, std::size_t on = 0) {
    Process asked = hosts.parc("hosts", {"--hosts", host, "--json"}, on);
    (void)asked.wait();
    return Json::parse(asked.output())["hosts"][0];
  }
  // Messages of up to 64 MiB, both ways, over both heads.
  Process far_job(unsigned seed) {
    BOOST_TEST_REQUIRE(row("d")["way"] == "relay", hosts);
    return hosts.run({"--hosts", "a,d", PARC_TEST_PROGRAMS "/random_messages", std::to_string(seed),
                      messages_of_test("50"), "64"});
  }
  // One of the heads' own, which never ends.
  Process own_job() {
    Process own = hosts.run({"--hosts", "b,c", PARC_TEST_PROGRAMS "/ring", "1000000", "0"}, 1);
    BOOST_TEST_REQUIRE(eventually([&] { return times_in(own.output(), "ready") == 2; }), own << hosts);
    return own;
  }
  Moments moments{[this] { return bytes_over_link(hosts.status(), "d"); }};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(via, TwoHeads)

BOOST_AUTO_TEST_CASE(a_job_over_two_heads) {
  BOOST_TEST(row("d")["way"] == "relay");
  BOOST_TEST(row("c")["way"] == "relay");
  BOOST_TEST(row("b")["way"] == "direct");
  BOOST_TEST(row("d", 2)["way"] == "direct"); // via itself
  Process job = hosts.run({"--hosts", "a,b,c,d", PARC_TEST_PROGRAMS "/random_messages", "3", "200"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
  Process ring = hosts.run({"--hosts", "a:2,d:2", PARC_TEST_PROGRAMS "/ring", "1000000", "20"});
  const int ended = ring.wait();
  BOOST_TEST(ended == 0, ring.errors() << hosts);
}

BOOST_AUTO_TEST_CASE(a_relay_is_killed_and_started_again) {
  BOOST_TEST_REQUIRE(row("c")["way"] == "relay");
  Process job = hosts.run({"--hosts", "a,c", PARC_TEST_PROGRAMS "/ring", "20000", "3000"});
  for (int round = 0; round < 3; ++round) {
    BOOST_TEST_REQUIRE(eventually([&] { return hosts.ranks().size() == 2u; }));
    hosts[1].kernel().signal(SIGKILL);
    (void)hosts[1].kernel().wait();
    hosts[1].start();
    BOOST_TEST_REQUIRE(eventually([&] { return row("c")["up"] == true; }), hosts);
  }
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
}

BOOST_AUTO_TEST_CASE(relays_with_jobs_of_their_own_are_stopped) {
  BOOST_TEST_CONTEXT("seed " << moments.seed()) {
    Process own = own_job(), job = far_job(moments.seed());
    int stops = 0;
    for (; moments.comes(job, 30'000'000); ++stops) {
      Process& relay = hosts[1 + moments.any_of(2)].kernel();
      relay.signal(SIGSTOP);
      moments.stand_still();
      relay.signal(SIGCONT);
    }
    const int status = job.wait();
    BOOST_TEST(status == 0, job.errors() << hosts);
    BOOST_TEST(stops > 0);
    BOOST_TEST(own.running(), own << hosts);
    own.signal(SIGTERM);
    BOOST_TEST(own.wait() == 128 + SIGTERM, own);
  }
}

// Their own jobs end with them, and what they relay goes on.
BOOST_AUTO_TEST_CASE(relays_with_jobs_of_their_own_are_killed) {
  BOOST_TEST_CONTEXT("seed " << moments.seed()) {
    Process job = far_job(moments.seed());
    int kills = 0;
    for (;; ++kills) {
      Process own = own_job();
      if (!moments.comes(job, 60'000'000)) break;
      Host& relay = hosts[1 + moments.any_of(2)];
      relay.kernel().signal(SIGKILL);
      (void)relay.kernel().wait();
      relay.start();
      BOOST_TEST(own.wait() > 0, own << hosts);
      BOOST_TEST_REQUIRE(eventually([&] { return row("d")["up"] == true; }), hosts);
    }
    const int status = job.wait();
    BOOST_TEST(status == 0, job.errors() << hosts);
    BOOST_TEST(kills > 0);
  }
}

// By addresses in a file, which lead to a kernel that only relays lead to.
BOOST_AUTO_TEST_CASE(two_jobs_that_know_each_other_by_address) {
  const std::string file = hosts.directory() + "/addresses";
  Process server = hosts.run({"--hosts", "d:2", PARC_TEST_PROGRAMS "/strangers", "serve", file, "2"}, 3);
  Process asker =
      hosts.run({"--hosts", "a:2", PARC_TEST_PROGRAMS "/strangers", "ask", file, "2", "undialed"});
  for (Process* each : {&asker, &server}) {
    const int status = each->wait();
    BOOST_TEST((status == 0 && each->errors() == ""), each->errors() << hosts);
  }
  BOOST_TEST(row("d")["way"] == "relay");
}

BOOST_AUTO_TEST_CASE(what_the_relay_met_is_said) {
  say(false);
  const std::string why = row("d")["why"];
  BOOST_TEST(contains(why, "the kernel of host c does not lead there: cannot reach host d: 127.0.0.1 port 1"),
             why);
}

// They can bring what is encrypted from end to end from one to the other, and nothing else.
BOOST_AUTO_TEST_CASE(heads_that_hold_only_a_relay_key) {
  const std::string settings = hosts.directory() + "/parcd.toml", relay_key = hosts.directory() + "/relay";
  Process printed = hosts.parcd({"--config", settings, "--relay-key"});
  BOOST_TEST_REQUIRE(printed.wait() == 0, printed);
  std::ofstream(relay_key) << printed.output();
  BOOST_TEST_REQUIRE(chmod(relay_key.c_str(), 0600) == 0);
  const auto write_settings = [&](const std::string& key) {
    std::ofstream(settings) << "key_file = \"" << key << "\"\n[hosts]\na = \"127.0.0.1:" << port(0)
                            << "\"\nb = { address = \"127.0.0.1\", port = " << port(1) << ", relay = true }\n"
                            << "c = { address = \"127.0.0.1\", port = " << port(2)
                            << ", via = \"b\", relay = true }\n"
                            << "d = { address = \"127.0.0.1\", port = " << port(3) << ", via = \"c\" }\n";
  };
  write_settings(relay_key);
  for (const std::size_t head : {1u, 2u}) {
    hosts[head].kernel().signal(SIGTERM);
    (void)hosts[head].kernel().wait();
    hosts[head].start();
  }
  write_settings(hosts.directory() + "/key");
  read_again({0, 3});
  BOOST_TEST(row("d")["way"] == "relay", hosts);
  Process job = hosts.run({"--hosts", "a,d", PARC_TEST_PROGRAMS "/random_messages", "3", "200"});
  const int status = job.wait();
  BOOST_TEST(status == 0, job.errors() << hosts);
  Process ring = hosts.run({"--hosts", "a:2,d:2", PARC_TEST_PROGRAMS "/ring", "1000000", "20"});
  const int ended = ring.wait();
  BOOST_TEST(ended == 0, ring.errors() << hosts);

  Process at_head = hosts.parc("hosts", {}, 1);
  BOOST_TEST(at_head.wait() == 0, at_head);
  BOOST_TEST(!contains(at_head.output(), "down"), at_head.output());
  BOOST_TEST(row("a", 1)["relays"] == true); // that is what its link is for
  BOOST_TEST(row("b")["relays"] == true);
  BOOST_TEST(row("b")["up"] == true);
  Process all = hosts.parc("hosts", {});
  BOOST_TEST(all.wait() == 0, all);
  BOOST_TEST(contains(all.output(), "relay - "), all.output());
  Process there = hosts.run({"--hosts", "a,b", "true"});
  BOOST_TEST(there.wait() != 0);
  BOOST_TEST(contains(there.errors(), "host b only relays"), there.errors());
  Process from_there = hosts.run({"--hosts", "a,b", "true"}, 1);
  BOOST_TEST(from_there.wait() != 0);
  BOOST_TEST(contains(from_there.errors(), "this host's kernel holds a relay key, and only relays"),
             from_there.errors());
  Process up = hosts.parc("up", {"--hosts", "a,b"});
  BOOST_TEST(up.wait() == 1);
  BOOST_TEST(contains(up.errors(), "host b only relays"), up.errors());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
