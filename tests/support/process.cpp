// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/process.hpp"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace parc::test {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

[[noreturn]] void become(const Process::Start& start) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int output = open(start.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  const int errors = open(start.errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  for (const int each : {null, output, errors}) close(each);
  for (const int each : {SIGINT, SIGQUIT})
    (void)signal(each, SIG_DFL); // a shell ignores them for what runs behind it
  for (const auto& [name, value] : start.environment) setenv(name.c_str(), value.c_str(), 1);
  if (!start.directory.empty() && chdir(start.directory.c_str()) != 0) _exit(99);
  std::vector<char*> argv;
  for (const std::string& word : start.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(98);
}

} // namespace

bool eventually(const std::function<bool()>& is_so) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

Process::Process(const Start& start) : output_(start.output), errors_(start.errors) {
  id_ = fork();
  if (id_ < 0) throw std::runtime_error("cannot fork");
  if (id_ == 0 && start.own_group) setpgid(0, 0);
  if (id_ == 0) become(start);
}

Process::Process(Process&& other) noexcept
    : id_(std::exchange(other.id_, -1)), status_(other.status_), output_(std::move(other.output_)),
      errors_(std::move(other.errors_)) {}

Process::~Process() {
  if (id_ <= 0 || !running()) return;
  kill(id_, SIGKILL);
  (void)waitpid(id_, &status_, 0);
}

void Process::signal(int number) const {
  kill(id_, number);
}

bool Process::running() {
  if (status_ >= 0) return false;
  int status = 0;
  if (waitpid(id_, &status, WNOHANG) != id_) return true;
  status_ = status;
  return false;
}

int Process::wait() {
  if (!eventually([this] { return !running(); })) return -1;
  return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
}

std::string Process::output() const {
  return read_all(output_);
}

std::string Process::errors() const {
  return read_all(errors_);
}

std::ostream& operator<<(std::ostream& to, const Process& process) {
  return to << process.output() << process.errors();
}

} // namespace parc::test
