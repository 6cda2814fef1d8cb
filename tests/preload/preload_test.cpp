// SPDX-License-Identifier: BSD-3-Clause
// The wrappers of libparc-early.so: what others will see waits until released reads have begun, and what the
// system reads or writes is settled, all of it, before the call. libparc itself is a counter here.
#define BOOST_TEST_MODULE preload
#include "client/early/hooks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <string>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

extern "C" void parc_early_offer_3(const parc::client::EarlyHooks* hooks);

namespace {

bool armed = false;
int left = 0;
std::string forks;
std::vector<std::pair<const char*, std::size_t>> settled;
std::atomic<std::size_t> guarded = 0;
struct Changed {
  const void* memory;
  std::size_t bytes;
  parc::client::PageChange change;
};
std::vector<Changed> changed;
bool zeroes = false;

const parc::client::EarlyHooks counting{
    .any = [] { return armed; },
    .in_library = [] { return false; },
    .settle =
        [](const void* memory, std::size_t bytes) {
          armed = false; // what this does itself is not the program's
          settled.emplace_back(static_cast<const char*>(memory), bytes);
          armed = true;
        },
    .settle_begun = [] { ++left; },
    .settle_all = [] { ++left; },
    .guarded = &guarded,
    .before_change =
        [](const void* memory, std::size_t bytes, parc::client::PageChange change) {
          changed.push_back({memory, bytes, change});
          return !zeroes;
        },
    .set_program_action = [](const struct sigaction*, struct sigaction*) { return false; },
    .before_fork = [] { forks += "before "; },
    .after_fork_in_parent = [] { forks += "parent "; },
    .after_fork_in_child = [] { forks += "child "; },
};

// The call, and how often it left the process meanwhile.
int leavings(const std::function<void()>& call) {
  left = 0;
  settled.clear();
  armed = true;
  guarded = 1;
  call();
  armed = false;
  guarded = 0;
  return left;
}

bool was_settled(const void* memory, std::size_t bytes) {
  const auto* const begin = static_cast<const char*>(memory);
  return std::any_of(settled.begin(), settled.end(), [&](const auto& each) {
    return each.first <= begin && begin + bytes <= each.first + each.second;
  });
}

struct Place {
  Place() {
    parc_early_offer_3(&counting);
    BOOST_REQUIRE(mkdtemp(directory.data()) != nullptr);
    BOOST_REQUIRE(pipe(ends) == 0);
    BOOST_REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) == 0);
    file = open((directory + "/file").c_str(), O_RDWR | O_CREAT, 0600);
    BOOST_REQUIRE(file >= 0);
    BOOST_REQUIRE(write(file, text, sizeof text) == sizeof text);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    for (const int each : {ends[0], ends[1], sockets[0], sockets[1], file}) close(each);
    (void)!system(("rm -r " + directory).c_str());
  }
  [[nodiscard]] std::string path(const char* name) const { return directory + "/" + name; }

  std::string directory =
      std::string(getenv("TMPDIR") != nullptr ? getenv("TMPDIR") : "/tmp") + "/preload-XXXXXX";
  int ends[2]{}, sockets[2]{}, file = -1;
  char text[16] = "0123456789abcde";
  char in[16] = {};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(preload, Place)

