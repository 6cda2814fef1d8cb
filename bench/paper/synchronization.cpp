// SPDX-License-Identifier: BSD-3-Clause
// Two processes that wake each other in turn. Invariant: neither outlives the other, and the semaphores go
// with whichever goes first; what is left where both are killed at the same moment has a key of the user's,
// by which the next run removes it.
#include "bench/figures/places.hpp"
#include "bench/paper/cores.hpp"
#include "bench/paper/roles.hpp"

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <linux/futex.h>
#include <memory>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace parc::bench {

namespace {

constexpr int rounds_at_once = 200; // between two looks at the clock
constexpr double long_enough = 0.1; // seconds

// What one of two processes does to wake the other, and to wait until it is woken.
struct Process {
  std::function<bool()> wake, wait;
};
struct Pair {
  Process first, second;
};

bool pass_on(int fd, char* data, std::size_t bytes, bool out) {
  for (ssize_t length = 0; bytes > 0; data += length, bytes -= static_cast<std::size_t>(length)) {
    length = out ? write(fd, data, bytes) : read(fd, data, bytes);
    if (length <= 0) return false;
  }
  return true;
}

// ---- Pipes and eventfds ----

struct Pipe {
  Fd out, in;
  std::vector<char> data;
  bool send() { return pass_on(in.get(), data.data(), data.size(), true); }
  bool receive() { return pass_on(out.get(), data.data(), data.size(), false); }
};

Result<std::shared_ptr<Pipe>> make_pipe(std::size_t bytes) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make a pipe");
  return std::make_shared<Pipe>(Pipe{Fd(ends[0]), Fd(ends[1]), std::vector<char>(bytes, 1)});
}

Result<Pair> over_pipes(std::size_t bytes) {
  PARC_TRY(there, make_pipe(bytes));
  PARC_TRY(back, make_pipe(bytes));
  const auto wake = [](const std::shared_ptr<Pipe>& pipe) { return [pipe] { return pipe->send(); }; };
  const auto wait = [](const std::shared_ptr<Pipe>& pipe) { return [pipe] { return pipe->receive(); }; };
  return Pair{{wake(there), wait(back)}, {wake(back), wait(there)}};
}

Result<Pair> over_eventfds() {
  const auto there = std::make_shared<Fd>(eventfd(0, EFD_CLOEXEC)),
             back = std::make_shared<Fd>(eventfd(0, EFD_CLOEXEC));
  if (!*there || !*back) return system_error("cannot make an eventfd");
  const auto wake = [](const std::shared_ptr<Fd>& event) {
    return [event] { return eventfd_write(event->get(), 1) == 0; };
  };
  const auto wait = [](const std::shared_ptr<Fd>& event) {
    return [event] {
      eventfd_t count = 0;
      return eventfd_read(event->get(), &count) == 0;
    };
  };
  return Pair{{wake(there), wait(back)}, {wake(back), wait(there)}};
}

// ---- Futexes: two words of memory that both share ----

using Word = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free);

