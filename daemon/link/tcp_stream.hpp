// SPDX-License-Identifier: BSD-3-Clause
// A stream over TCP: what the system knows of its path, and how sockets between kernels are set.
#pragma once

#include "daemon/link/socket_stream.hpp"

namespace parc::daemon {

class TcpStream final : public SocketStream {
public:
  TcpStream(event_base* loop, Fd socket, const Address& peer, const Config& config, bool open);

  Transfer read(std::span<const iovec> to) override;
  [[nodiscard]] std::optional<PathReport> path() const override;
  void limit(const PathLimits& limits) override;
  void limit_silence(std::chrono::milliseconds time) override;

private:
  void choose_congestion();
  void limit_flight(std::uint64_t bytes);

  bool chooses_congestion_; // once, when the path is known
  bool limits_flight_;
  bool acknowledges_at_once_;
  std::uint32_t low_water_ = 0; // TCP_NOTSENT_LOWAT
  std::uint64_t flight_ = 0;    // how much may be unacknowledged
  std::uint64_t pace_ = 0;      // SO_MAX_PACING_RATE; 0: none
};

// What a TCP socket that listens or dials is set to; those that come in inherit it, but for what
// prepare_accepted() sets.
Result<void> prepare_socket(int fd, const Config& config);
Result<void> prepare_accepted(int fd);

} // namespace parc::daemon