BOOST_AUTO_TEST_CASE(descriptors) {
  const iovec out{text, sizeof text}, into{in, sizeof in};
  const std::pair<const char*, std::function<void()>> ways_out[] = {
      {"write", [&] { (void)!write(ends[1], text, sizeof text); }},
      {"writev", [&] { (void)!writev(ends[1], &out, 1); }},
      {"pwrite", [&] { (void)!pwrite(file, text, sizeof text, 0); }},
      {"pwritev", [&] { (void)!pwritev(file, &out, 1, 0); }},
      {"send", [&] { (void)!send(sockets[0], text, sizeof text, 0); }},
      {"sendto", [&] { (void)!sendto(sockets[0], text, sizeof text, 0, nullptr, 0); }},
      {"sendmsg",
       [&] {
         msghdr message{};
         message.msg_iov = const_cast<iovec*>(&out);
         message.msg_iovlen = 1;
         (void)!sendmsg(sockets[0], &message, 0);
       }},
      {"sendmmsg",
       [&] {
         mmsghdr message{};
         message.msg_hdr.msg_iov = const_cast<iovec*>(&out);
         message.msg_hdr.msg_iovlen = 1;
         (void)!sendmmsg(sockets[0], &message, 1, 0);
       }},
  };
  for (const auto& [name, call] : ways_out) {
    BOOST_TEST(leavings(call) == 1, name);
    BOOST_TEST(was_settled(text, sizeof text), name);
  }
  const std::pair<const char*, std::function<void()>> ways_in[] = {
      {"read", [&] { (void)!read(ends[0], in, sizeof in); }},
      {"readv", [&] { (void)!readv(ends[0], &into, 1); }},
      {"pread", [&] { (void)!pread(file, in, sizeof in, 0); }},
      {"preadv", [&] { (void)!preadv(file, &into, 1, 0); }},
      {"recv", [&] { (void)!recv(sockets[1], in, sizeof in, MSG_DONTWAIT); }},
      {"recvfrom", [&] { (void)!recvfrom(sockets[1], in, sizeof in, MSG_DONTWAIT, nullptr, nullptr); }},
      {"recvmmsg",
       [&] {
         mmsghdr message{};
         message.msg_hdr.msg_iov = const_cast<iovec*>(&into);
         message.msg_hdr.msg_iovlen = 1;
         (void)!recvmmsg(sockets[1], &message, 1, MSG_DONTWAIT, nullptr);
       }},
  };
  for (const auto& [name, call] : ways_in) {
    BOOST_TEST(leavings(call) == 0, name);
    BOOST_TEST(was_settled(in, sizeof in), name);
    BOOST_TEST(std::string(in, sizeof in) == std::string(text, sizeof text), name);
    std::fill_n(in, sizeof in, '\0');
  }
}

BOOST_AUTO_TEST_CASE(between_descriptors) {
  off_t offset = 0;
  BOOST_TEST(leavings([&] { BOOST_TEST(sendfile(ends[1], file, &offset, 8) == 8); }) == 1);
  BOOST_TEST(was_settled(&offset, sizeof offset));
  off64_t from = 8;
  BOOST_TEST(leavings([&] { BOOST_TEST(splice(file, &from, ends[1], nullptr, 8, 0) == 8); }) == 1);
  BOOST_TEST(was_settled(&from, sizeof from));
  BOOST_TEST(read(ends[0], in, sizeof in) == 16);
  BOOST_TEST(std::string(in, sizeof in) == std::string(text, sizeof text));
}

BOOST_AUTO_TEST_CASE(locks) {
  struct flock lock {};
  for (const int command : {F_SETLK, F_SETLKW, F_GETLK, F_OFD_SETLK}) {
    lock.l_type = command == F_GETLK ? F_WRLCK : F_UNLCK;
    BOOST_TEST(leavings([&] { BOOST_TEST(fcntl(file, command, &lock) == 0); }) == 1);
    BOOST_TEST(was_settled(&lock, sizeof lock));
    lock.l_pid = 0;
  }
  BOOST_TEST(leavings([&] { BOOST_TEST(fcntl(file, F_GETFD) >= 0); }) == 0);
  BOOST_TEST(leavings([&] { BOOST_TEST(fcntl(file, F_SETFD, FD_CLOEXEC) == 0); }) == 0);
  BOOST_TEST(fcntl(file, F_GETFD) == FD_CLOEXEC);
  BOOST_TEST(leavings([&] { BOOST_TEST(flock(file, LOCK_EX) == 0); }) == 1);
  BOOST_TEST(leavings([&] { (void)!lockf(ends[1], F_TEST, 1); }) == 1);
  sem_t semaphore;
  BOOST_REQUIRE(sem_init(&semaphore, 1, 0) == 0);
  BOOST_TEST(leavings([&] { BOOST_TEST(sem_post(&semaphore) == 0); }) == 1);
  sem_destroy(&semaphore);
}

