// SPDX-License-Identifier: BSD-3-Clause
// Lock, pid file, detaching and readiness of a kernel's process.
#include "daemon/base/instance.hpp"

#include "daemon/base/logging.hpp"
#include "system/observe/counters.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace parc::daemon {
namespace {

constexpr char ready_byte = '+';  // what the child writes to its waiting parent
constexpr char failed_byte = '-'; // then the error's text

// As sd_notify(3) does it. Without a service manager there is no NOTIFY_SOCKET, and nothing happens.
void notify_systemd(std::string_view state) {
  const char* variable = std::getenv("NOTIFY_SOCKET");
  const std::string_view name = variable ? variable : "";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() < 2 || name.size() >= sizeof address.sun_path) return;
  name.copy(address.sun_path, name.size());
  if (name.front() == '@') address.sun_path[0] = '\0'; // an abstract name
  const Fd to(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  (void)sendto(to.get(), state.data(), state.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), length);
}

// "process 17 of host a, since 2026-01-31 12:00:00, listening on 127.0.0.1, port 7272, on loopback only"
std::string describe_kernel(const RuntimeDir& dir, pid_t process) {
  if (process <= 0) return "a process that cannot be seen from here";
  const std::string number = fmt::format("process {}", process);
  const auto counters = CounterReader::open(dir);
  if (!counters) return number;
  const CounterSnapshot kernel = counters.value().read();
  if (kernel.pid != static_cast<std::uint64_t>(process)) return number; // it is still starting
  const auto started = static_cast<std::time_t>(kernel.started_s);
  std::tm local{};
  std::array<char, 32> since{};
  (void)std::strftime(since.data(), since.size(), "%F %T", localtime_r(&started, &local));
  return fmt::format("{} of host {}, since {}, listening on {}", number, kernel.host, since.data(),
                     kernel.listens);
}

// That of a batch job may go, and its lock with it, between any two calls.
Result<Fd> take_lock(const RuntimeDir& dir) {
  for (;;) {
    Fd lock(open(dir.lock().c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!lock && errno == ENOENT && dir.of_batch_job() && mkdir(dir.path().c_str(), 0700) == 0) continue;
    if (!lock) return system_error("cannot open {}", dir.lock());
    if (!try_lock(lock)) {
      if (errno != EACCES && errno != EAGAIN) return system_error("cannot lock {}", dir.lock());
      PARC_TRY(other, running_kernel(dir)); // none: it has just ended
      return error(EEXIST,
                   "a parcd already runs on {}: {}; use it, stop it (parc stop --runtime-dir {}), or choose "
                   "another --runtime-dir",
                   dir.path(), describe_kernel(dir, other.value_or(0)), dir.path());
    }
    struct stat status {};
    if (fstat(lock.get(), &status) == 0 && status.st_nlink != 0) return lock;
  }
}

Result<void> write_pid(const std::string& path) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  const std::string text = fmt::format("{}\n", getpid());
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return system_error("cannot write {}", path);
  return success();
}

// The parent of --detach: what the child said, then its exit status. Never returns.
[[noreturn]] void wait_for_child(int from_child, pid_t child, const std::string& log_path) {
  std::string said;
  char buffer[512];
  for (;;) {
    const ssize_t got = read(from_child, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    said.append(buffer, static_cast<std::size_t>(got));
    if (said.front() == ready_byte) _exit(0);
  }
  if (!said.empty()) {
    std::fprintf(stderr, "parcd: %s\n", said.c_str() + 1);
  } else {
    int status = 0;
    (void)waitpid(child, &status, 0);
    const auto how = WIFSIGNALED(status) ? fmt::format("killed by signal {}", WTERMSIG(status))
                                         : fmt::format("exit status {}", WEXITSTATUS(status));
    std::fprintf(stderr, "parcd: the kernel ended before it was ready (%s); its log is %s\n", how.c_str(),
                 log_path.c_str());
  }
  std::fflush(stderr);
  _exit(1);
}

// Locks and pipes of whoever starts us are not to last as long as we do. What came through exec is known by
// that: ours would not have.
void close_inherited() {
  std::error_code failure;
  std::vector<int> inherited;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", failure)) {
    const int number = std::atoi(each.path().filename().c_str());
    const int flags = fcntl(number, F_GETFD);
    if (number > STDERR_FILENO && flags >= 0 && (flags & FD_CLOEXEC) == 0) inherited.push_back(number);
  }
  for (const int each : inherited) close(each);
}

