// SPDX-License-Identifier: BSD-3-Clause
// All the memory of a program, where the system lets this kernel reach it (process_vm_readv): it may trace
// that process, as the ranks that it has started mostly may be, or those of its user where Yama does not
// stand against it. Whatever the program says of itself is proved: its process has made the control segment,
// and has it mapped where it says, with the number that this kernel has drawn for it. That is looked at with
// every copy, so that a later process with the same number is never taken for it.
#pragma once

#include "protocol/pieces.hpp"
#include "shm/layout.hpp"

#include <functional>
#include <sys/types.h>

namespace parc::daemon {

class ProcessMemory final : public protocol::CrossMemory {
public:
  // Called with what the system said when the memory cannot be reached any more: ESRCH of a process that has
  // ended, EFAULT of memory that is none.
  using Failed = std::function<void(int error)>;

  // `segment` is that of `control`, which is where this kernel has it.
  ProcessMemory(pid_t process, int segment, shm::Control& control, Failed failed);

  // Whether it can be reached.
  [[nodiscard]] bool probe() const;

  [[nodiscard]] bool read(std::byte* to, const std::byte* from, std::uint64_t length) override;
  [[nodiscard]] bool write(std::byte* to, const std::byte* from, std::uint64_t length) override;

private:
  [[nodiscard]] bool is_maker() const;
  // Its proof, and `length` bytes with it: 0, or an errno.
  [[nodiscard]] int take(std::byte* to, const std::byte* from, std::uint64_t length) const;
  [[nodiscard]] bool reached(int error) const;

  const pid_t process_;
  const int segment_;
  const std::uint64_t proof_;       // the program may write over the one that it shares
  const std::uint64_t proof_there_; // its address in the program
  const Failed failed_;
};

} // namespace parc::daemon
