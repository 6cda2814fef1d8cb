// SPDX-License-Identifier: BSD-3-Clause
#include "client/base/failure.hpp"

#include "parc/parc.h"
#include "protocol/wire.hpp"

#include <algorithm>
#include <cassert>

namespace parc::client {
namespace {

// No string: a signal handler may find it half changed, and must not meet an allocator.
thread_local char detail[1024];

// A handler may touch this one first in its thread: it has its place from the thread's start.
__attribute__((tls_model("initial-exec"))) thread_local const char* last = "";

} // namespace

const char* sentence(int code) {
  switch (code) {
  case PARC_OK: return "success";
  case PARC_EINVAL: return "an argument is out of range";
  case PARC_ENOMEM: return "there is no more memory that the kernel can share";
  case PARC_EAGAIN:
    return "unfinished operations have all memory, or are a million; wait for one and call again";
  case PARC_ETRUNCATE: return "the message was longer than the read; the buffer holds its beginning";
  case PARC_EPEER: return "the peer has departed, was killed, or the link to its host broke";
  case PARC_EKERNEL:
    return "the kernel of this host (parcd) has gone or has ended this program's session (parc errors may "
           "say why)";
  case PARC_ECANCELED: return "the operation was canceled";
  case PARC_EFORK: return "a forked child may not use its parent's context; exec a program of its own";
  case PARC_EVERSION: return "library and kernel speak different versions";
  case PARC_ENOKERNEL: return "no kernel (parcd) runs on this host; start one with parcd --detach";
  case PARC_ESPAWN: return "the program could not be started on all its hosts";
  case PARC_EPLACE:
    return "the peer has no such window, or what was asked for is outside of it or not allowed";
  default: return "no error of parc has this number";
  }
}

const char* departure_sentence(std::uint32_t how) {
  switch (static_cast<protocol::Departure>(how)) {
  case protocol::Departure::left: return "that rank has left the job";
  case protocol::Departure::killed: return "that rank was killed, or its kernel ended its session";
  case protocol::Departure::lost: return "the link to that rank's host broke, or the kernel there ended";
  case protocol::Departure::none: break;
  }
  return sentence(PARC_EPEER);
}

int fail(const Error& error) {
  assert(error.code < 0); // a code of parc.h: a system call's would mean nothing to the program, or success
  const std::size_t length = std::min(error.text.size(), sizeof detail - 1);
  error.text.copy(detail, length);
  detail[length] = '\0';
  last = detail;
  return error.code;
}

int fail(int code) {
  return fail(code, sentence(code));
}

int fail(int code, const char* constant) {
  last = constant;
  return code;
}

const char* last_failure() {
  return last;
}

Error has_left() {
  return error(PARC_EKERNEL,
               "this program has left its job (parc_close or exit): it can ask for nothing more");
}

} // namespace parc::client