// Of none that exist: the call's own error comes back, after the waiting.
BOOST_AUTO_TEST_CASE(queues_and_semaphores_of_system_v) {
  sembuf operation{0, 1, 0};
  BOOST_TEST(leavings([&] { BOOST_TEST(semop(-1, &operation, 1) == -1); }) == 1);
  BOOST_TEST(errno == EINVAL);
  BOOST_TEST(leavings([&] { BOOST_TEST(semtimedop(-1, &operation, 1, nullptr) == -1); }) == 1);
  BOOST_TEST(was_settled(&operation, sizeof operation));
  struct {
    long type = 1;
    char bytes[8] = {};
  } message;
  BOOST_TEST(leavings([&] { BOOST_TEST(msgsnd(-1, &message, sizeof message.bytes, 0) == -1); }) == 1);
  BOOST_TEST(was_settled(&message, sizeof message));
  BOOST_TEST(leavings([&] { BOOST_TEST(msgrcv(-1, &message, sizeof message.bytes, 0, 0) == -1); }) == 0);
  BOOST_TEST(was_settled(&message, sizeof message));
}

BOOST_AUTO_TEST_CASE(message_queues) {
  const auto none = static_cast<mqd_t>(-1);
  const timespec limit{};
  BOOST_TEST(leavings([&] { BOOST_TEST(mq_send(none, text, sizeof text, 0) == -1); }) == 1);
  BOOST_TEST(was_settled(text, sizeof text));
  BOOST_TEST(leavings([&] { BOOST_TEST(mq_timedsend(none, text, sizeof text, 0, &limit) == -1); }) == 1);
  unsigned priority = 0;
  BOOST_TEST(leavings([&] { BOOST_TEST(mq_receive(none, in, sizeof in, &priority) == -1); }) == 0);
  BOOST_TEST((was_settled(in, sizeof in) && was_settled(&priority, sizeof priority)));
  BOOST_TEST(leavings([&] { BOOST_TEST(mq_timedreceive(none, in, sizeof in, nullptr, &limit) == -1); }) == 0);
}

BOOST_AUTO_TEST_CASE(names_of_files) {
  const auto made = [&](const std::function<int()>& call) {
    int result = -1;
    const int ways = leavings([&] { result = call(); });
    BOOST_TEST(result >= 0);
    if (result > 2) close(result);
    return ways;
  };
  BOOST_TEST(made([&] { return open(path("a").c_str(), O_WRONLY | O_CREAT, 0640); }) == 1);
  struct stat status {};
  BOOST_TEST((stat(path("a").c_str(), &status) == 0 && (status.st_mode & 0777) == 0640));
  BOOST_TEST(made([&] { return open(path("a").c_str(), O_RDONLY); }) == 0);
  BOOST_TEST(made([&] { return openat(AT_FDCWD, path("a").c_str(), O_RDWR | O_TRUNC); }) == 1);
  BOOST_TEST(made([&] { return creat(path("b").c_str(), 0600); }) == 1);
  BOOST_TEST(made([&] { return truncate(path("b").c_str(), 5); }) == 1);
  BOOST_TEST(made([&] { return ftruncate(file, 5); }) == 1);
  BOOST_TEST(made([&] { return link(path("b").c_str(), path("c").c_str()); }) == 1);
  BOOST_TEST(made([&] { return symlink("b", path("d").c_str()); }) == 1);
  BOOST_TEST(made([&] { return rename(path("c").c_str(), path("e").c_str()); }) == 1);
  BOOST_TEST(made([&] { return renameat(AT_FDCWD, path("e").c_str(), AT_FDCWD, path("f").c_str()); }) == 1);
  BOOST_TEST(made([&] { return unlink(path("f").c_str()); }) == 1);
  BOOST_TEST(made([&] { return unlinkat(AT_FDCWD, path("d").c_str(), 0); }) == 1);
  BOOST_TEST(made([&] { return mkdir(path("g").c_str(), 0700); }) == 1);
  BOOST_TEST(made([&] { return rmdir(path("g").c_str()); }) == 1);
  BOOST_TEST(made([&] { return close(dup(file)); }) == 1);
  BOOST_TEST(made([&] { return mkfifo(path("h").c_str(), 0600); }) == 1);
  BOOST_TEST(made([&] { return linkat(AT_FDCWD, path("b").c_str(), AT_FDCWD, path("i").c_str(), 0); }) == 1);
  BOOST_TEST(made([&] { return symlinkat("b", AT_FDCWD, path("j").c_str()); }) == 1);
  BOOST_TEST(made([&] { return remove(path("i").c_str()); }) == 1);
  BOOST_TEST(made([&] { return mkdirat(AT_FDCWD, path("k").c_str(), 0700); }) == 1);
  FILE* stream = nullptr;
  BOOST_TEST(leavings([&] { stream = fopen(path("l").c_str(), "w"); }) == 1);
  BOOST_TEST_REQUIRE(stream != nullptr);
  BOOST_TEST(leavings([&] { stream = freopen(path("l").c_str(), "r", stream); }) == 1);
  BOOST_TEST(leavings([&] { fclose(stream); }) == 1);
  BOOST_TEST(leavings([&] { stream = fopen(path("l").c_str(), "r"); }) == 0);
  fclose(stream);
}

