// SPDX-License-Identifier: BSD-3-Clause
#include "bench/exchange/patterns.hpp"
#include "bench/exchange/stamps.hpp"
#include "examples/heat/stream.hpp"

#include <atomic>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

namespace parc::bench {

namespace {

using heat::receive_all;
using heat::send_all;

// Both sides do `once` as often as both know.
template <class Once> Result<Seconds> measure(const Sizes& sizes, Times times, const Once& once) {
  Seconds seconds;
  for (const std::size_t bytes : sizes) {
    std::vector<std::byte> out(bytes, std::byte{1});
    std::vector<std::byte> in(bytes, std::byte{2});
    double begin = 0;
    for (int i = -times.uncounted(bytes); i < times.of(bytes); ++i) {
      if (i == 0) begin = seconds_now();
      PARC_TRY(once(out, in));
    }
    seconds[bytes] = (seconds_now() - begin) / times.of(bytes);
  }
  return seconds;
}

using Bytes = std::vector<std::byte>;

Result<void> both_ways(int fd, const Bytes& out, Bytes& in) {
  std::size_t sent = 0, received = 0;
  while (sent < out.size() || received < in.size()) {
    pollfd ready{
        .fd = fd,
        .events = static_cast<short>((received < in.size() ? POLLIN : 0) | (sent < out.size() ? POLLOUT : 0)),
        .revents = 0};
    if (poll(&ready, 1, -1) < 0) return system_error("cannot poll");
    if (ready.revents & ~POLLOUT) {
      const ssize_t length = recv(fd, in.data() + received, in.size() - received, MSG_DONTWAIT);
      if (length == 0) return error(EPIPE, "cannot receive: the other side has gone");
      if (length < 0 && errno != EAGAIN) return system_error("cannot receive");
      received += static_cast<std::size_t>(std::max<ssize_t>(length, 0));
    }
    if (ready.revents & POLLOUT) {
      const ssize_t length = send(fd, out.data() + sent, out.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (length < 0 && errno != EAGAIN) return system_error("cannot send");
      sent += static_cast<std::size_t>(std::max<ssize_t>(length, 0));
    }
  }
  return success();
}

Result<Delays> send_both(int small, int large, std::size_t bulk) {
  const auto write = [small](double stamp) { return send_all(small, &stamp, sizeof stamp); };
  PARC_TRY(write_stamps(write, Countdown()));
  Result<void> moved = success();
  std::atomic<bool> moving = true;
  std::thread mover([&] {
    const Bytes data(bulk, std::byte{1});
    moved = send_all(large, data.data(), data.size());
    moving = false;
  });
  const auto written = write_stamps(write, [&moving]() -> Result<bool> { return moving.load(); });
  mover.join();
  PARC_TRY(moved);
  PARC_TRY(written);
  return Delays{};
}

Result<Delays> receive_both(int small, int large, std::size_t bulk) {
  Result<void> moved = success();
  std::thread mover([&] {
    Bytes data(bulk, std::byte{2});
    moved = receive_all(large, data.data(), data.size());
  });
  const auto read = [small]() -> Result<double> {
    double stamp = 0;
    PARC_TRY(receive_all(small, &stamp, sizeof stamp));
    return stamp;
  };
  const auto receive = [&read]() -> Result<Delays> {
    PARC_TRY(alone, read_stamps(read));
    PARC_TRY(beside, read_stamps(read));
    return Delays{std::move(alone), std::move(beside)};
  };
  auto delays = receive();
  mover.join();
  PARC_TRY(moved);
  return delays;
}

} // namespace

Result<Seconds> ping_pong(const Sizes& sizes, Times times, const Endpoint& where) {
  PARC_TRY(connection, connect(where));
  const int fd = connection.get();
  const bool first = where.peer.empty();
  return measure(sizes, times, [&](const Bytes& out, Bytes& in) -> Result<void> {
    if (first) {
      PARC_TRY(send_all(fd, out.data(), out.size()));
    }
    PARC_TRY(receive_all(fd, in.data(), in.size()));
    return first ? success() : send_all(fd, out.data(), out.size());
  });
}

Result<Seconds> full_duplex(const Sizes& sizes, Times times, const Endpoint& where) {
  PARC_TRY(connection, connect(where));
  const int fd = connection.get();
  return measure(sizes, times, [&](const Bytes& out, Bytes& in) { return both_ways(fd, out, in); });
}

Result<Delays> small_beside_bulk(std::size_t bulk, const Endpoint& where) {
  PARC_TRY(small, connect(where));
  Endpoint beside = where;
  ++beside.port;
  PARC_TRY(large, connect(beside));
  return where.peer.empty() ? send_both(small.get(), large.get(), bulk)
                            : receive_both(small.get(), large.get(), bulk);
}

} // namespace parc::bench
