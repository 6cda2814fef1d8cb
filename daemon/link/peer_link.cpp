// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/peer_link.hpp"

#include "daemon/kernel.hpp"
#include "system/identity.hpp"
#include "system/limits.hpp"

#include <algorithm>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::uint64_t turn_bytes = 256 << 10; // that a link may move in one step of a turn
// bbr paces with timers, which cost a path of less than a millisecond half of its bandwidth; elsewhere it is
// the better one.
constexpr std::uint32_t short_path_us = 1000;
constexpr std::uint64_t most_flight = 1 << 30;                  // bytes not acknowledged
constexpr double least_handshake_s = 1, trips_of_handshake = 4; // with a kernel, for a session to go on
constexpr std::uint8_t retransmits_of_dead = 2; // without an answer, each twice as late as the one before
constexpr std::size_t iovecs_at_once = 64;
constexpr double linger_s = 2;   // for the other side to read why it was refused
constexpr int linger_reads = 64; // of what it still says, at a time; who says more is cut off

Nonce fresh_nonce() {
  Nonce nonce;
  fill_random(nonce);
  return nonce;
}

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

} // namespace

Result<void> prepare_socket(int fd) {
  const int yes = 1;
  const bool done = set(fd, IPPROTO_TCP, TCP_NODELAY, yes) && set(fd, SOL_SOCKET, SO_KEEPALIVE, yes);
  if (!done) return system_error("cannot set the options of a TCP socket");
  return success();
}

Result<void> prepare_socket(int fd, const Config& config) {
  PARC_TRY(prepare_socket(fd));
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
        "parc stop and start it with --listen",
        address);
  return error(code, "{} cannot be reached: {}{}", address, std::strerror(code), descriptor_advice(code));
}

PeerLink::PeerLink(Kernel& kernel, const Key& key, Fd accepted)
    : kernel_(kernel), role_(Role::Acceptor),
      handshake_(role_, kernel.peers().self_at(accepted.get()), key, fresh_nonce()), state_(State::shaking),
      socket_(std::move(accepted)), address_(peer_address(socket_.get()).text()) {
  watch(kernel.config().connect_timeout_s);
}

PeerLink::PeerLink(Kernel& kernel, const Key& key, Purpose purpose, Fd connecting, const Address& address)
    : kernel_(kernel), role_(Role::Initiator),
      handshake_(role_, kernel.peers().self_at(connecting.get()), key, fresh_nonce()),
      state_(State::connecting), socket_(std::move(connecting)), purpose_(std::move(purpose)),
      address_(address.text()) {
  watch(purpose_.patience_s);
}

void PeerLink::watch(double patience_s) {
  patience_s_ = patience_s;
  event_ = Event(kernel_.loop(), socket_.get(), EV_READ | EV_WRITE | EV_CLOSED | EV_PERSIST | EV_ET,
                 [this](short what) { ready(what); });
  event_.add();
  patience_ = Event::timer(kernel_.loop(), [this](short) { out_of_patience(); });
  patience_.add(patience_s);
}

void PeerLink::out_of_patience() {
  if (state_ == State::lingering) return close(handshake_.failure());
  close(role_ == Role::Acceptor
            ? error(ETIMEDOUT, "it did not prove the key within {} s", patience_s_)
            : error(ETIMEDOUT,
                    "{} does not answer within {} s; is a parcd running there, and no firewall between?",
                    address_, patience_s_));
}

void PeerLink::ready(short what) {
  if (state_ == State::closed) return;
  if ((what & (EV_READ | EV_CLOSED)) != 0) readable_ = true;
  if ((what & EV_WRITE) != 0) writable_ = true;
  if (state_ == State::connecting) connected();
  if (state_ == State::shaking || state_ == State::lingering) shake();
}

void PeerLink::connected() {
  int failed = 0;
  socklen_t size = sizeof failed;
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
  if (failed != 0) return close(connect_failure(failed, address_));
  if (!writable_) return;
  state_ = State::shaking;
  patience_s_ = std::min<double>(kernel_.config().connect_timeout_s,
                                 std::max(least_handshake_s, trips_of_handshake * purpose_.patience_s));
  patience_.add(patience_s_);
}

