// SPDX-License-Identifier: BSD-3-Clause
// A stream over TCP, and how sockets between kernels are set.
//
// Edge-triggered: a side that answered EAGAIN, or took less than it was offered, is left alone until the loop
// reports it again. A short read is no such answer: a reset that came behind the bytes may have been reported
// together with them, and only once.
#pragma once

#include "daemon/base/event.hpp"
#include "daemon/link/stream.hpp"
#include "daemon/settings/config.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"

#include <memory>
#include <string>

namespace parc::daemon {

class TcpStream final : public Stream {
public:
  // None: its socket has gone again.
  static std::unique_ptr<Stream> accept(event_base* loop, Fd socket, const Config& config);
  static Result<std::unique_ptr<Stream>> connect(event_base* loop, const Address& to, const Config& config);

  int opened() override;
  Transfer read(std::span<const iovec> to) override;
  Transfer write(std::span<const iovec> from) override;
  void end_output() override;
  std::optional<PathReport> path() const override;
  void limit(const PathLimits& limits) override;
  void limit_silence(std::chrono::milliseconds time) override;

private:
  TcpStream(event_base* loop, Fd socket, const Address& peer, const Config& config, bool open);
  void ready(short what);
  void choose_congestion();
  void limit_flight(std::uint64_t bytes);

  Fd socket_;
  Event event_;
  bool open_;
  bool chooses_congestion_; // once, when the path is known
  bool limits_flight_;
  std::uint32_t low_water_ = 0; // TCP_NOTSENT_LOWAT
  std::uint64_t flight_ = 0;    // how much may be unacknowledged
};

// What a socket that listens or dials is set to; those that come in inherit it.
Result<void> prepare_socket(int fd, const Config& config);

// Why connect() to an address did not succeed, with what to do about it.
Error connect_failure(int code, const std::string& address);

} // namespace parc::daemon
