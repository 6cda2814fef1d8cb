// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/peer_link.hpp"

#include "daemon/kernel.hpp"
#include "daemon/link/tcp_stream.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::uint64_t turn_bytes = 256 << 10;                 // that a link may move in one step of a turn
constexpr double least_handshake_s = 1, trips_of_handshake = 4; // with a kernel, for a session to go on
constexpr std::uint32_t retransmits_of_dead = 2; // without an answer, each twice as late as the one before
constexpr std::size_t iovecs_at_once = 64;
constexpr double linger_s = 2;   // for the other side to read why it was refused
constexpr int linger_reads = 64; // of what it still says, at a time; who says more is cut off

Nonce fresh_nonce() {
  Nonce nonce;
  fill_random(nonce);
  return nonce;
}

} // namespace

PeerLink::PeerLink(Kernel& kernel, const Key& key, std::unique_ptr<Stream> accepted)
    : kernel_(kernel), role_(Role::Acceptor),
      handshake_(role_, kernel.peers().self_at(accepted->local()), key, fresh_nonce()),
      state_(State::shaking), stream_(std::move(accepted)), address_(stream_->peer().text()) {
  be_patient(kernel.config().connect_timeout_s);
}

PeerLink::PeerLink(Kernel& kernel, const Key& key, Purpose purpose, std::unique_ptr<Stream> connecting)
    : kernel_(kernel), role_(Role::Initiator),
      handshake_(role_, kernel.peers().self_at(connecting->local()), key, fresh_nonce()),
      state_(State::connecting), stream_(std::move(connecting)), purpose_(std::move(purpose)),
      address_(stream_->peer().text()) {
  be_patient(purpose_.patience_s);
}

