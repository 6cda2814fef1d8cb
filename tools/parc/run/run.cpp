// SPDX-License-Identifier: BSD-3-Clause
// parc run: says to the kernel of this host what is to run, and then is the terminal of the job: its output,
// its signals, its exit status.
#include "system/start_kernel.hpp"
#include "tools/parc/advice/advice.hpp"
#include "tools/parc/hosts/hosts.hpp"
#include "tools/parc/hosts/start_hosts.hpp"
#include "tools/parc/hosts/up_hosts.hpp"
#include "tools/parc/run/commands.hpp"
#include "tools/parc/run/input.hpp"
#include "tools/parc/run/output.hpp"
#include "tools/parc/run/request.hpp"
#include "tools/parc/screen/table.hpp"
#include "tools/parc/talk/caught_signals.hpp"
#include "tools/parc/talk/children.hpp"
#include "tools/parc/talk/kernel_connection.hpp"
#include "tools/parc/trace/trace.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <poll.h>

namespace parc::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>; // none: there is no limit
constexpr int in_background_ms = 200;              // between looks whether the terminal is ours again

int cannot_run(const Error& error) {
  std::cerr << "parc: " << in_words(error) << '\n';
  return status_failed;
}

// ---- Where

// And says so: a job elsewhere than here is a surprise to who has forgotten.
std::vector<HostSlots> hosts_of_up(const std::string& runtime_dir) {
  std::vector<HostSlots> hosts = up_hosts(runtime_dir);
  std::string names;
  for (const HostSlots& host : hosts) names += (names.empty() ? "" : ", ") + host.name;
  if (!hosts.empty())
    std::cerr << fmt::format("parc: the hosts are those of parc up: {} (--hosts names others)\n", names);
  return hosts;
}

// ---- The terminal of the job

class Terminal {
public:
  Terminal(KernelConnection& kernel, const RunOptions& options, const CaughtSignals& signals,
           Deadline deadline)
      : kernel_(kernel), output_(options.tag_output), signals_(signals), deadline_(deadline) {}

  [[nodiscard]] const TraceCollector& trace() const { return trace_; }
  [[nodiscard]] bool output_lost() const { return output_.lost(); }
  // Hosts without a kernel, which is why nothing ran. Some of their names may not be known to our kernel:
  // whoever is to start theirs may know them.
  [[nodiscard]] const tool::Unreached& missing() const { return missing_; }

  Result<int> serve() {
    while (!status_ || output_.pending()) {
      std::array<pollfd, 4> events{pollfd{signals_.fd(), POLLIN, 0}, pollfd{-1, POLLOUT, 0},
                                   pollfd{kernel_.fd(), POLLIN, 0}, pollfd{-1, POLLIN, 0}};
      if (output_.pending()) {
        events[1].fd = output_.fd();
        events[2].fd = -1; // no more until that is out
      }
      if (status_) events[2].fd = -1;
      const bool reads = !status_ && input_.may_read();
      if (reads && !input_.in_background()) events[3].fd = STDIN_FILENO;
      const int ready =
          poll(events.data(), events.size(), reads && events[3].fd < 0 ? in_background_ms : patience());
      if (ready < 0 && errno != EINTR) return system_error("cannot wait for output");
      if (ready == 0 && !output_.pending()) output_.let_go();
      if (deadline_ && Clock::now() >= *deadline_) {
        PARC_TRY(tell_timeout());
      }
      if (events[0].revents != 0) {
        PARC_TRY(tell_signal());
      }
      // Where we take nothing from it, it has not been silent.
      if (const auto due = kernel_.due();
          due && Clock::now() >= *due && events[2].fd >= 0 && events[2].revents == 0)
        return kernel_.silent();
      if (events[1].revents != 0) output_.write_some();
      if (events[2].revents != 0) {
        PARC_TRY(listen());
      }
      if (events[3].revents != 0) {
        PARC_TRY(input_.pass_on(kernel_));
      }
    }
    return *status_;
  }

  // How it ended, where there is something to say.
  void tell_end() const {
    if (!text_.empty()) std::cerr << "parc: " << text_ << '\n';
    if (!ends_.empty()) print_table({{"ENDED", false}, {"RANKS", false}}, ends_, stderr);
    for (const std::string& each : warnings_) std::cerr << "parc: warning: " << each << '\n';
  }

private:
  // Milliseconds until something is due without anything happening; -1: never.
  [[nodiscard]] int patience() const {
    std::optional<Clock::duration> due;
    const bool listens = !output_.pending() && !status_; // else it has not been silent (serve)
    for (const auto& each : {deadline_, listens ? kernel_.due() : std::nullopt})
      if (each)
        due = std::min(due.value_or(Clock::duration::max()),
                       std::max(*each - Clock::now(), Clock::duration::zero()));
    if (output_.holds_beginnings() && !output_.pending())
      due = std::min<Clock::duration>(due.value_or(output_.patience()), output_.patience());
    if (!due) return -1;
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(*due).count();
    return static_cast<int>(std::min<std::int64_t>(milliseconds, 1'000'000));
  }

