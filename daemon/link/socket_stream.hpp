// SPDX-License-Identifier: BSD-3-Clause
// A stream over a connected socket of any family, and the maker of a kernel's streams: TCP to an address with
// a port, a Unix socket to a path.
//
// Edge-triggered: a side that answered EAGAIN, or took less than it was offered, is left alone until the loop
// reports it again. A short read is no such answer: a reset that came behind the bytes may have been reported
// together with them, and only once.
#pragma once

#include "daemon/base/acceptor.hpp"
#include "daemon/base/event.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/link/stream.hpp"
#include "daemon/link/stream_maker.hpp"
#include "daemon/settings/config.hpp"
#include "system/fd.hpp"

#include <memory>
#include <string>
#include <vector>

namespace parc::daemon {

class SocketStream : public Stream {
public:
  int opened() override;
  [[nodiscard]] bool readable() const override { return readable_; }
  [[nodiscard]] bool writable() const override { return writable_; }
  Transfer read(std::span<const iovec> to) override;
  Transfer write(std::span<const iovec> from) override;
  void end_output() override;

  // `open`: it is connected already.
  SocketStream(event_base* loop, Fd socket, const Address& peer, bool open);

protected:
  [[nodiscard]] int socket() const { return socket_.get(); }

private:
  void ready(short what);

  Fd socket_;
  Event event_;
  bool open_;
  bool readable_ = false, writable_ = false;
};

class SocketStreams final : public StreamMaker {
public:
  SocketStreams(Loop& loop, const Config& config) : loop_(loop), config_(config) {}

  Result<std::unique_ptr<Stream>> dial(const Address& to, KeyUse use) override;
  void accept_for(Acceptance owner) override;
  void resume() override { acceptor_->resume(); }

  void listen(Fd listener) { acceptor_->listen(std::move(listener)); } // non-blocking; of either family

private:
  void accepted(Fd socket);

  Loop& loop_;
  const Config& config_;
  Acceptance owner_;
  std::optional<Acceptor> acceptor_;
};

// Why there will be no stream to an address, with what to do about it.
Error connect_failure(int code, const Address& to);

} // namespace parc::daemon