bool PeerLink::send_handshake() {
  while (!handshake_.outgoing().empty()) {
    const auto bytes = handshake_.outgoing();
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      writable_ = false;
      return errno == EAGAIN || errno == EINTR;
    }
    handshake_.sent(static_cast<std::size_t>(sent));
  }
  return true;
}

// Only what the handshake takes is taken from the socket: what follows stays there for the engine.
void PeerLink::shake() {
  if (!send_handshake()) handshake_.closed();
  bool more = readable_;
  while (more && handshake_.state() == Handshake::State::Exchanging) {
    std::array<std::byte, handshake::longest_frame> bytes;
    const ssize_t got = recv(socket_.get(), bytes.data(), handshake_.wanted(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      readable_ = more = false;
    } else if (got <= 0) {
      handshake_.closed();
      more = false;
    } else {
      (void)handshake_.feed(std::span(bytes).first(static_cast<std::size_t>(got)));
      if (handshake_.state() == Handshake::State::Deciding) {
        const Verdict verdict = kernel_.peers().judge(*this);
        accepted_ = verdict == Verdict::Accepted;
        handshake_.decide(verdict, kernel_.peers().session_number(identity()));
      }
      if (handshake_.state() == Handshake::State::Agreed) {
        if (!kernel_.peers().still_true(*this)) return close(error(ESTALE, "what was said holds no more"));
        handshake_.adopt(kernel_.peers().next_carrier(*this));
      }
      if (!send_handshake()) handshake_.closed();
    }
  }
  if (handshake_.state() == Handshake::State::Established && handshake_.outgoing().empty()) return go_up();
  if (handshake_.state() != Handshake::State::Failed) return;
  if (state_ != State::lingering) kernel_.peers().refused(*this);
  if (state_ != State::closed) linger();
}

// What was said last must arrive before the close, or a reset would overtake it.
void PeerLink::linger() {
  if (handshake_.outgoing().empty()) shutdown(socket_.get(), SHUT_WR);
  if (std::exchange(state_, State::lingering) != State::lingering) patience_.add(linger_s);
  std::array<std::byte, 1024> rest;
  ssize_t got = 1;
  for (int reads = 0; got > 0 && reads < linger_reads; ++reads)
    got = recv(socket_.get(), rest.data(), rest.size(), 0);
  if (got >= 0 || (errno != EAGAIN && errno != EINTR)) close(handshake_.failure());
}

void PeerLink::go_up() {
  patience_.remove();
  session_ = kernel_.peers().adopt(*this);
  if (session_ == nullptr)
    return close(error(ESTALE, "another connection to host {} has taken its place", handshake_.peer().name));
  index_ = session_->link();
  state_ = State::up;
  limit_silence();
  readable_ = writable_ = true;
  kernel_.peers().established(*this);
}

std::uint64_t PeerLink::read() {
  if (state_ != State::up || !readable_) return 0;
  std::uint64_t moved = 0;
  while (moved < turn_bytes) {
    std::array<iovec, iovecs_at_once> iovecs;
    const std::size_t count = kernel_.engine().plan_read(index_, iovecs);
    const ssize_t got = readv(socket_.get(), iovecs.data(), static_cast<int>(count));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      readable_ = errno == EINTR;
      break;
    }
    if (got <= 0) {
      close(got == 0 ? error(ECONNRESET, "the connection to host {} ended", handshake_.peer().name)
                     : system_error("the connection to host {} broke", handshake_.peer().name));
      return moved + 1;
    }
    moved += static_cast<std::uint64_t>(got);
    const protocol::Refusal refusal = kernel_.engine().took(index_, static_cast<std::size_t>(got));
    if (refusal != protocol::Refusal::none) {
      kernel_.peers().broke_rules(*this, refusal);
      return moved;
    }
    if (!resumed_) resumed();
  }
  return moved;
}

// The other side has said what it has, and that was right: the session goes on.
void PeerLink::resumed() {
  resumed_ = kernel_.engine().link(index_).carrier.stage == protocol::Carrier::Stage::up;
  if (resumed_) session_->resumed();
}

