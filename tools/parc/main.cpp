// SPDX-License-Identifier: BSD-3-Clause
// The command line of parc. Invariant: the words of a program to run are taken off before the parser sees the
// rest, so none of them is ever mistaken for an option of ours, nor an option of ours for a program.
#include "protocol/wire.hpp"
#include "shm/layout.hpp"
#include "system/nearest.hpp"
#include "system/standard_streams.hpp"
#include "system/usage.hpp"
#include "tools/parc/commands.hpp"
#include "tools/parc/view/top_view.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/ranges.h>
#include <iostream>

namespace parc::tools {
namespace {

constexpr int c_interface_version = 0; // libparc.so.0

std::string version() {
  return fmt::format("parc {}\nC interface {}\nsegment {}\nwire {}\n", PARC_VERSION, c_interface_version,
                     shm::layout_version, protocol::wire_version);
}

// The help has the words in braces, where the shells' completion finds them.
CLI::Validator one_of(std::vector<std::string> words) {
  const std::string shown = fmt::format("{{{}}}", fmt::join(words.begin(), words.end(), ","));
  return CLI::Validator(
      [words = std::move(words)](const std::string& text) -> std::string {
        if (std::ranges::find(words, text) != words.end()) return {};
        return fmt::format("{} is none of {}", quote(text), fmt::join(words.begin(), words.end(), ", "));
      },
      shown, "");
}

// As the parser wants it: empty when nothing is.
std::string wrong_with_seconds(const std::string& text) {
  double seconds = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (failure == std::errc{} && end == text.data() + text.size() && seconds >= 0) return {};
  return fmt::format("\"{}\" is no number of seconds; 0 is for no limit", text);
}

std::string wrong_with_input(const std::string& text) {
  std::uint32_t rank = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), rank);
  const bool number = failure == std::errc{} && end == text.data() + text.size() && rank < max_ranks;
  if (number || text == "all" || text == "none") return {};
  return fmt::format("\"{}\" is no rank; write a rank, all or none", text);
}

// Where to go from an option of other launchers that has no equal here, or an ambiguous one; empty: unknown.
std::string_view instead_of(std::string_view option) {
  constexpr std::string_view per_host = "how many ranks a host gets is --ppn (-ppn), how many hosts --hosts";
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> known{
      {{"N", per_host},
       {"npernode", per_host},
       {"map-by", per_host},
       {"nodes", per_host},
       {"ntasks-per-node", per_host},
       {"nolocal", "only the hosts that --hosts names get ranks"}}};
  option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
  const auto found = std::ranges::find(known, option.substr(0, option.find('=')),
                                       [](const auto& each) { return each.first; });
  return found == known.end() ? std::string_view{} : found->second;
}

// As the parser wants it, of what `parse` takes.
template <class Value> auto parsed_by(Result<Value> (*parse)(const std::string& text)) {
  return CLI::Validator(
      [parse](const std::string& text) {
        const auto value = parse(text);
        return value ? std::string() : value.error().text;
      },
      "", "");
}

std::string wrong_with_hosts(const std::string& text) {
  const auto hosts = parse_hosts(text);
  return hosts || text.empty() ? std::string() : hosts.error().text;
}

std::string wrong_with_one_host(const std::string& text) {
  const auto host = parse_host(text);
  if (host && host.value().slots == 1 && text.find(',') == text.npos) return {};
  return fmt::format("\"{}\" is no name of one host", text);
}

std::vector<std::string> names_of_sort_keys() {
  std::vector<std::string> names;
  for (const SortKey& key : sort_keys()) names.emplace_back(key.name);
  return names;
}

