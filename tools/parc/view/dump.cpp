// SPDX-License-Identifier: BSD-3-Clause
// parc dump: what all ranks of a job wait for, on all its hosts. The kernel of this host asks the others;
// where it does not answer, this host's ranks are shown, whose memory tells. So are programs that are in no
// job with others, as MPI's processes.
#include "control/rank_state.hpp"
#include "tools/parc/screen/table.hpp"
#include "tools/parc/talk/kernel_connection.hpp"
#include "tools/parc/view/commands.hpp"
#include "tools/parc/view/unfinished_table.hpp"
#include "tools/parc/view/view.hpp"

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <iterator>
#include <memory>

namespace parc::tools {
namespace {

struct DumpOptions {
  std::string job; // hexadecimal; empty: the only one
  bool json = false;
  std::string runtime_dir;
};

constexpr int dump_schema = 1;

struct Dump {
  std::string job; // empty: each program has one of its own
  std::vector<RankState> ranks;
  std::vector<std::string> silent;   // hosts
  std::string alone;                 // why the ranks of this host are all
  std::vector<std::string> own_jobs; // of each program
};

// True when that was the last.
Result<bool> take(const control::Frame& frame, Dump& dump) {
  const auto kind = tool::kind_named(control::kind_of(frame.message));
  if (kind == tool::Kind::done) { // there is no such job
    PARC_TRY(done, read<tool::Done>(frame));
    return error(ENOENT, "{}", done.text);
  }
  if (kind == tool::Kind::dump) {
    PARC_TRY(begins, read<tool::DumpBegins>(frame));
    dump.job = std::move(begins.job);
  }
  if (kind == tool::Kind::ranks) {
    PARC_TRY(there, read<tool::Ranks>(frame));
    std::ranges::move(there.ranks, std::back_inserter(dump.ranks));
  }
  if (kind != tool::Kind::dumped) return false;
  PARC_TRY(dumped, read<tool::Dumped>(frame));
  dump.silent = std::move(dumped.silent);
  return true;
}

Result<Dump> ask(const std::string& runtime_dir, std::uint64_t job) {
  PARC_TRY(kernel, KernelConnection::open_running(runtime_dir));
  PARC_TRY(kernel.send(tool::Dump{.job = job}));
  Dump dump;
  for (;;) {
    PARC_TRY(frame, kernel.await());
    PARC_TRY(last, take(frame, dump));
    if (!last) continue;
    std::ranges::sort(dump.ranks, {}, &RankState::rank);
    return dump;
  }
}

// Where no job is named, that of this host, if it is the only one. `silence`: why its kernel is not asked.
Result<Dump> look(const std::string& runtime_dir, std::uint64_t job, const Error& silence) {
  const auto counters = open_counters(runtime_dir);
  if (!counters) return silence;
  const KernelView view = look_at_kernel(counters.value());
  if (job == 0 && view.kernel.jobs.size() == 1) job = view.kernel.jobs.front().id;
  Dump dump{
      .job = job_name(job), .ranks = {}, .silent = {view.kernel.host}, .alone = silence.text, .own_jobs = {}};
  for (const ProgramView& program : view.programs)
    if (job != 0 && program.counted.job == job) dump.ranks.push_back(program.seen);
  if (dump.ranks.empty()) return silence;
  return dump;
}

// `job`, or all where that is 0. `none`: what the kernel says, whose jobs are those of parc run and of names.
Result<Dump> look_at_programs(const std::string& runtime_dir, std::uint64_t job, const Error& none) {
  const auto counters = open_counters(runtime_dir);
  if (!counters) return none;
  const KernelView view = look_at_kernel(counters.value());
  if (job == 0 && !view.kernel.jobs.empty()) return none;
  Dump dump;
  for (const ProgramView& program : view.programs) {
    if (job != 0 && program.counted.job != job) continue;
    dump.ranks.push_back(program.seen);
    dump.own_jobs.push_back(job_name(program.counted.job));
  }
  if (dump.ranks.empty()) return none;
  return dump;
}

Result<Dump> ask_or_look(const DumpOptions& options) {
  std::uint64_t job = 0;
  if (!options.job.empty()) {
    PARC_TRY(number, parse_job(options.job));
    job = number;
  }
  auto dump = ask(options.runtime_dir, job);
  if (dump) return dump;
  if (dump.error().code == ETIMEDOUT) return look(options.runtime_dir, job, dump.error());
  if (dump.error().code == ENOENT) return look_at_programs(options.runtime_dir, job, dump.error());
  return dump;
}

std::vector<std::uint64_t> cycle_of(const Dump& dump) {
  return dump.own_jobs.empty() ? find_cycle(dump.ranks) : std::vector<std::uint64_t>();
}

std::string list(const std::vector<std::uint64_t>& ranks) {
  std::string text;
  for (const std::uint64_t rank : ranks) text += fmt::format("{} -> ", rank);
  return text + fmt::to_string(ranks.front());
}

void print(const Dump& dump) {
  const bool by_themselves = !dump.own_jobs.empty();
  std::cout << (by_themselves
                    ? fmt::format("programs of host {} that joined by themselves\n", dump.ranks.front().host)
                    : fmt::format("job {}\n", dump.job));
  if (!dump.ranks.empty()) {
    Table ranks{{{by_themselves ? "JOB" : "RANK", !by_themselves},
                 {.title = "HOST", .name = true},
                 {"PROCESS", true},
                 {.title = "PROGRAM", .name = true},
                 {"STATE"}},
                {}};
    std::vector<ShownRank> shown;
    for (const RankState& rank : dump.ranks) {
      const std::string job = by_themselves ? dump.own_jobs[shown.size()] : "";
      ranks.rows.push_back({by_themselves ? job : fmt::to_string(rank.rank), rank.host,
                            fmt::to_string(rank.process), rank.program, std::string(doing(rank))});
      shown.push_back({job, rank});
    }
    Page page(display_of(stdout));
    page.add(ranks);
    page.add(unfinished_table(shown));
    page.add(backlog_table(shown));
    show(page.lines(), stdout);
  }
  if (const auto cycle = cycle_of(dump); !cycle.empty())
    std::cout << fmt::format("\nthese ranks wait for each other: {}\n", list(cycle));
  if (!dump.alone.empty())
    return void(std::cout << fmt::format("\n{}; the ranks of other hosts are missing here\n", dump.alone));
  for (const std::string& host : dump.silent)
    std::cout << fmt::format("\nhost {} did not answer; its ranks are missing here\n", host);
}

void print_json(const Dump& dump) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const RankState& rank : dump.ranks) control::put_value(ranks.emplace_back(), rank);
  for (std::size_t i = 0; i < dump.own_jobs.size(); ++i) ranks[i]["job"] = dump.own_jobs[i];
  nlohmann::json json{{"schema", dump_schema},
                      {"job", dump.job.empty() ? nlohmann::json() : nlohmann::json(dump.job)},
                      {"ranks", ranks},
                      {"cycle", cycle_of(dump)},
                      {"silent_hosts", dump.silent}};
  if (!dump.alone.empty()) json["why"] = dump.alone;
  std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

int dump(const DumpOptions& options) {
  const auto seen = ask_or_look(options);
  if (!seen) {
    std::cerr << "parc: " << seen.error().text << '\n';
    return status_failure;
  }
  if (options.json)
    print_json(seen.value());
  else
    print(seen.value());
  return seen.value().silent.empty() ? 0 : status_failure;
}

} // namespace

Command dump_command() {
  const auto options = std::make_shared<DumpOptions>();
  return {.name = "dump",
          .help = "Show what the ranks of a job wait for, on all its hosts",
          .options =
              [options](CLI::App& app) {
                app.add_option("JOB", options->job,
                               "As parc status names it; default: the only one of this host")
                    ->check(parsed_by(parse_job));
                add_json(app, options->json);
                add_runtime_dir(app, options->runtime_dir);
              },
          .run = [options] { return dump(*options); }};
}

} // namespace parc::tools
