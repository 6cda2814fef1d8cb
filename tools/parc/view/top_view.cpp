// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/view/top_view.hpp"

#include "tools/parc/screen/units.hpp"
#include "tools/parc/talk/unwell.hpp"
#include "tools/parc/view/unfinished_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <numeric>

namespace parc::tools {
namespace {

std::string bytes_a_second(double bytes) {
  return bytes_text(static_cast<std::uint64_t>(bytes));
}

std::string count_a_second(double count) {
  return count > 0 && count < 10 ? fmt::format("{:.1f}", count)
                                 : count_text(static_cast<std::uint64_t>(std::round(count)));
}

// The room of each, so that columns stay where they are from look to look.
constexpr std::size_t bytes_width = 8, count_width = 6, time_width = 8;

std::string core_share(double core) {
  return fmt::format("{:.0f} %", 100 * core);
}

std::string delay_text(const ThreadRates& thread) {
  if (thread.delay_us == 0) return "-";
  return thread.delay_us < 1000 ? fmt::format("{:.1f} us", thread.delay_us)
                                : round_trip_text(static_cast<std::uint64_t>(thread.delay_us));
}

double oldest_ms(const ProgramRates& program) {
  const RankState& seen = program.program.seen;
  return seen.resting && !seen.operations.empty() ? static_cast<double>(seen.operations.front().age_ms) : -1;
}

constexpr std::array all_keys{
    SortKey{'r', "rank", nullptr},
    SortKey{'o', "out", [](const ProgramRates& program) { return program.out.bytes; }},
    SortKey{'i', "in", [](const ProgramRates& program) { return program.in.bytes; }},
    SortKey{'m', "messages",
            [](const ProgramRates& program) { return program.in.messages + program.out.messages; }},
    SortKey{'w', "waits", oldest_ms},
    SortKey{'c', "core", [](const ProgramRates& program) { return program.thread.core; }},
    SortKey{'d', "delay", [](const ProgramRates& program) { return program.thread.delay_us; }},
};

void add_heading(Page& page, const Rates& rates, const Cores& cores) {
  const CounterSnapshot& kernel = rates.kernel;
  if (!kernel.alive)
    return page.add(fmt::format("kernel of host {}: {} (was process {}); these are its last counters",
                                kernel.host, kernel.end_word(), kernel.pid),
                    kernel.ended ? Style::warning : Style::bad);
  if (kernel.stopped)
    return page.add(fmt::format("kernel of host {}: process {} {}; {} lets it go on", kernel.host, kernel.pid,
                                unwell::is_stopped, unwell::if_stopped(static_cast<pid_t>(kernel.pid))),
                    Style::bad);
  const auto rate = [&](Counter counter) {
    return count_a_second(rates.counters[static_cast<std::size_t>(counter)]);
  };
  const auto errors =
      std::accumulate(kernel.error_totals.begin(), kernel.error_totals.end(), std::uint64_t{0});
  page.add(fmt::format("kernel of host {}: process {}, {}, {} of a core, cores {}", kernel.host, kernel.pid,
                       kernel.scheduling, core_share(rates.thread.core), cores.kernels));
  page.add(fmt::format("a second: {} turns, {} sleeps, {} wakes, {} copied", rate(Counter::Turns),
                       rate(Counter::Sleeps), rate(Counter::Wakes),
                       bytes_a_second(rates.counters[static_cast<std::size_t>(Counter::CopyBytes)])));
  page.add(fmt::format("woken to running {}; {} unexpected messages a second; {} errors so far",
                       delay_text(rates.thread), rate(Counter::Unexpected), count_text(errors)));
  page.add(fmt::format("beside them others take {:.1f} of this machine's {} cores", rates.others, cores.all),
           2 * rates.others > cores.all ? Style::warning : Style::plain);
}

Column bytes_column(std::string title, unsigned spare = 0) {
  return {.title = std::move(title), .number = true, .spare = spare, .longest = bytes_width};
}

Column count_column(std::string title, unsigned spare = 0) {
  return {.title = std::move(title), .number = true, .spare = spare, .longest = count_width};
}

Column time_column(std::string title, unsigned spare = 0) {
  return {.title = std::move(title), .number = true, .spare = spare, .longest = time_width};
}

Table links_of(const Rates& rates) {
  Table table{{{.title = "LINK", .name = true},
               {"STATE"},
               time_column("RTT"),
               bytes_column("IN/s"),
               bytes_column("OUT/s"),
               count_column("MESSAGES IN/s", 2),
               count_column("OUT/s", 2),
               bytes_column("CREDIT"),
               count_column("QUEUE"),
               count_column("STALLS/s", 3),
               bytes_column("RESENT/s", 1)},
              {}};
  for (const LinkRates& each : rates.links)
    table.rows.emplace_back(
        std::vector<std::string>{
            each.link.peer, std::string(name(each.link.state)), round_trip_text(each.link.rtt_us),
            bytes_a_second(each.in.bytes), bytes_a_second(each.out.bytes), count_a_second(each.in.messages),
            count_a_second(each.out.messages), bytes_text(each.link.credit), count_text(each.link.queue),
            count_a_second(each.stalls), bytes_a_second(each.resent_bytes)},
        each.link.state != LinkState::Up || each.resent_bytes > 0 ? Style::warning : Style::plain);
  return table;
}

// The oldest of what it has not finished; one that runs does not wait for it yet.
std::string waits_for(const RankState& rank) {
  return rank.operations.empty() ? "" : operation_text(rank.operations.front());
}

// Where there is no room for all, bytes give way to what the ranks are sorted by.
std::vector<Column> columns_of_ranks(const SortKey& sorted_by) {
  const bool messages = sorted_by.name == "messages", delay = sorted_by.name == "delay";
  const unsigned bytes_spare = messages || delay ? 1 : 0;
  return {{.title = "JOB", .name = true},
          {"RANK", true},
          {.title = "PROGRAM", .name = true},
          {"STATE"},
          bytes_column("OUT/s", bytes_spare),
          bytes_column("IN/s", bytes_spare),
          count_column("MESSAGES OUT/s", messages ? 0 : 3),
          count_column("IN/s", messages ? 0 : 3),
          count_column("WAITS/s", 4),
          {.title = "CORE", .number = true, .longest = 5},
          time_column("DELAY", delay ? 0 : 2),
          {"NOT FINISHED"},
          {"SINCE", true}};
}

Table ranks_of(const Rates& rates, const SortKey& sorted_by) {
  Table table{columns_of_ranks(sorted_by), {}};
  std::vector<const ProgramRates*> sorted;
  for (const ProgramRates& each : rates.programs) sorted.push_back(&each);
  if (sorted_by.value != nullptr)
    std::ranges::stable_sort(sorted, std::greater(),
                             [&](const auto* each) { return sorted_by.value(*each); });
  for (const ProgramRates* each : sorted) {
    const RankState& seen = each->program.seen;
    table.rows.emplace_back(
        std::vector<std::string>{
            job_name(each->program.counted.job), fmt::to_string(each->program.counted.rank), seen.program,
            std::string(doing(seen)), bytes_a_second(each->out.bytes), bytes_a_second(each->in.bytes),
            count_a_second(each->out.messages), count_a_second(each->in.messages),
            count_a_second(each->waits), core_share(each->thread.core), delay_text(each->thread),
            waits_for(seen), seen.operations.empty() ? "" : age_text(seen.operations.front().age_ms)},
        waits_long(seen) ? Style::warning : Style::plain);
  }
  return table;
}

} // namespace

std::span<const SortKey> sort_keys() {
  return all_keys;
}

const SortKey* find_sort_key(std::string_view name) {
  const auto* const found = std::ranges::find(all_keys, name, &SortKey::name);
  return found == all_keys.end() ? nullptr : found;
}

Page top_page(const Rates& rates, const SortKey& sorted_by, const Cores& cores, const Display& display) {
  Page page(display);
  add_heading(page, rates, cores);
  page.add(links_of(rates));
  page.add(ranks_of(rates, sorted_by));
  return page;
}

} // namespace parc::tools
