// SPDX-License-Identifier: BSD-3-Clause
// Structures that the system reads or fills in: of children, sockets, times, signals, other processes; and
// pieces of memory.
#include "client/preload/hooks.hpp"

#include <csignal>
#include <cstdarg>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using parc::preload::settle;
using parc::preload::settle_begun;
using parc::preload::settle_pieces;
using parc::preload::settle_value;

// What lies in the other process; it may be this one.
void settle_there(pid_t process, const iovec* pieces, std::size_t count) {
  if (process == getpid())
    settle_pieces(pieces, count);
  else
    settle(pieces, count * sizeof(iovec));
}

// An address and its length, in which the system says how much it wrote.
void settle_address(const void* address, const socklen_t* length) {
  settle_value(length);
  settle(address, address != nullptr && length != nullptr ? *length : 0);
}

// Older requests do not say how long their argument is; none is longer than this.
constexpr std::size_t longest_old_argument = 256;

void settle_argument(unsigned long request, const void* argument) {
  const std::size_t bytes = _IOC_SIZE(request);
  settle(argument, bytes != 0 ? bytes : longest_old_argument);
}

} // namespace

extern "C" {

#pragma GCC visibility push(default)

// ---- Children

pid_t wait(int* status) {
  PARC_REAL(wait);
  settle_value(status);
  return real(status);
}

pid_t waitpid(pid_t child, int* status, int options) {
  PARC_REAL(waitpid);
  settle_value(status);
  return real(child, status, options);
}

pid_t wait3(int* status, int options, rusage* usage) noexcept {
  PARC_REAL(wait3);
  settle_value(status);
  settle_value(usage);
  return real(status, options, usage);
}

pid_t wait4(pid_t child, int* status, int options, rusage* usage) noexcept {
  PARC_REAL(wait4);
  settle_value(status);
  settle_value(usage);
  return real(child, status, options, usage);
}

int waitid(idtype_t kind, id_t id, siginfo_t* info, int options) {
  PARC_REAL(waitid);
  settle_value(info);
  return real(kind, id, info, options);
}

// ---- Descriptors

int ioctl(int file, unsigned long request, ...) noexcept {
  PARC_REAL(ioctl);
  PARC_LAST_ARGUMENT(void*, request);
  settle_argument(request, last);
  return real(file, request, last);
}

int pipe(int ends[2]) noexcept {
  PARC_REAL(pipe);
  settle(ends, 2 * sizeof *ends);
  return real(ends);
}

int pipe2(int ends[2], int flags) noexcept {
  PARC_REAL(pipe2);
  settle(ends, 2 * sizeof *ends);
  return real(ends, flags);
}

int accept(int socket, sockaddr* from, socklen_t* length) {
  PARC_REAL(accept);
  settle_address(from, length);
  return real(socket, from, length);
}

int accept4(int socket, sockaddr* from, socklen_t* length, int flags) {
  PARC_REAL(accept4);
  settle_address(from, length);
  return real(socket, from, length, flags);
}

int getsockname(int socket, sockaddr* name, socklen_t* length) noexcept {
  PARC_REAL(getsockname);
  settle_address(name, length);
  return real(socket, name, length);
}

int getpeername(int socket, sockaddr* name, socklen_t* length) noexcept {
  PARC_REAL(getpeername);
  settle_address(name, length);
  return real(socket, name, length);
}

int getsockopt(int socket, int level, int option, void* value, socklen_t* length) noexcept {
  PARC_REAL(getsockopt);
  settle_address(value, length);
  return real(socket, level, option, value, length);
}

int setsockopt(int socket, int level, int option, const void* value, socklen_t length) noexcept {
  PARC_REAL(setsockopt);
  settle(value, length);
  return real(socket, level, option, value, length);
}

int bind(int socket, const sockaddr* name, socklen_t length) noexcept {
  PARC_REAL(bind);
  settle_begun();
  settle(name, length);
  return real(socket, name, length);
}

int socketpair(int domain, int type, int protocol, int ends[2]) noexcept {
  PARC_REAL(socketpair);
  settle(ends, 2 * sizeof *ends);
  return real(domain, type, protocol, ends);
}

ssize_t preadv2(int file, const iovec* pieces, int count, off_t offset, int flags) {
  PARC_REAL(preadv2);
  settle_pieces(pieces, static_cast<std::size_t>(count));
  return real(file, pieces, count, offset, flags);
}

ssize_t pwritev2(int file, const iovec* pieces, int count, off_t offset, int flags) {
  PARC_REAL(pwritev2);
  settle_begun();
  settle_pieces(pieces, static_cast<std::size_t>(count));
  return real(file, pieces, count, offset, flags);
}

ssize_t preadv64v2(int file, const iovec* pieces, int count, off64_t offset, int flags) {
  PARC_REAL(preadv64v2);
  settle_pieces(pieces, static_cast<std::size_t>(count));
  return real(file, pieces, count, offset, flags);
}

ssize_t pwritev64v2(int file, const iovec* pieces, int count, off64_t offset, int flags) {
  PARC_REAL(pwritev64v2);
  settle_begun();
  settle_pieces(pieces, static_cast<std::size_t>(count));
  return real(file, pieces, count, offset, flags);
}

int eventfd_read(int file, eventfd_t* to) {
  PARC_REAL(eventfd_read);
  settle_value(to);
  return real(file, to);
}

int eventfd_write(int file, eventfd_t value) {
  PARC_REAL(eventfd_write);
  settle_begun();
  return real(file, value);
}

// ---- Other processes

ssize_t process_vm_readv(pid_t process, const iovec* here, unsigned long count, const iovec* there,
                         unsigned long pieces, unsigned long flags) noexcept {
  PARC_REAL(process_vm_readv);
  settle_pieces(here, count);
  settle_there(process, there, pieces);
  return real(process, here, count, there, pieces, flags);
}

ssize_t process_vm_writev(pid_t process, const iovec* here, unsigned long count, const iovec* there,
                          unsigned long pieces, unsigned long flags) noexcept {
  PARC_REAL(process_vm_writev);
  settle_begun();
  settle_pieces(here, count);
  settle_there(process, there, pieces);
  return real(process, here, count, there, pieces, flags);
}

// ---- Signals

int sigwait(const sigset_t* set, int* signal) {
  PARC_REAL(sigwait);
  settle_value(set);
  settle_value(signal);
  return real(set, signal);
}

int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  PARC_REAL(sigwaitinfo);
  settle_value(set);
  settle_value(info);
  return real(set, info);
}

int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* patience) {
  PARC_REAL(sigtimedwait);
  settle_value(set);
  settle_value(info);
  settle_value(patience);
  return real(set, info, patience);
}

// ---- Times, limits, names

clock_t times(tms* to) noexcept {
  PARC_REAL(times);
  settle_value(to);
  return real(to);
}

int nanosleep(const timespec* time, timespec* left) {
  PARC_REAL(nanosleep);
  settle_value(time);
  settle_value(left);
  return real(time, left);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  PARC_REAL(clock_nanosleep);
  settle_value(time);
  settle_value(left);
  return real(clock, flags, time, left);
}

int getrusage(__rusage_who_t who, rusage* to) noexcept {
  PARC_REAL(getrusage);
  settle_value(to);
  return real(who, to);
}

int uname(utsname* to) noexcept {
  PARC_REAL(uname);
  settle_value(to);
  return real(to);
}

ssize_t getrandom(void* to, size_t bytes, unsigned flags) {
  PARC_REAL(getrandom);
  settle(to, bytes);
  return real(to, bytes, flags);
}

int getentropy(void* to, size_t bytes) {
  PARC_REAL(getentropy);
  settle(to, bytes);
  return real(to, bytes);
}

#pragma GCC visibility pop
}
