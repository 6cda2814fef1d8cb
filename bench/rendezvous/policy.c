/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LD_PRELOAD for parcd in bench/rendezvous: the classes of figures 7 and 8 that parcd has no setting for,
 * because nobody needs them but who compares. parcd returns to its class whenever it has polled, so that it
 * cannot be given another from outside. With PARC_BENCH_POLICY=fifo it reacts with SCHED_FIFO where it asks
 * for SCHED_RR, with "default" it gets the system's slice where it asks for a short one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static const char* wanted;
static int (*real_setscheduler)(pid_t, int, const struct sched_param*);
static long (*real_syscall)(long, ...);

/* The ranks that parcd starts have nothing of this. */
__attribute__((constructor)) static void begin(void) {
  wanted = getenv("PARC_BENCH_POLICY");
  unsetenv("LD_PRELOAD");
}

int sched_setscheduler(pid_t process, int policy, const struct sched_param* parameter) {
  if (!real_setscheduler)
    real_setscheduler =
        (int (*)(pid_t, int, const struct sched_param*))dlsym(RTLD_NEXT, "sched_setscheduler");
  if (wanted && strcmp(wanted, "fifo") == 0 && (policy & ~SCHED_RESET_ON_FORK) == SCHED_RR)
    policy = SCHED_FIFO | (policy & SCHED_RESET_ON_FORK);
  return real_setscheduler(process, policy, parameter);
}

long syscall(long number, ...) {
  enum { most_arguments = 6, slice_word = 3 }; /* of struct sched_attr, in words of 8 bytes */
  if (!real_syscall) real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  long arguments[most_arguments];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < most_arguments; ++i) arguments[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_sched_setattr && wanted && strcmp(wanted, "default") == 0)
    ((uint64_t*)arguments[1])[slice_word] = 0;
  return real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                      arguments[5]);
}
