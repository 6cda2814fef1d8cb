// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/peer_link.hpp"

#include "daemon/link/host_session.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace parc::daemon {
namespace {

// That a link may move in one step of a turn, and one of its connections at least.
constexpr std::uint64_t turn_bytes = 256 << 10, least_turn_bytes = 64 << 10;
constexpr std::uint32_t retransmits_of_dead = 2; // without an answer, each twice as late as the one before
constexpr std::size_t iovecs_at_once = 64;
// Under way over a path that is not known yet, and never more over one that nobody else measures.
constexpr std::uint64_t first_flight = 512 << 10, least_flight = 128 << 10, most_flight = 256 << 20;

} // namespace

PeerLink::PeerLink(Owner& owner, Loop& loop, protocol::Engine& engine, HostSession& session,
                   std::unique_ptr<Stream> stream, KeyName key, std::uint32_t subflow)
    : owner_(owner), loop_(loop), engine_(engine), session_(session), stream_(std::move(stream)),
      index_(session.link()), subflow_(subflow), key_(key), resumed_(subflow != 0),
      encrypted_(stream_->binding() != ChannelBinding()), times_trains_(!is_measured()) {
  if (const std::optional<PathReport> report = stream_->path()) take(*report);
  if (subflow_ == 0) engine_.limit_flight(index_, times_trains_ ? first_flight : 0);
}

LinkWay PeerLink::way() const {
  if (!open() || stream_->peer().is_ip()) return LinkWay::Direct;
  return stream_->peer().relayed() ? LinkWay::Relay : LinkWay::Ssh;
}

void PeerLink::take(const PathReport& report) {
  rtt_us_ = report.rtt_us;
  held_up_ = report.held_up;
  const std::uint32_t lowest = report.sample.min_rtt_us;
  if (lowest != 0 && lowest != UINT32_MAX) lowest_rtt_us_ = lowest; // of some minutes
}

std::uint64_t PeerLink::bytes_a_turn() const {
  return std::max(turn_bytes / session_.streams().count(), least_turn_bytes);
}

std::uint64_t PeerLink::read() {
  if (!open()) return 0;
  std::uint64_t moved = 0;
  const std::uint64_t most = bytes_a_turn();
  while (moved < most && stream_->readable()) {
    std::array<iovec, iovecs_at_once> iovecs;
    const std::size_t count = engine_.plan_read(index_, iovecs, subflow_);
    const Transfer got = stream_->read(std::span(iovecs).first(count));
    if (got.status == Transfer::Status::would_block) break;
    if (got.status != Transfer::Status::moved) {
      broke(got);
      return moved + 1;
    }
    moved += got.bytes;
    bytes_heard_ += got.bytes;
    const protocol::Refusal refusal = engine_.took(index_, got.bytes, subflow_);
    if (refusal != protocol::Refusal::none) {
      owner_.broke_rules(*this, refusal);
      return moved;
    }
    if (!resumed_) resumed();
  }
  if (moved != 0 && times_trains_) time_trains();
  return moved;
}

void PeerLink::broke(const Transfer& how) {
  const std::string& host = session_.identity().name;
  close(how.status == Transfer::Status::ended
            ? error(ECONNRESET, "the connection to host {} ended", host)
            : error(how.code, "the connection to host {} broke: {}", host, stream_->describe(how.code)));
}

// The other side has said what it has, and that was right: the session goes on.
void PeerLink::resumed() {
  resumed_ = engine_.link(index_).carrier.stage == protocol::Carrier::Stage::up;
  if (resumed_) session_.resumed();
}

std::uint64_t PeerLink::write() {
  if (!open() || !stream_->writable()) return 0;
  std::uint64_t moved = 0;
  bool all = false;
  const std::uint64_t most = bytes_a_turn();
  while (moved < most && stream_->writable()) {
    const std::span<const iovec> iovecs = engine_.plan_write(index_, subflow_);
    if (iovecs.empty() && !stream_->holds()) {
      all = true;
      break;
    }
    const Transfer sent = stream_->write(iovecs);
    if (sent.status == Transfer::Status::would_block) break;
    if (sent.status != Transfer::Status::moved) {
      broke(sent);
      return moved + 1;
    }
    engine_.wrote(index_, sent.bytes, subflow_);
    moved += sent.bytes;
  }
  if (moved != 0) session_.sent();
  if (!stream_->writable()) session_.stalled();
  bytes_to_measure_ += moved;
  unbroken_ += moved;
  if (bytes_to_measure_ >= PathGauge::sample_every) measure_path();
  if (all) unbroken_ = 0;
  if (moved != 0 && times_trains_) time_trains();
  return moved;
}

PeerLink::Path PeerLink::path() const {
  const std::optional<PathReport> report = stream_->path();
  if (!report) return Path::quiet;
  if (report->retransmits >= retransmits_of_dead) return Path::seems_dead;
  return report->waits ? Path::waits : Path::quiet;
}

void PeerLink::took_round_trip(std::chrono::microseconds time) {
  if (!times_trains_) return; // its stream knows better
  timer_.round_trip(time, loop_.now(), engine_.link(index_).in_flight != 0);
  rtt_us_ = lowest_rtt_us_ = timer_.lowest_us();
}

void PeerLink::measure_path() {
  bytes_to_measure_ = 0;
  std::optional<PathReport> report = stream_->path();
  if (!report) return;
  take(*report);
  report->sample.bytes_in = bytes_heard_;
  report->sample.unbroken = unbroken_;
  if (gauge(report->sample)) stream_->limit(gauge_.limits());
}

// The bytes that come do not count: here acknowledgements are as many as are asked for, whatever the way back
// is like.
void PeerLink::time_trains() {
  const protocol::Link& link = engine_.link(index_);
  const std::optional<PathSample> sample = timer_.take({.now = loop_.now(),
                                                        .asked_for = link.asked_for,
                                                        .acknowledged = link.acknowledged,
                                                        .bytes = link.delivered,
                                                        .in_flight = link.in_flight,
                                                        .more = !link.ready.empty()});
  if (!sample) return;
  rtt_us_ = lowest_rtt_us_ = timer_.lowest_us();
  // What there was to send says nothing of a path that has not been full yet.
  was_full_ |= !sample->application_limited;
  if (was_full_ && gauge(*sample))
    engine_.limit_flight(index_, std::clamp(gauge_.limits().flight, least_flight, most_flight));
}

bool PeerLink::gauge(PathSample sample) {
  sample.streams = session_.streams().count();
  if (!gauge_.take(sample)) return false;
  const PathLimits& limits = gauge_.limits();
  engine_.set_path(index_, limits.train, limits.delay_product_kib, subflow_);
  return true;
}

void PeerLink::close(Error why) {
  if (!open()) return;
  last_heard_ = loop_.now();
  if (const std::optional<PathReport> report = stream_->path()) {
    take(*report);
    if (why.code != ECONNRESET) last_heard_ -= report->silence;
  }
  stream_.reset();
  owner_.closed(*this, why);
}

} // namespace parc::daemon