void PeerLink::be_patient(double patience_s) {
  patience_s_ = patience_s;
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

// Its way to being up. Returns whether there was something to do.
std::uint64_t PeerLink::prepare() {
  if (state_ == State::connecting) connect();
  return state_ == State::shaking || state_ == State::lingering ? shake() : 0;
}

void PeerLink::connect() {
  const int code = stream_->opened();
  if (code == EINPROGRESS) return;
  if (code != 0) return close(connect_failure(code, address_));
  state_ = State::shaking;
  patience_s_ = std::min<double>(kernel_.config().connect_timeout_s,
                                 std::max(least_handshake_s, trips_of_handshake * purpose_.patience_s));
  patience_.add(patience_s_);
}

std::uint64_t PeerLink::send_handshake() {
  std::uint64_t moved = 0;
  while (!handshake_.outgoing().empty() && stream_->writable()) {
    const auto bytes = handshake_.outgoing();
    const iovec from{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const Transfer sent = stream_->write({&from, 1});
    if (sent.status == Transfer::Status::would_block) break;
    if (sent.status != Transfer::Status::moved) {
      handshake_.closed();
      return moved + 1;
    }
    handshake_.sent(sent.bytes);
    moved += sent.bytes;
  }
  return moved;
}

// Only what the handshake takes is taken from the stream: what follows stays there for the engine.
std::uint64_t PeerLink::shake() {
  std::uint64_t moved = send_handshake();
  while (stream_->readable() && handshake_.state() == Handshake::State::Exchanging) {
    std::array<std::byte, handshake::longest_frame> bytes;
    const iovec to{bytes.data(), handshake_.wanted()};
    const Transfer got = stream_->read({&to, 1});
    if (got.status == Transfer::Status::would_block) break;
    moved += got.bytes + 1;
    if (got.status != Transfer::Status::moved) {
      handshake_.closed();
      break;
    }
    (void)handshake_.feed(std::span(bytes).first(got.bytes));
    if (handshake_.state() == Handshake::State::Deciding) {
      const Verdict verdict = kernel_.peers().judge(*this);
      accepted_ = verdict == Verdict::Accepted;
      handshake_.decide(verdict, kernel_.peers().session_number(identity()));
    }
    if (handshake_.state() == Handshake::State::Agreed) {
      if (!kernel_.peers().still_true(*this)) {
        close(error(ESTALE, "what was said holds no more"));
        return moved;
      }
      handshake_.adopt(kernel_.peers().next_carrier(*this));
    }
    moved += send_handshake();
  }
  if (handshake_.state() == Handshake::State::Established && handshake_.outgoing().empty()) {
    go_up();
    return moved + 1;
  }
  if (handshake_.state() != Handshake::State::Failed) return moved;
  if (state_ != State::lingering) kernel_.peers().refused(*this);
  return state_ == State::closed ? moved + 1 : moved + linger();
}

// What was said last must arrive before the close, or a reset would overtake it.
std::uint64_t PeerLink::linger() {
  if (handshake_.outgoing().empty() && !std::exchange(said_all_, true)) stream_->end_output();
  if (std::exchange(state_, State::lingering) != State::lingering) patience_.add(linger_s);
  std::array<std::byte, 1024> rest;
  const iovec to{rest.data(), rest.size()};
  std::uint64_t moved = 0;
  for (int reads = 0; reads < linger_reads; ++reads) {
    if (!stream_->readable()) return moved;
    const Transfer got = stream_->read({&to, 1});
    if (got.status == Transfer::Status::would_block) return moved;
    if (got.status != Transfer::Status::moved) break;
    moved += got.bytes;
  }
  close(handshake_.failure());
  return moved + 1;
}

void PeerLink::go_up() {
  patience_.remove();
  session_ = kernel_.peers().adopt(*this);
  if (session_ == nullptr)
    return close(error(ESTALE, "another connection to host {} has taken its place", handshake_.peer().name));
  index_ = session_->link();
  state_ = State::up;
  // A connection that is dead without a word is known to be in half of the time after which the session is
  // given up.
  stream_->limit_silence(std::chrono::seconds(kernel_.config().link_timeout_s) / 2);
  kernel_.peers().established(*this);
}

std::uint64_t PeerLink::read() {
  if (state_ != State::up) return prepare();
  std::uint64_t moved = 0;
  while (moved < turn_bytes && stream_->readable()) {
    std::array<iovec, iovecs_at_once> iovecs;
    const std::size_t count = kernel_.engine().plan_read(index_, iovecs);
    const Transfer got = stream_->read(std::span(iovecs).first(count));
    if (got.status == Transfer::Status::would_block) break;
    if (got.status != Transfer::Status::moved) {
      broke(got);
      return moved + 1;
    }
    moved += got.bytes;
    const protocol::Refusal refusal = kernel_.engine().took(index_, got.bytes);
    if (refusal != protocol::Refusal::none) {
      kernel_.peers().broke_rules(*this, refusal);
      return moved;
    }
    if (!resumed_) resumed();
  }
  return moved;
}

void PeerLink::broke(const Transfer& how) {
  const std::string& host = handshake_.peer().name;
  close(how.status == Transfer::Status::ended
            ? error(ECONNRESET, "the connection to host {} ended", host)
            : error(how.code, "the connection to host {} broke: {}", host, std::strerror(how.code)));
}

// The other side has said what it has, and that was right: the session goes on.
void PeerLink::resumed() {
  resumed_ = kernel_.engine().link(index_).carrier.stage == protocol::Carrier::Stage::up;
  if (resumed_) session_->resumed();
}

std::uint64_t PeerLink::write() {
  if (state_ != State::up) return 0;
  std::uint64_t moved = 0;
  while (moved < turn_bytes && stream_->writable()) {
    const std::span<const iovec> iovecs = kernel_.engine().plan_write(index_);
    if (iovecs.empty()) break;
    const Transfer sent = stream_->write(iovecs);
    if (sent.status == Transfer::Status::would_block) break;
    if (sent.status != Transfer::Status::moved) {
      broke(sent);
      return moved + 1;
    }
    kernel_.engine().wrote(index_, sent.bytes);
    moved += sent.bytes;
  }
  if (moved != 0) session_->sent();
  bytes_to_measure_ += moved;
  if (bytes_to_measure_ >= PathGauge::sample_every) measure_path();
  return moved;
}

PeerLink::Path PeerLink::path() const {
  const std::optional<PathReport> report = stream_->path();
  if (!report) return Path::quiet;
  if (report->retransmits >= retransmits_of_dead) return Path::seems_dead;
  return report->waits ? Path::waits : Path::quiet;
}

void PeerLink::measure_path() {
  bytes_to_measure_ = 0;
  std::optional<PathReport> report = stream_->path();
  if (!report) return;
  rtt_us_ = report->rtt_us;
  report->sample.bytes_in = kernel_.engine().link(index_).bytes_in;
  if (!gauge_.take(report->sample)) return;
  const PathLimits& limits = gauge_.limits();
  kernel_.engine().set_path(index_, limits.train, limits.delay_product_kib);
  stream_->limit(limits);
}

void PeerLink::close(Error why) {
  if (state_ == State::closed) return;
  const State was = state_;
  state_ = State::closed;
  last_heard_ = std::chrono::steady_clock::now();
  if (was == State::up) {
    if (const std::optional<PathReport> report = stream_->path()) {
      rtt_us_ = report->rtt_us;
      if (why.code != ECONNRESET) last_heard_ -= report->silence;
    }
  }
  patience_.remove();
  stream_.reset();
  kernel_.peers().closed(*this, was, std::move(why));
}

} // namespace parc::daemon