  // And asks whether it was heard. A kernel that has closed this connection meanwhile has said how the job
  // ended, which is still to be read.
  template <class Message> Result<void> tell(const Message& message) {
    auto told = kernel_.send(message);
    if (told) told = kernel_.ping();
    return told || told.error().code == EPIPE || told.error().code == ECONNRESET ? success()
                                                                                 : std::move(told);
  }

  Result<void> tell_timeout() {
    deadline_.reset();
    return tell(tool::TimedOut{});
  }

  // The first travels to the ranks, a second one ends them at once, and who sends a third wants no answer. A
  // kernel that hangs answers none.
  Result<void> tell_signal() {
    const auto signal = signals_.take();
    if (!signal) return success();
    if (*signal == SIGTSTP) return stop();
    const auto number = static_cast<std::uint32_t>(*signal);
    if (*signal == SIGUSR1 || *signal == SIGUSR2) return tell(tool::Signal{.signal = number});
    if (++signals_seen_ > 2) std::_Exit(status_signal + *signal);
    return signals_seen_ == 1 ? tell(tool::Signal{.signal = number}) : tell(tool::Kill{.signal = number});
  }

  // With the ranks, which have no terminal that would stop them, until we are continued. Where nobody could
  // do that, the system does not stop us.
  Result<void> stop() {
    PARC_TRY(tell(tool::Signal{.signal = SIGSTOP}));
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
    raise(SIGTSTP);
    sigprocmask(SIG_BLOCK, &only, nullptr);
    return tell(tool::Signal{.signal = SIGCONT});
  }

  Result<void> listen() {
    PARC_TRY(kernel_.receive());
    for (;;) {
      PARC_TRY(frame, kernel_.next());
      if (!frame) return success();
      PARC_TRY(hear(*frame));
    }
  }

  Result<void> hear(const control::Frame& frame) {
    const auto kind = tool::kind_named(control::kind_of(frame.message));
    if (kind == tool::Kind::output) {
      PARC_TRY(output, read<tool::Output>(frame));
      if (output.stream == 3)
        trace_.add(output.rank, output.payload);
      else
        output_.add(output.rank, output.stream == 2 ? STDERR_FILENO : STDOUT_FILENO, output.payload);
    } else if (kind == tool::Kind::input_taken) {
      PARC_TRY(input, read<tool::InputTaken>(frame));
      input_.taken(input.taken);
    } else if (kind == tool::Kind::unreached) {
      PARC_TRY(unreached, read<tool::Unreached>(frame));
      missing_ = std::move(unreached);
    } else if (kind == tool::Kind::done) {
      PARC_TRY(done, read<tool::Done>(frame));
      end(std::move(done));
    }
    return success();
  }

  void end(tool::Done done) {
    status_ = static_cast<int>(done.status);
    text_ = std::move(done.text);
    if (done.ends)
      for (auto& [how, which] : *done.ends) ends_.push_back({std::move(how), std::move(which)});
    warnings_ = std::move(done.warnings).value_or(std::vector<std::string>());
    output_.finish();
  }

  KernelConnection& kernel_;
  Output output_;
  Input input_;
  TraceCollector trace_;
  const CaughtSignals& signals_;
  Deadline deadline_;
  int signals_seen_ = 0;
  std::optional<int> status_;
  std::string text_;
  std::vector<Row> ends_; // of the ranks: how, and which
  std::vector<std::string> warnings_;
  tool::Unreached missing_;
};