BOOST_AUTO_TEST_CASE(processes_and_threads) {
  BOOST_TEST(leavings([] { BOOST_TEST(kill(getpid(), 0) == 0); }) == 1);
  BOOST_TEST(leavings([] { BOOST_TEST(killpg(getpgrp(), 0) == 0); }) == 1);
  BOOST_TEST(leavings([] { BOOST_TEST(sigqueue(getpid(), 0, {}) == 0); }) == 1);
  char* const nothing[] = {nullptr};
  BOOST_TEST(leavings([&] { BOOST_TEST(execv("/nowhere", nothing) == -1); }) == 1);
  BOOST_TEST(leavings([&] { BOOST_TEST(execlp("/nowhere", "a", nullptr) == -1); }) == 1);
  pid_t child = 0;
  char name[] = "true";
  char* const words[] = {name, nullptr};
  BOOST_TEST(leavings([&] {
               BOOST_TEST(posix_spawnp(&child, "true", nullptr, nullptr, words, environ) == 0);
             }) == 1);
  int status = -1;
  BOOST_TEST((waitpid(child, &status, 0) == child && status == 0));
  BOOST_TEST(leavings([] { BOOST_TEST(system("true") == 0); }) == 1);
  pthread_t thread{};
  const auto nop = [](void*) -> void* { return nullptr; };
  BOOST_TEST(leavings([&] { BOOST_TEST(pthread_create(&thread, nullptr, nop, nullptr) == 0); }) == 1);
  BOOST_TEST(pthread_join(thread, nullptr) == 0);
  std::vector<char> stack(256 << 10);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack.data(), stack.size());
  BOOST_TEST(leavings([&] { BOOST_TEST(pthread_create(&thread, &attributes, nop, nullptr) == 0); }) == 1);
  BOOST_TEST(pthread_join(thread, nullptr) == 0);
  BOOST_TEST(was_settled(stack.data(), stack.size()));
  pthread_attr_destroy(&attributes);
}

