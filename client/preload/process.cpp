// SPDX-License-Identifier: BSD-3-Clause
// Other ways out of the process: signals, locks, names of files, new programs, threads, the end.
#include "client/preload/hooks.hpp"

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <threads.h>
#include <unistd.h>

using parc::preload::settle;
using parc::preload::settle_all;
using parc::preload::settle_begun;
using parc::preload::settle_text;
using parc::preload::settle_texts;
using parc::preload::settle_value;

namespace {

// Runs `execute` with the arguments of execl and its like as a list, and with what follows the null pointer
// that ends them. The list lies on the stack: these may be called where nothing can be allocated.
template <class Execute> int with_list(const char* first, va_list& rest, const Execute& execute) {
  va_list counted;
  va_copy(counted, rest);
  std::size_t count = 1;
  for (const char* each = first; each != nullptr; each = va_arg(counted, const char*)) ++count;
  va_end(counted);
  auto** const list = static_cast<char**>(__builtin_alloca(count * sizeof(char*)));
  char** to = list;
  for (*to = const_cast<char*>(first); *to != nullptr;) *++to = va_arg(rest, char*);
  return execute(list, rest);
}

// (The child, with this process's memory, cannot wait for any of it.)
void before_spawn(const pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                  const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  settle_begun();
  settle_value(process);
  settle_value(actions);
  settle_value(attributes);
  settle_text(path);
  settle_texts(arguments);
  settle_texts(environment);
}

// A child with memory of its own, made by `make` behind the back of pthread_atfork. In a handler that
// interrupted libparc nothing can be done: its locks may be held.
template <class Make> pid_t make_child(const Make& make) {
  const auto* const ours = parc::preload::hooks();
  if (ours == nullptr || ours->in_library()) return make();
  ours->before_fork();
  const pid_t child = make();
  const int error = errno;
  child == 0 ? ours->after_fork_in_child() : ours->after_fork_in_parent();
  errno = error;
  return child;
}

// What clone runs in such a child, which has a copy of this.
struct InChild {
  int (*run)(void*);
  void* argument;
};

int run_in_child(void* in_child) {
  const InChild child = *static_cast<InChild*>(in_child);
  if (const auto* const ours = parc::preload::hooks(); ours != nullptr && !ours->in_library())
    ours->after_fork_in_child();
  return child.run(child.argument);
}

} // namespace

