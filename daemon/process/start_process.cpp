// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/process/start_process.hpp"

#include "control/exit_status.hpp"
#include "daemon/process/child_process.hpp"
#include "jobs/installed.hpp"
#include "shm/layout.hpp"
#include "shm/leftovers.hpp"
#include "system/environment.hpp"
#include "system/limits.hpp"
#include "system/oom_score.hpp"
#include "system/orphans.hpp"
#include "system/thread.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <linux/close_range.h>
#include <memory>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace parc::daemon {
namespace {

// Where the child finds the pipes of its session: out of the way of a script's redirections.
constexpr int session_in = 20;
constexpr int session_out = 21;
constexpr int trace_out = 22;
constexpr int first_free = 32; // the child's ends wait from here on for their places

// Since a rank was last started, or killed.
bool more_oom_kills() {
  static unsigned long known = 0;
  const unsigned long now = oom_kills();
  return std::exchange(known, now) < now;
}

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// As the environment names a descriptor, by the pipe's other end: the program may have put something else
// there before libparc looks.
std::string named(int number, const Fd& pipe) {
  struct stat status {};
  (void)fstat(pipe.get(), &status);
  return fmt::format("{}:{}", number, status.st_ino);
}

// The same open file above the places that the child's descriptors take.
Result<Fd> move_up(Fd fd) {
  if (fd.get() >= first_free) return fd;
  Fd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, first_free));
  if (!moved) return system_error("cannot make a pipe");
  return moved;
}

void unblock(const Fd& pipe) {
  fcntl(pipe.get(), F_SETFL, O_NONBLOCK); // the only flag that a pipe has
}

struct ChildEnds {
  Fd input, output, errors, report, session_in, session_out, trace; // trace: perhaps none
};

template <class... Fds> Result<ChildEnds> child_ends(Fds... fds) {
  std::array<Fd, sizeof...(Fds)> given{std::move(fds)...};
  for (Fd& fd : given) {
    if (!fd) continue;
    PARC_TRY(moved, move_up(std::move(fd)));
    fd = std::move(moved);
  }
  return ChildEnds{std::move(given[0]), std::move(given[1]), std::move(given[2]), std::move(given[3]),
                   std::move(given[4]), std::move(given[5]), std::move(given[6])};
}

// Everything the child needs, made before it is: it must not allocate. Its own, because its job may be over
// before a slow file server has told it of the program.
struct Plan {
  Plan(const Program& asked, const Processors* where, const ChildEnds& given)
      : program(asked),
        processors(where != nullptr ? *where : Processors()), places{{{given.input.get(), STDIN_FILENO},
                                                                      {given.output.get(), STDOUT_FILENO},
                                                                      {given.errors.get(), STDERR_FILENO},
                                                                      {given.session_in.get(), session_in},
                                                                      {given.session_out.get(), session_out},
                                                                      {given.trace.get(), trace_out}}},
        report(given.report.get()), oom_score(std::to_string(childrens_oom_score())) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  Program program;
  Processors processors;                     // to be bound to; empty: none
  std::array<std::pair<int, int>, 6> places; // of descriptors: where they are, and where they belong
  int report;
  std::string oom_score;
  std::vector<std::string> files; // to try, in this order
  std::vector<char*> argv;
  std::vector<char*> envp;
};

std::string_view search_path(const Program& program) {
  for (const std::string& variable : program.environment)
    if (variable.starts_with("PATH=")) return std::string_view(variable).substr(5);
  return "/usr/local/bin:/usr/bin:/bin";
}

bool has_path(const Program& program) {
  return program.arguments[0].find('/') != std::string::npos;
}

std::vector<std::string> files_to_try(const Program& program) {
  const std::string& name = program.arguments[0];
  if (has_path(program)) return {name};
  std::vector<std::string> files;
  const std::string_view path = search_path(program);
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find(':', begin), path.size());
    const auto directory = path.substr(begin, end - begin);
    files.push_back(fmt::format("{}/{}", directory.empty() ? "." : directory, name));
    begin = end + 1;
  }
  return files;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

Result<void> preload_for_early_release(std::vector<std::string>& environment) {
  const auto asked = std::ranges::find(environment, env_early_release, name_of_variable);
  const bool releases = asked != environment.end() && *asked != fmt::format("{}=off", env_early_release);
  const bool closes = std::ranges::find(environment, env_trace_pages, name_of_variable) != environment.end();
  return releases || closes ? preload_early_library(environment) : success();
}

bool asks_for_trace(const Program& program) {
  return std::ranges::any_of(program.environment, [](const std::string& variable) {
    return name_of_variable(variable) == env_trace;
  });
}

