// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/view/rates.hpp"

#include <algorithm>

namespace parc::tools {
namespace {

class Interval {
public:
  explicit Interval(std::chrono::duration<double> time) : seconds_(time.count()) {}
  [[nodiscard]] double rate(std::uint64_t before, std::uint64_t after) const {
    return after <= before || seconds_ <= 0 ? 0 : static_cast<double>(after - before) / seconds_;
  }
  [[nodiscard]] Flow flow(std::pair<std::uint64_t, std::uint64_t> before,
                          std::pair<std::uint64_t, std::uint64_t> after) const {
    return {rate(before.first, after.first), rate(before.second, after.second)};
  }

private:
  double seconds_;
};

using Totals = std::pair<std::uint64_t, std::uint64_t>; // messages and bytes

Totals sent(const ProgramView& program) {
  return {program.counted.messages_out + program.seen.neighbours.messages,
          program.counted.bytes_out + program.seen.neighbours.bytes};
}

Totals received(const ProgramView& program) {
  return {program.counted.messages_in + program.seen.neighbours.received,
          program.counted.bytes_in + program.seen.neighbours.received_bytes};
}

ThreadRates thread_rates(const Look& before, const Look& after, std::uint64_t process,
                         const Interval& interval) {
  const auto was = before.threads.find(process), is = after.threads.find(process);
  if (was == before.threads.end() || is == after.threads.end()) return {};
  const ThreadTimes &first = was->second, &last = is->second;
  ThreadRates rates{.core = interval.rate(first.ran_ns, last.ran_ns) / 1e9, .delay_us = 0};
  if (last.runs > first.runs && last.delayed_ns > first.delayed_ns)
    rates.delay_us = static_cast<double>(last.delayed_ns - first.delayed_ns) / 1e3 /
                     static_cast<double>(last.runs - first.runs);
  return rates;
}

// The program is one that has been seen, with its segment, in both.
bool same(const ProgramView& one, const ProgramView& other) {
  return one.counted.pid == other.counted.pid && one.counted.segment == other.counted.segment &&
         one.counted.job == other.counted.job && one.seen.joined == other.seen.joined;
}

LinkRates link_rates(const Look& before, const CounterSnapshot::Link& link, const Interval& interval) {
  LinkRates rates{.link = link, .in = {}, .out = {}};
  const auto& links = before.view.kernel.links;
  const auto was = std::ranges::find_if(links, [&](const auto& each) {
    return each.identity == link.identity && each.since_s == link.since_s;
  });
  if (was == links.end()) return rates;
  rates.in = interval.flow({was->messages_in, was->bytes_in}, {link.messages_in, link.bytes_in});
  rates.out = interval.flow({was->messages_out, was->bytes_out}, {link.messages_out, link.bytes_out});
  rates.stalls = interval.rate(was->stalls, link.stalls);
  rates.resent_bytes = interval.rate(was->resent_bytes, link.resent_bytes);
  return rates;
}

} // namespace

Rates rates_between(const Look& before, const Look& after) {
  const CounterSnapshot& kernel = after.view.kernel;
  Rates rates{.kernel = kernel, .counters = {}, .thread = {}, .links = {}, .programs = {}};
  static const Look nothing{};
  const Look& since = before.view.kernel.identity == kernel.identity ? before : nothing;
  const Interval interval(after.at - before.at);
  if (&since != &nothing)
    for (std::size_t i = 0; i < counter_count; ++i)
      rates.counters[i] = interval.rate(before.view.kernel.values[i], kernel.values[i]);
  rates.thread = thread_rates(since, after, kernel.pid, interval);
  // Who has come or gone in between would be taken for others, or for less than nothing.
  const double own = interval.rate(since.own_ns, after.own_ns) / 1e9;
  if (&since != &nothing && before.view.programs.size() == after.view.programs.size())
    rates.others = std::max(0.0, interval.rate(since.busy_ns, after.busy_ns) / 1e9 - own);
  for (const auto& link : kernel.links) rates.links.push_back(link_rates(since, link, interval));

  std::unordered_map<std::uint64_t, const ProgramView*> earlier; // by process
  for (const ProgramView& program : since.view.programs) earlier[program.counted.pid] = &program;
  for (const ProgramView& program : after.view.programs) {
    ProgramRates& added =
        rates.programs.emplace_back(ProgramRates{.program = program, .in = {}, .out = {}, .thread = {}});
    const auto was = earlier.find(program.counted.pid);
    if (was == earlier.end() || !same(*was->second, program)) continue;
    added.in = interval.flow(received(*was->second), received(program));
    added.out = interval.flow(sent(*was->second), sent(program));
    added.waits = interval.rate(was->second->seen.waits.rested, program.seen.waits.rested);
    added.thread = thread_rates(since, after, program.counted.pid, interval);
  }
  return rates;
}

} // namespace parc::tools