extern "C" {

#pragma GCC visibility push(default)

int kill(pid_t process, int signal) noexcept {
  PARC_REAL(kill);
  settle_begun();
  return real(process, signal);
}

int execve(const char* path, char* const arguments[], char* const environment[]) noexcept {
  PARC_REAL(execve);
  settle_all();
  return real(path, arguments, environment);
}

int execv(const char* path, char* const arguments[]) noexcept {
  PARC_REAL(execv);
  settle_all();
  return real(path, arguments);
}

int execvp(const char* file, char* const arguments[]) noexcept {
  PARC_REAL(execvp);
  settle_all();
  return real(file, arguments);
}

int execvpe(const char* file, char* const arguments[], char* const environment[]) noexcept {
  PARC_REAL(execvpe);
  settle_all();
  return real(file, arguments, environment);
}

int fexecve(int file, char* const arguments[], char* const environment[]) noexcept {
  PARC_REAL(fexecve);
  settle_all();
  return real(file, arguments, environment);
}

int execveat(int directory, const char* path, char* const arguments[], char* const environment[],
             int flags) noexcept {
  PARC_REAL(execveat);
  settle_all();
  return real(directory, path, arguments, environment, flags);
}

int execl(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int result = with_list(first, rest, [&](char** list, va_list&) { return execv(path, list); });
  va_end(rest);
  return result;
}

int execlp(const char* file, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int result = with_list(first, rest, [&](char** list, va_list&) { return execvp(file, list); });
  va_end(rest);
  return result;
}

int execle(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int result = with_list(first, rest, [&](char** list, va_list& after) {
    return execve(path, list, va_arg(after, char* const*));
  });
  va_end(rest);
  return result;
}

int killpg(pid_t group, int signal) noexcept {
  PARC_REAL(killpg);
  settle_begun();
  return real(group, signal);
}

int sigqueue(pid_t process, int signal, const sigval value) noexcept {
  PARC_REAL(sigqueue);
  settle_begun();
  return real(process, signal, value);
}

int flock(int file, int operation) noexcept {
  PARC_REAL(flock);
  settle_begun();
  return real(file, operation);
}

int lockf(int file, int command, off_t length) {
  PARC_REAL(lockf);
  settle_begun();
  return real(file, command, length);
}

int lockf64(int file, int command, off64_t length) {
  PARC_REAL(lockf64);
  settle_begun();
  return real(file, command, length);
}

int semop(int semaphores, sembuf* operations, size_t count) noexcept {
  PARC_REAL(semop);
  settle_begun();
  settle(operations, count * sizeof(sembuf));
  return real(semaphores, operations, count);
}

int sem_post(sem_t* semaphore) noexcept {
  PARC_REAL(sem_post);
  settle_begun();
  return real(semaphore);
}

int rename(const char* from, const char* to) noexcept {
  PARC_REAL(rename);
  settle_begun();
  settle_text(from);
  settle_text(to);
  return real(from, to);
}

int remove(const char* path) noexcept {
  PARC_REAL(remove);
  settle_begun();
  settle_text(path);
  return real(path);
}

int unlink(const char* path) noexcept {
  PARC_REAL(unlink);
  settle_begun();
  settle_text(path);
  return real(path);
}

int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  PARC_REAL(posix_spawn);
  before_spawn(process, path, actions, attributes, arguments, environment);
  return real(process, path, actions, attributes, arguments, environment);
}

int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  PARC_REAL(posix_spawnp);
  before_spawn(process, file, actions, attributes, arguments, environment);
  return real(process, file, actions, attributes, arguments, environment);
}

int system(const char* command) {
  PARC_REAL(system);
  settle_begun();
  settle_text(command);
  return real(command);
}

pid_t _Fork() noexcept {
  PARC_REAL(_Fork);
  return make_child([] { return real(); });
}

// (What vfork makes, and clone with CLONE_VM, uses this process's memory as it is.)
int clone(int (*run)(void*), void* stack, int flags, void* argument, ...) noexcept {
  PARC_REAL(clone);
  va_list rest;
  va_start(rest, argument);
  auto* const parent_id = va_arg(rest, pid_t*);
  auto* const locals = va_arg(rest, void*);
  auto* const child_id = va_arg(rest, pid_t*);
  va_end(rest);
  if ((flags & CLONE_VM) != 0) {
    settle_begun();
    return real(run, stack, flags, argument, parent_id, locals, child_id);
  }
  InChild child{run, argument};
  return make_child([&] { return real(run_in_child, stack, flags, &child, parent_id, locals, child_id); });
}

// From here on a thread may hold a lock that another needs in order to send: what is released has begun. And
// no fault can be handled on a stack that is missing itself.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  PARC_REAL(pthread_create);
  settle_begun();
  void* stack = nullptr;
  std::size_t bytes = 0;
  if (attributes != nullptr && pthread_attr_getstack(attributes, &stack, &bytes) == 0) settle(stack, bytes);
  return real(thread, attributes, start, argument);
}

int thrd_create(thrd_t* thread, thrd_start_t start, void* argument) {
  PARC_REAL(thrd_create);
  settle_begun();
  return real(thread, start, argument);
}

void _exit(int status) {
  PARC_REAL(_exit);
  settle_all();
  real(status);
  __builtin_unreachable();
}

void _Exit(int status) noexcept {
  _exit(status);
}

#pragma GCC visibility pop
}
