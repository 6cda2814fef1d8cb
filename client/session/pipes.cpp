// SPDX-License-Identifier: BSD-3-Clause
// Doorbells and the kernel's end. Both pipes are non-blocking: a full one already holds more bells than
// anybody needs, and an empty one has none.
#include "client/session/pipes.hpp"

#include "client/base/without_sigpipe.hpp"

#include <array>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <utility>

namespace parc::client {
Pipes::Pipes(Fd from_kernel, Fd to_kernel)
    : from_kernel_(std::move(from_kernel)), to_kernel_(std::move(to_kernel)) {}

void Pipes::ring() {
  const std::uint64_t bell = 1;
  WithoutSigpipe held;
  while (write(to_kernel_.get(), &bell, sizeof bell) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE) {
      gone_.store(true, std::memory_order_release);
      held.take_signal();
    }
    return; // EAGAIN: it is full of bells
  }
}

void Pipes::sleep(Limit limit, int own_bell) {
  std::array<pollfd, 2> bells{pollfd{.fd = from_kernel_.get(), .events = POLLIN, .revents = 0},
                              pollfd{.fd = own_bell, .events = POLLIN, .revents = 0}};
  timespec left{};
  if (limit) left = to_timespec(std::max(*limit - Clock::now(), Clock::duration::zero()));
  if (ppoll(bells.data(), bells.size(), limit ? &left : nullptr, nullptr) <= 0) return;
  eventfd_t rung = 0;
  if (bells[1].revents != 0) (void)eventfd_read(own_bell, &rung);
  if (bells[0].revents & POLLIN) drain();
  if (bells[0].revents & ~POLLIN) gone_.store(true, std::memory_order_release);
}

void Pipes::pause() {
  pollfd end{.fd = from_kernel_.get(), .events = 0, .revents = 0};
  if (poll(&end, 1, 1) > 0) gone_.store(true, std::memory_order_release);
}

bool Pipes::look() {
  const int saved = errno;
  pollfd end{.fd = from_kernel_.get(), .events = 0, .revents = 0};
  if (poll(&end, 1, 0) > 0) gone_.store(true, std::memory_order_release);
  errno = saved;
  return gone();
}

void Pipes::close_in_child() {
  from_kernel_.reset();
  to_kernel_.reset();
}

// Bells that are left over (a leader of the past may have seen the work before its bell came) only make one
// sleep end early.
void Pipes::drain() {
  char bells[512];
  if (read(from_kernel_.get(), bells, sizeof bells) == 0) gone_.store(true, std::memory_order_release);
}

} // namespace parc::client
