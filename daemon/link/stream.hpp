// SPDX-License-Identifier: BSD-3-Clause
// A byte stream to another kernel, under the handshake and the carrier: TCP or a Unix socket
// (socket_stream.hpp), in tests one that fragments, stalls and breaks. Nothing above this seam knows a
// socket.
//
// No call blocks. Each moves at least a byte or says why not; that it moved fewer than it was offered means
// nothing. After `would_block` the owner leaves that direction alone until readable() or writable() says so
// again, which wakes the loop. What a direction waits for is the stream's affair: to read from what is
// encrypted, something may have to be written first, and some of what came may lie where no descriptor shows
// it. So an owner that has not met `would_block` goes on before the loop sleeps.
#pragma once

#include "daemon/link/address.hpp"
#include "daemon/link/path_gauge.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <sys/uio.h>

namespace parc::daemon {

struct Transfer {
  enum class Status : std::uint8_t { moved, would_block, ended, broken };
  Status status = Status::moved;
  std::size_t bytes = 0; // where it moved any
  int code = 0;          // of `broken`, as in errno
};

// What a stream knows of its path.
struct PathReport {
  PathSample sample; // but for the bytes that came in
  std::uint32_t rtt_us = 0;
  bool waits = false;                  // something is not acknowledged, or not sent yet
  bool held_up = true;                 // a window is used up, and nothing queues: the path may hold more
  std::uint32_t retransmits = 0;       // without an answer, each twice as late as the one before
  std::chrono::milliseconds silence{}; // since the other host gave a sign of life
};

// What both ends of one encrypted connection know, and nobody else; zeros where it is not encrypted.
using ChannelBinding = std::array<std::byte, 32>;

class Stream {
public:
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default; // what was written and not sent yet may be lost

  // 0: it is there. EINPROGRESS: not yet; the loop wakes when that changes. Else why there will be none.
  [[nodiscard]] virtual int opened() = 0;

  [[nodiscard]] virtual bool readable() const = 0;
  [[nodiscard]] virtual bool writable() const = 0;
  [[nodiscard]] virtual Transfer read(std::span<const iovec> to) = 0;
  [[nodiscard]] virtual Transfer write(std::span<const iovec> from) = 0;
  // Some of what was written lies here still: it goes when its owner writes again, or writes nothing at all.
  [[nodiscard]] virtual bool holds() const { return false; }
  virtual void end_output() = 0; // behind what was written the other side reads the end

  // Of one that the system measures; what others carry has no path of its own, and no silence that it
  // notices.
  [[nodiscard]] virtual std::optional<PathReport> path() const { return std::nullopt; }
  virtual void limit(const PathLimits&) {}                 // of what it holds: `unsent` and `flight`
  virtual void limit_silence(std::chrono::milliseconds) {} // after which it is `broken`

  // Whoever accepts has proved the key before the first byte can be read here, and may write before the other
  // side has been heard.
  [[nodiscard]] virtual bool proves_key() const { return false; }
  // From the first byte that was read on.
  [[nodiscard]] virtual ChannelBinding binding() const { return {}; }
  // It leads through another kernel because [hosts] of who dialed says so, and not for want of another way.
  [[nodiscard]] virtual bool is_ordered() const { return false; }
  // In words, why it is `broken`.
  [[nodiscard]] virtual std::string describe(int code) const { return std::strerror(code); }

  [[nodiscard]] const Address& local() const { return local_; }
  [[nodiscard]] const Address& peer() const { return peer_; }

protected:
  Stream(const Address& local, const Address& peer) : local_(local), peer_(peer) {}

private:
  Address local_, peer_;
};

} // namespace parc::daemon
