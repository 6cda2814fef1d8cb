// SPDX-License-Identifier: BSD-3-Clause
// parc mpi: how an MPI program is run over parc, said or done. Open MPI moves its messages through libfabric
// where it is asked to; the provider answers only when it is named.
#include "control/exit_status.hpp"
#include "jobs/installed.hpp"
#include "system/environment.hpp"
#include "system/observe/trace.hpp"
#include "system/oom_score.hpp"
#include "system/standard_streams.hpp"
#include "tools/parc/advice/advice.hpp"
#include "tools/parc/run/commands.hpp"
#include "tools/parc/run/mpi_settings.hpp"
#include "tools/parc/run/mpirun_words.hpp"
#include "tools/parc/trace/trace.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace parc::tools {
namespace {

struct MpiOptions {
  std::string early_release; // a level of parc_set_release; empty: none
  std::string trace;         // file; empty: none
  bool only_advises = false; // and the trace is nobody's
  bool trace_pages = false;  // it tells of first touches, too
  AdviceOptions advice;
  bool by_mpirun = false;
  std::vector<std::string> words; // mpirun's
};

// What a launcher says of itself; empty: there is none.
std::string version_of(const std::string& launcher) {
  const std::unique_ptr<FILE, int (*)(FILE*)> said(popen((launcher + " --version 2>/dev/null").c_str(), "r"),
                                                   pclose);
  std::string text;
  std::array<char, 256> part{};
  while (said && std::fgets(part.data(), part.size(), said.get())) text += part.data();
  return text;
}

struct Mpirun {
  std::string name;  // empty: there is no Open MPI here
  std::string other; // what else answers as mpirun
};

// Debian calls it mpirun.openmpi, too, where another MPI is the first.
Mpirun find_mpirun() {
  Mpirun found;
  for (const char* const name : {"mpirun", "mpirun.openmpi"}) {
    const std::string version = version_of(name);
    if (version.find("Open MPI") != version.npos) {
      found.name = name;
      return found;
    }
    if (found.other.empty()) found.other = version.substr(0, version.find('\n'));
  }
  return found;
}

// Where the ranks of a traced job write, each on its host.
Result<std::string> directory_of(const std::string& trace) {
  std::error_code failure;
  auto path = std::filesystem::absolute(trace, failure);
  if (failure) return error(failure.value(), "cannot tell the working directory: {}", failure.message());
  path += trace::directory_suffix;
  if (std::filesystem::is_directory(path, failure) && !std::filesystem::is_empty(path, failure))
    return error(EEXIST,
                 "{} has the traces of an earlier job; parc trace {} makes a file of them, or remove it",
                 path.string(), trace);
  return path.lexically_normal().string();
}

// The variables that the ranks need besides those of Open MPI's own settings.
Result<std::vector<std::string>> variables_for(const MpiOptions& options) {
  std::vector<std::string> variables;
  if (getenv(for_mpi4py) == nullptr) variables.push_back(std::string(for_mpi4py) + "=False");
  PARC_TRY(provider, provider_path());
  if (!provider.empty()) variables.push_back("FI_PROVIDER_PATH=" + provider);
  if (!options.trace.empty()) {
    PARC_TRY(directory, directory_of(options.trace));
    variables.push_back(fmt::format("{}={}", env_trace, directory));
  }
  const bool advises = options.advice.any();
  if (advises || options.trace_pages)
    variables.push_back(fmt::format("{}={}", env_trace_pages, advises ? trace_pages_unreleased : "yes"));
  std::string level = options.early_release;
  if (level.empty() && (advises || options.trace_pages)) level = advises ? "envelope" : "gets";
  if (level.empty()) return variables;
  variables.push_back(fmt::format("{}={}", env_early_release, level));
  if (level == "off" && !options.trace_pages) return variables;
  if (const char* const others = getenv("LD_PRELOAD"); others != nullptr && *others != 0)
    variables.push_back(std::string("LD_PRELOAD=") + others);
  PARC_TRY(preload_early_library(variables));
  return variables;
}

void become(std::vector<std::string>& line) {
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  give_signals_back();
  (void)set_oom_score_adj(oom_score_adj() + oom_distance); // its ranks before the kernel
  execvp(argv[0], argv.data());
  fmt::print(stderr, "parc: cannot run {}: {}\n", line[0], std::strerror(errno));
}

void append_variables(std::vector<std::string>& line, const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) line.insert(line.end(), {"-x", variable});
}