class CommandLine {
public:
  CommandLine() {
    app_.require_subcommand(0, 1);
    for (CLI::App* const command : app_.get_subcommands({})) command->allow_extras();
    app_.allow_extras(); // unexpected() has words for them
    app_.set_version_flag("--version", version());
    run_->footer("The program and its arguments follow the options: parc run -n 4 ./solver --fast input");
    run_->add_option("-n,--np", run_options_.ranks, "Number of ranks")->check(number_from(1u, max_ranks));
    auto* const hosts =
        run_->add_option("-H,--host,--hosts", run_options_.hosts,
                         "Where they run: host:slots, separated by commas; default: the hosts "
                         "of the batch job, or this one")
            ->multi_option_policy(CLI::MultiOptionPolicy::Join);
    run_->add_option("-f,--hostfile,--machinefile", run_options_.hostfile,
                     "Where they run: a file with a host a line, as host slots=4 or host:4")
        ->excludes(hosts);
    run_->add_option("--ppn", run_options_.ranks_per_host, "Ranks a host, in place of slots (also -ppn)")
        ->check(number_from(1u, max_ranks));
    run_->add_option("--wdir", run_options_.directory, "Directory that the ranks start in, on every host");
    run_->add_option("-x,--env", run_options_.environment,
                     "Give this variable to the ranks: NAME, or NAME=VALUE; may be repeated")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    run_->add_option("--stdin", run_options_.input, "Who reads standard input: a rank (0), all or none")
        ->check(wrong_with_input, "", "");
    run_->add_option("--bind", run_options_.bind, "Bind each rank to a core of its own, or let it move")
        ->check(one_of({"core", "none"}));
    run_->add_option("--timeout", run_options_.timeout_s,
                     "End the job after this many seconds, with status 124; 0: never")
        ->check(wrong_with_seconds, "", "");
    run_->add_flag(
            "--early-release{full}", run_options_.early_release,
            "Let waits for reads return at once, and touches wait: =envelope when the message has begun")
        ->check(one_of({"off", "envelope", "full"}));
    run_->add_option(
        "--trace", run_options_.trace,
        "Write a timeline of the ranks and their messages to this file, for parc trace and Perfetto");
    run_->add_flag("--keep-going", run_options_.keep_going, "Let the other ranks go on when one fails");
    run_->add_flag("--tag-output", run_options_.tag_output, "Put [RANK] before every line of output");
    run_->add_option("--runtime-dir", run_options_.runtime_dir, "Where the kernel of this host is found");
    mpi_->add_flag("--early-release{envelope}", mpi_options_.early_release,
                   "Let MPI's receives return when their messages have begun, and touches wait")
        ->check(one_of({"off", "envelope"}));
    mpi_->add_option("--trace", mpi_options_.trace,
                     "Write a timeline of the ranks and their messages to this file, for parc trace");
    mpi_->footer("What follows is mpirun's: parc mpi -np 4 ./app. Nothing: the line is printed.");
    status_->add_flag("--json", status_options_.json, "Print JSON");
    status_->add_flag("-v,--verbose", status_options_.verbose, "The kernel's counters too");
    status_->add_option("--runtime-dir", status_options_.runtime_dir,
                        "Where the kernel of this host is found");
    for (CLI::App* const command : {up_, down_}) {
      add_hosts(*command, up_options_.where, "those of the batch job");
      command->add_option("--ssh", up_options_.ssh, "How to get there: ssh, and options of it (PARC_SSH)");
    }
    for (CLI::App* const command : {hosts_, ps_}) {
      add_hosts(*command, host_options_, "those of the batch job, or all that this host's kernel knows");
      command->add_flag("--json", host_options_.json, "One object, for programs");
    }
    add_hosts(*kill_, kill_options_.where, "those of the batch job, or all that this host's kernel knows");
    kill_->add_option("-s,--signal", kill_options_.signal, "Send this to all ranks: a name or a number; TERM")
        ->type_name("SIGNAL")
        ->check(parsed_by(parse_signal));
    kill_->add_option("JOB", kill_options_.jobs, "Job, as parc ps names it")
        ->required()
        ->check(parsed_by(parse_job));
    for (CLI::App* const command : {up_, down_, hosts_, ps_})
      command->add_option("--runtime-dir",
                          command == up_ || command == down_ ? up_options_.where.runtime_dir
                                                             : host_options_.runtime_dir,
                          "Where the kernel of this host is found");
    kill_->add_option("--runtime-dir", kill_options_.where.runtime_dir,
                      "Where the kernel of this host is found");
    up_->footer("What follows -- are options of the kernels: parc up --hosts a,b -- --listen 0.0.0.0");
    doctor_->add_flag("--json", doctor_options_.json, "Print JSON");
    add_hosts(*doctor_, doctor_options_,
              "those of [hosts], which are reached but do not try to reach this one");
    doctor_
        ->add_option(
            "--at", doctor_options_.at,
            "Where a host listens, in place of what [hosts] says: NAME=ADDRESS:PORT; may be repeated")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    doctor_->add_option("--ssh", doctor_options_.ssh, "How to get to the hosts: ssh, and options of it");
    doctor_->add_option("--runtime-dir", doctor_options_.runtime_dir,
                        "Where the kernel of this host is found");
    top_->add_option("--interval", top_options_.interval_s, "Seconds from one look to the next")
        ->check(number_from(0.01, 3600.0));
    top_->add_flag("-b,--batch", top_options_.batch, "Print tables, also where there is no terminal");
    top_->add_option("-n,--count", top_options_.count, "End after so many")
        ->check(number_from(1u, 1'000'000'000u));
    top_->add_option("--sort", top_options_.sort, "Which ranks come first")
        ->check(one_of(names_of_sort_keys()));
    top_->add_option("--runtime-dir", top_options_.runtime_dir, "Where the kernel of this host is found");
    errors_->add_flag("--json", errors_options_.json, "Print JSON");
    errors_->add_option("--runtime-dir", errors_options_.runtime_dir,
                        "Where the kernel of this host is found");
    metrics_->add_option("--runtime-dir", metrics_dir_, "Where the kernel of this host is found");
    probe_->add_option("HOST", probe_options_.host, "The other host, as parc hosts names it")
        ->required()
        ->check(wrong_with_one_host, "", "");
    probe_->add_flag("--json", probe_options_.json, "Print JSON");
    probe_->add_option("--runtime-dir", probe_options_.runtime_dir, "Where the kernel of this host is found");
    stop_->add_option("--runtime-dir", stop_dir_, "The runtime directory of the kernel");
    dump_->add_option("JOB", dump_options_.job, "As parc status names it; default: the only one of this host")
        ->check(parsed_by(parse_job));
    dump_->add_flag("--json", dump_options_.json, "Print JSON");
    dump_->add_option("--runtime-dir", dump_options_.runtime_dir, "Where the kernel of this host is found");
    clean_->add_option("--runtime-dir", clean_dir_, "The runtime directory to clean");
    trace_->add_option("FILE", trace_file_, "What parc run --trace has written")->required();
    for (CLI::App* const command : app_.get_subcommands({})) be_strict(*command);
    for (CLI::App* const command : {run_, mpi_})
      command->get_option("--early-release")->disable_flag_override(false); // its level follows =
  }

  int main(std::vector<std::string> words) {
    const bool runs = !words.empty() && words.front() == "run";
    if (!words.empty() && words.front() == "mpi") take_mpiruns(words);
    if (!words.empty() && words.front() == "up") take_words_of_parcd(words);
    if (runs) {
      if (auto problem = take_command(words); !problem.empty()) return fail(problem, status_failed);
    } else if (!words.empty() && !words.front().starts_with('-')) {
      std::vector<std::string_view> commands;
      for (const CLI::App* command : app_.get_subcommands({})) commands.push_back(command->get_name());
      if (std::ranges::find(commands, words.front()) == commands.end())
        return fail(fmt::format("no command {}{}; parc --help lists them", words.front(),
                                did_you_mean(words.front(), commands)),
                    status_usage);
    }
    if (std::ranges::find(words, "--early-release=") != words.end()) // which the parser takes for no level
      return fail("--early-release: the value is empty; leave it out, or give it one",
                  runs ? status_failed : status_usage);
    if (!runs)
      if (const auto problem = read_all_options(app_, words)) return fail(*problem, status_usage);
    try {
      std::ranges::reverse(words); // as the parser takes them
      app_.parse(std::move(words));
    } catch (const CLI::Success& answer) { // --help, --version
      return app_.exit(answer);
    } catch (const CLI::ParseError& problem) {
      return fail(explain(app_, problem), runs ? status_failed : status_usage);
    }
    for (std::string* const hosts : {&run_options_.hosts, &up_options_.where.hosts, &host_options_.hosts,
                                     &kill_options_.where.hosts, &doctor_options_.hosts})
      std::ranges::replace(*hosts, '\n', ','); // by which the parser joins those of each --host
    if (const auto word = unexpected(app_)) return fail(*word, status_usage);
    if (run_->parsed()) {
      if (run_options_.command.empty())
        return fail("parc run needs a program to run: parc run -n 4 ./solver", status_failed);
      return run(run_options_);
    }
    if (mpi_->parsed()) {
      return mpi(mpi_options_);
    }
    if (up_->parsed()) return up(up_options_);
    if (down_->parsed()) return down(up_options_);
    if (hosts_->parsed()) return show_hosts(host_options_);
    if (ps_->parsed()) return ps(host_options_);
    if (kill_->parsed()) return kill_jobs(kill_options_);
    if (status_->parsed()) return status(status_options_);
    if (top_->parsed()) return top(top_options_);
    if (errors_->parsed()) return errors(errors_options_);
    if (metrics_->parsed()) return metrics(metrics_dir_);
    if (dump_->parsed()) return dump(dump_options_);
    if (trace_->parsed()) return show_trace(trace_file_);
    if (doctor_->parsed()) return doctor(doctor_options_);
    if (probe_->parsed()) return probe(probe_options_);
    if (stop_->parsed()) return stop(stop_dir_);
    if (clean_->parsed()) return clean(clean_dir_);
    std::cerr << app_.help();
    return status_usage;
  }

private:
  static int fail(const std::string& text, int status) {
    std::cerr << "parc: " << text << '\n';
    return status;
  }

  static bool has_second_program(const std::vector<std::string>& command) {
    const auto colon = std::ranges::find(command, ":");
    return colon != command.end() && colon + 1 != command.end() && (colon + 1)->starts_with('-');
  }

  // Takes the program and its arguments off the words: everything after "--", or from the first word on that
  // is neither an option nor an option's value. Returns what is wrong.
  std::string take_command(std::vector<std::string>& words) {
    const auto [end, unknown] = read_options(*run_, words, 1);
    if (!unknown.empty()) {
      const auto advice = instead_of(unknown);
      if (advice.empty()) return no_option(*run_, unknown);
      return fmt::format("parc run has no option {}; {}", unknown.substr(0, unknown.find('=')), advice);
    }
    auto word = words.begin() + static_cast<std::ptrdiff_t>(end);
    const bool marked = word != words.end() && *word == "--";
    if (marked) word = words.erase(word);
    run_options_.command.assign(word, words.end());
    if (!marked && has_second_program(run_options_.command))
      return "parc run starts one program, and \":\" begins another with mpirun: let one program choose by "
             "parc_rank, or let it start the other with parc_spawn; -- before the program makes \":\" an "
             "argument";
    words.erase(word, words.end());
    return {};
  }

  // mpirun has the words that are none of ours, with its own spellings, as -host; behind the program nothing
  // is ours.
  void take_mpiruns(std::vector<std::string>& words) {
    std::vector<std::string> ours{words.front()};
    auto word = words.begin() + 1;
    while (word != words.end() && word->starts_with('-')) {
      const bool is_ours = word->starts_with("--early-release") || word->starts_with("--trace") ||
                           ((*word == "-h" || *word == "--help") && mpi_options_.words.empty());
      const auto values = static_cast<std::ptrdiff_t>(is_ours ? std::size_t{*word == "--trace"}
                                                              : values_of_mpiruns_option(*word));
      const auto end = word + 1 + std::min(values, words.end() - word - 1);
      auto& to = is_ours ? ours : mpi_options_.words;
      to.insert(to.end(), word, end);
      word = end;
    }
    mpi_options_.words.insert(mpi_options_.words.end(), word, words.end());
    words = std::move(ours);
  }

  void take_words_of_parcd(std::vector<std::string>& words) {
    const auto dashes = std::ranges::find(words, "--");
    if (dashes == words.end()) return;
    up_options_.of_parcd.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }

  template <class Options>
  static void add_hosts(CLI::App& command, Options& options, const std::string& by_default) {
    auto* const named = command
                            .add_option("-H,--host,--hosts", options.hosts,
                                        "The hosts, separated by commas; default: " + by_default)
                            ->check(wrong_with_hosts, "", "")
                            ->multi_option_policy(CLI::MultiOptionPolicy::Join);
    command.add_option("-f,--hostfile,--machinefile", options.hostfile, "A file with a host a line")
        ->excludes(named);
  }

  CLI::App app_{"Run parallel programs over parc, and look at its kernels", "parc"};
  CLI::App* run_ = app_.add_subcommand("run", "Start a program on the hosts of a job");
  CLI::App* mpi_ = app_.add_subcommand("mpi", "Run an MPI program over parc, or print how that is done");
  CLI::App* up_ = app_.add_subcommand("up", "Start the kernels of hosts");
  CLI::App* down_ = app_.add_subcommand("down", "End the kernels of hosts");
  CLI::App* hosts_ = app_.add_subcommand("hosts", "Show which kernels are up, and how far away");
  CLI::App* ps_ = app_.add_subcommand("ps", "Show the jobs of all hosts");
  CLI::App* kill_ = app_.add_subcommand("kill", "Send a signal to all ranks of a job");
  CLI::App* status_ = app_.add_subcommand("status", "Show this host's kernel, also a dead one");
  CLI::App* top_ = app_.add_subcommand("top", "Show how fast this host's kernel, links and ranks go");
  CLI::App* errors_ =
      app_.add_subcommand("errors", "Show the distinct errors that this host's kernel has met");
  CLI::App* metrics_ = app_.add_subcommand("metrics", "Print what status shows for Prometheus");
  CLI::App* dump_ = app_.add_subcommand("dump", "Show what the ranks of a job wait for, on all its hosts");
  CLI::App* trace_ = app_.add_subcommand("trace", "Say what the waits of a traced job cost");
  CLI::App* doctor_ =
      app_.add_subcommand("doctor", "Say what on this host, and on the way to others, is in the way");
  CLI::App* probe_ =
      app_.add_subcommand("probe", "Measure messages between this host and another, and faults here");
  CLI::App* stop_ = app_.add_subcommand("stop", "End this host's kernel, and the jobs that it runs");
  CLI::App* clean_ = app_.add_subcommand("clean", "Remove what killed kernels and programs left");
  RunOptions run_options_;
  MpiOptions mpi_options_;
  UpOptions up_options_;
  HostOptions host_options_;
  KillOptions kill_options_;
  StatusOptions status_options_;
  DumpOptions dump_options_;
  DoctorOptions doctor_options_;
  ProbeOptions probe_options_;
  std::string trace_file_;
  TopOptions top_options_;
  ErrorsOptions errors_options_;
  std::string metrics_dir_;
  std::string stop_dir_;
  std::string clean_dir_;
};

} // namespace
} // namespace parc::tools

int main(int argc, char** argv) {
  parc::open_standard_streams();
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool runs = !words.empty() && words.front() == "run";
  const int status = parc::tools::CommandLine().main(words);
  return parc::end_of_output("parc", status, runs ? parc::status_failed : parc::status_failure);
}
