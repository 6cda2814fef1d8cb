// SPDX-License-Identifier: BSD-3-Clause
// Data to and from descriptors, and what else others see of these.
#include "client/preload/hooks.hpp"
#include "client/preload/undeclared.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

using parc::preload::settle;
using parc::preload::settle_begun;
using parc::preload::settle_value;

void settle_list(const iovec* pieces, int count) {
  parc::preload::settle_pieces(pieces, static_cast<std::size_t>(count));
}

void settle_message(const msghdr* message) {
  if (parc::preload::guarding() == nullptr) return;
  settle(message, sizeof *message);
  settle(message->msg_name, message->msg_namelen);
  settle(message->msg_control, message->msg_controllen);
  parc::preload::settle_pieces(message->msg_iov, message->msg_iovlen);
}

} // namespace

extern "C" {

#pragma GCC visibility push(default)

ssize_t __read_chk(int file, void* memory, size_t bytes, size_t room) {
  PARC_REAL(__read_chk);
  settle(memory, bytes);
  return real(file, memory, bytes, room);
}

ssize_t __pread_chk(int file, void* memory, size_t bytes, off_t offset, size_t room) {
  PARC_REAL(__pread_chk);
  settle(memory, bytes);
  return real(file, memory, bytes, offset, room);
}

ssize_t __pread64_chk(int file, void* memory, size_t bytes, off64_t offset, size_t room) {
  PARC_REAL(__pread64_chk);
  settle(memory, bytes);
  return real(file, memory, bytes, offset, room);
}

ssize_t __recv_chk(int socket, void* memory, size_t bytes, size_t room, int flags) {
  PARC_REAL(__recv_chk);
  settle(memory, bytes);
  return real(socket, memory, bytes, room, flags);
}

ssize_t __recvfrom_chk(int socket, void* memory, size_t bytes, size_t room, int flags, sockaddr* from,
                       socklen_t* length) {
  PARC_REAL(__recvfrom_chk);
  settle(memory, bytes);
  settle_value(length);
  settle(from, from != nullptr && length != nullptr ? *length : 0);
  return real(socket, memory, bytes, room, flags, from, length);
}

ssize_t read(int file, void* memory, size_t bytes) {
  PARC_REAL(read);
  settle(memory, bytes);
  return real(file, memory, bytes);
}

ssize_t pread(int file, void* memory, size_t bytes, off_t offset) {
  PARC_REAL(pread);
  settle(memory, bytes);
  return real(file, memory, bytes, offset);
}

ssize_t pread64(int file, void* memory, size_t bytes, off64_t offset) {
  PARC_REAL(pread64);
  settle(memory, bytes);
  return real(file, memory, bytes, offset);
}

ssize_t readv(int file, const iovec* pieces, int count) {
  PARC_REAL(readv);
  settle_list(pieces, count);
  return real(file, pieces, count);
}

ssize_t preadv(int file, const iovec* pieces, int count, off_t offset) {
  PARC_REAL(preadv);
  settle_list(pieces, count);
  return real(file, pieces, count, offset);
}

ssize_t preadv64(int file, const iovec* pieces, int count, off64_t offset) {
  PARC_REAL(preadv64);
  settle_list(pieces, count);
  return real(file, pieces, count, offset);
}

ssize_t recv(int socket, void* memory, size_t bytes, int flags) {
  PARC_REAL(recv);
  settle(memory, bytes);
  return real(socket, memory, bytes, flags);
}

ssize_t recvfrom(int socket, void* memory, size_t bytes, int flags, sockaddr* from, socklen_t* length) {
  PARC_REAL(recvfrom);
  settle(memory, bytes);
  settle_value(length);
  settle(from, from != nullptr && length != nullptr ? *length : 0);
  return real(socket, memory, bytes, flags, from, length);
}

ssize_t recvmsg(int socket, msghdr* message, int flags) {
  PARC_REAL(recvmsg);
  settle_message(message);
  return real(socket, message, flags);
}

int connect(int socket, const sockaddr* to, socklen_t length) {
  PARC_REAL(connect);
  settle_begun();
  settle(to, length);
  return real(socket, to, length);
}

int shutdown(int socket, int how) noexcept {
  PARC_REAL(shutdown);
  settle_begun();
  return real(socket, how);
}

int close(int file) {
  PARC_REAL(close);
  settle_begun();
  return real(file);
}

ssize_t write(int file, const void* memory, size_t bytes) {
  PARC_REAL(write);
  settle_begun();
  settle(memory, bytes);
  return real(file, memory, bytes);
}

ssize_t pwrite(int file, const void* memory, size_t bytes, off_t offset) {
  PARC_REAL(pwrite);
  settle_begun();
  settle(memory, bytes);
  return real(file, memory, bytes, offset);
}

ssize_t pwrite64(int file, const void* memory, size_t bytes, off64_t offset) {
  PARC_REAL(pwrite64);
  settle_begun();
  settle(memory, bytes);
  return real(file, memory, bytes, offset);
}

ssize_t writev(int file, const iovec* pieces, int count) {
  PARC_REAL(writev);
  settle_begun();
  settle_list(pieces, count);
  return real(file, pieces, count);
}

ssize_t pwritev(int file, const iovec* pieces, int count, off_t offset) {
  PARC_REAL(pwritev);
  settle_begun();
  settle_list(pieces, count);
  return real(file, pieces, count, offset);
}

ssize_t pwritev64(int file, const iovec* pieces, int count, off64_t offset) {
  PARC_REAL(pwritev64);
  settle_begun();
  settle_list(pieces, count);
  return real(file, pieces, count, offset);
}

ssize_t send(int socket, const void* memory, size_t bytes, int flags) {
  PARC_REAL(send);
  settle_begun();
  settle(memory, bytes);
  return real(socket, memory, bytes, flags);
}

ssize_t sendto(int socket, const void* memory, size_t bytes, int flags, const sockaddr* to,
               socklen_t length) {
  PARC_REAL(sendto);
  settle_begun();
  settle(memory, bytes);
  settle(to, length);
  return real(socket, memory, bytes, flags, to, length);
}

ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  PARC_REAL(sendmsg);
  settle_begun();
  settle_message(message);
  return real(socket, message, flags);
}

#pragma GCC visibility pop
}
