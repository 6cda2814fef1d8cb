// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/wait_object.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace parc::fabric {

WaitObject::~WaitObject() {
  for (const int descriptor : {both_, bell_})
    if (descriptor >= 0) close(descriptor);
}

int WaitObject::open(KernelSession* session, fi_wait_obj kind) {
  session_ = session;
  switch (kind) {
  case FI_WAIT_NONE:
  case FI_WAIT_UNSPEC:
  case FI_WAIT_YIELD: kind_ = kind; return 0;
  case FI_WAIT_FD:
  case FI_WAIT_POLLFD: break;
  default: // the kernel rings a pipe, and nobody would turn that into a condition or a wait set
    FI_WARN(
        &provider, FI_LOG_CQ,
        "parc has no wait sets, mutexes or conditions to wait for: ask for FI_WAIT_FD or FI_WAIT_UNSPEC\n");
    return -FI_ENOSYS;
  }
  const int kernels = session ? parc_descriptor(session->parc()) : -1;
  if (session && kernels < 0) return refused(FI_LOG_CQ, "there is no descriptor to wait for", kernels);
  both_ = epoll_create1(EPOLL_CLOEXEC);
  bell_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  epoll_event readable{.events = EPOLLIN, .data = {}};
  if (both_ < 0 || bell_ < 0 || epoll_ctl(both_, EPOLL_CTL_ADD, bell_, &readable) != 0 ||
      (session && epoll_ctl(both_, EPOLL_CTL_ADD, kernels, &readable) != 0)) {
    const int code = errno;
    FI_WARN(&provider, FI_LOG_CQ, "cannot make a descriptor to wait for: %s\n", std::strerror(code));
    return -code;
  }
  kind_ = kind;
  return 0;
}

void WaitObject::ring() {
  if (bell_ >= 0) (void)eventfd_write(bell_, 1);
}

void WaitObject::silence() {
  eventfd_t rung = 0;
  if (bell_ >= 0) (void)eventfd_read(bell_, &rung);
}

int WaitObject::control(int command, void* answer) const {
  if (command == FI_GETWAITOBJ) {
    *static_cast<fi_wait_obj*>(answer) = kind_;
    return 0;
  }
  if (command != FI_GETWAIT || both_ < 0) return -FI_ENOSYS;
  if (kind_ == FI_WAIT_FD) {
    *static_cast<int*>(answer) = both_;
    return 0;
  }
  auto& polled = *static_cast<fi_wait_pollfd*>(answer);
  const bool room = polled.nfds >= 1;
  polled.change_index = 1;
  polled.nfds = 1;
  if (!room) return -FI_ETOOSMALL;
  polled.fd[0] = {.fd = both_, .events = POLLIN, .revents = 0};
  return 0;
}

} // namespace parc::fabric