// Each reads or writes memory through the system, which would answer EFAULT, and is seen by nobody else.
BOOST_AUTO_TEST_CASE(what_the_system_reads_and_fills_in) {
  const std::string name = path("file"), link = path("link");
  BOOST_REQUIRE(symlink("file", link.c_str()) == 0);
  struct stat status {};
  struct statx more {};
  struct statfs system {};
  rusage usage{};
  siginfo_t info{};
  pollfd ready{.fd = ends[0], .events = 0, .revents = 0};
  const timespec nothing{};
  sigset_t none;
  sigemptyset(&none);
  tms ticks{};
  utsname names{};
  sockaddr_un address{};
  socklen_t length = sizeof address;
  int number = 0, two[2] = {-1, -1};
  const iovec piece{in, sizeof in}, from{text, sizeof text};
  winsize size{};
  const auto close_two = [&] {
    for (const int each : two) close(each);
  };
  struct Row {
    const char* name;
    std::function<void()> call;
    const void* memory;
    std::size_t bytes;
    std::function<void()> after = [] {};
  };
  const Row rows[] = {
      {"stat", [&] { BOOST_TEST(stat(name.c_str(), &status) == 0); }, &status, sizeof status},
      {"lstat", [&] { BOOST_TEST(lstat(name.c_str(), &status) == 0); }, &status, sizeof status},
      {"fstat", [&] { BOOST_TEST(fstat(file, &status) == 0); }, &status, sizeof status},
      {"fstatat", [&] { BOOST_TEST(fstatat(AT_FDCWD, name.c_str(), &status, 0) == 0); }, &status,
       sizeof status},
      {"statx", [&] { BOOST_TEST(statx(AT_FDCWD, name.c_str(), 0, STATX_SIZE, &more) == 0); }, &more,
       sizeof more},
      {"statfs", [&] { BOOST_TEST(statfs(name.c_str(), &system) == 0); }, &system, sizeof system},
      {"readlink", [&] { BOOST_TEST(readlink(link.c_str(), in, sizeof in) == 4); }, in, sizeof in},
      {"readlinkat", [&] { BOOST_TEST(readlinkat(AT_FDCWD, link.c_str(), in, sizeof in) == 4); }, in,
       sizeof in},
      {"getcwd", [&] { (void)!getcwd(in, sizeof in); }, in, sizeof in},
      {"ioctl", [&] { BOOST_TEST(ioctl(ends[0], FIONREAD, &number) == 0); }, &number, sizeof number},
      {"ioctl of a terminal", [&] { BOOST_TEST(ioctl(file, TIOCGWINSZ, &size) == -1); }, &size, sizeof size},
      {"pipe", [&] { BOOST_TEST(pipe(two) == 0); }, two, sizeof two, close_two},
      {"pipe2", [&] { BOOST_TEST(pipe2(two, O_CLOEXEC) == 0); }, two, sizeof two, close_two},
      {"socketpair", [&] { BOOST_TEST(socketpair(AF_UNIX, SOCK_STREAM, 0, two) == 0); }, two, sizeof two,
       close_two},
      {"accept", [&] { (void)accept(file, reinterpret_cast<sockaddr*>(&address), &length); }, &address,
       sizeof address},
      {"accept4", [&] { (void)accept4(file, reinterpret_cast<sockaddr*>(&address), &length, 0); }, &length,
       sizeof length},
      {"getsockname",
       [&] { BOOST_TEST(getsockname(sockets[0], reinterpret_cast<sockaddr*>(&address), &length) == 0); },
       &length, sizeof length},
      {"getpeername", [&] { (void)getpeername(file, reinterpret_cast<sockaddr*>(&address), &length); },
       &length, sizeof length},
      {"getsockopt",
       [&] {
         BOOST_TEST(getsockopt(sockets[0], SOL_SOCKET, SO_TYPE, &number, &(length = sizeof number)) == 0);
       },
       &number, sizeof number},
      {"wait", [&] { BOOST_TEST(wait(&number) == -1); }, &number, sizeof number},
      {"waitpid", [&] { BOOST_TEST(waitpid(-1, &number, WNOHANG) == -1); }, &number, sizeof number},
      {"wait4", [&] { BOOST_TEST(wait4(-1, &number, WNOHANG, &usage) == -1); }, &usage, sizeof usage},
      {"waitid", [&] { BOOST_TEST(waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == -1); }, &info, sizeof info},
      {"ppoll", [&] { BOOST_TEST(ppoll(&ready, 1, &nothing, &none) == 0); }, &ready, sizeof ready},
      {"pselect", [&] { BOOST_TEST(pselect(0, nullptr, nullptr, nullptr, &nothing, &none) == 0); }, &none,
       sizeof none},
      {"sigtimedwait", [&] { BOOST_TEST(sigtimedwait(&none, &info, &nothing) == -1); }, &info, sizeof info},
      {"times", [&] { (void)times(&ticks); }, &ticks, sizeof ticks},
      {"nanosleep", [&] { BOOST_TEST(nanosleep(&nothing, nullptr) == 0); }, &nothing, sizeof nothing},
      {"getrusage", [&] { BOOST_TEST(getrusage(RUSAGE_SELF, &usage) == 0); }, &usage, sizeof usage},
      {"uname", [&] { BOOST_TEST(uname(&names) == 0); }, &names, sizeof names},
      {"getrandom", [&] { BOOST_TEST(getrandom(in, sizeof in, 0) == sizeof in); }, in, sizeof in},
      {"process_vm_readv",
       [&] { BOOST_TEST(process_vm_readv(getpid(), &piece, 1, &from, 1, 0) == sizeof in); }, in, sizeof in},
      {"process_vm_readv of this process",
       [&] { BOOST_TEST(process_vm_readv(getpid(), &piece, 1, &from, 1, 0) == sizeof in); }, from.iov_base,
       from.iov_len},
      {"preadv2", [&] { BOOST_TEST(preadv2(file, &piece, 1, 0, 0) == sizeof in); }, in, sizeof in},
  };
  for (const Row& row : rows) {
    length = sizeof address;
    BOOST_TEST(leavings(row.call) == 0, row.name);
    BOOST_TEST(was_settled(row.memory, row.bytes), row.name);
    row.after();
  }
  BOOST_TEST(leavings([&] { BOOST_TEST(access(name.c_str(), R_OK) == 0); }) == 0);
  BOOST_TEST(leavings([&] { BOOST_TEST(faccessat(AT_FDCWD, name.c_str(), R_OK, 0) == 0); }) == 0);
  BOOST_TEST(leavings([&] { BOOST_TEST(chmod(name.c_str(), 0600) == 0); }) == 1);
  BOOST_TEST(
      leavings([&] { BOOST_TEST(process_vm_writev(getpid(), &from, 1, &piece, 1, 0) == sizeof in); }) == 1);
  BOOST_TEST(was_settled(in, sizeof in));
  BOOST_TEST(was_settled(text, sizeof text));
}