Result<std::shared_ptr<Plan>> make_plan(const Program& program, const std::vector<std::string>& variables,
                                        const Processors* processors, const ChildEnds& ends) {
  auto plan = std::make_shared<Plan>(program, processors, ends);
  plan->files = files_to_try(program);
  set_variables(plan->program.environment, variables);
  PARC_TRY(preload_for_early_release(plan->program.environment));
  plan->argv = pointers(plan->program.arguments);
  plan->envp = pointers(plan->program.environment);
  return plan;
}

// ---- In the child: async-signal-safe calls only.

[[noreturn]] void give_up(const Plan& plan, StartReport::Stage stage, int failure) {
  const StartReport report{stage, failure};
  (void)!write(plan.report, &report, sizeof report);
  _exit(status_failed);
}

void reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool take_places(const Plan& plan) {
  return std::ranges::all_of(
      plan.places, [](const auto& place) { return place.first < 0 || dup2(place.first, place.second) >= 0; });
}

// Those of the caller of `parc run`, as far as they are not above ours.
void set_limits(const Program& program) {
  for (const Program::Limit& wanted : program.limits) {
    const auto resource = static_cast<__rlimit_resource>(wanted.resource);
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0) continue;
    limit.rlim_max = std::min<rlim_t>(limit.rlim_max, wanted.hard);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted.soft);
    (void)setrlimit(resource, &limit);
  }
}

// Where it may not, it stays as its kernel is.
void set_oom_score(const std::string& score) {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!write(file, score.data(), score.size());
  close(file);
}

[[noreturn]] void execute(const Plan& plan) {
  int failure = ENOENT;
  for (const std::string& file : plan.files) {
    // Not there, as in most directories of a long PATH: to ask costs a tenth of trying.
    if (access(file.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) continue;
    execve(file.c_str(), plan.argv.data(), plan.envp.data());
    failure = errno;
    if (failure == ENOENT && access(file.c_str(), F_OK) == 0)
      give_up(plan, StartReport::Stage::interpreter, ENOENT);
    if (failure == ENOENT) continue; // gone meanwhile
    if (failure != EACCES) break;
    struct stat status {};
    if (stat(file.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) failure = EISDIR;
  }
  give_up(plan, StartReport::Stage::program, failure);
}

[[noreturn]] void become(const Plan& plan, pid_t kernel, const Ready& ready) {
  const Program& program = plan.program;
  setpgid(0, 0);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(plan, StartReport::Stage::setup, errno);
  if (getppid() != kernel) _exit(status_failed); // it died before it could be told of
  reset_signals();
  if (!take_places(plan)) give_up(plan, StartReport::Stage::setup, errno);
  // What the kernel has inherited itself is nobody's business there.
  constexpr unsigned after_session = trace_out + 1;
  (void)syscall(SYS_close_range, STDERR_FILENO + 1U, session_in - 1U, CLOSE_RANGE_CLOEXEC);
  (void)syscall(SYS_close_range, after_session, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const auto& [from, place] : plan.places)
    if (from < 0 && place > STDERR_FILENO) (void)fcntl(place, F_SETFD, FD_CLOEXEC);
  ready(); // the kernel closes its copies: it has no others to spare, and the next child must not inherit
           // them
  umask(program.umask);
  if (chdir(program.directory.c_str()) != 0) {
    const int failure = errno;
    if (program.directory_otherwise.empty() || chdir(program.directory_otherwise.c_str()) != 0)
      give_up(plan, StartReport::Stage::directory, failure);
  }
  set_limits(program);
  set_oom_score(plan.oom_score);
  (void)prctl(PR_SET_TIMERSLACK, program.timer_slack_ns); // a kernel of real-time class has none
  if (!plan.processors.empty() &&
      sched_setaffinity(0, plan.processors.size() * sizeof plan.processors.front(),
                        reinterpret_cast<const cpu_set_t*>(plan.processors.data())) != 0)
    give_up(plan, StartReport::Stage::binding, errno);
  execute(plan);
}

// ---- In the kernel again.

std::string explain_program(const Program& program, const StartReport& report) {
  if (report.error != ENOENT && report.error != ENOTDIR) {
    const char* advice = report.error == EACCES    ? "; chmod +x it there"
                         : report.error == ENOEXEC ? "; it has neither #! nor the format of a program"
                         : report.error == E2BIG   ? "; its arguments and environment are too long"
                         : report.error == EISDIR  ? "; name a program in it"
                                                   : "";
    return fmt::format("{}{}", std::strerror(report.error), advice);
  }
  if (!has_path(program))
    return fmt::format("no such program there (looked in {}); install it or give its path",
                       search_path(program).empty() ? "PATH, which is empty" : search_path(program));
  if (program.arguments[0].starts_with('/')) return "no such file there; copy it";
  return fmt::format("no such file there (looked in {}); copy it or use --wdir", program.directory);
}

} // namespace

std::size_t descriptors_of(const Program& program) {
  return descriptors_of_rank + asks_for_trace(program) + (program.input == Program::all_ranks);
}

Result<StartedProcess> start_process(const Program& program, const std::vector<std::string>& variables,
                                     bool reads_input, const Processors* processors) {
  PARC_TRY(output, make_pipe());
  PARC_TRY(errors, make_pipe());
  PARC_TRY(report, make_pipe());
  PARC_TRY(to_kernel, make_pipe());
  PARC_TRY(to_program, make_pipe());
  Pipe traces;
  if (asks_for_trace(program)) {
    PARC_TRY(made, make_pipe());
    traces = std::move(made);
  }
  Pipe input;
  if (reads_input) {
    PARC_TRY(made, make_pipe());
    input = std::move(made);
  } else {
    input.read.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!input.read) return system_error("cannot open /dev/null");
  }
  PARC_TRY(ends, child_ends(std::move(input.read), std::move(output.write), std::move(errors.write),
                            std::move(report.write), std::move(to_program.read), std::move(to_kernel.write),
                            std::move(traces.write)));

  std::vector<std::string> all = variables;
  all.push_back(fmt::format("{}={},{}", env_pipes, named(session_in, to_program.write),
                            named(session_out, to_kernel.read)));
  if (ends.trace) all.push_back(fmt::format("{}={}", env_trace, named(trace_out, traces.read)));
  PARC_TRY(plan, make_plan(program, all, processors, ends));
  auto child = make_process(
      [plan = std::move(plan), kernel = getpid()](const Ready& ready) { become(*plan, kernel, ready); });
  if (!child) {
    if (child.error().code == EAGAIN) child.error().text += process_advice;
    return child.error();
  }

  (void)more_oom_kills();
  const pid_t id = child.value();
  setpgid(id, id); // whoever of the two comes first
  StartedProcess started;
  started.id = id;
  started.process.reset(static_cast<int>(syscall(SYS_pidfd_open, id, 0)));
  if (!started.process) {
    const Error failure = system_error("cannot watch a process");
    kill(id, SIGKILL);
    while (waitpid(id, nullptr, 0) < 0 && errno == EINTR) {
    }
    return failure;
  }
  started.input = std::move(input.write);
  started.output = std::move(output.read);
  started.errors = std::move(errors.read);
  started.trace = std::move(traces.read);
  started.report = std::move(report.read);
  started.from_program = std::move(to_kernel.read);
  started.to_program = std::move(to_program.write);
  for (const Fd* end : {&started.input, &started.output, &started.errors, &started.trace, &started.report,
                        &started.from_program, &started.to_program})
    if (*end) unblock(*end);
  return started;
}

