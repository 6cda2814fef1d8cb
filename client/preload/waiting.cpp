// SPDX-License-Identifier: BSD-3-Clause
// Waiting for descriptors: which ones, until when, and with which signals blocked meanwhile.
#include "client/preload/hooks.hpp"
#include "client/preload/unblocked.hpp"
#include "client/preload/undeclared.hpp"

#include <initializer_list>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

namespace {

using parc::preload::settle;
using parc::preload::settle_value;
using parc::preload::Unblocked;

// Of a set the system looks at whole words, as many as so many descriptors need: it may be longer than an
// fd_set.
void settle_set(const fd_set* set, int files) {
  constexpr int bits = NFDBITS;
  if (set != nullptr && files > 0)
    settle(set, static_cast<std::size_t>((files + bits - 1) / bits) * sizeof(fd_mask));
}

// A negative number is the system's to refuse.
void settle_events(const epoll_event* events, int most) {
  settle(events, most > 0 ? static_cast<std::size_t>(most) * sizeof(epoll_event) : 0);
}

} // namespace

extern "C" {

#pragma GCC visibility push(default)

int __poll_chk(pollfd* files, nfds_t count, int patience, size_t room) {
  PARC_REAL(__poll_chk);
  settle(files, count * sizeof(pollfd));
  return real(files, count, patience, room);
}

int ppoll(pollfd* files, nfds_t count, const timespec* patience, const sigset_t* mask) {
  PARC_REAL(ppoll);
  settle(files, count * sizeof(pollfd));
  settle_value(patience);
  settle_value(mask);
  return real(files, count, patience, Unblocked(mask));
}

int __ppoll_chk(pollfd* files, nfds_t count, const timespec* patience, const sigset_t* mask, size_t room) {
  PARC_REAL(__ppoll_chk);
  settle(files, count * sizeof(pollfd));
  settle_value(patience);
  settle_value(mask);
  return real(files, count, patience, Unblocked(mask), room);
}

int pselect(int files, fd_set* read_from, fd_set* write_to, fd_set* errors, const timespec* patience,
            const sigset_t* mask) {
  PARC_REAL(pselect);
  for (const fd_set* const each : {read_from, write_to, errors}) settle_set(each, files);
  settle_value(patience);
  settle_value(mask);
  return real(files, read_from, write_to, errors, patience, Unblocked(mask));
}

int epoll_pwait(int set, epoll_event* events, int most, int patience, const sigset_t* mask) {
  PARC_REAL(epoll_pwait);
  settle_events(events, most);
  settle_value(mask);
  return real(set, events, most, patience, Unblocked(mask));
}

int epoll_ctl(int set, int what, int file, epoll_event* event) noexcept {
  PARC_REAL(epoll_ctl);
  settle_value(event);
  return real(set, what, file, event);
}

int poll(pollfd* files, nfds_t count, int patience) {
  PARC_REAL(poll);
  settle(files, count * sizeof(pollfd));
  return real(files, count, patience);
}

int epoll_wait(int set, epoll_event* events, int most, int patience) {
  PARC_REAL(epoll_wait);
  settle_events(events, most);
  return real(set, events, most, patience);
}

int select(int files, fd_set* read_from, fd_set* write_to, fd_set* errors, timeval* patience) {
  PARC_REAL(select);
  for (const fd_set* const each : {read_from, write_to, errors}) settle_set(each, files);
  settle_value(patience);
  return real(files, read_from, write_to, errors, patience);
}

int epoll_pwait2(int set, epoll_event* events, int most, const timespec* patience, const sigset_t* mask) {
  PARC_REAL(epoll_pwait2);
  settle_events(events, most);
  settle_value(patience);
  settle_value(mask);
  return real(set, events, most, patience, Unblocked(mask));
}

#pragma GCC visibility pop
}
