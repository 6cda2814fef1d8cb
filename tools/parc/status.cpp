// SPDX-License-Identifier: BSD-3-Clause
// parc status: what a kernel's counters say, and what its programs wait for. The kernel is not asked and may
// be dead.
#include "tools/parc/commands.hpp"
#include "tools/parc/table.hpp"
#include "tools/parc/unfinished_table.hpp"
#include "tools/parc/unwell.hpp"
#include "tools/parc/view.hpp"

#include <algorithm>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

namespace parc::tools {
namespace {

constexpr int json_schema = 1;

std::string duration(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} days {} h", seconds / 86400, seconds / 3600 % 24);
}

std::uint64_t seconds_since(std::uint64_t unix_time) {
  const auto now = static_cast<std::uint64_t>(std::time(nullptr));
  return now - std::min(now, unix_time);
}

void print_kernel(const CounterSnapshot& kernel) {
  if (kernel.alive)
    std::cout << fmt::format("kernel of host {}: process {}, listening on {}, up {}, {}, parcd {}\n",
                             kernel.host, kernel.pid, kernel.listens,
                             duration(seconds_since(kernel.started_s)), kernel.scheduling, kernel.program);
  else
    std::cout << fmt::format("kernel of host {}: {} (was process {}, parcd {}); these are its last counters. "
                             "Start another with parcd --detach\n",
                             kernel.host, kernel.end_word(), kernel.pid, kernel.program);
  if (kernel.elsewhere) std::cout << fmt::format("{}; {}\n", unwell::is_elsewhere, unwell::if_elsewhere);
  if (kernel.stopped)
    std::cout << fmt::format("it {}; {} lets it go on\n", unwell::is_stopped,
                             unwell::if_stopped(static_cast<pid_t>(kernel.pid)));
}

// Its tables have only so many rows.
void print_rest(std::size_t shown, std::uint64_t all, const char* what) {
  if (all > shown)
    std::cout << fmt::format("... and {} more {}, for which there is no room\n", all - shown, what);
}

void print_links(const CounterSnapshot& kernel) {
  if (kernel.links.empty()) return void(std::cout << "\nno links to other hosts\n");
  std::vector<std::vector<std::string>> rows;
  for (const auto& link : kernel.links)
    rows.push_back({link.peer, std::string(name(link.state)), duration(seconds_since(link.since_s)),
                    fmt::to_string(link.carriers),
                    fmt::format("{:.3f} ms", static_cast<double>(link.rtt_us) / 1e3),
                    bytes_text(link.bytes_in), bytes_text(link.bytes_out), bytes_text(link.credit),
                    fmt::to_string(link.unacknowledged)});
  std::cout << '\n';
  print_table({{"LINK", false},
               {"STATE", false},
               {"FOR", true},
               {"CONNECTIONS", true},
               {"RTT", true},
               {"RECEIVED", true},
               {"SENT", true},
               {"CREDIT", true},
               {"UNACKNOWLEDGED", true}},
              rows);
  print_rest(kernel.links.size(), kernel[Counter::Links], "links");
}

void print_held_spawns(const CounterSnapshot& kernel) {
  if (const std::uint64_t held = kernel[Counter::SpawnsHeld]; held != 0)
    std::cout << fmt::format(
        "\n{} wait{} in parc_spawn until parc run has taken the output of what was spawned before\n",
        held == 1 ? "1 program" : fmt::format("{} programs", held), held == 1 ? "s" : "");
}

void print_jobs(const CounterSnapshot& kernel) {
  if (kernel.jobs.empty()) return void(std::cout << "\nno jobs\n");
  std::vector<std::vector<std::string>> rows;
  for (const auto& job : kernel.jobs)
    rows.push_back({job_name(job.id), fmt::to_string(job.ranks), std::string(name(job.state))});
  std::cout << '\n';
  print_table({{"JOB", false}, {"RANKS HERE", true}, {"STATE", false}}, rows);
  print_rest(kernel.jobs.size(), kernel[Counter::Jobs], "jobs");
}

void print_sessions(const CounterSnapshot& kernel, const std::vector<ProgramView>& programs) {
  if (programs.empty()) return void(std::cout << "\nno programs attached\n");
  std::vector<std::vector<std::string>> rows;
  std::vector<ShownRank> ranks;
  for (const ProgramView& program : programs) {
    const auto& counted = program.counted;
    rows.push_back({fmt::to_string(counted.pid), program.seen.program, job_name(counted.job),
                    fmt::to_string(counted.rank), std::string(doing(program.seen)),
                    fmt::to_string(counted.reads), fmt::to_string(counted.writes),
                    bytes_text(program.seen.neighbours.bytes), std::string(program.seen.neighbours.memory)});
    ranks.push_back({job_name(counted.job), program.seen});
  }
  std::cout << '\n';
  print_table({{"PROCESS", true},
               {"PROGRAM", false},
               {"JOB", false},
               {"RANK", true},
               {"STATE", false},
               {"READS IN FLIGHT", true},
               {"WRITES IN FLIGHT", true},
               {"TO NEIGHBOURS", true},
               {"ITS MEMORY", false}},
              rows);
  print_rest(programs.size(), kernel[Counter::Sessions], "programs");
  print_unfinished(ranks);
  print_backlog(ranks);
}

void print_counters(const CounterSnapshot& kernel) {
  std::vector<std::vector<std::string>> rows;
  for (const CounterRow& row : counter_table) {
    const std::uint64_t value = kernel[row.counter];
    rows.push_back({std::string(row.label), row.unit == "B" ? bytes_text(value) : fmt::to_string(value),
                    std::string(row.help)});
  }
  std::cout << '\n';
  print_table({{"COUNTER", false}, {"VALUE", true}, {"MEANING", false}}, rows);
}

nlohmann::json to_json(const CounterSnapshot& kernel, const std::vector<ProgramView>& programs) {
  nlohmann::json json{{"schema", json_schema},
                      {"kernel",
                       {{"alive", kernel.alive},
                        {"ended", kernel.ended},
                        {"stopped", kernel.stopped},
                        {"host", kernel.host},
                        {"pid", kernel.pid},
                        {"port", kernel.port},
                        {"listens", kernel.listens},
                        {"started", kernel.started_s},
                        {"scheduling", kernel.scheduling},
                        {"version", kernel.program}}},
                      {"links", nlohmann::json::array()},
                      {"jobs", nlohmann::json::array()},
                      {"sessions", nlohmann::json::array()},
                      {"counters", nlohmann::json::object()}};
  for (const auto& link : kernel.links)
    json["links"].push_back({{"host", link.peer},
                             {"state", name(link.state)},
                             {"since", link.since_s},
                             {"connections", link.carriers},
                             {"rtt_us", link.rtt_us},
                             {"bytes_in", link.bytes_in},
                             {"bytes_out", link.bytes_out},
                             {"credit", link.credit},
                             {"unacknowledged", link.unacknowledged},
                             {"queue", link.queue},
                             {"stalls", link.stalls},
                             {"messages_in", link.messages_in},
                             {"messages_out", link.messages_out},
                             {"resent_bytes", link.resent_bytes}});
  for (const auto& job : kernel.jobs)
    json["jobs"].push_back(
        {{"job", job_name(job.id)}, {"ranks_here", job.ranks}, {"state", name(job.state)}});
  for (const ProgramView& program : programs) {
    auto& shown = json["sessions"].emplace_back(parc::to_json(program.seen));
    shown["job"] = job_name(program.counted.job);
    shown["reads"] = program.counted.reads;
    shown["writes"] = program.counted.writes;
    shown["messages_in"] = program.counted.messages_in;
    shown["messages_out"] = program.counted.messages_out;
    shown["bytes_in"] = program.counted.bytes_in;
    shown["bytes_out"] = program.counted.bytes_out;
    const RankState::Waits& waits = program.seen.waits;
    shown["waits"] = {{"rested", waits.rested},
                      {"released", waits.released},
                      {"faults", waits.faults},
                      {"late_faults", waits.late_faults}};
    const RankState::Neighbours& neighbours = program.seen.neighbours;
    shown["neighbours"] = {{"messages", neighbours.messages}, {"bytes", neighbours.bytes},
                           {"reads_taken", neighbours.taken}, {"interrupts", neighbours.interrupts},
                           {"received", neighbours.received}, {"received_bytes", neighbours.received_bytes},
                           {"memory", neighbours.memory}};
  }
  for (const CounterRow& row : counter_table) json["counters"][std::string(row.label)] = kernel[row.counter];
  return json;
}

} // namespace

int status(const StatusOptions& options) {
  const auto counters = open_counters(options.runtime_dir);
  if (!counters) {
    std::cerr << "parc: " << counters.error().text << '\n';
    return status_failure;
  }
  const auto [kernel, programs] = look_at_kernel(counters.value());
  if (options.json) {
    std::cout << to_json(kernel, programs).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << '\n';
    return 0;
  }
  print_kernel(kernel);
  print_jobs(kernel);
  print_held_spawns(kernel);
  print_links(kernel);
  print_sessions(kernel, programs);
  if (options.verbose) print_counters(kernel);
  return 0;
}

} // namespace parc::tools
