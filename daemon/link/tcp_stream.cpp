// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/tcp_stream.hpp"

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
constexpr std::uint32_t few_segments = 16 << 10;

// By so much that it is worth a system call.
bool differs(std::uint64_t wanted, std::uint64_t current) {
  return wanted > current + current / 4 || wanted < current - current / 4;
}

bool tcp_info_of(int fd, tcp_info& info) {
  socklen_t size = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
}

// Where packets queue on the path it is full, whatever its window is.
bool is_held_up(const tcp_info& info) {
  const std::uint64_t with_queue = std::uint64_t{info.tcpi_min_rtt} * 3 / 2;
  return info.tcpi_rtt < with_queue &&
         (info.tcpi_notsent_bytes != 0 || info.tcpi_unacked >= info.tcpi_snd_cwnd);
}

bool set_congestion(int fd, std::string_view name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

template <class T> bool set(int fd, int level, int option, const T& value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

} // namespace

Result<void> prepare_accepted(int fd) {
  const int yes = 1;
  const bool done = set(fd, IPPROTO_TCP, TCP_NODELAY, yes) && set(fd, SOL_SOCKET, SO_KEEPALIVE, yes);
  if (!done) return system_error("cannot set the options of a TCP socket");
  return success();
}

Result<void> prepare_socket(int fd, const Config& config) {
  PARC_TRY(prepare_accepted(fd));
  bool done = true;
  if (config.send_buffer != 0)
    done = set(fd, SOL_SOCKET, SO_SNDBUF, static_cast<int>(config.send_buffer)) && done;
  if (config.receive_buffer != 0)
    done = set(fd, SOL_SOCKET, SO_RCVBUF, static_cast<int>(config.receive_buffer)) && done;
  if (config.congestion != "auto") done = set_congestion(fd, config.congestion) && done;
  if (!done) return system_error("cannot set the options of a TCP socket");
  return success();
}

TcpStream::TcpStream(event_base* loop, Fd socket, const Address& peer, const Config& config, bool open)
    : SocketStream(loop, std::move(socket), peer, open), chooses_congestion_(config.congestion == "auto"),
      limits_flight_(config.send_buffer == 0),
      acknowledges_at_once_(config.receive_buffer != 0 && config.receive_buffer < few_segments) {}

// Where the buffer holds a few segments its sender waits for every acknowledgement, and for the last one, of
// a single segment, the system would wait up to 40 ms for something to send it with.
Transfer TcpStream::read(std::span<const iovec> to) {
  const Transfer got = SocketStream::read(to);
  if (acknowledges_at_once_ && got.bytes != 0) set(socket(), IPPROTO_TCP, TCP_QUICKACK, 1);
  return got;
}

std::optional<PathReport> TcpStream::path() const {
  tcp_info info{};
  if (!tcp_info_of(socket(), info)) return {};
  return PathReport{
      .sample = {.delivery_rate = info.tcpi_delivery_rate,
                 .application_limited = info.tcpi_delivery_rate_app_limited != 0,
                 .min_rtt_us = info.tcpi_min_rtt,
                 .rtt_variation_us = info.tcpi_rttvar},
      .rtt_us = info.tcpi_rtt,
      .waits = info.tcpi_unacked != 0 || info.tcpi_notsent_bytes != 0,
      .held_up = is_held_up(info),
      .retransmits = info.tcpi_retransmits,
      .silence = std::chrono::milliseconds(std::min(info.tcpi_last_data_recv, info.tcpi_last_ack_recv))};
}

void TcpStream::limit(const PathLimits& limits) {
  if (std::exchange(chooses_congestion_, false)) choose_congestion();
  if (differs(limits.unsent, low_water_)) {
    low_water_ = limits.unsent;
    set(socket(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, low_water_);
  }
  limit_flight(limits.flight);
  if (limits.pace == std::exchange(pace_, limits.pace)) return;
  const std::uint64_t most = limits.pace != 0 ? limits.pace : ~std::uint64_t{0};
  set(socket(), SOL_SOCKET, SO_MAX_PACING_RATE, most);
}

void TcpStream::choose_congestion() {
  tcp_info info{};
  std::array<char, 16> now{};
  socklen_t size = now.size();
  if (!tcp_info_of(socket(), info) || info.tcpi_min_rtt >= short_path_us ||
      getsockopt(socket(), IPPROTO_TCP, TCP_CONGESTION, now.data(), &size) != 0)
    return;
  if (std::string_view(now.data()) == "bbr") set_congestion(socket(), "cubic"); // unless it is not allowed
}

// What is under way beyond what the path holds waits in the network's queues, and small messages wait behind
// it. So the send buffer, which bounds what is not acknowledged, follows the path.
void TcpStream::limit_flight(std::uint64_t bytes) {
  if (!limits_flight_ || !differs(bytes, flight_)) return;
  flight_ = bytes;
  // The system doubles what it is told, and counts what segments cost besides their bytes. Where it does not
  // allow so much, the buffer is the system's again.
  const std::uint64_t value = bytes / 2 + bytes / 16;
  int got = 0;
  socklen_t size = sizeof got;
  if (value > most_flight || !set(socket(), SOL_SOCKET, SO_SNDBUF, static_cast<int>(value)) ||
      getsockopt(socket(), SOL_SOCKET, SO_SNDBUF, &got, &size) != 0 ||
      static_cast<std::uint64_t>(got) / 2 < value)
    set(socket(), SOL_SOCKET, SO_BUF_LOCK, 0);
}

void TcpStream::limit_silence(std::chrono::milliseconds time) {
  const auto ms = static_cast<int>(time.count());
  set(socket(), IPPROTO_TCP, TCP_KEEPIDLE, std::clamp(ms / 3000, 1, 10));
  set(socket(), IPPROTO_TCP, TCP_KEEPINTVL, std::clamp(ms / 6000, 1, 5));
  set(socket(), IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(socket(), IPPROTO_TCP, TCP_USER_TIMEOUT, std::clamp(ms, 1000, 30'000));
}

} // namespace parc::daemon
