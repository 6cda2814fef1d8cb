// SPDX-License-Identifier: BSD-3-Clause
// Ways between processes that are neither plain descriptors nor signals: locks of files, queues and
// semaphores, many messages at once, and from descriptor to descriptor.
#include "client/preload/hooks.hpp"

#include <algorithm>
#include <fcntl.h>
#include <iterator>
#include <mqueue.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using parc::preload::settle;
using parc::preload::settle_begun;

constexpr int locks[] = {F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW};

void before_fcntl(int command, const void* argument) {
  if (std::ranges::find(locks, command) == std::ranges::end(locks)) return;
  settle_begun();
  settle(argument, sizeof(struct flock));
}

void settle_messages(const mmsghdr* messages, unsigned count) {
  if (parc::preload::guarding() == nullptr) return;
  settle(messages, count * sizeof(mmsghdr));
  for (unsigned i = 0; i < count; ++i) {
    const msghdr& each = messages[i].msg_hdr;
    settle(each.msg_name, each.msg_namelen);
    settle(each.msg_control, each.msg_controllen);
    parc::preload::settle_pieces(each.msg_iov, each.msg_iovlen);
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
  settle(offset, offset != nullptr ? sizeof *offset : 0);
  return real(to, from, offset, bytes);
}

ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes, unsigned flags) {
  PARC_REAL(splice);
  settle_begun();
  settle(from_offset, from_offset != nullptr ? sizeof *from_offset : 0);
  settle(to_offset, to_offset != nullptr ? sizeof *to_offset : 0);
  return real(from, from_offset, to, to_offset, bytes, flags);
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
  settle(patience, patience != nullptr ? sizeof *patience : 0);
  return real(socket, messages, count, flags, patience);
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
  settle(limit, sizeof *limit);
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
  settle(limit, sizeof *limit);
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

int semtimedop(int semaphores, sembuf* operations, size_t count, const timespec* limit) noexcept {
  PARC_REAL(semtimedop);
  settle_begun();
  settle(operations, count * sizeof(sembuf));
  settle(limit, limit != nullptr ? sizeof *limit : 0);
  return real(semaphores, operations, count, limit);
}

ssize_t sendfile64(int to, int from, off64_t* offset, size_t bytes) noexcept {
  PARC_REAL(sendfile64);
  settle_begun();
  settle(offset, offset != nullptr ? sizeof *offset : 0);
  return real(to, from, offset, bytes);
}

ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t bytes,
                        unsigned flags) {
  PARC_REAL(copy_file_range);
  settle_begun();
  settle(from_offset, from_offset != nullptr ? sizeof *from_offset : 0);
  settle(to_offset, to_offset != nullptr ? sizeof *to_offset : 0);
  return real(from, from_offset, to, to_offset, bytes, flags);
}

#pragma GCC visibility pop
}