// By the caller, as "--mca btl self": mpirun takes one value of each.
bool is_set(std::string_view name, const std::vector<std::string>& given) {
  return std::ranges::find(given, name) != given.end();
}

std::vector<std::string> line_of(const std::string& launcher, const std::vector<std::string>& variables,
                                 const std::vector<std::string>& given) {
  std::vector<std::string> words{launcher};
  for (const auto& [name, value] : mpi_settings)
    if (!is_set(name, given)) words.insert(words.end(), {"--mca", name, value});
  append_variables(words, variables);
  return words;
}

// Behind a colon another program follows, with variables of its own.
void append_arguments(std::vector<std::string>& line, const std::vector<std::string>& words,
                      const std::vector<std::string>& variables) {
  for (const std::string& word : words) {
    line.push_back(word);
    if (word == ":") append_variables(line, variables);
  }
}

void print(const std::vector<std::string>& line, const std::vector<std::string>& variables,
           const std::string& trace) {
  for (const std::string& word : line) fmt::print("{} ", word);
  fmt::print(
      "./app\n\nThe same in the environment, for mpirun ./app and srun --mpi=pmix ./app alike:\n\nexport");
  for (const auto& [name, value] : mpi_settings) fmt::print(" OMPI_MCA_{}={}", name, value);
  std::string names; // mpirun gives the ranks of other hosts no others than its own
  for (const std::string& variable : variables) {
    fmt::print(" {}", variable);
    names += (names.empty() ? "" : ";") + variable.substr(0, variable.find('='));
  }
  if (!names.empty()) fmt::print(" OMPI_MCA_mca_base_env_list='{}'", names);
  fmt::print("\n");
  if (!trace.empty()) fmt::print("\nand afterwards: parc trace {}\n", trace);
}

// Runs it as this process would be it: signals are handed on.
Result<int> run_beside(std::vector<std::string>& line) {
  sigset_t ours, before;
  sigemptyset(&ours);
  for (const int each : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&ours, each);
  sigprocmask(SIG_BLOCK, &ours, &before);
  const pid_t child = fork();
  if (child < 0) return system_error("cannot run {}", line[0]);
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    become(line);
    _exit(status_failed);
  }
  for (int status = 0;;) {
    siginfo_t info{};
    const int number = sigwaitinfo(&ours, &info);
    if (number != SIGCHLD) {
      if (number > 0 && info.si_code == SI_USER) kill(child, number); // the terminal's reach it anyway
      continue;
    }
    if (waitpid(child, &status, WNOHANG) != child) continue;
    sigprocmask(SIG_SETMASK, &before, nullptr); // for what is made of what it left
    return exit_status_of(status);
  }
}

int run_traced(std::vector<std::string>& line, const MpiOptions& options) {
  std::vector<std::string> command{"parc", "mpi"};
  command.insert(command.end(), options.words.begin(), options.words.end());
  int status = 0;
  const auto traced = [&]() -> Result<void> {
    std::error_code failure; // what cannot be written is known before anything runs
    std::filesystem::create_directory(options.trace + trace::directory_suffix, failure);
    if (failure)
      return error(failure.value(), "cannot write a trace to {}: {}", options.trace, failure.message());
    PARC_TRY(ended, run_beside(line));
    status = ended;
    const std::uint64_t now = real_time();
    PARC_TRY(ranks, gather_ranks(options.trace));
    if (!options.only_advises) {
      PARC_TRY(write_trace(ranks, command, options.trace, now));
    }
    remove_ranks(options.trace);
    return options.advice.any() ? advise(ranks, options.advice, ReleaseAt::beginning) : success();
  }();
  if (traced) return status;
  fmt::print(stderr, "parc: {}\n", traced.error().text);
  return status != 0 ? status : status_failed;
}

