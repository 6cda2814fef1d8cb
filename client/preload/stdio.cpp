// SPDX-License-Identifier: BSD-3-Clause
// Streams. Their calls in the C library make system calls that nobody can stand before, on the stream's
// buffer and, for large pieces, on the program's memory. So every stream gets a buffer of ours, on pages that
// are never guarded; and what goes straight to memory of the program is waited for.
#include "client/preload/hooks.hpp"
#include "client/preload/undeclared.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>

namespace {

using parc::preload::settle;
using parc::preload::settle_begun;
using parc::preload::settle_text;

constexpr std::size_t buffer_bytes = 16384;

void* map_buffer() {
  void* const memory =
      mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// The buffers of streams that the program opened and may close. Never destroyed: streams are closed at exit.
struct Buffers {
  std::mutex lock;
  std::unordered_map<FILE*, void*> of;
};
Buffers& buffers() {
  static auto* const all = new Buffers;
  return *all;
}

// Terminals stay line-buffered.
bool set_buffer(FILE* stream, void* memory) {
  const int before = errno;
  const int mode = isatty(fileno(stream)) ? _IOLBF : _IOFBF;
  errno = before;
  return setvbuf(stream, static_cast<char*>(memory), mode, buffer_bytes) == 0;
}

FILE* with_buffer(FILE* stream) {
  if (stream == nullptr) return stream;
  void* const memory = map_buffer();
  if (memory == nullptr) return stream;
  if (!set_buffer(stream, memory)) {
    munmap(memory, buffer_bytes);
    return stream;
  }
  const std::lock_guard hold(buffers().lock);
  buffers().of[stream] = memory;
  return stream;
}

void* take_buffer(FILE* stream) {
  const std::lock_guard hold(buffers().lock);
  const auto found = buffers().of.find(stream);
  if (found == buffers().of.end()) return nullptr;
  void* const memory = found->second;
  buffers().of.erase(found);
  return memory;
}

int close_with(int (*close)(FILE*), FILE* stream) {
  settle_begun();
  void* const memory = take_buffer(stream);
  const int result = close(stream);
  if (memory != nullptr) munmap(memory, buffer_bytes);
  return result;
}

// Which lets go of the buffer that the stream had.
FILE* reopen_with(FILE* (*reopen)(const char*, const char*, FILE*), const char* path, const char* mode,
                  FILE* stream) {
  settle_begun(); // what it has is written
  settle_text(path);
  FILE* const reopened = reopen(path, mode, stream);
  if (void* const memory = take_buffer(stream)) munmap(memory, buffer_bytes);
  return stream == stderr ? reopened : with_buffer(reopened); // that one stays without any
}

// What makes a file, or empties it, is seen by others.
void before_open(const char* path, const char* mode) {
  settle_text(mode);
  if (mode != nullptr && *mode != 'r') settle_begun();
  settle_text(path);
}

// Before the program's own code: nothing has been said yet.
__attribute__((constructor)) void give_standard_streams_buffers() {
  for (FILE* const stream : {stdin, stdout})
    if (void* const memory = map_buffer()) (void)set_buffer(stream, memory);
}

} // namespace

extern "C" {

#pragma GCC visibility push(default)

FILE* fopen(const char* path, const char* mode) {
  PARC_REAL(fopen);
  before_open(path, mode);
  return with_buffer(real(path, mode));
}

FILE* fopen64(const char* path, const char* mode) {
  PARC_REAL(fopen64);
  before_open(path, mode);
  return with_buffer(real(path, mode));
}

FILE* freopen(const char* path, const char* mode, FILE* stream) {
  PARC_REAL(freopen);
  return reopen_with(real, path, mode, stream);
}

FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  PARC_REAL(freopen64);
  return reopen_with(real, path, mode, stream);
}

FILE* fdopen(int file, const char* mode) noexcept {
  PARC_REAL(fdopen);
  return with_buffer(real(file, mode));
}

FILE* tmpfile() {
  PARC_REAL(tmpfile);
  return with_buffer(real());
}

FILE* tmpfile64() {
  PARC_REAL(tmpfile64);
  return with_buffer(real());
}

FILE* popen(const char* command, const char* mode) {
  PARC_REAL(popen);
  settle_begun();
  settle_text(command);
  settle_text(mode);
  return with_buffer(real(command, mode));
}

int fclose(FILE* stream) {
  PARC_REAL(fclose);
  return close_with(real, stream);
}

int pclose(FILE* stream) {
  PARC_REAL(pclose);
  return close_with(real, stream);
}

int fflush(FILE* stream) {
  PARC_REAL(fflush);
  settle_begun();
  return real(stream);
}

int fputs(const char* text, FILE* stream) {
  PARC_REAL(fputs);
  settle_begun();
  return real(text, stream);
}

int puts(const char* text) {
  PARC_REAL(puts);
  settle_begun();
  return real(text);
}

int fputc(int character, FILE* stream) {
  PARC_REAL(fputc);
  settle_begun();
  return real(character, stream);
}

int vfprintf(FILE* stream, const char* format, va_list values) {
  PARC_REAL(vfprintf);
  settle_begun();
  return real(stream, format, values);
}

int vprintf(const char* format, va_list values) {
  return vfprintf(stdout, format, values);
}

int fprintf(FILE* stream, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int count = vfprintf(stream, format, values);
  va_end(values);
  return count;
}

int printf(const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int count = vfprintf(stdout, format, values);
  va_end(values);
  return count;
}

int __vfprintf_chk(FILE* stream, int flag, const char* format, va_list values) {
  PARC_REAL(__vfprintf_chk);
  settle_begun();
  return real(stream, flag, format, values);
}

int __fprintf_chk(FILE* stream, int flag, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int count = __vfprintf_chk(stream, flag, format, values);
  va_end(values);
  return count;
}

int __printf_chk(int flag, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int count = __vfprintf_chk(stdout, flag, format, values);
  va_end(values);
  return count;
}

size_t fread(void* memory, size_t size, size_t count, FILE* stream) {
  PARC_REAL(fread);
  settle(memory, size * count);
  return real(memory, size, count, stream);
}

size_t __fread_chk(void* memory, size_t room, size_t size, size_t count, FILE* stream) {
  PARC_REAL(__fread_chk);
  settle(memory, size * count);
  return real(memory, room, size, count, stream);
}

size_t fread_unlocked(void* memory, size_t size, size_t count, FILE* stream) {
  PARC_REAL(fread_unlocked);
  settle(memory, size * count);
  return real(memory, size, count, stream);
}

size_t __fread_unlocked_chk(void* memory, size_t room, size_t size, size_t count, FILE* stream) {
  PARC_REAL(__fread_unlocked_chk);
  settle(memory, size * count);
  return real(memory, room, size, count, stream);
}

size_t fwrite(const void* memory, size_t size, size_t count, FILE* stream) {
  PARC_REAL(fwrite);
  settle_begun();
  settle(memory, size * count);
  return real(memory, size, count, stream);
}

#pragma GCC visibility pop
}
