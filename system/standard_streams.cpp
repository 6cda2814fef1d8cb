// SPDX-License-Identifier: BSD-3-Clause
#include "system/standard_streams.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <streambuf>
#include <unistd.h>

namespace parc {
namespace {

// What std::cout writes to: stdout, whose first refusal is remembered. The stream itself only knows that
// there was one.
class WatchedOutput : public std::streambuf {
public:
  [[nodiscard]] int why() const { return why_; }

private:
  std::streamsize xsputn(const char* text, std::streamsize length) override {
    const std::size_t written = std::fwrite(text, 1, static_cast<std::size_t>(length), stdout);
    if (written != static_cast<std::size_t>(length)) note();
    return static_cast<std::streamsize>(written);
  }
  int overflow(int character) override {
    if (character == EOF) return 0;
    const int put = std::putc(character, stdout);
    if (put == EOF) note();
    return put;
  }
  int sync() override {
    const int flushed = std::fflush(stdout);
    if (flushed != 0) note();
    return flushed;
  }
  void note() {
    if (why_ == 0) why_ = errno;
  }

  int why_ = 0; // errno
};

bool ignores_file_size = false; // and whoever started us did not
bool ignored_children = false;  // by whoever started us: there would be no status to wait for

// As long as the process: std::cout is flushed behind the end of everything else.
WatchedOutput& watched() {
  static auto* const output = new WatchedOutput;
  return *output;
}

} // namespace

// The lowest number that is free is the one that is missing.
void open_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDWR) != number) _exit(EXIT_FAILURE);
  if (std::signal(SIGXFSZ, SIG_IGN) == SIG_DFL) ignores_file_size = true;
  if (std::signal(SIGCHLD, SIG_DFL) == SIG_IGN) ignored_children = true;
  std::cout.rdbuf(&watched());
}

void give_signals_back() {
  if (ignores_file_size) std::signal(SIGXFSZ, SIG_DFL);
  if (ignored_children) std::signal(SIGCHLD, SIG_IGN);
}

int end_of_output(const char* program, int status, int failed) {
  std::cout.flush();
  bool lost = !std::cout || std::ferror(stdout) != 0;
  int why = watched().why();
  if (std::fclose(stdout) != 0) {
    if (why == 0) why = errno;
    lost = true;
  }
  if (!lost) return status;
  if (why == EPIPE) end_without_reader();
  std::fprintf(stderr, "%s: cannot write all of this to standard output: %s\n", program,
               why != 0 ? std::strerror(why) : "a write failed; is the disk full?");
  return status != 0 ? status : failed;
}

void end_without_reader() {
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigprocmask(SIG_UNBLOCK, &pipe, nullptr);
  std::raise(SIGPIPE);
  _exit(128 + SIGPIPE);
}

} // namespace parc
