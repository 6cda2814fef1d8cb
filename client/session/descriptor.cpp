// SPDX-License-Identifier: BSD-3-Clause
#include "client/session/descriptor.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace parc::client {

Result<int> Descriptor::open(int kernels_pipe) {
  if (both_) return both_.get();
  Fd both(epoll_create1(EPOLL_CLOEXEC)), bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_event readable{.events = EPOLLIN, .data = {}};
  if (!both || !bell || epoll_ctl(both.get(), EPOLL_CTL_ADD, kernels_pipe, &readable) != 0 ||
      epoll_ctl(both.get(), EPOLL_CTL_ADD, bell.get(), &readable) != 0)
    return system_error("cannot make a descriptor for the program's own poll");
  both_ = std::move(both);
  bell_ = std::move(bell);
  return both_.get();
}

void Descriptor::ring() {
  (void)eventfd_write(bell_.get(), 1); // EAGAIN: it has been rung more often than anybody can count
}

void Descriptor::silence() {
  eventfd_t rung = 0;
  (void)eventfd_read(bell_.get(), &rung);
}

void Descriptor::close() {
  both_.reset();
  bell_.reset();
}

} // namespace parc::client
