// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/view/status_view.hpp"

#include "tools/parc/screen/units.hpp"
#include "tools/parc/talk/unwell.hpp"
#include "tools/parc/view/unfinished_table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace parc::tools {
namespace {

std::string time_since(std::uint64_t since_s, std::uint64_t now_s) {
  return duration_text(now_s - std::min(now_s, since_s));
}

void add_machine(Page& page, const MachineView& view) {
  const std::string load = view.load < 0 ? "" : fmt::format("; load {:.1f}", view.load);
  page.add(fmt::format("machine: {}{}", text_of(view.machine), load),
           view.load > view.machine.cores ? Style::warning : Style::plain);
}

void add_kernel(Page& page, const CounterSnapshot& kernel, std::uint64_t now_s) {
  if (kernel.alive) {
    page.add(fmt::format("kernel of host {}: process {}, up {}, parcd {}", kernel.host, kernel.pid,
                         time_since(kernel.started_s, now_s), kernel.program),
             kernel.stopped ? Style::bad : Style::plain);
    page.add(fmt::format("listening on {}", kernel.listens));
    page.add(fmt::format("scheduling: {}", kernel.scheduling));
  } else {
    page.add(fmt::format("kernel of host {}: {} (was process {}, parcd {})", kernel.host, kernel.end_word(),
                         kernel.pid, kernel.program),
             kernel.ended ? Style::warning : Style::bad);
    page.add("these are its last counters; start another with parcd --detach");
  }
  if (kernel.elsewhere)
    page.add(fmt::format("{}; {}", unwell::is_elsewhere, unwell::if_elsewhere), Style::warning);
  if (kernel.stopped)
    page.add(fmt::format("it {}; {} lets it go on", unwell::is_stopped,
                         unwell::if_stopped(static_cast<pid_t>(kernel.pid))),
             Style::bad);
}

// Its tables have only so many rows.
void add_rest(Page& page, std::size_t shown, std::uint64_t all, const char* what) {
  if (all > shown)
    page.add(fmt::format("... and {} more {}, for which there is no room", all - shown, what),
             Style::warning);
}

void add_nothing(Page& page, const char* what) {
  page.add_blank();
  page.add(what);
}

void add_jobs(Page& page, const CounterSnapshot& kernel) {
  if (kernel.jobs.empty()) return add_nothing(page, "no jobs");
  Table table{{{"JOB"}, {"RANKS HERE", true}, {"STATE"}}, {}};
  for (const auto& job : kernel.jobs)
    table.rows.push_back({job_name(job.id), fmt::to_string(job.ranks), std::string(name(job.state))});
  page.add(table);
  add_rest(page, kernel.jobs.size(), kernel[Counter::Jobs], "jobs");
}

void add_held_spawns(Page& page, const CounterSnapshot& kernel) {
  const std::uint64_t held = kernel[Counter::SpawnsHeld];
  if (held == 0) return;
  page.add_blank();
  page.add(fmt::format("{} in parc_spawn until parc run has taken the output of what was spawned before",
                       held == 1 ? "1 program waits" : fmt::format("{} programs wait", held)),
           Style::warning);
}

void add_links(Page& page, const CounterSnapshot& kernel, std::uint64_t now_s) {
  if (kernel.links.empty()) return add_nothing(page, "no links to other hosts");
  Table table{{{.title = "LINK", .name = true},
               {"STATE"},
               {.title = "WAY", .spare = 1},
               {"FOR", true},
               {.title = "CONNECTIONS", .number = true, .spare = 2},
               {"RTT", true},
               {"RECEIVED", true},
               {"SENT", true},
               {"CREDIT", true},
               {.title = "UNACKNOWLEDGED", .number = true, .spare = 3}},
              {}};
  for (const auto& link : kernel.links)
    table.rows.emplace_back(
        std::vector<std::string>{
            link.peer, std::string(name(link.state)), way_text(name(link.way), link.encrypted, link.streams),
            time_since(link.since_s, now_s), count_text(link.carriers), round_trip_text(link.rtt_us),
            bytes_text(link.bytes_in), bytes_text(link.bytes_out), bytes_text(link.credit),
            count_text(link.unacknowledged)},
        link.state == LinkState::Up ? Style::plain : Style::warning);
  page.add(table);
  add_rest(page, kernel.links.size(), kernel[Counter::Links], "links");
}

// A rank is named by its job only where there is more than one.
std::vector<ShownRank> shown_ranks(const std::vector<ProgramView>& programs) {
  const bool of_jobs = std::ranges::any_of(
      programs, [&](const ProgramView& each) { return each.counted.job != programs.front().counted.job; });
  std::vector<ShownRank> ranks;
  for (const ProgramView& program : programs)
    ranks.push_back({of_jobs ? job_name(program.counted.job) : "", program.seen});
  return ranks;
}

void add_programs(Page& page, const KernelView& view) {
  if (view.programs.empty()) return add_nothing(page, "no programs attached");
  Table table{{{"PROCESS", true},
               {.title = "PROGRAM", .name = true},
               {"JOB"},
               {"RANK", true},
               {"STATE"},
               {"READS", true},
               {"WRITES", true},
               {.title = "TO NEIGHBOURS", .number = true, .spare = 1},
               {.title = "ITS MEMORY", .spare = 2}},
              {}};
  for (const ProgramView& program : view.programs) {
    const auto& counted = program.counted;
    table.rows.emplace_back(std::vector<std::string>{fmt::to_string(counted.pid), program.seen.program,
                                                     job_name(counted.job), fmt::to_string(counted.rank),
                                                     std::string(doing(program.seen)),
                                                     count_text(counted.reads), count_text(counted.writes),
                                                     bytes_text(program.seen.neighbours.bytes),
                                                     std::string(program.seen.neighbours.memory)},
                            waits_long(program.seen) ? Style::warning : Style::plain);
  }
  page.add(table);
  add_rest(page, view.programs.size(), view.kernel[Counter::Sessions], "programs");
  const std::vector<ShownRank> ranks = shown_ranks(view.programs);
  page.add(unfinished_table(ranks));
  page.add(backlog_table(ranks));
}

void add_counters(Page& page, const CounterSnapshot& kernel) {
  Table table{{{"COUNTER"}, {"VALUE", true}, {"MEANING"}}, {}};
  for (const CounterRow& row : counter_table) {
    const std::uint64_t value = kernel[row.counter];
    table.rows.push_back({std::string(row.label), row.unit == "B" ? bytes_text(value) : count_text(value),
                          std::string(row.help)});
  }
  page.add(table);
}

} // namespace

Page status_page(const KernelView& view, const MachineView& machine, bool verbose, std::uint64_t now_s,
                 const Display& display) {
  Page page(display);
  add_kernel(page, view.kernel, now_s);
  add_machine(page, machine);
  add_jobs(page, view.kernel);
  add_held_spawns(page, view.kernel);
  add_links(page, view.kernel, now_s);
  add_programs(page, view);
  if (verbose) add_counters(page, view.kernel);
  return page;
}

} // namespace parc::tools
