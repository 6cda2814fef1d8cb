// SPDX-License-Identifier: BSD-3-Clause
// Files that come by other calls than open, and what is changed of them but their names: others see that.
#include "client/preload/hooks.hpp"
#include "client/preload/undeclared.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

using parc::preload::settle;
using parc::preload::settle_begun;
using parc::preload::settle_text;
using parc::preload::settle_value;

extern "C" {

#pragma GCC visibility push(default)

int mknod(const char* path, mode_t mode, dev_t device) noexcept {
  PARC_REAL(mknod);
  settle_begun();
  settle_text(path);
  return real(path, mode, device);
}

int mknodat(int directory, const char* path, mode_t mode, dev_t device) noexcept {
  PARC_REAL(mknodat);
  settle_begun();
  settle_text(path);
  return real(directory, path, mode, device);
}

int mkfifoat(int directory, const char* path, mode_t mode) noexcept {
  PARC_REAL(mkfifoat);
  settle_begun();
  settle_text(path);
  return real(directory, path, mode);
}

int __xmknod(int version, const char* path, mode_t mode, dev_t* device) {
  PARC_REAL(__xmknod);
  settle_begun();
  settle_text(path);
  settle_value(device);
  return real(version, path, mode, device);
}

int __xmknodat(int version, int directory, const char* path, mode_t mode, dev_t* device) {
  PARC_REAL(__xmknodat);
  settle_begun();
  settle_text(path);
  settle_value(device);
  return real(version, directory, path, mode, device);
}

int mkstemp(char* path) {
  PARC_REAL(mkstemp);
  settle_begun();
  settle_text(path);
  return real(path);
}

int mkstemp64(char* path) {
  PARC_REAL(mkstemp64);
  settle_begun();
  settle_text(path);
  return real(path);
}

int mkstemps(char* path, int suffix) {
  PARC_REAL(mkstemps);
  settle_begun();
  settle_text(path);
  return real(path, suffix);
}

int mkstemps64(char* path, int suffix) {
  PARC_REAL(mkstemps64);
  settle_begun();
  settle_text(path);
  return real(path, suffix);
}

int mkostemp(char* path, int flags) {
  PARC_REAL(mkostemp);
  settle_begun();
  settle_text(path);
  return real(path, flags);
}

int mkostemp64(char* path, int flags) {
  PARC_REAL(mkostemp64);
  settle_begun();
  settle_text(path);
  return real(path, flags);
}

int mkostemps(char* path, int suffix, int flags) {
  PARC_REAL(mkostemps);
  settle_begun();
  settle_text(path);
  return real(path, suffix, flags);
}

int mkostemps64(char* path, int suffix, int flags) {
  PARC_REAL(mkostemps64);
  settle_begun();
  settle_text(path);
  return real(path, suffix, flags);
}

char* mkdtemp(char* path) noexcept {
  PARC_REAL(mkdtemp);
  settle_begun();
  settle_text(path);
  return real(path);
}

int memfd_create(const char* name, unsigned flags) noexcept {
  PARC_REAL(memfd_create);
  settle_text(name);
  return real(name, flags);
}

int shm_open(const char* name, int flags, mode_t mode) {
  PARC_REAL(shm_open);
  settle_begun();
  settle_text(name);
  return real(name, flags, mode);
}

int shm_unlink(const char* name) {
  PARC_REAL(shm_unlink);
  settle_begun();
  settle_text(name);
  return real(name);
}

int sem_unlink(const char* name) noexcept {
  PARC_REAL(sem_unlink);
  settle_begun();
  settle_text(name);
  return real(name);
}

int chroot(const char* path) noexcept {
  PARC_REAL(chroot);
  settle_text(path);
  return real(path);
}

int lchmod(const char* path, mode_t mode) noexcept {
  PARC_REAL(lchmod);
  settle_begun();
  settle_text(path);
  return real(path, mode);
}

int fchown(int file, uid_t user, gid_t group) noexcept {
  PARC_REAL(fchown);
  settle_begun();
  return real(file, user, group);
}

int lchown(const char* path, uid_t user, gid_t group) noexcept {
  PARC_REAL(lchown);
  settle_begun();
  settle_text(path);
  return real(path, user, group);
}

int fchownat(int directory, const char* path, uid_t user, gid_t group, int flags) noexcept {
  PARC_REAL(fchownat);
  settle_begun();
  settle_text(path);
  return real(directory, path, user, group, flags);
}

int futimens(int file, const timespec times[2]) noexcept {
  PARC_REAL(futimens);
  settle_begun();
  settle(times, times != nullptr ? 2 * sizeof *times : 0);
  return real(file, times);
}

int futimes(int file, const timeval times[2]) noexcept {
  PARC_REAL(futimes);
  settle_begun();
  settle(times, times != nullptr ? 2 * sizeof *times : 0);
  return real(file, times);
}

int futimesat(int directory, const char* path, const timeval times[2]) noexcept {
  PARC_REAL(futimesat);
  settle_begun();
  settle_text(path);
  settle(times, times != nullptr ? 2 * sizeof *times : 0);
  return real(directory, path, times);
}

int utimes(const char* path, const timeval times[2]) noexcept {
  PARC_REAL(utimes);
  settle_begun();
  settle_text(path);
  settle(times, times != nullptr ? 2 * sizeof *times : 0);
  return real(path, times);
}

int lutimes(const char* path, const timeval times[2]) noexcept {
  PARC_REAL(lutimes);
  settle_begun();
  settle_text(path);
  settle(times, times != nullptr ? 2 * sizeof *times : 0);
  return real(path, times);
}

int utime(const char* path, const utimbuf* times) noexcept {
  PARC_REAL(utime);
  settle_begun();
  settle_text(path);
  settle_value(times);
  return real(path, times);
}

int fallocate(int file, int mode, off_t offset, off_t bytes) {
  PARC_REAL(fallocate);
  settle_begun();
  return real(file, mode, offset, bytes);
}

int fallocate64(int file, int mode, off64_t offset, off64_t bytes) {
  PARC_REAL(fallocate64);
  settle_begun();
  return real(file, mode, offset, bytes);
}

int posix_fallocate(int file, off_t offset, off_t bytes) {
  PARC_REAL(posix_fallocate);
  settle_begun();
  return real(file, offset, bytes);
}

int posix_fallocate64(int file, off64_t offset, off64_t bytes) {
  PARC_REAL(posix_fallocate64);
  settle_begun();
  return real(file, offset, bytes);
}

#pragma GCC visibility pop
}