// A job, from its request to its end. Where `missing` is given and nothing ran because kernels are missing,
// their hosts are put there, and nothing is said.
Result<int> run_once(const RunOptions& options, const tool::Run& request, Deadline deadline,
                     tool::Unreached* missing) {
  PARC_TRY(kernel, KernelConnection::open(options.runtime_dir));
  PARC_TRY(signals, CaughtSignals::make({SIGUSR1, SIGUSR2, SIGTSTP}));
  PARC_TRY(kernel.send(request));
  Terminal terminal(kernel, options, signals, deadline);
  auto status = terminal.serve();
  if (missing != nullptr) *missing = terminal.missing();
  if (status && (missing == nullptr || missing->hosts.empty())) terminal.tell_end();
  bool lost = terminal.output_lost();
  if (!options.trace.empty()) {
    const auto written = write_trace(terminal.trace().ranks(), options.command, options.trace, real_time());
    if (!written) std::cerr << "parc: " << written.error().text << '\n';
    lost = lost || !written;
  }
  if (options.advice.any() && (missing == nullptr || missing->hosts.empty())) {
    const auto advised = advise(terminal.trace().ranks(), options.advice,
                                options.mpi ? ReleaseAt::beginning : ReleaseAt::once);
    if (!advised) std::cerr << "parc: " << advised.error().text << '\n';
    lost = lost || !advised;
  }
  // What the job itself ended with counts, unless that was well.
  if (lost && status && status.value() == 0) return status_failed;
  return status;
}

std::string why_missing(const StartedHost& there, const std::string& unknown) {
  if (!there.reachable) return fmt::format("host {} cannot take part: {}", there.host, there.why);
  if (!unknown.empty()) return fmt::format("{}; and none could be started there: {}", unknown, there.why);
  return fmt::format("no parcd runs on host {}, and none could be started there: {}; start it with parcd "
                     "--detach on that host, or see parc up",
                     there.host, there.why);
}

Deadline deadline_of(const RunOptions& options) {
  if (options.timeout_s.value_or(0) <= 0) return {}; // as mpirun: 0 is no limit
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::min(*options.timeout_s, 1e9)));
}

// A line for each that is still missing.
Result<void> start_missing(const RunOptions& options, const tool::Unreached& missing, Prefixes prefixes,
                           Deadline deadline) {
  const Launcher launcher = launcher_to(missing.hosts, asked_ssh());
  std::chrono::milliseconds patience = patience_with_children;
  if (deadline)
    patience = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()),
                          std::chrono::milliseconds(0), patience);
  PARC_TRY(started, start_hosts(missing.hosts, launcher, options.runtime_dir, std::move(prefixes), {},
                                patience, false));
  std::string lines;
  for (std::size_t i = 0; i < started.size(); ++i)
    if (!started[i].up())
      lines += (lines.empty() ? "" : "\nparc: ") +
               why_missing(started[i], i < missing.unknown.size() ? missing.unknown[i] : std::string());
  return lines.empty() ? success() : Result<void>(error(ENOENT, "{}", lines));
}

Result<int> run_job(const RunOptions& options) {
  PARC_TRY(check_programs(options));
  PARC_TRY(check(options.advice));
  if (options.mpi && options.keep_going)
    return error(EINVAL,
                 "--keep-going is not for programs of MPI (--mpi): their other ranks would wait for the one "
                 "that has failed");
  PARC_TRY(hosts, named_hosts(options.named));
  if (hosts.empty()) hosts = hosts_of_up(options.runtime_dir);
  PARC_TRY(request, describe(options, hosts));
  if (!options.trace.empty()) { // what cannot be written is known before anything runs
    PARC_TRY(write_trace({}, options.command, options.trace));
  }
  const Deadline deadline = deadline_of(options);
  PARC_TRY(may_start, may_start_kernels());
  if (may_start) {
    tool::Unreached missing;
    request.in_haste = 1;
    PARC_TRY(status, run_once(options, request, deadline, &missing));
    if (missing.hosts.empty()) return status;
    if (const auto started = start_missing(options, missing, prefixes_of(hosts), deadline); !started) {
      if (!deadline || Clock::now() < *deadline) return started.error();
      std::cerr << fmt::format("parc: {}\n", started.error().text);
      return status_late;
    }
    request.in_haste.reset();
  }
  return run_once(options, request, deadline, nullptr);
}

// ---- The command line

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

