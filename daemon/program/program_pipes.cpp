// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/program_pipes.hpp"

#include "control/words/door.hpp"

#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace parc::daemon {
namespace {

bool send_descriptors(int socket, int first, int second) {
  char byte = control::door::program;
  iovec part{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int descriptors[2] = {first, second};
  std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

} // namespace

Result<ProgramPipes> give_program_pipes(const Fd& socket) {
  int to_kernel[2];
  int to_program[2];
  if (pipe2(to_kernel, O_NONBLOCK | O_CLOEXEC) != 0) return system_error("cannot make a pipe");
  Fd kernel_reads(to_kernel[0]);
  const Fd program_writes(to_kernel[1]);
  if (pipe2(to_program, O_NONBLOCK | O_CLOEXEC) != 0) return system_error("cannot make a pipe");
  const Fd program_reads(to_program[0]);
  Fd kernel_writes(to_program[1]);
  if (!send_descriptors(socket.get(), program_reads.get(), program_writes.get()))
    return system_error("cannot hand it its pipes");
  return ProgramPipes{std::move(kernel_reads), std::move(kernel_writes)};
}

} // namespace parc::daemon
