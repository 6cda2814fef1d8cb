// SPDX-License-Identifier: BSD-3-Clause
// parc ps and parc kill: the jobs of all hosts.
#include "tools/parc/hosts/ask_hosts.hpp"
#include "tools/parc/screen/table.hpp"
#include "tools/parc/view/commands.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>

namespace parc::tools {
namespace {

constexpr int ps_schema = 1;

struct KillOptions {
  HostOptions where;
  std::string signal = "TERM";
  std::vector<std::string> jobs;
};

struct Job {
  control::JobRow told;                                          // by the first of its hosts
  std::vector<std::pair<std::string, std::uint64_t>> hosts = {}; // and how many ranks each has
};

// Hosts of one job may be at different states for a moment: what ends counts, then what starts.
int rank_of(const std::string& state) {
  if (state == "ending") return 2;
  return state == "starting" ? 1 : 0;
}

std::map<std::uint64_t, Job> jobs_in(const std::vector<AskedHost>& answers) {
  std::map<std::uint64_t, Job> jobs;
  for (const AskedHost& answer : answers)
    for (const control::JobRow& part : answer.said.jobs) {
      Job& job = jobs.try_emplace(part.job, Job{part}).first->second;
      if (rank_of(part.state) > rank_of(job.told.state)) job.told.state = part.state;
      job.told.since = std::min(job.told.since, part.since);
      job.hosts.emplace_back(answer.host, part.ranks);
    }
  return jobs;
}

std::string hosts_in_words(const Job& job) {
  std::string words;
  for (const auto& [host, ranks] : job.hosts)
    words += fmt::format("{}{}:{}", words.empty() ? "" : ",", host, ranks);
  return words;
}

void print(const std::map<std::uint64_t, Job>& jobs) {
  if (jobs.empty()) return void(std::cout << "no jobs\n");
  std::vector<Row> rows;
  for (const auto& [id, job] : jobs)
    rows.push_back({fmt::format("{:x}", id), job.told.program, fmt::to_string(job.told.size), job.told.state,
                    hosts_in_words(job), job.told.origin, local_time(job.told.since)});
  print_table({{"JOB", false},
               {.title = "PROGRAM", .name = true},
               {"RANKS", true},
               {"STATE", false},
               {.title = "HOSTS", .name = true},
               {.title = "FROM", .name = true},
               {"SINCE", false}},
              rows);
}

// Jobs whose ranks join them by name, and are not all there yet.
struct Waiting {
  std::string name, host, missing;
  std::uint64_t size = 0;
};

std::vector<Waiting> waiting_in(const std::vector<AskedHost>& answers) {
  std::vector<Waiting> all;
  for (const AskedHost& answer : answers)
    for (const control::WaitingJob& job : answer.said.waiting)
      all.push_back({job.name, answer.host, job.missing, job.size});
  return all;
}

void print(const std::vector<Waiting>& waiting) {
  for (const Waiting& job : waiting)
    std::cout << fmt::format("job {} begins on host {} when rank {} of {} has joined it\n", job.name,
                             job.host, job.missing, job.size);
}

void print_json(const std::map<std::uint64_t, Job>& jobs, const std::vector<AskedHost>& answers) {
  nlohmann::json listed = nlohmann::json::array(), silent = nlohmann::json::array(),
                 why = nlohmann::json::object(), waiting = nlohmann::json::array();
  for (const auto& [id, job] : jobs) {
    auto& row = listed.emplace_back(nlohmann::json{{"job", fmt::format("{:x}", id)},
                                                   {"program", job.told.program},
                                                   {"ranks", job.told.size},
                                                   {"state", job.told.state},
                                                   {"from", job.told.origin},
                                                   {"since", job.told.since},
                                                   {"hosts", nlohmann::json::object()}});
    for (const auto& [host, ranks] : job.hosts) row["hosts"][host] = ranks;
  }
  for (const AskedHost& answer : answers)
    if (!answer.up()) silent.push_back(answer.host), why[answer.host] = answer.why;
  for (const Waiting& job : waiting_in(answers))
    waiting.push_back(
        {{"name", job.name}, {"host", job.host}, {"ranks", job.size}, {"missing", job.missing}});
  const nlohmann::json all{
      {"schema", ps_schema}, {"jobs", listed}, {"waiting", waiting}, {"silent_hosts", silent}, {"why", why}};
  std::cout << all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

Result<int> list_jobs(const HostOptions& options) {
  PARC_TRY(hosts, hosts_to_ask(options));
  PARC_TRY(answers, ask_hosts(options.runtime_dir, hosts, {}, false));
  if (options.json) {
    print_json(jobs_in(answers), answers);
  } else {
    if (std::ranges::any_of(answers, &AskedHost::up)) print(jobs_in(answers));
    print(waiting_in(answers));
    complain(answers);
  }
  return std::ranges::all_of(answers, &AskedHost::up) ? 0 : status_failure;
}

// Any of its hosts hands that on to the one that began it.
Result<void> end_job(const KillOptions& options, int signal, const std::vector<AskedHost>& answers,
                     std::uint64_t job) {
  const auto jobs = jobs_in(answers);
  const auto found = jobs.find(job);
  if (found == jobs.end()) {
    std::string asked;
    for (const AskedHost& answer : answers)
      if (answer.up()) asked += (asked.empty() ? "" : ", ") + answer.host;
    if (asked.empty()) return error(ENOENT, "no host answers, and so nobody knows a job {:x}", job);
    return error(ENOENT, "no job {:x} runs on the hosts that answer ({}); parc ps shows those that do", job,
                 asked);
  }
  PARC_TRY(told, ask_hosts(options.where.runtime_dir, {{.name = found->second.hosts[0].first}},
                           {.job = job, .signal = static_cast<std::uint32_t>(signal)}, false));
  if (told.empty() || !told.front().up() || !told.front().said.killed.value_or(false))
    return error(ESRCH, "job {:x} has just ended", job);
  std::cout << fmt::format("job {:x} ({} ranks of {}): signal {} ({})\n", job, found->second.told.size,
                           found->second.told.program, signal, strsignal(signal));
  return success();
}

Result<int> end_jobs(const KillOptions& options) {
  PARC_TRY(signal, parse_signal(options.signal));
  std::vector<std::uint64_t> jobs;
  for (const std::string& text : options.jobs) {
    PARC_TRY(job, parse_job(text));
    jobs.push_back(job);
  }
  PARC_TRY(hosts, hosts_to_ask(options.where));
  PARC_TRY(answers, ask_hosts(options.where.runtime_dir, hosts, {}, false));
  int status = 0;
  for (const std::uint64_t job : jobs)
    if (auto ended = end_job(options, signal, answers, job); !ended) {
      std::cout.flush();
      std::cerr << "parc: " << ended.error().text << '\n';
      status = status_failure;
    }
  if (status != 0) complain(answers);
  return status;
}

} // namespace

Command ps_command() {
  const auto options = std::make_shared<HostOptions>();
  return {.name = "ps",
          .help = "Show the jobs of all hosts",
          .options = [options](CLI::App& app) { add_options(app, *options); },
          .run = [options] { return end_with(list_jobs(*options)); }};
}

Command kill_command() {
  const auto options = std::make_shared<KillOptions>();
  return {.name = "kill",
          .help = "Send a signal to all ranks of a job",
          .options =
              [options](CLI::App& app) {
                add_hosts(app, options->where.named, hosts_that_are_known);
                app.add_option("-s,--signal", options->signal,
                               "Send this to all ranks: a name or a number; TERM")
                    ->type_name("SIGNAL")
                    ->check(parsed_by(parse_signal));
                app.add_option("JOB", options->jobs, "Job, as parc ps names it")
                    ->required()
                    ->check(parsed_by(parse_job));
                add_runtime_dir(app, options->where.runtime_dir);
              },
          .run = [options] { return end_with(end_jobs(*options)); }};
}

} // namespace parc::tools
