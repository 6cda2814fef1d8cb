// SPDX-License-Identifier: BSD-3-Clause
// Clocks and timers.
#include "client/preload/hooks.hpp"

#include <ctime>
#include <sched.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <threads.h>

using parc::preload::settle;
using parc::preload::settle_value;

extern "C" {

#pragma GCC visibility push(default)

int clock_gettime(clockid_t clock, timespec* to) noexcept {
  PARC_REAL(clock_gettime);
  settle_value(to);
  return real(clock, to);
}

int clock_getres(clockid_t clock, timespec* to) noexcept {
  PARC_REAL(clock_getres);
  settle_value(to);
  return real(clock, to);
}

int clock_settime(clockid_t clock, const timespec* time) noexcept {
  PARC_REAL(clock_settime);
  settle_value(time);
  return real(clock, time);
}

int clock_adjtime(clockid_t clock, struct timex* changes) noexcept {
  PARC_REAL(clock_adjtime);
  settle_value(changes);
  return real(clock, changes);
}

int adjtimex(struct timex* changes) noexcept {
  PARC_REAL(adjtimex);
  settle_value(changes);
  return real(changes);
}

int ntp_adjtime(struct timex* changes) noexcept {
  PARC_REAL(ntp_adjtime);
  settle_value(changes);
  return real(changes);
}

int gettimeofday(timeval* to, void* zone) noexcept {
  PARC_REAL(gettimeofday);
  settle_value(to);
  settle(zone, zone != nullptr ? sizeof(struct timezone) : 0);
  return real(to, zone);
}

int settimeofday(const timeval* time, const struct timezone* zone) noexcept {
  PARC_REAL(settimeofday);
  settle_value(time);
  settle_value(zone);
  return real(time, zone);
}

time_t time(time_t* to) noexcept {
  PARC_REAL(time);
  settle_value(to);
  return real(to);
}

int timespec_get(timespec* to, int base) noexcept {
  PARC_REAL(timespec_get);
  settle_value(to);
  return real(to, base);
}

int timespec_getres(timespec* to, int base) noexcept {
  PARC_REAL(timespec_getres);
  settle_value(to);
  return real(to, base);
}

int thrd_sleep(const timespec* time, timespec* left) {
  PARC_REAL(thrd_sleep);
  settle_value(time);
  settle_value(left);
  return real(time, left);
}

int getcpu(unsigned* core, unsigned* node) noexcept {
  PARC_REAL(getcpu);
  settle_value(core);
  settle_value(node);
  return real(core, node);
}

int getitimer(__itimer_which_t which, itimerval* to) noexcept {
  PARC_REAL(getitimer);
  settle_value(to);
  return real(which, to);
}

int setitimer(__itimer_which_t which, const itimerval* time, itimerval* before) noexcept {
  PARC_REAL(setitimer);
  settle_value(time);
  settle_value(before);
  return real(which, time, before);
}

int timer_create(clockid_t clock, sigevent* event, timer_t* to) noexcept {
  PARC_REAL(timer_create);
  settle_value(event);
  settle_value(to);
  return real(clock, event, to);
}

int timer_gettime(timer_t timer, itimerspec* to) noexcept {
  PARC_REAL(timer_gettime);
  settle_value(to);
  return real(timer, to);
}

int timer_settime(timer_t timer, int flags, const itimerspec* time, itimerspec* before) noexcept {
  PARC_REAL(timer_settime);
  settle_value(time);
  settle_value(before);
  return real(timer, flags, time, before);
}

int timerfd_gettime(int timer, itimerspec* to) noexcept {
  PARC_REAL(timerfd_gettime);
  settle_value(to);
  return real(timer, to);
}

int timerfd_settime(int timer, int flags, const itimerspec* time, itimerspec* before) noexcept {
  PARC_REAL(timerfd_settime);
  settle_value(time);
  settle_value(before);
  return real(timer, flags, time, before);
}

#pragma GCC visibility pop
}
