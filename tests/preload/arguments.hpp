// SPDX-License-Identifier: BSD-3-Clause
// What the calls of client/preload/calls are given, by the names that they have there: descriptors, streams,
// and structures on guarded memory. Made anew in each process that makes such a call.
#pragma once

#include "guarded.hpp"

#include <aio.h>
#include <cstdarg>
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <initializer_list>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace arguments {

using guarded::in, guarded::many, guarded::room, guarded::text, guarded::unused, guarded::unused_room;

// Names that functions have, too.
using stat_t = struct stat;
using stat64_t = struct stat64;
using statfs_t = struct statfs;
using statfs64_t = struct statfs64;
using statvfs_t = struct statvfs;
using statvfs64_t = struct statvfs64;
using statx_t = struct statx;
using sysinfo_t = struct sysinfo;
using timex_t = struct timex;
using zone_t = struct timezone;

#ifdef __x86_64__
constexpr int stat_version = 1;
#else
constexpr int stat_version = 0;
#endif

inline int file, other, program, directory, ends[2], more_ends[2], sockets[2], poller, events, watches,
    clock_file;
inline int number;
inline FILE *stream, *zeros;
inline fpos_t position;
inline fpos64_t position64;
inline off_t offset;
alignas(65536) inline char page[65536];
inline char stack_of_clone[256 << 10];
inline sigset_t no_signals;
inline siginfo_t none;
inline pthread_attr_t attributes;
inline pthread_t thread;
inline sem_t semaphore;
inline struct sigaction action;
inline dirent** entries;
inline dirent64** entries64;
inline glob_t found;
inline glob64_t found64;
inline const struct flock whole_file { F_WRLCK, SEEK_SET, 0, 0, 0 };
inline sigevent no_event{};
inline mq_attr queue_attributes{};

// In a directory of the test's own.
inline void make() {
  for (const int each : {1, 2}) dup2(::open("/dev/null", O_WRONLY), each);
  file = ::open("file", O_RDWR);
  other = ::open("other", O_RDWR | O_CREAT, 0600);
  program = ::open("program", O_RDONLY);
  directory = ::open(".", O_RDONLY | O_DIRECTORY);
  char bytes[64] = {};
  for (int* const each : {ends, more_ends}) (void)!pipe(each);
  (void)!write(ends[1], bytes, sizeof bytes);
  socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets);
  (void)!send(sockets[0], bytes, sizeof bytes, 0);
  poller = epoll_create1(0);
  epoll_event readable{EPOLLIN, {}};
  epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &readable);
  events = eventfd(1, 0);
  watches = inotify_init();
  clock_file = timerfd_create(CLOCK_MONOTONIC, 0);
  stream = fopen("out", "w+");
  fgetpos(stream, &position);
  fgetpos64(stream, &position64);
  zeros = fopen("/dev/zero", "r");
  sigemptyset(&no_signals);
  pthread_attr_init(&attributes);
  sem_init(&semaphore, 0, 0);
  no_event.sigev_notify = SIGEV_NONE;
  queue_attributes.mq_maxmsg = 2;
  queue_attributes.mq_msgsize = 64;
  ::signal(SIGUSR1, [](int) {});
}

// The end of a child that the call has made.
inline int leave() {
  guarded::armed = false;
  _exit(0);
}

inline int child_of_clone(void*) {
  return leave();
}

inline void* idle(void*) {
  return nullptr;
}

inline int idle_of_c(void*) {
  return 0;
}

inline void child() {
  const guarded::Unarmed here;
  if (fork() == 0) _exit(0);
}

template <class Call> long listed(Call call, ...) {
  va_list values;
  va_start(values, call);
  call(values);
  va_end(values);
  return 0;
}

inline sockaddr* address() {
  return reinterpret_cast<sockaddr*>(room(sizeof(sockaddr_un)));
}

inline sockaddr* unused_address() {
  return reinterpret_cast<sockaddr*>(unused_room(sizeof(sockaddr_un)));
}

inline sockaddr* named_address() {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strcpy(name.sun_path, "none");
  return reinterpret_cast<sockaddr*>(in(name));
}

inline socklen_t* length() {
  return in(socklen_t{sizeof(sockaddr_un)});
}