int child_of_clone(void* status) {
  return *static_cast<int*>(status) + (forks == "before child " ? 0 : 1);
}

// They get memory of their own, as those of fork; pthread_atfork does not know of them.
BOOST_AUTO_TEST_CASE(children_that_are_made_without_fork) {
  const auto status_of = [](pid_t child) {
    int status = -1;
    BOOST_TEST(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  forks.clear();
  const pid_t child = _Fork();
  if (child == 0) _exit(forks == "before child " ? 7 : 1);
  BOOST_TEST(status_of(child) == 7);
  BOOST_TEST(forks == "before parent ");
  forks.clear();
  std::vector<char> stack(256 << 10);
  int wanted = 5;
  const pid_t cloned = clone(child_of_clone, stack.data() + stack.size(), SIGCHLD, &wanted);
  BOOST_TEST(status_of(cloned) == 5);
  BOOST_TEST(forks == "before parent ");
}

BOOST_AUTO_TEST_CASE(changes_of_pages) {
  using parc::client::PageChange;
  constexpr std::size_t bytes = 8 * 4096;
  char* memory =
      static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  BOOST_REQUIRE(memory != MAP_FAILED);
  const struct {
    const char* name;
    std::function<int()> call;
    PageChange change;
  } rows[] = {
      {"mprotect", [&] { return mprotect(memory, bytes, PROT_READ); }, PageChange::protect},
      {"of no access", [&] { return mprotect(memory, bytes, PROT_NONE); }, PageChange::protect},
      {"of all", [&] { return mprotect(memory, bytes, PROT_READ | PROT_WRITE); }, PageChange::unprotect},
      {"of code", [&] { return mprotect(memory, bytes, PROT_READ | PROT_EXEC); }, PageChange::move},
      {"pkey_mprotect", [&] { return pkey_mprotect(memory, bytes, PROT_READ | PROT_WRITE, -1); },
       PageChange::unprotect},
      {"MADV_DONTNEED", [&] { return madvise(memory, bytes, MADV_DONTNEED); }, PageChange::discard},
      {"MADV_FREE", [&] { return madvise(memory, bytes, MADV_FREE); }, PageChange::discard},
      {"MADV_WILLNEED", [&] { return madvise(memory, bytes, MADV_WILLNEED); }, PageChange::look},
      {"MADV_DONTFORK", [&] { return madvise(memory, bytes, MADV_DONTFORK); }, PageChange::pin},
      {"MADV_DOFORK", [&] { return madvise(memory, bytes, MADV_DOFORK); }, PageChange::unpin},
      {"posix_madvise", [&] { return posix_madvise(memory, bytes, POSIX_MADV_DONTNEED); }, PageChange::look},
      {"mlock", [&] { return mlock(memory, bytes); }, PageChange::pin},
      {"mlock2", [&] { return mlock2(memory, bytes, 0); }, PageChange::pin},
      {"munlock", [&] { return munlock(memory, bytes); }, PageChange::unpin},
      {"mremap",
       [&] {
         void* const moved = mremap(memory, bytes, bytes, MREMAP_MAYMOVE);
         return moved == memory ? 0 : -1;
       },
       PageChange::move},
      {"mmap",
       [&] {
         void* const there =
             mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
         return there == memory ? 0 : -1;
       },
       PageChange::unmap},
      {"munmap", [&] { return munmap(memory, bytes); }, PageChange::unmap},
  };
  for (const auto& row : rows) {
    changed.clear();
    int result = -1;
    BOOST_TEST(leavings([&] { result = row.call(); }) == 0, row.name);
    BOOST_TEST(result == 0, row.name);
    BOOST_TEST_REQUIRE(changed.size() == 1u, row.name);
    BOOST_TEST((changed[0].memory == memory && changed[0].bytes == bytes && changed[0].change == row.change),
               row.name);
  }
  changed.clear();
  (void)mlockall(0); // which is no call that can succeed
  BOOST_TEST_REQUIRE(changed.size() == 1u);
  BOOST_TEST((changed[0].memory == nullptr && changed[0].change == PageChange::pin));
  changed.clear();
  (void)madvise(nullptr, 4096, MADV_WIPEONFORK);
  BOOST_TEST_REQUIRE(changed.size() == 2u); // of what is shared in any case it cannot be
  BOOST_TEST((changed[0].change == PageChange::move && changed[1].change == PageChange::pin));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_discarded_is_zeroed) {
  std::fill_n(in, sizeof in, 'x');
  zeroes = true;
  BOOST_TEST((madvise(in, sizeof in, MADV_REMOVE) == -1 && errno == EINVAL));
  BOOST_TEST(in[0] == 'x');
  BOOST_TEST(madvise(in, sizeof in, MADV_DONTNEED) == 0);
  zeroes = false;
  BOOST_TEST(std::string(in, sizeof in) == std::string(sizeof in, '\0'));
}

BOOST_AUTO_TEST_CASE(blocks_that_go) {
  constexpr std::size_t bytes = 10000;
  void* block = std::malloc(bytes);
  const auto settles = [&](const std::function<void()>& call) {
    const void* const before = block;
    (void)leavings(call);
    return was_settled(before, bytes);
  };
  BOOST_TEST(settles([&] { block = std::realloc(block, 2 * bytes); }));
  BOOST_TEST(settles([&] { block = reallocarray(block, 3, bytes); }));
  BOOST_TEST(settles([&] { std::free(block); }));
  auto* const object = new std::array<char, bytes>;
  block = object;
  BOOST_TEST(settles([&] { delete object; }));
  settled.clear();
  std::free(nullptr);
  std::free(std::realloc(nullptr, bytes)); // nothing is guarded
  BOOST_TEST(settled.empty());
}

BOOST_AUTO_TEST_CASE(nothing_guarded_costs_nothing) {
  left = 0;
  settled.clear();
  BOOST_TEST(write(ends[1], text, sizeof text) == sizeof text);
  BOOST_TEST((left == 0 && settled.empty()));
}

BOOST_AUTO_TEST_SUITE_END()