// Those of each program: what stands before the first is for all.
void add_app_options(CLI::App& app, AppOptions& options) {
  app.add_option("-n,--np", options.ranks, "Number of ranks")->check(number_from(1u, max_ranks));
  app.add_option(
         "-H,--host,--hosts", options.named.hosts,
         "Where they run: host:slots, separated by commas; default: the hosts of the batch job, those "
         "of parc up, or this one")
      ->multi_option_policy(CLI::MultiOptionPolicy::Join);
  app.add_option("--wdir", options.directory, "Directory that the ranks start in, on every host");
  app.add_option("-x,--env", options.environment,
                 "Give this variable to the ranks: NAME, or NAME=VALUE; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// A program behind a colon; what is wrong with its words, or nothing.
std::string take_app(std::vector<std::string> words, bool of_mpi, RunOptions& options) {
  CLI::App app("", "a program behind \":\"");
  app.set_help_flag();
  AppOptions& further = options.further.emplace_back();
  add_app_options(app, further);
  be_strict(app);
  const auto [end, unknown] = read_options(app, words, 0);
  if (!unknown.empty())
    return fmt::format("a program behind \":\" has no option {}: it has -n, --hosts, --wdir and -x, and what "
                       "is for all programs stands before the first{}",
                       unknown, of_mpi ? "; parc mpi --mpirun has those of mpirun" : "");
  auto word = words.begin() + static_cast<std::ptrdiff_t>(end);
  if (word != words.end() && *word == "--") word = words.erase(word);
  further.command.assign(word, words.end());
  words.erase(word, words.end());
  std::ranges::reverse(words); // as the parser takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& problem) {
    return explain(app, problem);
  }
  return {};
}

// The program and its arguments: everything after "--", or from the first word on that is neither an option
// nor an option's value, where a ":" begins another.
std::string take_command(CLI::App& app, std::vector<std::string>& words, RunOptions& options) {
  const auto [end, unknown] = read_options(app, words, 1);
  if (!unknown.empty()) {
    const auto advice = instead_of(unknown);
    if (advice.empty() && std::ranges::find(words, "--mpi") != words.end())
      return no_option(app, unknown) + "; parc mpi --mpirun has those of mpirun";
    if (advice.empty()) return no_option(app, unknown);
    return fmt::format("parc run has no option {}; {}", unknown.substr(0, unknown.find('=')), advice);
  }
  auto word = words.begin() + static_cast<std::ptrdiff_t>(end);
  const bool marked = word != words.end() && *word == "--";
  if (marked) word = words.erase(word);
  const bool of_mpi = std::find(words.begin(), word, "--mpi") != word;
  auto colon = marked ? words.end() : std::find(word, words.end(), ":");
  options.command.assign(word, colon);
  while (colon != words.end()) {
    const auto next = std::find(colon + 1, words.end(), ":");
    if (const std::string wrong = take_app({colon + 1, next}, of_mpi, options); !wrong.empty()) return wrong;
    colon = next;
  }
  words.erase(word, words.end());
  return {};
}

void add_options(CLI::App& app, RunOptions& options) {
  app.footer("The program and its arguments follow the options: parc run -n 4 ./solver --fast input. \":\" "
             "begins another: parc run -n 1 ./master : -n 4 ./worker");
  add_app_options(app, options);
  app.add_option("-f,--hostfile,--machinefile", options.named.hostfile,
                 "Where they run: a file with a host a line, as host slots=4 or host:4")
      ->excludes("--hosts");
  app.add_option("--ppn", options.ranks_per_host, "Ranks a host, in place of slots (also -ppn)")
      ->check(number_from(1u, max_ranks));
  app.add_option("--stdin", options.input, "Who reads standard input: a rank (0), all or none")
      ->check(wrong_with_input, "", "");
  app.add_option("--bind", options.bind, "Bind each rank to a core of its own, or let it move")
      ->check(one_of({"core", "none"}));
  app.add_option("--timeout", options.timeout_s,
                 "End the job after this many seconds, with status 124; 0: never")
      ->check(wrong_with_seconds, "", "");
  app.add_flag("--early-release{full}", options.early_release,
               "Let waits for reads return at once, and touches wait: =envelope when the message has begun, "
               "=gets for gets alone")
      ->check(one_of({"off", "gets", "envelope", "full"}));
  app.add_option(
      "--trace", options.trace,
      "Write a timeline of the ranks and their messages to this file, for parc trace and Perfetto");
  app.add_flag("--trace-pages", options.trace_pages,
               "Let the trace tell when each page of what is released early is first touched, and parc trace "
               "suggest an order and strips")
      ->needs("--trace");
  add_advice(app, options.advice);
  app.add_flag("--mpi", options.mpi, "The program is one of MPI (Open MPI): start its ranks without mpirun");
  app.add_flag("--keep-going", options.keep_going, "Let the other ranks go on when one fails");
  app.add_flag("--tag-output", options.tag_output, "Put [RANK] before every line of output");
  add_runtime_dir(app, options.runtime_dir);
}

int run(const RunOptions& options) {
  auto status = run_job(options);
  return status ? status.value() : cannot_run(status.error());
}

} // namespace

Command run_command() {
  const auto options = std::make_shared<RunOptions>();
  return {
      .name = "run",
      .help = "Start a program on the hosts of a job",
      .options = [options](CLI::App& app) { add_options(app, *options); },
      .run = [options] { return run(*options); },
      .take_words = [options](CLI::App& app,
                              std::vector<std::string>& words) { return take_command(app, words, *options); },
      .wrong_words = status_failed};
}

} // namespace parc::tools
