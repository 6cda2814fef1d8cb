// SPDX-License-Identifier: BSD-3-Clause
// parc status and parc top have room in 80 columns for long names and large numbers.
#include "include/parc/parc.h"
#include "tools/parc/view/status_view.hpp"
#include "tools/parc/view/top_view.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>

namespace parc::tools {

BOOST_AUTO_TEST_SUITE(views)

namespace {

constexpr Display eighty{.columns = 80, .terminal = true};
constexpr std::uint64_t much = 0xffff'ffff'ffff'ffff, jobs_id = 0xfedc'ba98'7654'3210,
                        long_ago_s = 99 * 86400 + 86399;
constexpr double fast = 1e15; // a second

CounterSnapshot::Link long_link() {
  return {.peer = std::string(64, 'h'),
          .state = LinkState::Reconnecting,
          .identity = 1,
          .bytes_in = much,
          .bytes_out = much,
          .credit = much,
          .rtt_us = 99'999'999,
          .unacknowledged = much,
          .carriers = much,
          .queue = much};
}

ProgramView long_program(std::uint64_t job) {
  ProgramView view;
  view.counted = {.job = job, .rank = 65535, .pid = 4'194'304, .reads = much, .writes = much};
  view.seen = {.rank = 65535, .program = std::string(40, 'p'), .joined = true, .resting = true};
  view.seen.operations = {{.peer = 65535, .tag = 2'147'483'647, .bytes = much, .age_ms = 5'999'999'999},
                          {.peer = 65535, .context = PARC_CONTEXT_RESERVED, .bytes = 1023, .age_ms = 1}};
  view.seen.more = much;
  view.seen.neighbours.bytes = much;
  view.seen.neighbours.memory = "in place";
  view.seen.backlog = {much, much, much, much, much, much, much};
  return view;
}

KernelView long_view(bool alive) {
  KernelView view;
  view.kernel.alive = alive;
  view.kernel.stopped = alive;
  view.kernel.elsewhere = true;
  view.kernel.pid = 4'194'304;
  view.kernel.host = std::string(64, 'h');
  view.kernel.scheduling = "normal, with a slice of 0.1 ms (real-time is not permitted)";
  view.kernel.listens = "192.168.100.100, 2001:db8:1234:5678:9abc:def0:1234:5678 and 127.0.0.1, port 65535";
  view.kernel.program = "10.11.12";
  view.kernel.values.fill(much);
  view.kernel.links = {long_link()};
  view.kernel.jobs = {{.id = jobs_id, .ranks = 65536, .state = JobState::Starting}};
  view.programs = {long_program(jobs_id), long_program(jobs_id - 1)};
  return view;
}

MachineView long_machine() {
  return {.machine = {.processor = "Some(R) Processor(TM) with many words CPU 9999X v7 @ 2.99GHz",
                      .cores = 1024,
                      .memory = 4ull << 40,
                      .system = "Linux 10.11.12-13-name-of-a-distribution-amd64"},
          .load = 1234.5};
}

Rates long_rates(bool alive) {
  Rates rates;
  rates.kernel = long_view(alive).kernel;
  rates.kernel.stopped = false;
  rates.counters.fill(fast);
  rates.thread = {.core = 1, .delay_us = 99'999'999};
  rates.links = {
      {.link = long_link(), .in = {fast, fast}, .out = {fast, fast}, .stalls = fast, .resent_bytes = fast}};
  rates.programs = {{.program = long_program(jobs_id),
                     .in = {fast, fast},
                     .out = {fast, fast},
                     .waits = fast,
                     .thread = {.core = 12.34, .delay_us = 99'999'999}}};
  return rates;
}

std::string text_of(const Page& page) {
  std::string text;
  for (const Line& line : page.lines()) {
    BOOST_TEST(line.text.size() <= 80U, line.text);
    text += line.text + '\n';
  }
  return text;
}

Style style_of(const Page& page, const std::string& word) {
  const auto found = std::ranges::find_if(
      page.lines(), [&](const Line& line) { return line.text.find(word) != line.text.npos; });
  BOOST_REQUIRE_MESSAGE(found != page.lines().end(), "no " + word);
  return found->style;
}

} // namespace

BOOST_AUTO_TEST_CASE(status_has_room_in_80_columns) {
  const std::string text = text_of(status_page(long_view(true), long_machine(), true, long_ago_s, eighty));
  for (const char* whole :
       {"fedcba9876543210", "reconnecting", "99 days 23 h", "16.0 EiB", "4194304", "65535", "2147483647",
        "read from 65535", "barrier, from 65535", "kill -CONT 4194304"})
    BOOST_TEST(text.find(whole) != text.npos, whole << " in\n" << text);
  text_of(status_page(long_view(false), long_machine(), true, long_ago_s, eighty));
}

BOOST_AUTO_TEST_CASE(top_has_room_in_80_columns) {
  for (const SortKey& key : sort_keys()) {
    const std::string text =
        text_of(top_page(long_rates(true), key, {.kernels = "0-63,128-191", .all = 1024}, eighty));
    for (const char* whole :
         {"reconnecting", "100000 ms", "909 TiB", "65535", "waits", "1234 %", "read from 65535"})
      BOOST_TEST(text.find(whole) != text.npos, key.name << ": " << whole << " in\n" << text);
  }
  text_of(top_page(long_rates(false), sort_keys().front(), {}, eighty));
}

BOOST_AUTO_TEST_CASE(a_wide_terminal_shows_more) {
  const Display wide{.columns = 200, .terminal = true};
  for (const char* title : {"CONNECTIONS", "UNACKNOWLEDGED", "TO NEIGHBOURS", "ITS MEMORY"}) {
    const Page page = status_page(long_view(true), long_machine(), false, 0, wide);
    BOOST_TEST((style_of(page, title) == Style::title), title);
  }
  const Page page = top_page(long_rates(true), sort_keys().front(), {.kernels = "0", .all = 1}, wide);
  for (const char* title : {"MESSAGES IN/s", "STALLS/s", "MESSAGES OUT/s", "WAITS/s", "DELAY"})
    BOOST_TEST((style_of(page, title) == Style::title), title);
}

BOOST_AUTO_TEST_CASE(what_is_unwell_stands_out) {
  const Page page = status_page(long_view(true), long_machine(), false, 0, eighty);
  BOOST_TEST((style_of(page, "lets it go on") == Style::bad));
  BOOST_TEST((style_of(page, "reconnecting") == Style::warning));
  BOOST_TEST((style_of(page, "read from") == Style::warning));
  BOOST_TEST((style_of(page, "barrier") == Style::plain)); // it has just begun
  BOOST_TEST(
      (style_of(status_page(long_view(false), long_machine(), false, 0, eighty), "DEAD") == Style::bad));
  BOOST_TEST((style_of(top_page(long_rates(false), sort_keys().front(), {}, eighty), "DEAD") == Style::bad));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::tools
