// SPDX-License-Identifier: BSD-3-Clause
// A completion queue (fi_cq(3)): what has ended and was not read yet. It grows as it has to, so that it never
// overruns.
#pragma once

#include "fabric/domain.hpp"
#include "fabric/wait_object.hpp"

#include <deque>
#include <mutex>
#include <rdma/fi_eq.h>

namespace parc::fabric {

struct Completion {
  fi_cq_tagged_entry entry{};
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  int error = 0;            // PARC_E*, or another failure's FI_E* (positive)
  std::uint64_t missed = 0; // bytes that had no room
};

class CompletionQueue final : public Child<fid_cq, Domain> {
public:
  CompletionQueue(Domain& domain, const fi_cq_attr& attributes)
      : Child(domain), format_(attributes.format), counts_(attributes.wait_cond == FI_CQ_COND_THRESHOLD) {}

  void add(const Completion& completion);
  ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources);
  // `condition`: of a queue with FI_CQ_COND_THRESHOLD no pointer, but how many entries.
  ssize_t wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources, const void* condition,
                        int timeout_ms);
  ssize_t read_error(fi_cq_err_entry& entry);
  int signal();
  int try_wait();
  int control(int command, void* answer) const { return wait_object.control(command, answer); }
  [[nodiscard]] bool ready() { return holds(1); }
  WaitObject wait_object;

private:
  ssize_t take(void* buffer, std::size_t count, fi_addr_t* sources);
  [[nodiscard]] bool holds(std::size_t entries); // or what has failed

  const fi_cq_format format_;
  const bool counts_; // waits are for a number of entries
  std::mutex lock_;
  std::deque<Completion> completions_; // under lock_
  std::size_t failed_ = 0;             // of them, under lock_
  std::atomic<bool> any_ = false;      // there are: who sees that there are none needs no lock
  std::atomic<bool> signaled_ = false;
};

int open_completion_queue(fid_domain* domain, fi_cq_attr* attributes, fid_cq** queue, void* context);

} // namespace parc::fabric
