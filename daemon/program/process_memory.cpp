// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/process_memory.hpp"

#include "shm/segment.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <sys/uio.h>
#include <utility>

namespace parc::daemon {
namespace {

void* at(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

constexpr std::size_t most_parts = 1024; // of one call: UIO_MAXIOV

// What it moved is all or nothing to us: a part ends where the memory does.
int error_of(ssize_t moved, std::uint64_t wanted) {
  if (moved < 0) return errno;
  return static_cast<std::uint64_t>(moved) == wanted ? 0 : EFAULT;
}

} // namespace

ProcessMemory::ProcessMemory(pid_t process, int segment, shm::Control& control, Events events)
    : process_(process), segment_(segment), proof_(random_number()),
      proof_there_(control.header.address + offsetof(shm::ControlHeader, proof)), events_(std::move(events)),
      bounce_(control.bounce) {
  control.header.proof.store(proof_, std::memory_order_relaxed);
}

// So says the system, where both see the same numbers of processes.
bool ProcessMemory::is_maker() const {
  return shm::Segment::maker(segment_) == process_;
}

bool ProcessMemory::probe() const {
  return is_maker() && take(nullptr, nullptr, 0) == 0;
}

int ProcessMemory::take(std::byte* to, const std::byte* from, std::uint64_t length) const {
  std::uint64_t proof = 0;
  const std::array<iovec, 2> here{{{&proof, sizeof proof}, {to, length}}};
  const std::array<iovec, 2> there{
      {{at(proof_there_), sizeof proof}, {const_cast<std::byte*>(from), length}}};
  const unsigned long parts = length != 0 ? 2 : 1;
  const int error =
      error_of(process_vm_readv(process_, here.data(), parts, there.data(), parts, 0), sizeof proof + length);
  return error == 0 && proof != proof_ ? ESRCH : error;
}

int ProcessMemory::give(std::byte* to, const std::byte* from, std::uint64_t length) const {
  const iovec here{const_cast<std::byte*>(from), length};
  const iovec there{to, length};
  if (const int error = take(nullptr, nullptr, 0); error != 0) return error;
  return error_of(process_vm_writev(process_, &here, 1, &there, 1, 0), length);
}

// Of so many rows at once, as the system takes; the first local piece may be the proof.
int ProcessMemory::take_rows(std::byte* to, const std::byte* first, const protocol::Rows& rows,
                             std::uint64_t count) const {
  std::array<iovec, most_parts> there;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t n = std::min<std::uint64_t>(count - done, there.size() - 1);
    std::uint64_t proof = 0;
    const std::array<iovec, 2> here{{{&proof, sizeof proof}, {to + done * rows.row, n * rows.row}}};
    there[0] = {at(proof_there_), sizeof proof};
    for (std::uint64_t i = 0; i < n; ++i) {
      const auto* const row = first + static_cast<std::int64_t>(done + i) * rows.stride;
      there[i + 1] = {const_cast<std::byte*>(row), rows.row};
    }
    const int error = error_of(process_vm_readv(process_, here.data(), 2, there.data(), n + 1, 0),
                               sizeof proof + n * rows.row);
    if (error != 0 || proof != proof_) return error != 0 ? error : ESRCH;
    done += n;
  }
  return 0;
}

int ProcessMemory::give_rows(std::byte* first, const std::byte* from, const protocol::Rows& rows,
                             std::uint64_t count) const {
  if (const int error = take(nullptr, nullptr, 0); error != 0) return error;
  std::array<iovec, most_parts> there;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t n = std::min<std::uint64_t>(count - done, there.size());
    const iovec here{const_cast<std::byte*>(from + done * rows.row), n * rows.row};
    for (std::uint64_t i = 0; i < n; ++i)
      there[i] = {first + static_cast<std::int64_t>(done + i) * rows.stride, rows.row};
    if (const int error = error_of(process_vm_writev(process_, &here, 1, there.data(), n, 0), n * rows.row))
      return error;
    done += n;
  }
  return 0;
}

protocol::Operated ProcessMemory::operate(std::byte* word, const protocol::Atomic& atomic, std::uint64_t name,
                                          std::uint64_t& before) {
  bool asks = false;
  const protocol::Operated how =
      bounce_.operate(reinterpret_cast<std::uintptr_t>(word), atomic, name, before, asks);
  if (asks) events_.asks();
  return how;
}

bool ProcessMemory::read(std::byte* to, const std::byte* from, std::uint64_t length, std::uint64_t name) {
  if (reached_ && reached(take(to, from, length))) return true;
  bool asks = false;
  const bool copied = name != no_name && bounce_.read(to, reinterpret_cast<std::uintptr_t>(from),
                                                      static_cast<std::uint32_t>(length), name, asks);
  if (asks) events_.asks();
  return copied;
}

bool ProcessMemory::write(std::byte* to, const std::byte* from, std::uint64_t length, std::uint64_t name) {
  if (reached_ && reached(give(to, from, length))) return true;
  bool asks = false;
  const bool copied = name != no_name && bounce_.write(reinterpret_cast<std::uintptr_t>(to), from,
                                                       static_cast<std::uint32_t>(length), name, asks);
  if (asks) events_.asks();
  return copied;
}

bool ProcessMemory::reached(int error) {
  reached_ = error == 0;
  if (!reached_) events_.lost(error);
  return reached_;
}

} // namespace parc::daemon
