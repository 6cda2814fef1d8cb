// SPDX-License-Identifier: BSD-3-Clause
// Invariant: outside a real-time stretch the thread is in SCHED_OTHER with its own nice value. Entering real
// time uses sched_setscheduler, which keeps the nice value by itself.
#include "system/scheduling.hpp"

#include <cerrno>
#include <cstdint>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace parc {
namespace {

// struct sched_attr of the system call, first version; older C libraries declare neither it nor the calls.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0; // in the normal class: the slice (Linux 6.12; ignored before)
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

constexpr std::uint64_t slice_ns = 100'000;
constexpr std::uint64_t default_slice = 0; // whatever the system gives
constexpr std::uint64_t flag_reset_on_fork = 1;
constexpr int realtime_priority = 1; // any real-time priority is above every normal one

Result<SchedulingAttributes> read_attributes() {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0)
    return system_error("cannot read the scheduling class");
  return attributes;
}

bool set_normal(std::uint64_t slice) {
  SchedulingAttributes wanted{.flags = flag_reset_on_fork, .runtime_ns = slice};
  wanted.nice = getpriority(PRIO_PROCESS, 0);
  return syscall(SYS_sched_setattr, 0, &wanted, 0) == 0;
}

bool set_realtime() {
  const sched_param parameter{.sched_priority = realtime_priority};
  return sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameter) == 0;
}

std::string_view slice_words(bool short_slice) {
  return short_slice ? "slice 0.1 ms" : "default slice";
}

} // namespace

Result<RealtimePolicy> parse_realtime_policy(std::string_view text) {
  for (auto policy : {RealtimePolicy::Auto, RealtimePolicy::On, RealtimePolicy::Off})
    if (text == name(policy)) return policy;
  return error(EINVAL, "\"{}\" is not one of \"auto\", \"on\", \"off\"", text);
}

std::string_view name(RealtimePolicy policy) {
  switch (policy) {
  case RealtimePolicy::On: return "on";
  case RealtimePolicy::Off: return "off";
  case RealtimePolicy::Auto: break;
  }
  return "auto";
}

Result<SchedulingClass> SchedulingClass::acquire(RealtimePolicy policy) {
  SchedulingClass scheduling;
  // A thread started at real-time priority (chrt) begins in the normal class like any other.
  if (!set_normal(slice_ns)) return system_error("cannot ask for a scheduling slice of 0.1 ms");
  PARC_TRY(got, read_attributes());
  scheduling.short_slice_ = got.runtime_ns == slice_ns;
  if (policy != RealtimePolicy::Off) {
    scheduling.permitted_ = set_realtime();
    if (!scheduling.permitted_ && policy == RealtimePolicy::On)
      return system_error("cannot run at real-time priority, which realtime = \"on\" demands (it needs root, "
                          "CAP_SYS_NICE or an rtprio limit of at least {}, outside a user namespace; "
                          "realtime = \"auto\" goes on without)",
                          realtime_priority);
  }
  scheduling.reacting_ = true;
  return scheduling;
}

void SchedulingClass::enter_reacting() {
  if (reacting_) return;
  reacting_ = true;
  // Permission may end while we run (prlimit, a change of cgroup): then the short slice is what remains.
  if (permitted_) permitted_ = set_realtime();
  if (!permitted_) (void)set_normal(slice_ns);
}

void SchedulingClass::enter_polling() {
  if (!reacting_) return;
  reacting_ = false;
  (void)set_normal(default_slice); // lowering needs no privilege
}

std::string SchedulingClass::describe() const {
  return permitted_ ? "real-time" : fmt::format("normal, {}", slice_words(short_slice_));
}

std::string granted_class() {
  auto got = read_attributes();
  if (!got) return "unknown";
  switch (got.value().policy) {
  case SCHED_FIFO:
  case SCHED_RR: return fmt::format("real-time priority {}", got.value().priority);
  case SCHED_OTHER: return fmt::format("normal, {}", slice_words(got.value().runtime_ns == slice_ns));
  case SCHED_BATCH: return "batch";
  case SCHED_IDLE: return "idle";
  default: return fmt::format("policy {}", got.value().policy);
  }
}

} // namespace parc
