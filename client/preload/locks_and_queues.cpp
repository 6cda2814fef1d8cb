// SPDX-License-Identifier: BSD-3-Clause
// Ways between processes that are neither plain descriptors nor signals: locks of files, queues and
// semaphores, many messages at once, and from descriptor to descriptor.
#include "client/preload/hooks.hpp"

#include <cstdint>
#include <fcntl.h>
#include <mqueue.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using parc::preload::settle;
using parc::preload::settle_begun;
using parc::preload::settle_pieces;
using parc::preload::settle_text;
using parc::preload::settle_value;

void before_fcntl(int command, const void* argument) {
  switch (command) {
  case F_GETLK:
  case F_SETLK:
  case F_SETLKW:
  case F_OFD_GETLK:
  case F_OFD_SETLK:
  case F_OFD_SETLKW:
    settle_begun();
    settle(argument, sizeof(struct flock));
    return;
  case F_GETOWN_EX:
  case F_SETOWN_EX: settle(argument, sizeof(f_owner_ex)); return;
  case F_GET_RW_HINT:
  case F_SET_RW_HINT:
  case F_GET_FILE_RW_HINT:
  case F_SET_FILE_RW_HINT: settle(argument, sizeof(std::uint64_t)); return;
  default: return;
  }
}

// What semctl may read or write in one piece: the values of a set, or what is said of it.
constexpr std::size_t longest_semaphores = 32000 * sizeof(unsigned short);

void settle_messages(const mmsghdr* messages, unsigned count) {
  if (parc::preload::guarding() == nullptr) return;
  settle(messages, count * sizeof(mmsghdr));
  for (unsigned i = 0; i < count; ++i) {
    const msghdr& each = messages[i].msg_hdr;
    settle(each.msg_name, each.msg_namelen);
    settle(each.msg_control, each.msg_controllen);
    settle_pieces(each.msg_iov, each.msg_iovlen);
  }
}

constexpr std::size_t message_type = sizeof(long); // stands before a System V message

} // namespace

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

ssize_t sendfile(int to, int from, off_t* offset, size_t bytes) noexcept {
  PARC_REAL(sendfile);
  settle_begun();
  settle_value(offset);
  return real(to, from, offset, bytes);
}

ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes, unsigned flags) {
  PARC_REAL(splice);
  settle_begun();
  settle_value(from_offset);
  settle_value(to_offset);
  return real(from, from_offset, to, to_offset, bytes, flags);
}

ssize_t vmsplice(int file, const iovec* pieces, size_t count, unsigned flags) {
  PARC_REAL(vmsplice);
  settle_begun();
  settle_pieces(pieces, count);
  return real(file, pieces, count, flags);
}

ssize_t tee(int from, int to, size_t bytes, unsigned flags) {
  PARC_REAL(tee);
  settle_begun();
  return real(from, to, bytes, flags);
}

int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  PARC_REAL(sendmmsg);
  settle_begun();
  settle_messages(messages, count);
  return real(socket, messages, count, flags);
}

int recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* patience) {
  PARC_REAL(recvmmsg);
  settle_messages(messages, count);
  settle_value(patience);
  return real(socket, messages, count, flags, patience);
}

mqd_t mq_open(const char* name, int flags, ...) noexcept {
  PARC_REAL(mq_open);
  va_list rest;
  va_start(rest, flags);
  const auto mode = va_arg(rest, mode_t);
  auto* const attributes = va_arg(rest, mq_attr*);
  va_end(rest);
  if ((flags & O_CREAT) != 0) {
    settle_begun();
    settle_value(attributes);
  }
  settle_text(name);
  return real(name, flags, mode, attributes);
}

int mq_unlink(const char* name) noexcept {
  PARC_REAL(mq_unlink);
  settle_begun();
  settle_text(name);
  return real(name);
}

int mq_getattr(mqd_t queue, mq_attr* to) noexcept {
  PARC_REAL(mq_getattr);
  settle_value(to);
  return real(queue, to);
}

int mq_setattr(mqd_t queue, const mq_attr* attributes, mq_attr* before) noexcept {
  PARC_REAL(mq_setattr);
  settle_value(attributes);
  settle_value(before);
  return real(queue, attributes, before);
}

int mq_notify(mqd_t queue, const sigevent* event) noexcept {
  PARC_REAL(mq_notify);
  settle_value(event);
  return real(queue, event);
}

int mq_send(mqd_t queue, const char* memory, size_t bytes, unsigned priority) {
  PARC_REAL(mq_send);
  settle_begun();
  settle(memory, bytes);
  return real(queue, memory, bytes, priority);
}

int mq_timedsend(mqd_t queue, const char* memory, size_t bytes, unsigned priority, const timespec* limit) {
  PARC_REAL(mq_timedsend);
  settle_begun();
  settle(memory, bytes);
  settle_value(limit);
  return real(queue, memory, bytes, priority, limit);
}

ssize_t mq_receive(mqd_t queue, char* memory, size_t bytes, unsigned* priority) {
  PARC_REAL(mq_receive);
  settle(memory, bytes);
  settle_value(priority);
  return real(queue, memory, bytes, priority);
}

ssize_t mq_timedreceive(mqd_t queue, char* memory, size_t bytes, unsigned* priority, const timespec* limit) {
  PARC_REAL(mq_timedreceive);
  settle(memory, bytes);
  settle_value(priority);
  settle_value(limit);
  return real(queue, memory, bytes, priority, limit);
}

int msgsnd(int queue, const void* message, size_t bytes, int flags) {
  PARC_REAL(msgsnd);
  settle_begun();
  settle(message, message_type + bytes);
  return real(queue, message, bytes, flags);
}

ssize_t msgrcv(int queue, void* message, size_t bytes, long type, int flags) {
  PARC_REAL(msgrcv);
  settle(message, message_type + bytes);
  return real(queue, message, bytes, type, flags);
}

int msgctl(int queue, int command, msqid_ds* about) noexcept {
  PARC_REAL(msgctl);
  settle_value(about);
  return real(queue, command, about);
}

int shmctl(int segment, int command, shmid_ds* about) noexcept {
  PARC_REAL(shmctl);
  settle_value(about);
  return real(segment, command, about);
}

int semctl(int semaphores, int number, int command, ...) noexcept {
  PARC_REAL(semctl);
  PARC_LAST_ARGUMENT(void*, command);
  settle_begun();
  if (command != SETVAL) settle(last, longest_semaphores);
  return real(semaphores, number, command, last);
}

int semtimedop(int semaphores, sembuf* operations, size_t count, const timespec* limit) noexcept {
  PARC_REAL(semtimedop);
  settle_begun();
  settle(operations, count * sizeof(sembuf));
  settle_value(limit);
  return real(semaphores, operations, count, limit);
}

ssize_t sendfile64(int to, int from, off64_t* offset, size_t bytes) noexcept {
  PARC_REAL(sendfile64);
  settle_begun();
  settle_value(offset);
  return real(to, from, offset, bytes);
}

ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes,
                        unsigned flags) {
  PARC_REAL(copy_file_range);
  settle_begun();
  settle_value(from_offset);
  settle_value(to_offset);
  return real(from, from_offset, to, to_offset, bytes, flags);
}

#pragma GCC visibility pop
}
