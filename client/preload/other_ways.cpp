// SPDX-License-Identifier: BSD-3-Clause
// Ways between processes that are neither plain descriptors nor signals: locks of files, message queues, many
// messages at once, descriptor to descriptor, and the names of files that somebody else waits for.
#include "client/preload/hooks.hpp"

#include <algorithm>
#include <cstdarg>
#include <fcntl.h>
#include <iterator>
#include <mqueue.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using parc::preload::leave;
using parc::preload::settle;

constexpr int locks[] = {F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW};

void before_fcntl(int command, const void* argument) {
  if (std::ranges::find(locks, command) == std::ranges::end(locks)) return;
  leave();
  settle(argument, sizeof(struct flock));
}

// Of open(): what makes a file, or empties it, is seen by others.
void before_open(int flags) {
  if ((flags & (O_CREAT | O_TRUNC)) != 0) leave();
}

void settle_messages(const mmsghdr* messages, unsigned count) {
  if (parc::preload::guarding() == nullptr) return;
  settle(messages, count * sizeof(mmsghdr));
  for (unsigned i = 0; i < count; ++i) {
    const msghdr& each = messages[i].msg_hdr;
    settle(each.msg_name, each.msg_namelen);
    settle(each.msg_control, each.msg_controllen);
    settle(each.msg_iov, each.msg_iovlen * sizeof(iovec));
    for (std::size_t piece = 0; piece < each.msg_iovlen; ++piece)
      settle(each.msg_iov[piece].iov_base, each.msg_iov[piece].iov_len);
  }
}

constexpr std::size_t message_type = sizeof(long); // stands before a System V message

} // namespace

// The last argument of a call that has it only sometimes; nobody looks at it otherwise.
#define PARC_LAST_ARGUMENT(TYPE, AFTER)                                                                      \
  va_list rest;                                                                                              \
  va_start(rest, AFTER);                                                                                     \
  const auto last = va_arg(rest, TYPE);                                                                      \
  va_end(rest)

extern "C" {

#pragma GCC visibility push(default)

int fcntl(int file, int command, ...) {
  PARC_REAL(fcntl);
  PARC_LAST_ARGUMENT(void*, command);
  before_fcntl(command, last);
  return real(file, command, last);
}

int fcntl64(int file, int command, ...) {
  PARC_REAL(fcntl64);
  PARC_LAST_ARGUMENT(void*, command);
  before_fcntl(command, last);
  return real(file, command, last);
}

int open(const char* path, int flags, ...) {
  PARC_REAL(open);
  PARC_LAST_ARGUMENT(mode_t, flags);
  before_open(flags);
  return real(path, flags, last);
}

int open64(const char* path, int flags, ...) {
  PARC_REAL(open64);
  PARC_LAST_ARGUMENT(mode_t, flags);
  before_open(flags);
  return real(path, flags, last);
}

int openat(int directory, const char* path, int flags, ...) {
  PARC_REAL(openat);
  PARC_LAST_ARGUMENT(mode_t, flags);
  before_open(flags);
  return real(directory, path, flags, last);
}

int openat64(int directory, const char* path, int flags, ...) {
  PARC_REAL(openat64);
  PARC_LAST_ARGUMENT(mode_t, flags);
  before_open(flags);
  return real(directory, path, flags, last);
}

int creat(const char* path, mode_t mode) {
  PARC_REAL(creat);
  leave();
  return real(path, mode);
}

int truncate(const char* path, off_t length) noexcept {
  PARC_REAL(truncate);
  leave();
  return real(path, length);
}

int ftruncate(int file, off_t length) noexcept {
  PARC_REAL(ftruncate);
  leave();
  return real(file, length);
}

int mkdir(const char* path, mode_t mode) noexcept {
  PARC_REAL(mkdir);
  leave();
  return real(path, mode);
}

int rmdir(const char* path) noexcept {
  PARC_REAL(rmdir);
  leave();
  return real(path);
}

int link(const char* from, const char* to) noexcept {
  PARC_REAL(link);
  leave();
  return real(from, to);
}

int symlink(const char* what, const char* path) noexcept {
  PARC_REAL(symlink);
  leave();
  return real(what, path);
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  PARC_REAL(unlinkat);
  leave();
  return real(directory, path, flags);
}

int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  PARC_REAL(renameat);
  leave();
  return real(from_directory, from, to_directory, to);
}

ssize_t sendfile(int to, int from, off_t* offset, size_t bytes) noexcept {
  PARC_REAL(sendfile);
  leave();
  settle(offset, offset != nullptr ? sizeof *offset : 0);
  return real(to, from, offset, bytes);
}

ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes, unsigned flags) {
  PARC_REAL(splice);
  leave();
  settle(from_offset, from_offset != nullptr ? sizeof *from_offset : 0);
  settle(to_offset, to_offset != nullptr ? sizeof *to_offset : 0);
  return real(from, from_offset, to, to_offset, bytes, flags);
}

int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  PARC_REAL(sendmmsg);
  leave();
  settle_messages(messages, count);
  return real(socket, messages, count, flags);
}

int recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* patience) {
  PARC_REAL(recvmmsg);
  settle_messages(messages, count);
  settle(patience, patience != nullptr ? sizeof *patience : 0);
  return real(socket, messages, count, flags, patience);
}

int mq_send(mqd_t queue, const char* memory, size_t bytes, unsigned priority) {
  PARC_REAL(mq_send);
  leave();
  settle(memory, bytes);
  return real(queue, memory, bytes, priority);
}

int mq_timedsend(mqd_t queue, const char* memory, size_t bytes, unsigned priority, const timespec* limit) {
  PARC_REAL(mq_timedsend);
  leave();
  settle(memory, bytes);
  return real(queue, memory, bytes, priority, limit);
}

ssize_t mq_receive(mqd_t queue, char* memory, size_t bytes, unsigned* priority) {
  PARC_REAL(mq_receive);
  settle(memory, bytes);
  settle(priority, priority != nullptr ? sizeof *priority : 0);
  return real(queue, memory, bytes, priority);
}

ssize_t mq_timedreceive(mqd_t queue, char* memory, size_t bytes, unsigned* priority, const timespec* limit) {
  PARC_REAL(mq_timedreceive);
  settle(memory, bytes);
  settle(priority, priority != nullptr ? sizeof *priority : 0);
  return real(queue, memory, bytes, priority, limit);
}

int msgsnd(int queue, const void* message, size_t bytes, int flags) {
  PARC_REAL(msgsnd);
  leave();
  settle(message, message_type + bytes);
  return real(queue, message, bytes, flags);
}

ssize_t msgrcv(int queue, void* message, size_t bytes, long type, int flags) {
  PARC_REAL(msgrcv);
  settle(message, message_type + bytes);
  return real(queue, message, bytes, type, flags);
}

int semtimedop(int semaphores, sembuf* operations, size_t count, const timespec* limit) noexcept {
  PARC_REAL(semtimedop);
  leave();
  settle(operations, count * sizeof(sembuf));
  return real(semaphores, operations, count, limit);
}

#pragma GCC visibility pop
}
