// SPDX-License-Identifier: BSD-3-Clause
// Functions of the C library that programs call and no header declares for C++.
#pragma once

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cwchar>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

extern "C" {

// Called by programs that were compiled with _FORTIFY_SOURCE.
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int directory, const char* path, int flags);
int __openat64_2(int directory, const char* path, int flags);
ssize_t __readlink_chk(const char* path, char* to, size_t bytes, size_t room);
ssize_t __readlinkat_chk(int directory, const char* path, char* to, size_t bytes, size_t room);
char* __getcwd_chk(char* to, size_t bytes, size_t room);
int __ttyname_r_chk(int file, char* to, size_t bytes, size_t room);
int __getgroups_chk(int count, gid_t* to, size_t room);
int __dprintf_chk(int file, int flag, const char* format, ...);
int __fwprintf_chk(FILE* stream, int flag, const wchar_t* format, ...);
int __wprintf_chk(int flag, const wchar_t* format, ...);
void __syslog_chk(int priority, int flag, const char* format, ...);
int __vfprintf_chk(FILE* stream, int flag, const char* format, va_list values);
int __fprintf_chk(FILE* stream, int flag, const char* format, ...);
int __printf_chk(int flag, const char* format, ...);
size_t __fread_chk(void* memory, size_t room, size_t size, size_t count, FILE* stream);
size_t __fread_unlocked_chk(void* memory, size_t room, size_t size, size_t count, FILE* stream);
int __vdprintf_chk(int file, int flag, const char* format, va_list values);
int __vprintf_chk(int flag, const char* format, va_list values);
int __vfwprintf_chk(FILE* stream, int flag, const wchar_t* format, va_list values);
int __vwprintf_chk(int flag, const wchar_t* format, va_list values);
void __vsyslog_chk(int priority, int flag, const char* format, va_list values);
ssize_t __read_chk(int file, void* memory, size_t bytes, size_t room);
ssize_t __pread_chk(int file, void* memory, size_t bytes, off_t offset, size_t room);
ssize_t __pread64_chk(int file, void* memory, size_t bytes, off64_t offset, size_t room);
ssize_t __recv_chk(int socket, void* memory, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int socket, void* memory, size_t bytes, size_t room, int flags, sockaddr* from,
                       socklen_t* length);
int __poll_chk(pollfd* files, nfds_t count, int patience, size_t room);
int __ppoll_chk(pollfd* files, nfds_t count, const timespec* patience, const sigset_t* mask, size_t room);

// Called by programs that were compiled for older C libraries.
int __xstat(int version, const char* path, struct stat* to);
int __xstat64(int version, const char* path, struct stat64* to);
int __lxstat(int version, const char* path, struct stat* to);
int __lxstat64(int version, const char* path, struct stat64* to);
int __fxstat(int version, int file, struct stat* to);
int __fxstat64(int version, int file, struct stat64* to);
int __fxstatat(int version, int directory, const char* path, struct stat* to, int flags);
int __fxstatat64(int version, int directory, const char* path, struct stat64* to, int flags);
int __xmknod(int version, const char* path, mode_t mode, dev_t* device);
int __xmknodat(int version, int directory, const char* path, mode_t mode, dev_t* device);
int _IO_putc(int character, FILE* stream);
sighandler_t bsd_signal(int number, sighandler_t handler);

// Libcap declares two for itself, and <sys/pidfd.h> one for C alone.
int capget(void* header, void* data);
int capset(void* header, const void* data);
int pidfd_send_signal(int process, int signal, siginfo_t* info, unsigned flags) noexcept;

// BSD's sigpause: <signal.h> gives its name to another function.
int sigpause_of_bsd(int mask) __asm__("sigpause");
}
