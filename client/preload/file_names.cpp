// SPDX-License-Identifier: BSD-3-Clause
// Names of files: what others wait for appears, goes or changes when released reads have begun.
#include "client/preload/hooks.hpp"
#include "client/preload/undeclared.hpp"

#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using parc::preload::settle_begun;
using parc::preload::settle_text;

// What makes a file, or empties it, is seen by others.
void before_open(const char* path, int flags) {
  if ((flags & (O_CREAT | O_TRUNC)) != 0) settle_begun();
  settle_text(path);
}

} // namespace

extern "C" {

#pragma GCC visibility push(default)

int open(const char* path, int flags, ...) {
  PARC_REAL(open);
  PARC_LAST_ARGUMENT(mode_t, flags);
  before_open(path, flags);
  return real(path, flags, last);
}

int open64(const char* path, int flags, ...) {
  PARC_REAL(open64);
  PARC_LAST_ARGUMENT(mode_t, flags);
  before_open(path, flags);
  return real(path, flags, last);
}

int openat(int directory, const char* path, int flags, ...) {
  PARC_REAL(openat);
  PARC_LAST_ARGUMENT(mode_t, flags);
  before_open(path, flags);
  return real(directory, path, flags, last);
}

int openat64(int directory, const char* path, int flags, ...) {
  PARC_REAL(openat64);
  PARC_LAST_ARGUMENT(mode_t, flags);
  before_open(path, flags);
  return real(directory, path, flags, last);
}

int creat(const char* path, mode_t mode) {
  PARC_REAL(creat);
  settle_begun();
  settle_text(path);
  return real(path, mode);
}

int truncate(const char* path, off_t length) noexcept {
  PARC_REAL(truncate);
  settle_begun();
  settle_text(path);
  return real(path, length);
}

int ftruncate(int file, off_t length) noexcept {
  PARC_REAL(ftruncate);
  settle_begun();
  return real(file, length);
}

int mkdir(const char* path, mode_t mode) noexcept {
  PARC_REAL(mkdir);
  settle_begun();
  settle_text(path);
  return real(path, mode);
}

int rmdir(const char* path) noexcept {
  PARC_REAL(rmdir);
  settle_begun();
  settle_text(path);
  return real(path);
}

int link(const char* from, const char* to) noexcept {
  PARC_REAL(link);
  settle_begun();
  settle_text(from);
  settle_text(to);
  return real(from, to);
}

int symlink(const char* what, const char* path) noexcept {
  PARC_REAL(symlink);
  settle_begun();
  settle_text(what);
  settle_text(path);
  return real(what, path);
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  PARC_REAL(unlinkat);
  settle_begun();
  settle_text(path);
  return real(directory, path, flags);
}

int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  PARC_REAL(renameat);
  settle_begun();
  settle_text(from);
  settle_text(to);
  return real(from_directory, from, to_directory, to);
}

int __open_2(const char* path, int flags) {
  PARC_REAL(__open_2);
  before_open(path, flags);
  return real(path, flags);
}

int __open64_2(const char* path, int flags) {
  PARC_REAL(__open64_2);
  before_open(path, flags);
  return real(path, flags);
}

int __openat_2(int directory, const char* path, int flags) {
  PARC_REAL(__openat_2);
  before_open(path, flags);
  return real(directory, path, flags);
}

int __openat64_2(int directory, const char* path, int flags) {
  PARC_REAL(__openat64_2);
  before_open(path, flags);
  return real(directory, path, flags);
}

int creat64(const char* path, mode_t mode) {
  PARC_REAL(creat64);
  settle_begun();
  settle_text(path);
  return real(path, mode);
}

int truncate64(const char* path, off64_t length) noexcept {
  PARC_REAL(truncate64);
  settle_begun();
  settle_text(path);
  return real(path, length);
}

int ftruncate64(int file, off64_t length) noexcept {
  PARC_REAL(ftruncate64);
  settle_begun();
  return real(file, length);
}

int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  PARC_REAL(mkdirat);
  settle_begun();
  settle_text(path);
  return real(directory, path, mode);
}

int mkfifo(const char* path, mode_t mode) noexcept {
  PARC_REAL(mkfifo);
  settle_begun();
  settle_text(path);
  return real(path, mode);
}

int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) noexcept {
  PARC_REAL(linkat);
  settle_begun();
  settle_text(from);
  settle_text(to);
  return real(from_directory, from, to_directory, to, flags);
}

int symlinkat(const char* what, int directory, const char* path) noexcept {
  PARC_REAL(symlinkat);
  settle_begun();
  settle_text(what);
  settle_text(path);
  return real(what, directory, path);
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to,
              unsigned flags) noexcept {
  PARC_REAL(renameat2);
  settle_begun();
  settle_text(from);
  settle_text(to);
  return real(from_directory, from, to_directory, to, flags);
}

#pragma GCC visibility pop
}
