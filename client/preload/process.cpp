// SPDX-License-Identifier: BSD-3-Clause
// Other ways out of the process: signals, new programs, threads, the end.
#include "client/preload/hooks.hpp"

#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <spawn.h>
#include <unistd.h>

using parc::preload::leave;

extern "C" {

#pragma GCC visibility push(default)

int kill(pid_t process, int signal) noexcept {
  PARC_REAL(kill);
  leave();
  return real(process, signal);
}

int execve(const char* path, char* const arguments[], char* const environment[]) noexcept {
  PARC_REAL(execve);
  leave();
  return real(path, arguments, environment);
}

int execv(const char* path, char* const arguments[]) noexcept {
  PARC_REAL(execv);
  leave();
  return real(path, arguments);
}

int execvp(const char* file, char* const arguments[]) noexcept {
  PARC_REAL(execvp);
  leave();
  return real(file, arguments);
}

int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  PARC_REAL(posix_spawn);
  leave();
  return real(process, path, actions, attributes, arguments, environment);
}

int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) {
  PARC_REAL(posix_spawnp);
  leave();
  return real(process, file, actions, attributes, arguments, environment);
}

int system(const char* command) {
  PARC_REAL(system);
  leave();
  return real(command);
}

// From here on a thread may hold a lock that another needs in order to send: what is released has begun.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  PARC_REAL(pthread_create);
  leave();
  return real(thread, attributes, start, argument);
}

// What was written is held back by what was read; without this it would be lost.
void _exit(int status) {
  PARC_REAL(_exit);
  if (const auto* const ours = parc::preload::guarding()) ours->settle_all();
  real(status);
  __builtin_unreachable();
}

void _Exit(int status) noexcept {
  _exit(status);
}

#pragma GCC visibility pop
}
