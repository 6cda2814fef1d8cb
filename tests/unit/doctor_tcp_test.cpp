// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/doctor_test.hpp"
#include "tools/parc/doctor/doctor_checks.hpp"

namespace parc::tools::diagnosis {

BOOST_AUTO_TEST_SUITE(doctor_tcp)

namespace {

const User ann{.id = 1000, .name = "ann"}, root{.id = 0, .name = "root"};
const Path example{}, near_by{.to = "b", .rtt_us = 200}, far_away{.to = "b", .rtt_us = 100'000};

TcpFacts stock() { // Debian 12's
  TcpFacts facts;
  facts.rmem_max = facts.wmem_max = 212992;
  facts.tcp_rmem = 6291456;
  facts.tcp_wmem = 4194304;
  facts.congestion = "cubic";
  facts.allowed = facts.available = {"reno", "cubic"};
  facts.slow_start_after_idle = facts.window_scaling = true;
  return facts;
}

TcpFacts tuned() {
  TcpFacts facts = stock();
  facts.rmem_max = facts.wmem_max = facts.tcp_rmem = facts.tcp_wmem = 64 << 20;
  facts.congestion = "bbr";
  facts.available = {"reno", "cubic", "bbr"};
  facts.allowed = facts.available;
  return facts;
}

Level worst(const Findings& findings) {
  Level level = Level::ok;
  for (const Finding& finding : findings) level = std::max(level, finding.level);
  return level;
}

} // namespace

BOOST_AUTO_TEST_CASE(nothing_hurts_short_links) {
  BOOST_TEST(worst(check_tcp(stock(), {}, near_by, ann)) == Level::ok);
  BOOST_TEST(worst(check_tcp(tuned(), {}, far_away, ann)) == Level::ok);
  BOOST_TEST(check_tcp({}, {}, example, ann).empty()); // of what no file says nothing is said
}

BOOST_AUTO_TEST_CASE(stock_settings_on_a_long_link) {
  const auto found = check_tcp(stock(), {}, example, ann);
  // 3 MiB in 50 ms; 6.25 MB are needed.
  expect(of(found, "receive buffer"), Level::warning, "3.0 MiB may be under way",
         "net.ipv4.tcp_rmem=\"4096 131072 16777216\"");
  expect(of(found, "receive buffer"), Level::warning,
         "503 Mbit/s with a round trip of 50 ms, taken as an example");
  expect(of(found, "send buffer"), Level::warning, "503 Mbit/s", "net.ipv4.tcp_wmem=\"4096 16384 16777216\"");
  expect(of(found, "send buffer limit"), Level::warning, "short messages wait behind long ones",
         "net.core.wmem_max=\"4194304\"");
  expect(of(found, "congestion control"), Level::information, "cubic", "modprobe tcp_bbr");
  expect(of(found, "slow start after idle"), Level::warning, "109 ms",
         "net.ipv4.tcp_slow_start_after_idle=\"0\"");
  expect(of(found, "window scaling"), Level::ok, "on");
}

BOOST_AUTO_TEST_CASE(measured_round_trips_count) {
  expect(of(check_tcp(stock(), {}, far_away, ann), "receive buffer"), Level::warning,
         "251 Mbit/s with the round trip of 100 ms to b");
}

BOOST_AUTO_TEST_CASE(what_parcd_overrides_counts) {
  Settings settings;
  settings.send_buffer = settings.receive_buffer = 1 << 20;
  const auto found = check_tcp(tuned(), settings, example, ann);
  expect(of(found, "receive buffer"), Level::warning, "receive_buffer = 1.0 MiB", "take receive_buffer out");
  expect(of(found, "send buffer"), Level::warning, "send_buffer = 1.0 MiB", "take send_buffer out");
  settings.send_buffer = settings.receive_buffer = 32 << 20;
  BOOST_TEST(worst(check_tcp(tuned(), settings, example, ann)) == Level::ok);
  TcpFacts capped = tuned();
  capped.wmem_max = 212992;
  expect(of(check_tcp(capped, settings, example, ann), "send buffer"), Level::warning, "208 KiB",
         "net.core.wmem_max");
}

BOOST_AUTO_TEST_CASE(congestion_control) {
  Settings settings;
  TcpFacts facts = stock();
  facts.congestion = "reno";
  expect(of(check_tcp(facts, settings, example, ann), "congestion control"), Level::warning, "reno",
         "modprobe");
  facts.available = {"reno", "cubic", "bbr"};
  expect(of(check_tcp(facts, settings, example, root), "congestion control"), Level::warning, "reno",
         "congestion = \"bbr\" in parcd.toml");
  expect(of(check_tcp(facts, settings, example, ann), "congestion control"), Level::warning, "reno",
         "modprobe");
  settings.congestion = "bbr";
  const auto found = check_tcp(facts, settings, example, ann);
  expect(of(found, "congestion control"), Level::ok, "bbr");
  expect(of(found, "slow start after idle"), Level::ok, "does not matter with bbr");
}

// By default only what the system uses is allowed to everybody, and root may take what is there.
BOOST_AUTO_TEST_CASE(cubic_for_short_links_where_bbr_is_the_systems) {
  TcpFacts facts = tuned();
  facts.allowed = {"reno", "bbr"};
  expect(of(check_tcp(facts, {}, example, ann), "short links"), Level::warning, "may not choose cubic",
         "net.ipv4.tcp_allowed_congestion_control=\"reno bbr cubic\"");
  expect(of(check_tcp(facts, {}, example, root), "short links"), Level::ok, "cubic in place of bbr");
}

BOOST_AUTO_TEST_CASE(windows_that_do_not_scale) {
  TcpFacts facts = tuned();
  facts.window_scaling = false;
  expect(of(check_tcp(facts, {}, near_by, ann), "window scaling"), Level::warning, "64 KiB",
         "tcp_window_scaling");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools::diagnosis
