// SPDX-License-Identifier: BSD-3-Clause
// Attributes that programs give to files (xattr(7)).
#include "client/preload/hooks.hpp"

#include <sys/xattr.h>

using parc::preload::settle;
using parc::preload::settle_begun;
using parc::preload::settle_text;

extern "C" {

#pragma GCC visibility push(default)

int setxattr(const char* path, const char* name, const void* value, size_t bytes, int flags) noexcept {
  PARC_REAL(setxattr);
  settle_begun();
  settle_text(path);
  settle_text(name);
  settle(value, bytes);
  return real(path, name, value, bytes, flags);
}

int lsetxattr(const char* path, const char* name, const void* value, size_t bytes, int flags) noexcept {
  PARC_REAL(lsetxattr);
  settle_begun();
  settle_text(path);
  settle_text(name);
  settle(value, bytes);
  return real(path, name, value, bytes, flags);
}

int fsetxattr(int file, const char* name, const void* value, size_t bytes, int flags) noexcept {
  PARC_REAL(fsetxattr);
  settle_begun();
  settle_text(name);
  settle(value, bytes);
  return real(file, name, value, bytes, flags);
}

ssize_t getxattr(const char* path, const char* name, void* value, size_t bytes) noexcept {
  PARC_REAL(getxattr);
  settle_text(path);
  settle_text(name);
  settle(value, bytes);
  return real(path, name, value, bytes);
}

ssize_t lgetxattr(const char* path, const char* name, void* value, size_t bytes) noexcept {
  PARC_REAL(lgetxattr);
  settle_text(path);
  settle_text(name);
  settle(value, bytes);
  return real(path, name, value, bytes);
}

ssize_t fgetxattr(int file, const char* name, void* value, size_t bytes) noexcept {
  PARC_REAL(fgetxattr);
  settle_text(name);
  settle(value, bytes);
  return real(file, name, value, bytes);
}

ssize_t listxattr(const char* path, char* names, size_t bytes) noexcept {
  PARC_REAL(listxattr);
  settle_text(path);
  settle(names, bytes);
  return real(path, names, bytes);
}

ssize_t llistxattr(const char* path, char* names, size_t bytes) noexcept {
  PARC_REAL(llistxattr);
  settle_text(path);
  settle(names, bytes);
  return real(path, names, bytes);
}

ssize_t flistxattr(int file, char* names, size_t bytes) noexcept {
  PARC_REAL(flistxattr);
  settle(names, bytes);
  return real(file, names, bytes);
}

int removexattr(const char* path, const char* name) noexcept {
  PARC_REAL(removexattr);
  settle_begun();
  settle_text(path);
  settle_text(name);
  return real(path, name);
}

int lremovexattr(const char* path, const char* name) noexcept {
  PARC_REAL(lremovexattr);
  settle_begun();
  settle_text(path);
  settle_text(name);
  return real(path, name);
}

int fremovexattr(int file, const char* name) noexcept {
  PARC_REAL(fremovexattr);
  settle_begun();
  settle_text(name);
  return real(file, name);
}

#pragma GCC visibility pop
}