// Without a file that somebody has asked for, one of a name that no other has on any host.
void name_trace(MpiOptions& options) {
  options.only_advises = options.advice.any() && options.trace.empty();
  if (!options.only_advises) return;
  std::error_code failure;
  const auto directory = std::filesystem::temp_directory_path(failure);
  options.trace =
      fmt::format("{}/parc-advise-{}-{}", failure ? "/tmp" : directory.string(), getpid(), real_time());
}

int mpi(MpiOptions options) {
  name_trace(options);
  const int failed = options.words.empty() ? status_failure : status_failed;
  const Mpirun launcher = find_mpirun();
  if (launcher.name.empty()) {
    fmt::print(
        stderr,
        "parc: there is no Open MPI here to run programs over parc with{}; install it (openmpi-bin), or put "
        "its mpirun into PATH\n",
        launcher.other.empty() ? "" : fmt::format(" (mpirun is \"{}\")", launcher.other));
    return failed;
  }
  if (const auto makes_sense = check(options.advice); !makes_sense) {
    fmt::print(stderr, "parc: {}\n", makes_sense.error().text);
    return failed;
  }
  const auto variables = variables_for(options);
  if (!variables) {
    fmt::print(stderr, "parc: {}\n", variables.error().text);
    return failed;
  }
  std::vector<std::string> line = line_of(launcher.name, variables.value(), options.words);
  if (options.words.empty()) {
    if (options.advice.any()) {
      fmt::print(stderr, "parc: --advise runs a program: parc mpi --advise -np 2 ./app\n");
      return status_usage;
    }
    print(line, variables.value(), options.trace);
    return 0;
  }
  append_arguments(line, options.words, variables.value());
  if (!options.trace.empty()) return run_traced(line, options);
  become(line);
  return failed;
}

// mpirun has the words that are none of ours, with its own spellings, as -host; behind the program nothing is
// ours.
void take_mpiruns(std::vector<std::string>& words, MpiOptions& options) {
  std::vector<std::string> ours{words.front()};
  auto word = words.begin() + 1;
  while (word != words.end() && word->starts_with('-')) {
    const bool is_ours = word->starts_with("--early-release") || word->starts_with("--trace") ||
                         word->starts_with("--advise") || *word == "--mpirun" || *word == "--link" ||
                         word->starts_with("--link=") ||
                         ((*word == "-h" || *word == "--help") && options.words.empty());
    const auto values = static_cast<std::ptrdiff_t>(
        is_ours ? std::size_t{*word == "--trace" || *word == "--link"} : values_of_mpiruns_option(*word));
    const auto end = word + 1 + std::min(values, words.end() - word - 1);
    auto& to = is_ours ? ours : options.words;
    to.insert(to.end(), word, end);
    word = end;
  }
  options.words.insert(options.words.end(), word, words.end());
  words = std::move(ours);
}

} // namespace

// With no words: prints how MPI programs are run over parc. Else runs mpirun so, with these words: what is to
// be run without it is parc run's (without_mpirun).
Command mpi_command() {
  const auto options = std::make_shared<MpiOptions>();
  return {
      .name = "mpi",
      .help = "Run an MPI program over parc, or print how that is done",
      .options =
          [options](CLI::App& app) {
            app.add_flag("--early-release{envelope}", options->early_release,
                         "Let MPI's receives and gets return when their bytes have begun, and touches wait: "
                         "=gets these alone")
                ->check(one_of({"off", "gets", "envelope"}));
            app.add_option("--trace", options->trace,
                           "Write a timeline of the ranks and their messages to this file, for parc trace");
            app.add_flag("--trace-pages", options->trace_pages,
                         "Let the trace tell when each page of what is released early is first touched")
                ->needs("--trace");
            add_advice(app, options->advice);
            app.add_flag("--mpirun", options->by_mpirun,
                         "Let mpirun start the ranks: what follows is its own; without this, it is as for "
                         "parc run --mpi");
            app.footer("parc mpi -np 4 ./app runs a program. Nothing: the line for mpirun is printed.");
          },
      .run = [options] { return mpi(*options); },
      .take_words =
          [options](CLI::App&, std::vector<std::string>& words) {
            take_mpiruns(words, *options);
            return std::string();
          }};
}

} // namespace parc::tools
