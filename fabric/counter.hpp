// SPDX-License-Identifier: BSD-3-Clause
// A counter (fi_cntr(3)) of the operations that have ended.
#pragma once

#include "fabric/domain.hpp"
#include "fabric/wait_object.hpp"

#include <rdma/fi_eq.h>

namespace parc::fabric {

class Counter final : public Child<fid_cntr, Domain> {
public:
  struct Count {
    std::atomic<std::uint64_t> value = 0;
    std::atomic<std::uint64_t> read = 0; // what it was when the program looked last
    [[nodiscard]] bool changed() const { return value.load() != read.load(); }
  };

  using Child::Child;

  void count(bool failed) {
    ++(failed ? failures : successes).value;
    wait_object.ring();
  }
  [[nodiscard]] std::uint64_t read(Count& count);
  int add(Count& count, std::uint64_t more);
  int set(Count& count, std::uint64_t to);
  int wait(std::uint64_t threshold, int timeout_ms);
  int try_wait();
  int control(int command, void* answer) const { return wait_object.control(command, answer); }
  [[nodiscard]] bool ready() const { return successes.changed() || failures.changed(); }

  Count successes, failures;
  WaitObject wait_object;

private:
  int changed();
};

int open_counter(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter, void* context);

} // namespace parc::fabric