long futex(Word& word, int operation, std::uint32_t value) {
  return syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

Result<Pair> over_futexes() {
  constexpr std::size_t bytes = 4096, apart = 128; // each word in lines of its own
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_error("cannot share memory");
  const std::shared_ptr<void> shared(memory, [](void* old) { munmap(old, bytes); });
  const auto word = [&shared](std::size_t at) {
    return std::shared_ptr<Word>(shared, new (static_cast<std::byte*>(shared.get()) + at) Word(0));
  };
  const auto wake = [](const std::shared_ptr<Word>& set) {
    return [set] {
      set->store(1);
      return futex(*set, FUTEX_WAKE, 1) >= 0;
    };
  };
  const auto wait = [](const std::shared_ptr<Word>& set) {
    return [set] {
      while (set->exchange(0) == 0)
        if (futex(*set, FUTEX_WAIT, 0) != 0 && errno != EAGAIN && errno != EINTR) return false;
      return true;
    };
  };
  const auto there = word(0), back = word(apart);
  return Pair{{wake(there), wait(back)}, {wake(back), wait(there)}};
}

// ---- System V semaphores ----

volatile std::sig_atomic_t semaphores_in_use = -1;

void remove_semaphores() {
  if (semaphores_in_use >= 0) semctl(semaphores_in_use, 0, IPC_RMID);
  semaphores_in_use = -1;
}

bool operate(int set, unsigned short semaphore, short by) {
  sembuf operation{semaphore, by, 0};
  return semop(set, &operation, 1) == 0;
}

Result<Pair> over_semaphores() {
  const auto key =
      static_cast<key_t>(0x94000000U + getuid()); // only one bench of a user is at work at a time
  if (const int left = semget(key, 0, 0); left >= 0) semctl(left, 0, IPC_RMID);
  const int set = semget(key, 2, IPC_CREAT | IPC_EXCL | 0600); // whose values are 0, on Linux
  if (set < 0) return system_error("cannot make System V semaphores");
  semaphores_in_use = set;
  const std::shared_ptr<void> owner(nullptr, [](void*) { remove_semaphores(); });
  const auto wake = [set, owner](unsigned short which) {
    return [set, which, owner] { return operate(set, which, 1); };
  };
  const auto wait = [set, owner](unsigned short which) {
    return [set, which, owner] { return operate(set, which, -1); };
  };
  return Pair{{wake(0), wait(1)}, {wake(1), wait(0)}};
}

// ---- The two processes ----

// The one that is left ends too: when its partner goes (SIGCHLD of the first, SIGTERM of the second), or when
// the bench is ended.
[[noreturn]] void give_up(int) {
  constexpr char text[] = "one of the two processes that wake each other was ended\n";
  remove_semaphores();
  [[maybe_unused]] const ssize_t told = write(STDERR_FILENO, text, sizeof text - 1);
  _exit(1);
}

void end_with_partner() {
  struct sigaction action {};
  action.sa_handler = give_up;
  for (const int number : {SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM}) sigaction(number, &action, nullptr);
}

[[noreturn]] void be_second(const Process& process, int core, pid_t first) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == first) {
    stay_on(core);
    while (process.wait() && process.wake()) {
    }
  }
  give_up(0);
}

// Seconds of a round; the first ones are not counted.
Result<double> time_of(const Process& process) {
  const auto some = [&process] {
    for (int i = 0; i < rounds_at_once; ++i)
      if (!process.wake() || !process.wait()) return false;
    return true;
  };
  bool awake = some();
  const double begin = seconds_now();
  int rounds = 0;
  for (; awake && seconds_now() - begin < long_enough; rounds += rounds_at_once) awake = some();
  if (!awake) return system_error("cannot wake another process");
  return (seconds_now() - begin) / rounds;
}

template <class Make> Result<double> half_a_round(const Make& make, int first_core, int second_core) {
  end_with_partner();
  PARC_TRY(pair, make());
  const pid_t self = getpid();
  const pid_t partner = fork();
  if (partner < 0) return system_error("cannot start a process");
  if (partner == 0) be_second(pair.second, second_core, self);
  stay_on(first_core);
  const auto round = time_of(pair.first);
  signal(SIGCHLD, SIG_DFL);
  kill(partner, SIGKILL);
  waitpid(partner, nullptr, 0);
  PARC_TRY(seconds, round);
  return seconds / 2;
}

} // namespace

Result<Figures> synchronizations(const Sizes& sizes) {
  const std::vector<int> cores = usable_cores();
  Figures figures;
  for (std::size_t count = 1; count <= std::min<std::size_t>(cores.size(), 2); ++count) {
    const std::string where = count == 1 ? "one core" : "two cores";
    const auto add = [&](const std::string& name, const auto& make) -> Result<void> {
      PARC_TRY(seconds, half_a_round(make, cores[0], cores[count - 1]));
      figures[fmt::format("{}, {}", name, where)] = seconds;
      return success();
    };
    PARC_TRY(add("semaphore", over_semaphores));
    PARC_TRY(add("futex", over_futexes));
    PARC_TRY(add("eventfd", over_eventfds));
    for (const std::size_t bytes : sizes) {
      PARC_TRY(add(fmt::format("pipe {}", bytes), [bytes] { return over_pipes(bytes); }));
    }
  }
  return figures;
}

Result<Figures> context_switch() {
  const std::vector<int> cores = usable_cores();
  PARC_TRY(message, half_a_round([] { return over_pipes(8); }, cores[0], cores[0]));
  PARC_TRY(pipe, make_pipe(8));
  stay_on(cores[0]);
  PARC_TRY(calls,
           time_of({[&pipe = pipe] { return pipe->send(); }, [&pipe = pipe] { return pipe->receive(); }}));
  return Figures{{"pipe message", message}, {"its calls", calls}};
}

} // namespace parc::bench
