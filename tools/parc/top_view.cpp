// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/top_view.hpp"

#include "tools/parc/unfinished_table.hpp"
#include "tools/parc/unwell.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <functional>
#include <numeric>

namespace parc::tools {
namespace {

std::string bytes_a_second(double bytes) {
  return bytes_text(static_cast<std::uint64_t>(bytes));
}

std::string count_a_second(double count) {
  return count > 0 && count < 10 ? fmt::format("{:.1f}", count) : fmt::format("{:.0f}", count);
}

std::string core_share(double core) {
  return fmt::format("{:.0f} %", 100 * core);
}

std::string delay_text(const ThreadRates& thread) {
  return thread.delay_us == 0 ? "-" : fmt::format("{:.1f} us", thread.delay_us);
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

std::vector<std::string> heading_of(const Rates& rates, const std::string& cores) {
  const CounterSnapshot& kernel = rates.kernel;
  if (!kernel.alive)
    return {fmt::format("kernel of host {}: {} (was process {}); these are its last counters", kernel.host,
                        kernel.end_word(), kernel.pid)};
  if (kernel.stopped)
    return {fmt::format("kernel of host {}: process {} {}; {} lets it go on", kernel.host, kernel.pid,
                        unwell::is_stopped, unwell::if_stopped(static_cast<pid_t>(kernel.pid)))};
  const auto rate = [&](Counter counter) {
    return count_a_second(rates.counters[static_cast<std::size_t>(counter)]);
  };
  const auto errors =
      std::accumulate(kernel.error_totals.begin(), kernel.error_totals.end(), std::uint64_t{0});
  return {fmt::format("kernel of host {}: process {}, {}, cores {}, {} of one, woken to running {}",
                      kernel.host, kernel.pid, kernel.scheduling, cores, core_share(rates.thread.core),
                      delay_text(rates.thread)),
          fmt::format(
              "a second: {} turns, {} sleeps, {} wakes, {} unexpected messages, {} copied; {} errors so far",
              rate(Counter::Turns), rate(Counter::Sleeps), rate(Counter::Wakes), rate(Counter::Unexpected),
              bytes_a_second(rates.counters[static_cast<std::size_t>(Counter::CopyBytes)]), errors)};
}

TopView::Table links_of(const Rates& rates) {
  TopView::Table table{{{"LINK", false},
                        {"STATE", false},
                        {"RTT", true},
                        {"IN/s", true},
                        {"OUT/s", true},
                        {"MESSAGES IN/s", true},
                        {"OUT/s", true},
                        {"CREDIT", true},
                        {"QUEUE", true},
                        {"STALLS/s", true},
                        {"RESENT/s", true}},
                       {}};
  for (const LinkRates& each : rates.links)
    table.rows.push_back({each.link.peer, std::string(name(each.link.state)),
                          fmt::format("{:.3f} ms", static_cast<double>(each.link.rtt_us) / 1e3),
                          bytes_a_second(each.in.bytes), bytes_a_second(each.out.bytes),
                          count_a_second(each.in.messages), count_a_second(each.out.messages),
                          bytes_text(each.link.credit), fmt::to_string(each.link.queue),
                          count_a_second(each.stalls), bytes_a_second(each.resent_bytes)});
  return table;
}

// The oldest of what it has not finished; one that runs does not wait for it yet.
std::string waits_for(const RankState& rank) {
  return rank.operations.empty() ? "" : operation_text(rank.operations.front());
}

TopView::Table ranks_of(const Rates& rates, const SortKey& sorted_by) {
  TopView::Table table{{{"JOB", false},
                        {"RANK", true},
                        {"PROGRAM", false},
                        {"STATE", false},
                        {"OUT/s", true},
                        {"IN/s", true},
                        {"MESSAGES OUT/s", true},
                        {"IN/s", true},
                        {"WAITS/s", true},
                        {"CORE", true},
                        {"DELAY", true},
                        {"NOT FINISHED", false},
                        {"SINCE", true}},
                       {}};
  std::vector<const ProgramRates*> sorted;
  for (const ProgramRates& each : rates.programs) sorted.push_back(&each);
  if (sorted_by.value != nullptr)
    std::ranges::stable_sort(sorted, std::greater(),
                             [&](const auto* each) { return sorted_by.value(*each); });
  for (const ProgramRates* each : sorted) {
    const RankState& seen = each->program.seen;
    table.rows.push_back({job_name(each->program.counted.job), fmt::to_string(each->program.counted.rank),
                          seen.program, std::string(doing(seen)), bytes_a_second(each->out.bytes),
                          bytes_a_second(each->in.bytes), count_a_second(each->out.messages),
                          count_a_second(each->in.messages), count_a_second(each->waits),
                          core_share(each->thread.core), delay_text(each->thread), waits_for(seen),
                          seen.operations.empty() ? "" : age_text(seen.operations.front().age_ms)});
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

TopView top_view(const Rates& rates, const SortKey& sorted_by, const std::string& cores) {
  return {heading_of(rates, cores), links_of(rates), ranks_of(rates, sorted_by)};
}

} // namespace parc::tools
