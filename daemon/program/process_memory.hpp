// SPDX-License-Identifier: BSD-3-Clause
// All the memory of a program, where the system lets this kernel reach it (process_vm_readv): it may trace
// that process, as the ranks that it has started mostly may be, or those of its user where Yama does not
// stand against it. Whatever the program says of itself is proved: its process has made the control segment,
// and has it mapped where it says, with the number that this kernel has drawn for it. That is looked at with
// every copy, so that a later process with the same number is never taken for it.
//
// What cannot be reached (pages that a collector of garbage has closed for the moment, a process that lets
// nobody trace it any more) the process copies itself from then on (bounce.hpp), as only it can say whether
// there is memory, or open it. Whether the process has ended is for others to say.
#pragma once

#include "daemon/program/bounce.hpp"
#include "protocol/pieces.hpp"
#include "protocol/wire.hpp"
#include "shm/layout.hpp"

#include <cerrno>
#include <functional>
#include <sys/types.h>

namespace parc::daemon {

class ProcessMemory final : public protocol::CrossMemory {
public:
  struct Events {
    std::function<void(int error)> lost; // it is not reached any more, as the system said
    std::function<void()> asks;          // the program is to look at shm::Bounce
  };

  // `segment` is that of `control`, which is where this kernel has it.
  ProcessMemory(pid_t process, int segment, shm::Control& control, Events events);

  // Whether it can be reached.
  [[nodiscard]] bool probe() const;

  [[nodiscard]] bool read(std::byte* to, const std::byte* from, std::uint64_t length,
                          std::uint64_t name) override;
  [[nodiscard]] bool write(std::byte* to, const std::byte* from, std::uint64_t length,
                           std::uint64_t name) override;
  [[nodiscard]] protocol::Operated operate(std::byte* word, const protocol::Atomic& atomic,
                                           std::uint64_t name, std::uint64_t& before) override;
  [[nodiscard]] bool busy(std::uint64_t name) const override { return bounce_.busy(name); }
  void forget(std::uint64_t name) override { bounce_.forget(name); }

  // The program has copied what it was asked for, and that has not been looked at.
  [[nodiscard]] bool is_answered() const { return bounce_.is_answered(); }
  void look() { bounce_.look(); }

  // Through the system alone: its proof, and `length` bytes with it. 0, or an errno.
  [[nodiscard]] int take(std::byte* to, const std::byte* from, std::uint64_t length) const;
  [[nodiscard]] int give(std::byte* to, const std::byte* from, std::uint64_t length) const;
  // The same of rows there, which lie together here.
  [[nodiscard]] int take_rows(std::byte* to, const std::byte* first, const protocol::Rows& rows,
                              std::uint64_t count) const;
  [[nodiscard]] int give_rows(std::byte* first, const std::byte* from, const protocol::Rows& rows,
                              std::uint64_t count) const;

private:
  [[nodiscard]] bool is_maker() const;
  [[nodiscard]] bool reached(int error);

  const pid_t process_;
  const int segment_;
  const std::uint64_t proof_;       // the program may write over the one that it shares
  const std::uint64_t proof_there_; // its address in the program
  const Events events_;
  Bounce bounce_;
  bool reached_ = true; // through the system, as far as is known
};

// What a program has exposed of memory that it does not share: where that is not reached it is not there, and
// nobody waits for the program but for atomic operations.
class WindowMemory final : public protocol::CrossMemory {
public:
  explicit WindowMemory(ProcessMemory& process) : process_(process) {}
  [[nodiscard]] bool read(std::byte* to, const std::byte* from, std::uint64_t length,
                          std::uint64_t /*name*/) override {
    return reached(process_.take(to, from, length));
  }
  [[nodiscard]] bool write(std::byte* to, const std::byte* from, std::uint64_t length,
                           std::uint64_t /*name*/) override {
    return reached(process_.give(to, from, length));
  }
  [[nodiscard]] bool read_rows(std::byte* to, const std::byte* first, std::uint64_t row, std::int64_t stride,
                               std::uint64_t count) override {
    return reached(process_.take_rows(to, first, {row, stride}, count));
  }
  [[nodiscard]] bool write_rows(std::byte* first, const std::byte* from, std::uint64_t row,
                                std::int64_t stride, std::uint64_t count) override {
    return reached(process_.give_rows(first, from, {row, stride}, count));
  }
  [[nodiscard]] protocol::Operated operate(std::byte* word, const protocol::Atomic& atomic,
                                           std::uint64_t name, std::uint64_t& before) override {
    return process_.operate(word, atomic, name, before);
  }
  [[nodiscard]] bool busy(std::uint64_t /*name*/) const override { return false; }
  void forget(std::uint64_t name) override { process_.forget(name); }
  [[nodiscard]] bool ends() const override { return ends_; }

private:
  bool reached(int error) {
    ends_ = error == ESRCH; // also where another program is in its place
    return error == 0;
  }
  ProcessMemory& process_;
  bool ends_ = false;
};

} // namespace parc::daemon
