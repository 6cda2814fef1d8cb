// SPDX-License-Identifier: BSD-3-Clause
// What the system says of files, and what is changed of them but their names: paths are read, answers
// written.
#include "client/preload/hooks.hpp"
#include "client/preload/undeclared.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

using parc::preload::settle;
using parc::preload::settle_begun;
using parc::preload::settle_text;
using parc::preload::settle_value;

extern "C" {

#pragma GCC visibility push(default)

int stat(const char* path, struct stat* to) noexcept {
  PARC_REAL(stat);
  settle_text(path);
  settle_value(to);
  return real(path, to);
}

int stat64(const char* path, struct stat64* to) noexcept {
  PARC_REAL(stat64);
  settle_text(path);
  settle_value(to);
  return real(path, to);
}

int lstat(const char* path, struct stat* to) noexcept {
  PARC_REAL(lstat);
  settle_text(path);
  settle_value(to);
  return real(path, to);
}

int lstat64(const char* path, struct stat64* to) noexcept {
  PARC_REAL(lstat64);
  settle_text(path);
  settle_value(to);
  return real(path, to);
}

int fstat(int file, struct stat* to) noexcept {
  PARC_REAL(fstat);
  settle_value(to);
  return real(file, to);
}

int fstat64(int file, struct stat64* to) noexcept {
  PARC_REAL(fstat64);
  settle_value(to);
  return real(file, to);
}

int fstatat(int directory, const char* path, struct stat* to, int flags) noexcept {
  PARC_REAL(fstatat);
  settle_text(path);
  settle_value(to);
  return real(directory, path, to, flags);
}

int fstatat64(int directory, const char* path, struct stat64* to, int flags) noexcept {
  PARC_REAL(fstatat64);
  settle_text(path);
  settle_value(to);
  return real(directory, path, to, flags);
}

int statx(int directory, const char* path, int flags, unsigned mask, struct statx* to) noexcept {
  PARC_REAL(statx);
  settle_text(path);
  settle_value(to);
  return real(directory, path, flags, mask, to);
}

int statfs(const char* path, struct statfs* to) noexcept {
  PARC_REAL(statfs);
  settle_text(path);
  settle_value(to);
  return real(path, to);
}

int fstatfs(int file, struct statfs* to) noexcept {
  PARC_REAL(fstatfs);
  settle_value(to);
  return real(file, to);
}

int access(const char* path, int how) noexcept {
  PARC_REAL(access);
  settle_text(path);
  return real(path, how);
}

int faccessat(int directory, const char* path, int how, int flags) noexcept {
  PARC_REAL(faccessat);
  settle_text(path);
  return real(directory, path, how, flags);
}

ssize_t readlink(const char* path, char* to, size_t bytes) noexcept {
  PARC_REAL(readlink);
  settle_text(path);
  settle(to, bytes);
  return real(path, to, bytes);
}

ssize_t __readlink_chk(const char* path, char* to, size_t bytes, size_t room) {
  PARC_REAL(__readlink_chk);
  settle_text(path);
  settle(to, bytes);
  return real(path, to, bytes, room);
}

ssize_t readlinkat(int directory, const char* path, char* to, size_t bytes) noexcept {
  PARC_REAL(readlinkat);
  settle_text(path);
  settle(to, bytes);
  return real(directory, path, to, bytes);
}

ssize_t __readlinkat_chk(int directory, const char* path, char* to, size_t bytes, size_t room) {
  PARC_REAL(__readlinkat_chk);
  settle_text(path);
  settle(to, bytes);
  return real(directory, path, to, bytes, room);
}

char* getcwd(char* to, size_t bytes) noexcept {
  PARC_REAL(getcwd);
  settle(to, to != nullptr ? bytes : 0);
  return real(to, bytes);
}

char* __getcwd_chk(char* to, size_t bytes, size_t room) {
  PARC_REAL(__getcwd_chk);
  settle(to, to != nullptr ? bytes : 0);
  return real(to, bytes, room);
}

ssize_t getdents64(int directory, void* to, size_t bytes) noexcept {
  PARC_REAL(getdents64);
  settle(to, bytes);
  return real(directory, to, bytes);
}

DIR* opendir(const char* path) {
  PARC_REAL(opendir);
  settle_text(path);
  return real(path);
}

int chdir(const char* path) noexcept {
  PARC_REAL(chdir);
  settle_text(path);
  return real(path);
}

int chmod(const char* path, mode_t mode) noexcept {
  PARC_REAL(chmod);
  settle_begun();
  settle_text(path);
  return real(path, mode);
}

int fchmod(int file, mode_t mode) noexcept {
  PARC_REAL(fchmod);
  settle_begun();
  return real(file, mode);
}

int fchmodat(int directory, const char* path, mode_t mode, int flags) noexcept {
  PARC_REAL(fchmodat);
  settle_begun();
  settle_text(path);
  return real(directory, path, mode, flags);
}

int chown(const char* path, uid_t user, gid_t group) noexcept {
  PARC_REAL(chown);
  settle_begun();
  settle_text(path);
  return real(path, user, group);
}

int utimensat(int directory, const char* path, const timespec times[2], int flags) noexcept {
  PARC_REAL(utimensat);
  settle_begun();
  settle_text(path);
  settle(times, times != nullptr ? 2 * sizeof *times : 0);
  return real(directory, path, times, flags);
}

#pragma GCC visibility pop
}
