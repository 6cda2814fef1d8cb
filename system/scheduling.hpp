// SPDX-License-Identifier: BSD-3-Clause
// The scheduling class of a thread that must react at once while others compute. Where it may, it sleeps and
// works at real-time priority; otherwise it asks for the shortest slice (0.1 ms, Linux 6.12, no privilege).
// While it polls with sched_yield it is like any other thread, in the normal class with the default slice: a
// yield forfeits the rest of a slice, so one with a short slice among others would get a few dozen turns for
// each of theirs. Every thread or process it forks starts in the normal class with the system's slice, so
// that a program never inherits what its kernel asked for.
#pragma once

#include "system/error.hpp"

#include <string>
#include <string_view>

namespace parc {

enum class RealtimePolicy { Auto, On, Off }; // where permitted; an error where not permitted; never

[[nodiscard]] Result<RealtimePolicy> parse_realtime_policy(std::string_view text);
[[nodiscard]] std::string_view name(RealtimePolicy policy);

// Belongs to the thread that acquired it: every call is about the calling thread.
class SchedulingClass {
public:
  // Asks for the slice and tries whether real time is permitted; leaves the thread reacting.
  [[nodiscard]] static Result<SchedulingClass> acquire(RealtimePolicy policy);

  // One system call; none when the thread is in that state already.
  void enter_reacting();
  void enter_polling();

  [[nodiscard]] bool realtime_permitted() const { return permitted_; }
  [[nodiscard]] bool in_realtime() const { return permitted_ && reacting_; }

  // For people: "real-time", "normal, slice 0.1 ms", "normal, default slice".
  [[nodiscard]] std::string describe() const;

private:
  SchedulingClass() = default;

  bool permitted_ = false;
  bool reacting_ = false;
  bool short_slice_ = false;
};

// The class that the operating system reports for the calling thread at this moment, in the same words.
[[nodiscard]] std::string granted_class();

} // namespace parc
