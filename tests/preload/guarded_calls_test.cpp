// SPDX-License-Identifier: BSD-3-Clause
// Each call that client/preload/calls has as wrapped is made with each piece of memory that it is given
// guarded, one at a time: the wrapper waits for it, and for all to begin where others see what the call does.
// The same without the wrapper shows that the call needs it.
#include "arguments.hpp"

#include "client/preload/undeclared.hpp"

#include <boost/test/unit_test.hpp>
#include <err.h>
#include <error.h>
#include <grp.h>
#include <pty.h>
#include <string_view>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <syslog.h>
#include <threads.h>
#include <type_traits>
#include <utime.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

using namespace arguments;

template <class Call> long result_of(const Call& call) {
  if constexpr (std::is_integral_v<decltype(call())>) return static_cast<long>(call());
  call();
  return 0;
}

struct Row {
  const char* name;
  const char* marks; // b: others see it; ?: the system may refuse it here, or answer without a system call
  long (*call)();
};

// CALL(NAME, MARKS, EXPRESSION) for each
#define CALL(NAME, MARKS, ...) {#NAME, MARKS, [] { return result_of([] { return __VA_ARGS__; }); }},
const Row rows[] = {
#include "calls.inc"
};
#undef CALL

// Where others have errno.
bool answers_errors(std::string_view name) {
  return name.starts_with("pthread_") || name.starts_with("posix_") || name == "clock_nanosleep";
}

struct Outcome : guarded::Report {
  bool killed = false;
};

class Runs {
public:
  Runs() {
    BOOST_REQUIRE(mkdtemp(place_.data()) != nullptr);
    BOOST_REQUIRE(chdir(place_.c_str()) == 0);
    const int made = open("file", O_RDWR | O_CREAT, 0600);
    BOOST_REQUIRE(ftruncate(made, 64 << 10) == 0);
    (void)!fsetxattr(made, "user.a", "b", 1, 0);
    close(made);
    close(open("program", O_RDWR | O_CREAT, 0700));
    BOOST_REQUIRE((symlink("file", "link") == 0 && mkdir("directory", 0700) == 0));
    guarded::report = static_cast<guarded::Report*>(
        mmap(nullptr, sizeof(guarded::Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;
  ~Runs() {
    (void)!chdir("/");
    (void)!system(("rm -r " + place_).c_str());
  }

  // In a process of its own, with that piece guarded.
  Outcome operator()(const Row& row, int piece, bool wrapped) {
    *guarded::report = {};
    guarded::report->queue = guarded::report->semaphores = guarded::report->segment = -1;
    const pid_t process = fork();
    if (process == 0) {
      alarm(20);
      guarded::begin(piece);
      make();
      errno = 0;
      guarded::armed = wrapped;
      const long result = row.call();
      const int error = errno;
      guarded::armed = false;
      guarded::report->done = true;
      guarded::report->faulted = error == EFAULT || (answers_errors(row.name) && result == EFAULT);
      guarded::report->opened = guarded::all_open();
      _exit(0);
    }
    int status = 0;
    waitpid(process, &status, 0);
    remove_system_v(*guarded::report);
    Outcome outcome{*guarded::report, WIFSIGNALED(status)};
    return outcome;
  }

private:
  std::string place_ =
      std::string(getenv("TMPDIR") != nullptr ? getenv("TMPDIR") : "/tmp") + "/guarded-XXXXXX";
};

BOOST_AUTO_TEST_CASE(calls_with_guarded_memory) {
  Runs runs;
  for (const Row& row : rows) {
    const std::string_view marks = row.marks;
    const bool seen = marks.find('b') != marks.npos, may_refuse = marks.find('?') != marks.npos;
    const Outcome plain = runs(row, -1, true);
    BOOST_TEST(!plain.killed, row.name << " was killed");
    BOOST_TEST(!plain.faulted, row.name << " has a fault of its own");
    BOOST_TEST((plain.left > 0) == seen, row.name << " waited " << plain.left << " times for all to begin");
    bool needs = false;
    for (int piece = 0; piece < plain.given; ++piece) {
      const Outcome waited = runs(row, piece, true), without = runs(row, piece, false);
      BOOST_TEST(!waited.killed, row.name << " was killed with piece " << piece);
      BOOST_TEST(!waited.faulted, row.name << " answers EFAULT with piece " << piece);
      BOOST_TEST((waited.opened || !waited.done), row.name << " did not wait for piece " << piece);
      const bool meets = without.faulted || without.killed;
      needs |= meets;
      BOOST_TEST((meets || without.touched || !without.needed || may_refuse),
                 row.name << " does not use piece " << piece);
    }
    BOOST_TEST((plain.given == 0 || needs || seen || may_refuse), row.name << " needs no wrapper");
  }
}

} // namespace
