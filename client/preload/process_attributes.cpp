// SPDX-License-Identifier: BSD-3-Clause
// What a process is and may do: its limits, its scheduling, its users and groups, its names.
#include "client/preload/hooks.hpp"
#include "client/preload/undeclared.hpp"

#include <cstdarg>
#include <cstdlib>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

namespace {

using parc::preload::settle;
using parc::preload::settle_value;

// A negative number is the system's to refuse.
void settle_groups(const gid_t* to, int count) {
  settle(to, count > 0 ? static_cast<std::size_t>(count) * sizeof *to : 0);
}

// One of which the system says for each page of so many bytes.
std::size_t pages_of(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes / page + (bytes % page != 0 ? 1 : 0);
}

// The most that capget and capset read or write, of either of theirs.
constexpr std::size_t capability_bytes = 24;

} // namespace

extern "C" {

#pragma GCC visibility push(default)

int getrlimit(__rlimit_resource_t what, rlimit* to) noexcept {
  PARC_REAL(getrlimit);
  settle_value(to);
  return real(what, to);
}

int getrlimit64(__rlimit_resource_t what, rlimit64* to) noexcept {
  PARC_REAL(getrlimit64);
  settle_value(to);
  return real(what, to);
}

int setrlimit(__rlimit_resource_t what, const rlimit* limit) noexcept {
  PARC_REAL(setrlimit);
  settle_value(limit);
  return real(what, limit);
}

int setrlimit64(__rlimit_resource_t what, const rlimit64* limit) noexcept {
  PARC_REAL(setrlimit64);
  settle_value(limit);
  return real(what, limit);
}

int prlimit(pid_t process, __rlimit_resource what, const rlimit* limit, rlimit* before) noexcept {
  PARC_REAL(prlimit);
  settle_value(limit);
  settle_value(before);
  return real(process, what, limit, before);
}

int prlimit64(pid_t process, __rlimit_resource what, const rlimit64* limit, rlimit64* before) noexcept {
  PARC_REAL(prlimit64);
  settle_value(limit);
  settle_value(before);
  return real(process, what, limit, before);
}

int sched_getparam(pid_t process, sched_param* to) noexcept {
  PARC_REAL(sched_getparam);
  settle_value(to);
  return real(process, to);
}

int sched_setparam(pid_t process, const sched_param* parameters) noexcept {
  PARC_REAL(sched_setparam);
  settle_value(parameters);
  return real(process, parameters);
}

int sched_setscheduler(pid_t process, int policy, const sched_param* parameters) noexcept {
  PARC_REAL(sched_setscheduler);
  settle_value(parameters);
  return real(process, policy, parameters);
}

int sched_rr_get_interval(pid_t process, timespec* to) noexcept {
  PARC_REAL(sched_rr_get_interval);
  settle_value(to);
  return real(process, to);
}

int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t* to) noexcept {
  PARC_REAL(sched_getaffinity);
  settle(to, bytes);
  return real(process, bytes, to);
}

int sched_setaffinity(pid_t process, size_t bytes, const cpu_set_t* cores) noexcept {
  PARC_REAL(sched_setaffinity);
  settle(cores, bytes);
  return real(process, bytes, cores);
}

int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t* to) noexcept {
  PARC_REAL(pthread_getaffinity_np);
  settle(to, bytes);
  return real(thread, bytes, to);
}

int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t* cores) noexcept {
  PARC_REAL(pthread_setaffinity_np);
  settle(cores, bytes);
  return real(thread, bytes, cores);
}

int pthread_setschedparam(pthread_t thread, int policy, const sched_param* parameters) noexcept {
  PARC_REAL(pthread_setschedparam);
  settle_value(parameters);
  return real(thread, policy, parameters);
}

int pthread_getname_np(pthread_t thread, char* to, size_t bytes) noexcept {
  PARC_REAL(pthread_getname_np);
  settle(to, bytes);
  return real(thread, to, bytes);
}

int getgroups(int count, gid_t to[]) noexcept {
  PARC_REAL(getgroups);
  settle_groups(to, count);
  return real(count, to);
}

int __getgroups_chk(int count, gid_t* to, size_t room) {
  PARC_REAL(__getgroups_chk);
  settle_groups(to, count);
  return real(count, to, room);
}

int setgroups(size_t count, const gid_t* groups) noexcept {
  PARC_REAL(setgroups);
  settle(groups, count * sizeof(gid_t));
  return real(count, groups);
}

int getresuid(uid_t* real_user, uid_t* effective, uid_t* saved) noexcept {
  PARC_REAL(getresuid);
  settle_value(real_user);
  settle_value(effective);
  settle_value(saved);
  return real(real_user, effective, saved);
}

int getresgid(gid_t* real_group, gid_t* effective, gid_t* saved) noexcept {
  PARC_REAL(getresgid);
  settle_value(real_group);
  settle_value(effective);
  settle_value(saved);
  return real(real_group, effective, saved);
}

int capget(void* header, void* data) {
  PARC_REAL(capget);
  settle(header, capability_bytes);
  settle(data, capability_bytes);
  return real(header, data);
}

int capset(void* header, const void* data) {
  PARC_REAL(capset);
  settle(header, capability_bytes);
  settle(data, capability_bytes);
  return real(header, data);
}

int sysinfo(struct sysinfo* to) noexcept {
  PARC_REAL(sysinfo);
  settle_value(to);
  return real(to);
}

int sethostname(const char* name, size_t bytes) noexcept {
  PARC_REAL(sethostname);
  settle(name, bytes);
  return real(name, bytes);
}

int setdomainname(const char* name, size_t bytes) noexcept {
  PARC_REAL(setdomainname);
  settle(name, bytes);
  return real(name, bytes);
}

// What an option has for arguments only it says: where one is memory, it is no longer than this.
int prctl(int option, ...) noexcept {
  PARC_REAL(prctl);
  unsigned long given[4]{};
  va_list rest;
  va_start(rest, option);
  for (unsigned long& each : given) each = va_arg(rest, unsigned long);
  va_end(rest);
  constexpr std::size_t longest = 256;
  for (const unsigned long each : given) settle(reinterpret_cast<const void*>(each), longest);
  return real(option, given[0], given[1], given[2], given[3]);
}

int mincore(void* memory, size_t bytes, unsigned char* to) noexcept {
  PARC_REAL(mincore);
  settle(to, pages_of(bytes));
  return real(memory, bytes, to);
}

void arc4random_buf(void* to, size_t bytes) noexcept {
  PARC_REAL(arc4random_buf);
  settle(to, bytes);
  real(to, bytes);
}

#pragma GCC visibility pop
}