void signal_group(pid_t id, int signal) {
  kill(-id, signal);
}

RankExit reap(const Fd& process) {
  siginfo_t how{};
  waitid(P_PIDFD, static_cast<id_t>(process.get()), &how, WEXITED);
  const auto value = static_cast<std::uint32_t>(how.si_status);
  if (how.si_code == CLD_EXITED) return {.status = value};
  return {.signal = value, .no_memory = value == SIGKILL && more_oom_kills()};
}

void clean_up_after(const std::vector<pid_t>& killed) {
  const auto removed = shm::remove_leftovers_of(killed);
  if (!removed) return spdlog::warn("{}", removed.error().text);
  if (removed.value() != 0)
    spdlog::info("removed {} System V segments of ranks that were killed", removed.value());
}

void end_strays(const std::string& job_variable) {
  try {
    start_thread(
        [kernel = kernel_variable(getpid()), job_variable] { parc::end_strays(kernel, job_variable); });
  } catch (const std::system_error& failure) {
    spdlog::warn("cannot look for what the ranks of a job have left running: {}", failure.what());
  }
}

std::optional<StartReport> read_report(const Fd& report) {
  StartReport read_in{};
  if (read(report.get(), &read_in, sizeof read_in) != sizeof read_in) return {};
  return read_in;
}

StartFailure explain(const Program& program, const StartReport& report, const std::string& host) {
  const std::string tried = fmt::format("cannot start {} on host {}: ", program.arguments[0], host);
  switch (report.stage) {
  case StartReport::Stage::setup:
    return {status_failed, fmt::format("{}{}", tried, std::strerror(report.error))};
  case StartReport::Stage::directory:
    return {status_failed, fmt::format("{}cannot go to directory {} there: {}; make it or use --wdir", tried,
                                       program.directory, std::strerror(report.error))};
  case StartReport::Stage::binding:
    return {status_failed,
            fmt::format("{}cannot bind it to a core: {}; leave --bind out, or start that host's "
                        "parcd again if its processors have changed",
                        tried, std::strerror(report.error))};
  case StartReport::Stage::interpreter:
    return {status_not_executable,
            tried + "the interpreter that it names (after #!, or its loader) is not there; install it"};
  case StartReport::Stage::program: break;
  }
  const bool found = report.error != ENOENT && report.error != ENOTDIR;
  return {found ? status_not_executable : status_not_found, tried + explain_program(program, report)};
}

} // namespace parc::daemon
