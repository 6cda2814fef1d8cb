// SPDX-License-Identifier: BSD-3-Clause
#include "system/fd.hpp"
#include "tests/unit/doctor_test.hpp"
#include "tools/parc/doctor/doctor_far.hpp"
#include "tools/parc/doctor/doctor_hosts.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

namespace parc::tools::diagnosis {

BOOST_AUTO_TEST_SUITE(doctor_hosts)

namespace {

Settings two_hosts() {
  Settings settings;
  settings.name = "a";
  settings.listen = {"127.0.0.1"};
  settings.hosts = {{"a", {"10.0.0.1", 7272}}, {"b", {"10.0.0.2", 7300}}};
  return settings;
}

CounterSnapshot linked_to(const std::string& peer) {
  CounterSnapshot counters;
  counters.alive = true;
  counters.links = {{.peer = peer, .state = LinkState::Up, .rtt_us = 1500}};
  return counters;
}

Reach reached(std::optional<int> failed) {
  Reach reach;
  reach.target = {.host = "b", .address = "10.0.0.2", .port = 7300};
  reach.place = "10.0.0.2:7300";
  reach.from = "10.0.0.1";
  reach.failed = failed;
  return reach;
}

std::string place(const char* text) {
  const auto target = parse_target(text);
  return target ? target.value().host + " " + place_of(target.value().address, target.value().port)
                : "refused";
}

std::string answer(double began, double ended, const char* version = "1.0", unsigned wire = 5) {
  return nlohmann::json{
      {"schema", 1},
      {"version", version},
      {"wire", wire},
      {"clock", {{"began", began}, {"ended", ended}}},
      {"findings",
       {{{"group", "hosts"},
         {"check", "to a"},
         {"level", "problem"},
         {"found", "10.0.0.1:7272 does not answer"},
         {"mend", "let it in"}},
        {{"group", "cores"}, {"check", "cores"}, {"level", "ok"}, {"found", "4"}, {"mend", ""}},
        {{"group", "TCP"},
         {"check", "window scaling"},
         {"level", "warning"},
         {"found", "off"},
         {"mend", "sysctl"}}}}}
      .dump();
}

const Versions ours{.parc = "1.0", .wire = 5};

Findings far(std::string output) {
  return check_far(
      {.host = "b", .asked = 100, .answered = 101, .output = std::move(output), .why = "no route"}, ours,
      "a");
}

} // namespace

BOOST_AUTO_TEST_CASE(places_of_hosts) {
  BOOST_TEST(place("b=10.0.0.2:7300") == "b 10.0.0.2:7300");
  BOOST_TEST(place("b=10.0.0.2") == "b 10.0.0.2:7272");
  BOOST_TEST(place("b=fe80::1") == "b [fe80::1]:7272");
  BOOST_TEST(place("b=[fe80::1]:80") == "b [fe80::1]:80");
  for (const char* wrong : {"", "b", "=x", "b=", "b=:1", "b=x:0", "b=x:70000", "b=x:1y", "b=[::1", "b=[]:1"})
    BOOST_TEST(place(wrong) == "refused", wrong);
}

BOOST_AUTO_TEST_CASE(whom_to_reach) {
  const Settings settings = two_hosts();
  auto targets = find_targets(settings, {}, {}, {});
  BOOST_TEST_REQUIRE(targets.size() == 1U); // not this host
  BOOST_TEST(targets[0].port == 7300);
  BOOST_TEST(!targets[0].linked);
  targets = find_targets(settings, linked_to("b"), {}, {});
  BOOST_TEST_REQUIRE(targets.size() == 1U);
  BOOST_TEST(targets[0].linked);
  targets = find_targets(settings, linked_to("c"), {}, {});
  BOOST_TEST_REQUIRE(targets.size() == 2U);
  BOOST_TEST(!targets[1].named); // where it is only the kernel knows
  targets = find_targets(settings, linked_to("c"), {"d", "a", "b"}, {});
  BOOST_TEST_REQUIRE(targets.size() == 2U);
  BOOST_TEST(targets[0].address == "d");
  BOOST_TEST(targets[0].port == 7272);
  BOOST_TEST(targets[1].address == "10.0.0.2");
  targets = find_targets(settings, {}, {"b"}, {{.host = "b", .address = "127.0.0.9", .port = 9}});
  BOOST_TEST_REQUIRE(targets.size() == 1U);
  BOOST_TEST(targets[0].address == "127.0.0.9");
}

BOOST_AUTO_TEST_CASE(what_becomes_of_an_attempt) {
  expect(check_reach(reached({})), Level::ok, "10.0.0.2:7300 accepts connections");
  expect(check_reach(reached(ECONNREFUSED)), Level::problem, "refuses", "parcd --detach --listen 0.0.0.0");
  expect(check_reach(reached(ETIMEDOUT)), Level::problem, "firewall", "--add-port=7300/tcp");
  expect(check_reach(reached(EHOSTUNREACH)), Level::problem, "No route to host", "ip route get 10.0.0.2");
  Reach nameless = reached({});
  nameless.unresolved = "Name or service not known";
  expect(check_reach(nameless), Level::problem, "not known", "under [hosts]");
  Reach here = reached({});
  here.is_here = true;
  expect(check_reach(here), Level::problem, "this host itself", "/etc/hosts");
}

BOOST_AUTO_TEST_CASE(links_of_the_kernel) {
  Reach link = reached({});
  link.target.linked = true;
  link.target.rtt_us = 1500;
  expect(check_reach(link), Level::ok, "round trip 1.500 ms");
  link.failed = ECONNREFUSED; // it was made from there
  expect(check_reach(link), Level::warning, "could not make it again", "under [hosts]");
  link.target.named = false;
  link.failed.reset();
  expect(check_reach(link), Level::ok, "linked");
  link.target.reconnecting = true;
  expect(check_reach(link), Level::problem, "broken", "parc doctor --hosts b");
}

BOOST_AUTO_TEST_CASE(the_longest_round_trip_counts) {
  BOOST_TEST(longest_path({}).to == "");
  BOOST_TEST(longest_path({}).rtt_us == 50'000U);
  Reach connected = reached({}), linked = reached({}), silent = reached(ETIMEDOUT);
  BOOST_TEST(longest_path({silent}).to == "");
  connected.rtt_us = 300;
  BOOST_TEST(longest_path({connected, silent}).rtt_us == 300U); // not the example, which is longer
  linked.target.host = "c";
  linked.target.rtt_us = 20'000;
  linked.rtt_us = 90'000; // of one packet
  BOOST_TEST(longest_path({connected, linked, silent}).to == "c");
  BOOST_TEST(longest_path({connected, linked, silent}).rtt_us == 20'000U);
}

BOOST_AUTO_TEST_CASE(who_listens_on_loopback_only) {
  Settings settings = two_hosts();
  expect(check_listening(settings, {}), Level::information, "which other hosts do not reach",
         "listen = \"0.0.0.0\"");
  expect(check_listening(settings, {reached({})}), Level::problem, "127.0.0.1", "listen = \"0.0.0.0\"");
  settings.listen = {"0.0.0.0"};
  expect(check_listening(settings, {reached({})}), Level::ok, "on 0.0.0.0");
}

BOOST_AUTO_TEST_CASE(ports_are_tried) {
  const Fd open(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      closed(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto port_of = [](const Fd& socket) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    BOOST_TEST_REQUIRE(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
    BOOST_TEST_REQUIRE(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    return ntohs(address.sin_port);
  };
  const std::uint16_t at = port_of(open), nobody_at = port_of(closed);
  BOOST_TEST_REQUIRE(listen(open.get(), 1) == 0);
  const std::vector<Target> targets{{.host = "b", .address = "127.0.0.1", .port = at},
                                    {.host = "c", .address = "127.0.0.1", .port = nobody_at},
                                    {.host = "d", .address = "no.such.host.invalid", .port = 1},
                                    {.host = "e", .address = "localhost", .port = at},
                                    {.host = "f", .address = {}, .port = 0, .named = false}};
  const auto reaches = reach(targets, std::chrono::seconds(50));
  BOOST_TEST_REQUIRE(reaches.size() == 5U);
  BOOST_TEST(!reaches[0].failed.has_value());
  BOOST_TEST(reaches[0].from == "127.0.0.1");
  BOOST_TEST(reaches[0].rtt_us != 0U);
  BOOST_TEST(reaches[0].place == place_of("127.0.0.1", at));
  BOOST_TEST(!reaches[0].is_here); // in so many numbers
  BOOST_TEST(reaches[1].failed.value() == ECONNREFUSED);
  BOOST_TEST(!reaches[2].unresolved.empty());
  BOOST_TEST(reaches[3].is_here);
  BOOST_TEST(reaches[4].place.empty());
}

BOOST_AUTO_TEST_CASE(what_another_host_says) {
  const auto found = far(answer(100.25, 100.75));
  BOOST_TEST(found.size() == 4U);
  BOOST_TEST(found[0].check == "to a");
  expect(found[0], Level::problem, "does not answer", "let it in");
  expect(of(found, "version"), Level::ok, "parc 1.0");
  expect(of(found, "clock"), Level::ok, "as here, give or take 0.250 s");
  expect(of(found, "window scaling"), Level::warning, "off", "sysctl");
}

BOOST_AUTO_TEST_CASE(clocks) {
  expect(of(far(answer(90.2, 90.8)), "clock"), Level::warning, "-10.000 s, give or take 0.200 s", "set-ntp");
  expect(of(far(answer(101.1, 101.2)), "clock"), Level::ok, "+0.650 s, give or take 0.450 s");
  expect(of(far(answer(102.1, 102.2)), "clock"), Level::warning, "+1.650 s, give or take 0.450 s", "on b");
}

BOOST_AUTO_TEST_CASE(versions) {
  expect(of(far(answer(100, 101, "1.1")), "version"), Level::warning, "parc 1.1", "upgrade the older one");
  expect(of(far(answer(100, 101, "1.1", 6)), "version"), Level::problem, "wire 6", "upgrade this host");
  expect(of(far(answer(100, 101, "0.9", 4)), "version"), Level::problem, "wire 4", "upgrade b");
}

BOOST_AUTO_TEST_CASE(who_does_not_answer) {
  expect(of(far(""), "login"), Level::warning, "no route", "ssh b");
  for (const char* wrong :
       {"[]", "3", "{}", "{\"clock\": 3}", "{\"clock\": {\"began\": \"x\"}}", "{\"version\": 3}"})
    expect(of(far(wrong), "login"), Level::warning, "", "parc");
}

BOOST_AUTO_TEST_CASE(hosts_that_do_not_reach_each_other) {
  BOOST_TEST(check_pairs({}).empty());
  const Findings well = check_pairs({.summary = "b and c reach each other, relayed"});
  BOOST_TEST_REQUIRE(well.size() == 1U);
  expect(well[0], Level::ok, "relayed");
  const Findings ill =
      check_pairs({.summary = "1 of the 3 pairs", .problems = {"b and c do not", "b and d do not"}});
  BOOST_TEST_REQUIRE(ill.size() == 2U);
  for (const Finding& each : ill) expect(each, Level::problem, "do not", "TCP port");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools::diagnosis
