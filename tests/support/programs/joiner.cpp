// SPDX-License-Identifier: BSD-3-Clause
// joiner [JOB RANK SIZE]: joins that job, or the one that the environment says, sends a word around the ring
// of its ranks, and says who it is. With "sits" behind, it stays until a signal; with "forks", it has made a
// child meanwhile, which opens a context of its own, with "opens-and-forks" after it has had another context,
// and with "forks-a-sleeper" one that only sleeps, and says its number.
#include "tests/support/programs/rank.hpp"

#include <atomic>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

int join(parc_context** parc, char** words) {
  return parc_join(parc, std::strcmp(words[1], "-") == 0 ? nullptr : words[1], std::atoi(words[2]),
                   std::atoi(words[3]));
}

int open_alone(bool says_so) {
  parc_context* parc = nullptr;
  if (parc_join(&parc, nullptr, 0, 1) != PARC_OK) return 5;
  if (says_so) std::printf("%d of %d on %s\n", parc_rank(parc), parc_size(parc), parc_host(parc, 0));
  std::fflush(stdout);
  return parc_close(parc);
}

// For its kernel's answer: it sleeps in a call on a socket.
bool waits(pid_t thread) {
  long call = -1;
  std::ifstream("/proc/self/task/" + std::to_string(thread) + "/syscall") >> call;
#ifdef SYS_poll
  if (call == SYS_poll) return true;
#endif
  return call == SYS_recvmsg || call == SYS_ppoll;
}

// While another thread joins.
int join_and_fork(parc_context** parc, char** words, const std::string& way) {
  if (way == "opens-and-forks" && open_alone(false) != PARC_OK) return 5;
  std::atomic<pid_t> thread = 0;
  int code = PARC_OK;
  std::thread joins([&] {
    thread = gettid();
    code = join(parc, words);
    if (code != PARC_OK) std::fprintf(stderr, "%s\n", parc_error_detail()); // this thread's own
  });
  while (thread == 0 || !waits(thread)) sched_yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20); // it must not outlive a test that fails
    if (way == "forks-a-sleeper")
      for (;;) pause();
    _exit(open_alone(true));
  }
  if (way == "forks-a-sleeper") {
    std::printf("%d\n", child);
    std::fflush(stdout);
  } else {
    int status = 0;
    rank::expect(waitpid(child, &status, 0) == child && status == 0, "a child cannot open a context");
  }
  joins.join();
  return code;
}

} // namespace

int main(int count, char** words) {
  parc_context* parc = nullptr;
  const bool by_name = count > 3;
  const std::string way = count > 4 ? words[4] : "";
  const int code = way.find("forks") != way.npos ? join_and_fork(&parc, words, way)
                   : by_name                     ? join(&parc, words)
                                                 : parc_open(&parc);
  if (code != PARC_OK) {
    std::fprintf(stderr, "error %d: %s\n", code, parc_error_detail());
    return 4;
  }
  rank::number = parc_rank(parc);
  const int size = parc_size(parc), next = (rank::number + 1) % size,
            before = (rank::number + size - 1) % size;
  std::vector<unsigned char> out(100'000), in(out.size());
  rank::fill(out.data(), out.size(), static_cast<std::uint64_t>(rank::number));
  const parc_op read = parc_initread(parc, before, 1, in.data(), in.size());
  rank::expect_code(parc_write(parc, next, 1, out.data(), out.size()), PARC_OK, "a write");
  rank::expect_code(parc_wait(parc, read, nullptr), PARC_OK, "a read");
  rank::expect(rank::filled(in.data(), in.size(), static_cast<std::uint64_t>(before)), "wrong bytes");
  rank::expect_code(parc_barrier(parc), PARC_OK, "a barrier");
  std::printf("%d of %d on %s\n", rank::number, size, parc_host(parc, rank::number));
  std::fflush(stdout);
  if (std::strcmp(words[count - 1], "sits") == 0) {
    if (rank::number == 0) {
      rank::expect_code(parc_read(parc, next, 2, nullptr, 0, nullptr), PARC_EPEER,
                        "a read of who was killed");
      std::printf("alone\n");
    } else {
      for (;;) pause();
    }
  }
  return parc_close(parc);
}