std::uint64_t PeerLink::write() {
  if (state_ != State::up || !writable_) return 0;
  std::uint64_t moved = 0;
  while (moved < turn_bytes) {
    const std::span<const iovec> iovecs = kernel_.engine().plan_write(index_);
    if (iovecs.empty()) break;
    std::size_t offered = 0;
    for (const iovec& part : iovecs) offered += part.iov_len;
    const ssize_t sent = writev(socket_.get(), iovecs.data(), static_cast<int>(iovecs.size()));
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        writable_ = false;
        break;
      }
      close(system_error("the connection to host {} broke", handshake_.peer().name));
      return moved + 1;
    }
    kernel_.engine().wrote(index_, static_cast<std::size_t>(sent));
    moved += static_cast<std::uint64_t>(sent);
    if (static_cast<std::size_t>(sent) < offered) {
      writable_ = false;
      break;
    }
  }
  if (moved != 0) session_->sent();
  bytes_to_measure_ += moved;
  if (bytes_to_measure_ >= PathGauge::sample_every) measure_path();
  return moved;
}

// A connection that is dead without a word is known to be in half of the time after which the session is
// given up.
void PeerLink::limit_silence() {
  const unsigned limit_s = kernel_.config().link_timeout_s;
  set(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(std::clamp(limit_s / 6, 1u, 10u)));
  set(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(std::clamp(limit_s / 12, 1u, 5u)));
  set(socket_.get(), IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(socket_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, std::clamp(limit_s * 500, 1000u, 30'000u));
}

PeerLink::Path PeerLink::path() const {
  tcp_info info{};
  if (!tcp_info_of(socket_.get(), info)) return Path::quiet;
  if (info.tcpi_retransmits >= retransmits_of_dead) return Path::seems_dead;
  return info.tcpi_unacked != 0 || info.tcpi_notsent_bytes != 0 ? Path::waits : Path::quiet;
}

void PeerLink::measure_path() {
  bytes_to_measure_ = 0;
  tcp_info info{};
  if (!tcp_info_of(socket_.get(), info)) return;
  rtt_us_ = info.tcpi_rtt;
  if (!path_known_) choose_congestion(info.tcpi_min_rtt);
  if (!gauge_.take({.delivery_rate = info.tcpi_delivery_rate,
                    .application_limited = info.tcpi_delivery_rate_app_limited != 0,
                    .min_rtt_us = info.tcpi_min_rtt,
                    .rtt_variation_us = info.tcpi_rttvar,
                    .bytes_in = kernel_.engine().link(index_).bytes_in}))
    return;
  const PathLimits& limits = gauge_.limits();
  kernel_.engine().set_path(index_, limits.train, limits.delay_product_kib);
  if (differs(limits.unsent, low_water_)) {
    low_water_ = limits.unsent;
    set(socket_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, low_water_);
  }
  limit_flight(limits.flight);
}

void PeerLink::choose_congestion(std::uint32_t min_rtt_us) {
  path_known_ = true;
  std::array<char, 16> now{};
  socklen_t size = now.size();
  if (kernel_.config().congestion != "auto" || min_rtt_us >= short_path_us ||
      getsockopt(socket_.get(), IPPROTO_TCP, TCP_CONGESTION, now.data(), &size) != 0)
    return;
  if (std::string_view(now.data()) == "bbr")
    set_congestion(socket_.get(), "cubic"); // unless it is not allowed
}

// What is under way beyond what the path holds waits in the network's queues, and small messages wait behind
// it. So the send buffer, which bounds what is not acknowledged, follows the path. It does not where the way
// back is full too: acknowledgements then wait there and come in clumps, and a limit costs throughput.
void PeerLink::limit_flight(std::uint64_t bytes) {
  if (kernel_.config().send_buffer != 0) return;
  if (!differs(bytes, flight_)) return;
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

void PeerLink::close(Error why) {
  if (state_ == State::closed) return;
  const State was = state_;
  state_ = State::closed;
  last_heard_ = std::chrono::steady_clock::now();
  if (tcp_info info{}; was == State::up && tcp_info_of(socket_.get(), info)) {
    rtt_us_ = info.tcpi_rtt;
    if (why.code != ECONNRESET)
      last_heard_ -= std::chrono::milliseconds(std::min(info.tcpi_last_data_recv, info.tcpi_last_ack_recv));
  }
  patience_.remove();
  event_.remove();
  socket_.reset();
  kernel_.peers().closed(*this, was, std::move(why));
}

} // namespace parc::daemon
