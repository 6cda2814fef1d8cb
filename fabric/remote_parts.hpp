// SPDX-License-Identifier: BSD-3-Clause
// A vector of remote memory (fi_readmsg(3), fi_writemsg(3)) as parc's operations: places of one length in
// equal steps are rows of one operation, others are operations of their own, and all of them are one to the
// program.
#pragma once

#include <atomic>
#include <cstdint>
#include <rdma/fi_rma.h>
#include <span>
#include <sys/uio.h>
#include <vector>

namespace parc::fabric {

struct RemotePart {
  std::uint64_t window, offset;
  std::uint64_t length;    // of all rows
  std::uint64_t row;       // bytes of one
  std::int64_t stride = 0; // 0: there is one
};

// Those of no bytes are left out. `stores`: rows do not overlap.
[[nodiscard]] std::vector<RemotePart> parts_of(std::span<const fi_rma_iov> places, bool stores);

// Of local memory the next so many bytes, which it has.
class LocalPieces {
public:
  explicit LocalPieces(std::span<const iovec> pieces) : rest_(pieces) {}
  [[nodiscard]] std::vector<iovec> next(std::uint64_t bytes);

private:
  std::span<const iovec> rest_;
  std::size_t used_ = 0; // of its first piece
};

// How many of an operation's parts have not ended, and how those did that have. Threads: any.
class PartsLeft {
public:
  PartsLeft(std::size_t parts, std::uint64_t of_all) : bytes(of_all), left_(parts) {}
  // So many more have ended. True: none is left, and error() is that of the operation.
  [[nodiscard]] bool end(std::size_t parts, int error) {
    int none = 0;
    if (error != 0) error_.compare_exchange_strong(none, error, std::memory_order_relaxed);
    return left_.fetch_sub(parts, std::memory_order_acq_rel) == parts;
  }
  [[nodiscard]] int error() const { return error_.load(std::memory_order_relaxed); }
  const std::uint64_t bytes;

private:
  std::atomic<std::size_t> left_;
  std::atomic<int> error_ = 0;
};

} // namespace parc::fabric
