// SPDX-License-Identifier: BSD-3-Clause
// Streams (stdio.cpp): what else writes to one, or asks where it is, which writes what it has. Others see
// that.
#include "client/preload/hooks.hpp"
#include "client/preload/undeclared.hpp"

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cwchar>
#include <err.h>
#include <error.h>
#include <syslog.h>

namespace {

using parc::preload::settle;
using parc::preload::settle_begun;

// What a format says with its values.
class Text {
public:
  Text(const char* format, va_list values) {
    if (vasprintf(&text_, format, values) < 0) text_ = nullptr;
  }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { free(text_); }
  [[nodiscard]] const char* get() const { return text_ != nullptr ? text_ : "(no memory for the text)"; }

private:
  char* text_ = nullptr;
};

} // namespace

#define PARC_FORMATTED(CALL)                                                                                 \
  va_list values;                                                                                            \
  va_start(values, format);                                                                                  \
  const int count = CALL;                                                                                    \
  va_end(values);                                                                                            \
  return count

extern "C" {

#pragma GCC visibility push(default)

size_t fwrite_unlocked(const void* memory, size_t size, size_t count, FILE* stream) {
  PARC_REAL(fwrite_unlocked);
  settle_begun();
  settle(memory, size * count);
  return real(memory, size, count, stream);
}

int fputs_unlocked(const char* text, FILE* stream) {
  PARC_REAL(fputs_unlocked);
  settle_begun();
  return real(text, stream);
}

int fputc_unlocked(int character, FILE* stream) {
  PARC_REAL(fputc_unlocked);
  settle_begun();
  return real(character, stream);
}

int putc(int character, FILE* stream) {
  PARC_REAL(putc);
  settle_begun();
  return real(character, stream);
}

int putc_unlocked(int character, FILE* stream) {
  PARC_REAL(putc_unlocked);
  settle_begun();
  return real(character, stream);
}

int putchar(int character) {
  PARC_REAL(putchar);
  settle_begun();
  return real(character);
}

int putchar_unlocked(int character) {
  PARC_REAL(putchar_unlocked);
  settle_begun();
  return real(character);
}

int putw(int word, FILE* stream) {
  PARC_REAL(putw);
  settle_begun();
  return real(word, stream);
}

int _IO_putc(int character, FILE* stream) {
  PARC_REAL(_IO_putc);
  settle_begun();
  return real(character, stream);
}

int __overflow(FILE* stream, int character) {
  PARC_REAL(__overflow);
  settle_begun();
  return real(stream, character);
}

int fflush_unlocked(FILE* stream) {
  PARC_REAL(fflush_unlocked);
  settle_begun();
  return real(stream);
}

int fcloseall() {
  PARC_REAL(fcloseall);
  settle_begun();
  return real();
}

int fseek(FILE* stream, long offset, int whence) {
  PARC_REAL(fseek);
  settle_begun();
  return real(stream, offset, whence);
}

int fseeko(FILE* stream, off_t offset, int whence) {
  PARC_REAL(fseeko);
  settle_begun();
  return real(stream, offset, whence);
}

int fseeko64(FILE* stream, off64_t offset, int whence) {
  PARC_REAL(fseeko64);
  settle_begun();
  return real(stream, offset, whence);
}

void rewind(FILE* stream) {
  PARC_REAL(rewind);
  settle_begun();
  real(stream);
}

int fsetpos(FILE* stream, const fpos_t* position) {
  PARC_REAL(fsetpos);
  settle_begun();
  return real(stream, position);
}

int fsetpos64(FILE* stream, const fpos64_t* position) {
  PARC_REAL(fsetpos64);
  settle_begun();
  return real(stream, position);
}

void perror(const char* text) {
  PARC_REAL(perror);
  settle_begun();
  real(text);
}

void psignal(int signal, const char* text) {
  PARC_REAL(psignal);
  settle_begun();
  real(signal, text);
}

void psiginfo(const siginfo_t* info, const char* text) {
  PARC_REAL(psiginfo);
  settle_begun();
  real(info, text);
}

int vdprintf(int file, const char* format, va_list values) {
  PARC_REAL(vdprintf);
  settle_begun();
  return real(file, format, values);
}

int __vdprintf_chk(int file, int flag, const char* format, va_list values) {
  PARC_REAL(__vdprintf_chk);
  settle_begun();
  return real(file, flag, format, values);
}

int __vprintf_chk(int flag, const char* format, va_list values) {
  PARC_REAL(__vprintf_chk);
  settle_begun();
  return real(flag, format, values);
}

wint_t fputwc(wchar_t character, FILE* stream) {
  PARC_REAL(fputwc);
  settle_begun();
  return real(character, stream);
}

wint_t fputwc_unlocked(wchar_t character, FILE* stream) {
  PARC_REAL(fputwc_unlocked);
  settle_begun();
  return real(character, stream);
}

wint_t putwc(wchar_t character, FILE* stream) {
  PARC_REAL(putwc);
  settle_begun();
  return real(character, stream);
}

wint_t putwc_unlocked(wchar_t character, FILE* stream) {
  PARC_REAL(putwc_unlocked);
  settle_begun();
  return real(character, stream);
}

wint_t putwchar(wchar_t character) {
  PARC_REAL(putwchar);
  settle_begun();
  return real(character);
}

wint_t putwchar_unlocked(wchar_t character) {
  PARC_REAL(putwchar_unlocked);
  settle_begun();
  return real(character);
}

int fputws(const wchar_t* text, FILE* stream) {
  PARC_REAL(fputws);
  settle_begun();
  return real(text, stream);
}

int fputws_unlocked(const wchar_t* text, FILE* stream) {
  PARC_REAL(fputws_unlocked);
  settle_begun();
  return real(text, stream);
}

int vfwprintf(FILE* stream, const wchar_t* format, va_list values) {
  PARC_REAL(vfwprintf);
  settle_begun();
  return real(stream, format, values);
}

int vwprintf(const wchar_t* format, va_list values) {
  PARC_REAL(vwprintf);
  settle_begun();
  return real(format, values);
}

int __vfwprintf_chk(FILE* stream, int flag, const wchar_t* format, va_list values) {
  PARC_REAL(__vfwprintf_chk);
  settle_begun();
  return real(stream, flag, format, values);
}

int __vwprintf_chk(int flag, const wchar_t* format, va_list values) {
  PARC_REAL(__vwprintf_chk);
  settle_begun();
  return real(flag, format, values);
}

void vsyslog(int priority, const char* format, va_list values) {
  PARC_REAL(vsyslog);
  settle_begun();
  real(priority, format, values);
}

void __vsyslog_chk(int priority, int flag, const char* format, va_list values) {
  PARC_REAL(__vsyslog_chk);
  settle_begun();
  real(priority, flag, format, values);
}

void vwarn(const char* format, va_list values) {
  PARC_REAL(vwarn);
  settle_begun();
  real(format, values);
}

void vwarnx(const char* format, va_list values) {
  PARC_REAL(vwarnx);
  settle_begun();
  real(format, values);
}

void verr(int status, const char* format, va_list values) {
  PARC_REAL(verr);
  settle_begun();
  real(status, format, values);
  __builtin_unreachable();
}

void verrx(int status, const char* format, va_list values) {
  PARC_REAL(verrx);
  settle_begun();
  real(status, format, values);
  __builtin_unreachable();
}

// Those with a list of values, by the call above that takes it.
int dprintf(int file, const char* format, ...) {
  PARC_FORMATTED(vdprintf(file, format, values));
}

int __dprintf_chk(int file, int flag, const char* format, ...) {
  PARC_FORMATTED(__vdprintf_chk(file, flag, format, values));
}

int fwprintf(FILE* stream, const wchar_t* format, ...) {
  PARC_FORMATTED(vfwprintf(stream, format, values));
}

int wprintf(const wchar_t* format, ...) {
  PARC_FORMATTED(vwprintf(format, values));
}

int __fwprintf_chk(FILE* stream, int flag, const wchar_t* format, ...) {
  PARC_FORMATTED(__vfwprintf_chk(stream, flag, format, values));
}

int __wprintf_chk(int flag, const wchar_t* format, ...) {
  PARC_FORMATTED(__vwprintf_chk(flag, format, values));
}

void syslog(int priority, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsyslog(priority, format, values);
  va_end(values);
}

void __syslog_chk(int priority, int flag, const char* format, ...) {
  va_list values;
  va_start(values, format);
  __vsyslog_chk(priority, flag, format, values);
  va_end(values);
}

void warn(const char* format, ...) {
  va_list values;
  va_start(values, format);
  vwarn(format, values);
  va_end(values);
}

void warnx(const char* format, ...) {
  va_list values;
  va_start(values, format);
  vwarnx(format, values);
  va_end(values);
}

void err(int status, const char* format, ...) {
  va_list values;
  va_start(values, format);
  verr(status, format, values);
}

void errx(int status, const char* format, ...) {
  va_list values;
  va_start(values, format);
  verrx(status, format, values);
}

// There is none that takes a list.
void error(int status, int number, const char* format, ...) {
  PARC_REAL(error);
  settle_begun();
  va_list values;
  va_start(values, format);
  real(status, number, "%s", Text(format, values).get());
  va_end(values);
}

void error_at_line(int status, int number, const char* file, unsigned line, const char* format, ...) {
  PARC_REAL(error_at_line);
  settle_begun();
  va_list values;
  va_start(values, format);
  real(status, number, file, line, "%s", Text(format, values).get());
  va_end(values);
}

#pragma GCC visibility pop
}