// A socket to which somebody has connected.
inline int listener() {
  const guarded::Unarmed here;
  const int listening = socket(AF_UNIX, SOCK_STREAM, 0), connecting = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strcpy(name.sun_path, "listener");
  unlink(name.sun_path);
  (void)!bind(listening, reinterpret_cast<sockaddr*>(&name), sizeof name);
  (void)!listen(listening, 1);
  (void)!connect(connecting, reinterpret_cast<sockaddr*>(&name), sizeof name);
  return listening;
}

inline int terminal() {
  const guarded::Unarmed here;
  const int ours = posix_openpt(O_RDWR | O_NOCTTY);
  grantpt(ours);
  unlockpt(ours);
  return ::open(ptsname(ours), O_RDWR | O_NOCTTY);
}

inline FILE* command() {
  const guarded::Unarmed here;
  return popen("true", "r");
}

inline iovec* piece(char* memory, std::size_t bytes) {
  return in(iovec{memory, bytes});
}

inline msghdr message() {
  msghdr one{};
  one.msg_iov = piece(room(64), 64);
  one.msg_iovlen = 1;
  return one;
}

inline char** words(char* word) {
  return in(std::array<char*, 2>{word, nullptr})->data();
}

inline posix_spawn_file_actions_t* spawn_actions() {
  posix_spawn_file_actions_t nothing;
  posix_spawn_file_actions_init(&nothing);
  return in(nothing);
}

inline posix_spawnattr_t* spawn_attributes() {
  posix_spawnattr_t usual;
  posix_spawnattr_init(&usual);
  return in(usual);
}

inline void* capability_header() {
  return in(std::array<unsigned, 2>{0x20080522, 0}); // _LINUX_CAPABILITY_VERSION_3
}

inline cpu_set_t all_cores() {
  const guarded::Unarmed here;
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  return cores;
}

template <class Control> Control control_of(void* memory) {
  Control control{};
  control.aio_fildes = file;
  control.aio_buf = memory;
  control.aio_nbytes = memory != nullptr ? 64 : 0;
  control.aio_sigevent.sigev_notify = SIGEV_NONE;
  return control;
}

inline aiocb control(void* memory) {
  return control_of<aiocb>(memory);
}

inline aiocb64 control64(void* memory) {
  return control_of<aiocb64>(memory);
}

template <class Control> Control* const* controls(Control* one) {
  static Control* list[1];
  list[0] = one;
  return list;
}

// A set with a signal that waits.
inline sigset_t pending() {
  const guarded::Unarmed here;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  raise(SIGUSR1);
  return set;
}

inline siginfo_t own_signal() {
  siginfo_t info{};
  info.si_signo = SIGUSR1;
  info.si_code = SI_QUEUE;
  return info;
}

inline int own_process() {
  const guarded::Unarmed here;
  return static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
}

inline timer_t timer() {
  const guarded::Unarmed here;
  timer_t made{};
  timer_create(CLOCK_MONOTONIC, &no_event, &made);
  return made;
}

inline mqd_t queue() {
  const guarded::Unarmed here;
  const std::string name = "/parc-preload-" + std::to_string(getpid());
  const mqd_t made = mq_open(name.c_str(), O_CREAT | O_RDWR | O_NONBLOCK, 0600, &queue_attributes);
  mq_unlink(name.c_str());
  return made;
}

struct SystemVMessage {
  long type = 1;
  char bytes[56] = {};
};

inline SystemVMessage* message_of_system_v() {
  return in(SystemVMessage{});
}

inline int messages() {
  const guarded::Unarmed here;
  guarded::report->queue = msgget(IPC_PRIVATE, 0600);
  const SystemVMessage one;
  msgsnd(guarded::report->queue, &one, sizeof one.bytes, IPC_NOWAIT);
  return guarded::report->queue;
}

inline int semaphores() {
  const guarded::Unarmed here;
  return guarded::report->semaphores = semget(IPC_PRIVATE, 1, 0600);
}

inline int segment() {
  const guarded::Unarmed here;
  return guarded::report->segment = shmget(IPC_PRIVATE, 4096, 0600);
}

inline void remove_system_v(const guarded::Report& of) {
  if (of.queue >= 0) msgctl(of.queue, IPC_RMID, nullptr);
  if (of.semaphores >= 0) semctl(of.semaphores, 0, IPC_RMID);
  if (of.segment >= 0) shmctl(of.segment, IPC_RMID, nullptr);
}

} // namespace arguments
