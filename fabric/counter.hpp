// SPDX-License-Identifier: BSD-3-Clause
// A counter (fi_cntr(3)) of the operations that have ended.
#pragma once

#include "fabric/domain.hpp"
#include "fabric/wait_object.hpp"

#include <rdma/fi_eq.h>

namespace parc::fabric {

class Counter final : public fid_cntr {
public:
  explicit Counter(Domain& domain) : domain_(domain) { ++domain_.users; }
  ~Counter() { --domain_.users; }

  void count(bool failed) {
    ++(failed ? failures : successes);
    wait_object.ring();
  }
  [[nodiscard]] std::uint64_t read(const std::atomic<std::uint64_t>& value);
  int change(std::atomic<std::uint64_t>& value, std::uint64_t to);
  int wait(std::uint64_t threshold, int timeout_ms);
  int try_wait();
  [[nodiscard]] bool ready() const { return events() != read_.load(); } // it has counted since it was read

  std::atomic<std::uint64_t> successes = 0, failures = 0;
  std::atomic<unsigned> users = 0; // endpoints, poll sets
  WaitObject wait_object;

private:
  [[nodiscard]] std::uint64_t events() const { return successes.load() + failures.load(); }

  Domain& domain_;
  std::atomic<std::uint64_t> read_ = 0; // of the events, when it was read last
};

int open_counter(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter, void* context);

} // namespace parc::fabric
