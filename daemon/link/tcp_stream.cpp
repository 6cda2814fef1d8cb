// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/tcp_stream.hpp"

#include "system/limits.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>

namespace parc::daemon {
namespace {

// bbr paces with timers, which cost a path of less than a millisecond half of its bandwidth; elsewhere it is
// the better one.
constexpr std::uint32_t short_path_us = 1000;
constexpr std::uint64_t most_flight = 1 << 30; // bytes not acknowledged

// By so much that it is worth a system call.
bool differs(std::uint64_t wanted, std::uint64_t current) {
  return wanted > current + current / 4 || wanted < current - current / 4;
}

bool tcp_info_of(int fd, tcp_info& info) {
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
}

bool set_congestion(int fd, std::string_view name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

template <class T> bool set(int fd, int level, int option, const T& value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

Result<void> prepare_any_socket(int fd) {
  const int yes = 1;
  const bool done = set(fd, IPPROTO_TCP, TCP_NODELAY, yes) && set(fd, SOL_SOCKET, SO_KEEPALIVE, yes);
  if (!done) return system_error("cannot set the options of a TCP socket");
  return success();
}

Transfer failed() {
  if (errno == EAGAIN) return {.status = Transfer::Status::would_block};
  return {.status = Transfer::Status::broken, .code = errno};
}

} // namespace

Result<void> prepare_socket(int fd, const Config& config) {
  PARC_TRY(prepare_any_socket(fd));
  bool done = true;
  if (config.send_buffer != 0)
    done = set(fd, SOL_SOCKET, SO_SNDBUF, static_cast<int>(config.send_buffer)) && done;
  if (config.receive_buffer != 0)
    done = set(fd, SOL_SOCKET, SO_RCVBUF, static_cast<int>(config.receive_buffer)) && done;
  if (config.congestion != "auto") done = set_congestion(fd, config.congestion) && done;
  if (!done) return system_error("cannot set the options of a TCP socket");
  return success();
}

Error connect_failure(int code, const std::string& address) {
  if (code == ECONNREFUSED)
    return error(
        code,
        "{} refuses the connection: no parcd listens there; start one, name its port under [hosts], or, "
        "where one was started but listens on loopback only (parc status on that host), end it with "
        "parc stop and start it with --listen 0.0.0.0 --encryption none, as parcd(8) explains",
        address);
  return error(code, "{} cannot be reached: {}{}", address, std::strerror(code), descriptor_advice(code));
}

std::unique_ptr<Stream> TcpStream::accept(event_base* loop, Fd socket, const Config& config) {
  if (!prepare_any_socket(socket.get())) return nullptr;
  const Address peer = peer_address(socket.get());
  return std::unique_ptr<Stream>(new TcpStream(loop, std::move(socket), peer, config, true));
}

Result<std::unique_ptr<Stream>> TcpStream::connect(event_base* loop, const Address& to,
                                                   const Config& config) {
  Fd socket(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket || !prepare_socket(socket.get(), config) ||
      (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) != 0 &&
       errno != EINPROGRESS))
    return connect_failure(errno, to.text());
  return std::unique_ptr<Stream>(new TcpStream(loop, std::move(socket), to, config, false));
}

TcpStream::TcpStream(event_base* loop, Fd socket, const Address& peer, const Config& config, bool open)
    : Stream(local_address(socket.get()), peer), socket_(std::move(socket)),
      event_(loop, socket_.get(), EV_READ | EV_WRITE | EV_CLOSED | EV_PERSIST | EV_ET,
             [this](short what) { ready(what); }),
      open_(open), chooses_congestion_(config.congestion == "auto"), limits_flight_(config.send_buffer == 0) {
  event_.add();
}

void TcpStream::ready(short what) {
  if ((what & (EV_READ | EV_CLOSED)) != 0) readable_ = true;
  if ((what & EV_WRITE) != 0) writable_ = true;
}

int TcpStream::opened() {
  if (open_) return 0;
  if (!readable_ && !writable_) return EINPROGRESS;
  int code = 0;
  socklen_t size = sizeof code;
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &code, &size);
  if (code != 0) return code;
  open_ = writable_;
  return open_ ? 0 : EINPROGRESS;
}

Transfer TcpStream::read(std::span<const iovec> to) {
  ssize_t got = 0;
  do got = readv(socket_.get(), to.data(), static_cast<int>(to.size()));
  while (got < 0 && errno == EINTR);
  if (got > 0) return {.bytes = static_cast<std::size_t>(got)};
  if (got == 0) return {.status = Transfer::Status::ended};
  readable_ = false;
  return failed();
}

Transfer TcpStream::write(std::span<const iovec> from) {
  std::size_t offered = 0;
  for (const iovec& part : from) offered += part.iov_len;
  ssize_t sent = 0;
  do sent = writev(socket_.get(), from.data(), static_cast<int>(from.size()));
  while (sent < 0 && errno == EINTR);
  writable_ = sent >= 0 && static_cast<std::size_t>(sent) == offered;
  if (sent < 0) return failed();
  return {.bytes = static_cast<std::size_t>(sent)};
}

void TcpStream::end_output() {
  shutdown(socket_.get(), SHUT_WR);
}

std::optional<PathReport> TcpStream::path() const {
  tcp_info info{};
  if (!tcp_info_of(socket_.get(), info)) return {};
  return PathReport{
      .sample = {.delivery_rate = info.tcpi_delivery_rate,
                 .application_limited = info.tcpi_delivery_rate_app_limited != 0,
                 .min_rtt_us = info.tcpi_min_rtt,
                 .rtt_variation_us = info.tcpi_rttvar},
      .rtt_us = info.tcpi_rtt,
      .waits = info.tcpi_unacked != 0 || info.tcpi_notsent_bytes != 0,
      .retransmits = info.tcpi_retransmits,
      .silence = std::chrono::milliseconds(std::min(info.tcpi_last_data_recv, info.tcpi_last_ack_recv))};
}

void TcpStream::limit(const PathLimits& limits) {
  if (std::exchange(chooses_congestion_, false)) choose_congestion();
  if (differs(limits.unsent, low_water_)) {
    low_water_ = limits.unsent;
    set(socket_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, low_water_);
  }
  limit_flight(limits.flight);
}

void TcpStream::choose_congestion() {
  tcp_info info{};
  std::array<char, 16> now{};
  socklen_t size = now.size();
  if (!tcp_info_of(socket_.get(), info) || info.tcpi_min_rtt >= short_path_us ||
      getsockopt(socket_.get(), IPPROTO_TCP, TCP_CONGESTION, now.data(), &size) != 0)
    return;
  if (std::string_view(now.data()) == "bbr")
    set_congestion(socket_.get(), "cubic"); // unless it is not allowed
}

// What is under way beyond what the path holds waits in the network's queues, and small messages wait behind
// it. So the send buffer, which bounds what is not acknowledged, follows the path. It does not where the way
// back is full too: acknowledgements then wait there and come in clumps, and a limit costs throughput.
void TcpStream::limit_flight(std::uint64_t bytes) {
  if (!limits_flight_ || !differs(bytes, flight_)) return;
  flight_ = bytes;
  // The system doubles what it is told, and counts what segments cost besides their bytes. Where it does not
  // allow so much, the buffer is the system's again.
  const std::uint64_t value = bytes / 2 + bytes / 16;
  int got = 0;
  socklen_t size = sizeof got;
  if (value > most_flight || !set(socket_.get(), SOL_SOCKET, SO_SNDBUF, static_cast<int>(value)) ||
      getsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &got, &size) != 0 ||
      static_cast<std::uint64_t>(got) / 2 < value)
    set(socket_.get(), SOL_SOCKET, SO_BUF_LOCK, 0);
}

void TcpStream::limit_silence(std::chrono::milliseconds time) {
  const auto ms = static_cast<int>(time.count());
  set(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, std::clamp(ms / 3000, 1, 10));
  set(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, std::clamp(ms / 6000, 1, 5));
  set(socket_.get(), IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, std::clamp(ms, 1000, 30'000));
}

} // namespace parc::daemon