Result<void> leave_streams(int log) {
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null || dup2(null.get(), STDIN_FILENO) < 0 || dup2(null.get(), STDOUT_FILENO) < 0 ||
      dup2(log, STDERR_FILENO) < 0)
    return system_error("cannot leave the standard streams");
  return success();
}

} // namespace

Instance::Instance(const RuntimeDir& dir, Fd lock) : dir_(dir), lock_(std::move(lock)), owner_(getpid()) {}

Result<Instance> Instance::acquire(const RuntimeDir& dir) {
  PARC_TRY(lock, take_lock(dir));
  Instance instance(dir, std::move(lock));
  PARC_TRY(write_pid(dir.pid_file()));
  remove_job_directories(dir);
  for (const std::string& file : files_of_kernel(dir))
    if (file != dir.pid_file() && file != dir.counters() && unlink(file.c_str()) != 0 && errno != ENOENT)
      return system_error("cannot remove {} of a kernel that died", file);
  return instance;
}

Result<bool> Instance::put_back() {
  if (!is_at(lock_, dir_.lock())) {
    PARC_TRY(make_again(dir_));
    PARC_TRY(lock, take_lock(dir_));
    lock_ = std::move(lock);
  } else if (access(dir_.pid_file().c_str(), F_OK) == 0) {
    return false;
  }
  PARC_TRY(write_pid(dir_.pid_file()));
  return true;
}

Instance::~Instance() {
  if (!lock_ || getpid() != owner_ || !is_at(lock_, dir_.lock())) return;
  if (dir_.of_batch_job()) {
    remove_runtime_dir(dir_);
    return;
  }
  unlink(dir_.socket().c_str());
  unlink(dir_.pid_file().c_str());
  unlink(dir_.up_hosts().c_str());
}

Result<Readiness> Readiness::detach(const std::string& log_path) {
  PARC_TRY(log, open_log(log_path));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe");
  Fd from_child(ends[0]), to_parent(ends[1]);
  const pid_t child = fork();
  if (child < 0) return system_error("cannot start a process");
  if (child > 0) {
    to_parent.reset();
    wait_for_child(from_child.get(), child, log_path);
  }
  Readiness readiness;
  readiness.parent_ = std::move(to_parent);
  readiness.detached_ = true;
  setsid(); // which a child always may
  close_inherited();
  if (auto left = leave_streams(log.get()); !left) {
    readiness.failed(left.error());
    return std::move(left).error();
  }
  return readiness;
}

Result<Readiness> Readiness::announce(const std::string& log_path) {
  PARC_TRY(log, open_log(log_path));
  Readiness readiness;
  readiness.output_.reset(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  readiness.complaints_.reset(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  if (!readiness.output_ || !readiness.complaints_) return system_error("cannot keep the standard streams");
  PARC_TRY(leave_streams(log.get()));
  return readiness;
}

void Readiness::ready() {
  if (detached_) (void)!chdir("/"); // a file system may be taken from under who has started us
  // Where the parent was killed meanwhile, the kernel stays: it was asked for.
  if (parent_) (void)!write(parent_.get(), &ready_byte, 1);
  parent_.reset();
  output_.reset();
  complaints_.reset();
  notify_systemd("READY=1");
}

void Readiness::failed(const Error& error) {
  if (complaints_) dprintf(complaints_.get(), "parcd: %s\n", error.text.c_str());
  complaints_.reset();
  if (!parent_) return;
  const std::string text = failed_byte + error.text;
  (void)!write(parent_.get(), text.data(), text.size());
  parent_.reset();
}

void Readiness::stopping() {
  notify_systemd("STOPPING=1");
}

} // namespace parc::daemon
