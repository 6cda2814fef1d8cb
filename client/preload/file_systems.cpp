// SPDX-License-Identifier: BSD-3-Clause
// What the system says of file systems, directories and of files by other names than those of
// file_status.cpp.
#include "client/preload/hooks.hpp"
#include "client/preload/undeclared.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <pty.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

using parc::preload::settle;
using parc::preload::settle_text;
using parc::preload::settle_value;

extern "C" {

#pragma GCC visibility push(default)

int statfs64(const char* path, struct statfs64* to) noexcept {
  PARC_REAL(statfs64);
  settle_text(path);
  settle_value(to);
  return real(path, to);
}

int fstatfs64(int file, struct statfs64* to) noexcept {
  PARC_REAL(fstatfs64);
  settle_value(to);
  return real(file, to);
}

int statvfs(const char* path, struct statvfs* to) noexcept {
  PARC_REAL(statvfs);
  settle_text(path);
  settle_value(to);
  return real(path, to);
}

int statvfs64(const char* path, struct statvfs64* to) noexcept {
  PARC_REAL(statvfs64);
  settle_text(path);
  settle_value(to);
  return real(path, to);
}

int eaccess(const char* path, int how) noexcept {
  PARC_REAL(eaccess);
  settle_text(path);
  return real(path, how);
}

int euidaccess(const char* path, int how) noexcept {
  PARC_REAL(euidaccess);
  settle_text(path);
  return real(path, how);
}

long pathconf(const char* path, int what) noexcept {
  PARC_REAL(pathconf);
  settle_text(path);
  return real(path, what);
}

key_t ftok(const char* path, int project) noexcept {
  PARC_REAL(ftok);
  settle_text(path);
  return real(path, project);
}

int ttyname_r(int file, char* to, size_t bytes) noexcept {
  PARC_REAL(ttyname_r);
  settle(to, bytes);
  return real(file, to, bytes);
}

int __ttyname_r_chk(int file, char* to, size_t bytes, size_t room) {
  PARC_REAL(__ttyname_r_chk);
  settle(to, bytes);
  return real(file, to, bytes, room);
}

int openpty(int* ours, int* theirs, char* name, const termios* settings, const winsize* size) noexcept {
  PARC_REAL(openpty);
  settle_value(size);
  return real(ours, theirs, name, settings, size);
}

int forkpty(int* ours, char* name, const termios* settings, const winsize* size) noexcept {
  PARC_REAL(forkpty);
  settle_value(size);
  return real(ours, name, settings, size);
}

ssize_t getdirentries(int directory, char* to, size_t bytes, off_t* position) noexcept {
  PARC_REAL(getdirentries);
  settle(to, bytes);
  return real(directory, to, bytes, position);
}

ssize_t getdirentries64(int directory, char* to, size_t bytes, off64_t* position) noexcept {
  PARC_REAL(getdirentries64);
  settle(to, bytes);
  return real(directory, to, bytes, position);
}

int scandir(const char* path, dirent*** entries, int (*choose)(const dirent*),
            int (*compare)(const dirent**, const dirent**)) {
  PARC_REAL(scandir);
  settle_text(path);
  return real(path, entries, choose, compare);
}

int scandir64(const char* path, dirent64*** entries, int (*choose)(const dirent64*),
              int (*compare)(const dirent64**, const dirent64**)) {
  PARC_REAL(scandir64);
  settle_text(path);
  return real(path, entries, choose, compare);
}

int scandirat(int directory, const char* path, dirent*** entries, int (*choose)(const dirent*),
              int (*compare)(const dirent**, const dirent**)) {
  PARC_REAL(scandirat);
  settle_text(path);
  return real(directory, path, entries, choose, compare);
}

int scandirat64(int directory, const char* path, dirent64*** entries, int (*choose)(const dirent64*),
                int (*compare)(const dirent64**, const dirent64**)) {
  PARC_REAL(scandirat64);
  settle_text(path);
  return real(directory, path, entries, choose, compare);
}

int glob(const char* pattern, int flags, int (*failed)(const char*, int), glob_t* to) noexcept {
  PARC_REAL(glob);
  settle_text(pattern);
  return real(pattern, flags, failed, to);
}

int glob64(const char* pattern, int flags, int (*failed)(const char*, int), glob64_t* to) noexcept {
  PARC_REAL(glob64);
  settle_text(pattern);
  return real(pattern, flags, failed, to);
}

int inotify_add_watch(int watches, const char* path, uint32_t what) noexcept {
  PARC_REAL(inotify_add_watch);
  settle_text(path);
  return real(watches, path, what);
}

int fanotify_mark(int group, unsigned flags, uint64_t what, int directory, const char* path) noexcept {
  PARC_REAL(fanotify_mark);
  settle_text(path);
  return real(group, flags, what, directory, path);
}

int __xstat(int version, const char* path, struct stat* to) {
  PARC_REAL(__xstat);
  settle_text(path);
  settle_value(to);
  return real(version, path, to);
}

int __xstat64(int version, const char* path, struct stat64* to) {
  PARC_REAL(__xstat64);
  settle_text(path);
  settle_value(to);
  return real(version, path, to);
}

int __lxstat(int version, const char* path, struct stat* to) {
  PARC_REAL(__lxstat);
  settle_text(path);
  settle_value(to);
  return real(version, path, to);
}

int __lxstat64(int version, const char* path, struct stat64* to) {
  PARC_REAL(__lxstat64);
  settle_text(path);
  settle_value(to);
  return real(version, path, to);
}

int __fxstat(int version, int file, struct stat* to) {
  PARC_REAL(__fxstat);
  settle_value(to);
  return real(version, file, to);
}

int __fxstat64(int version, int file, struct stat64* to) {
  PARC_REAL(__fxstat64);
  settle_value(to);
  return real(version, file, to);
}

int __fxstatat(int version, int directory, const char* path, struct stat* to, int flags) {
  PARC_REAL(__fxstatat);
  settle_text(path);
  settle_value(to);
  return real(version, directory, path, to, flags);
}

int __fxstatat64(int version, int directory, const char* path, struct stat64* to, int flags) {
  PARC_REAL(__fxstatat64);
  settle_text(path);
  settle_value(to);
  return real(version, directory, path, to, flags);
}

#pragma GCC visibility pop
}
