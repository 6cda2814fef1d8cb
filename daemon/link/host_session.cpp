// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/host_session.hpp"

#include "daemon/link/peer_link.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr double first_pause_s = 0.02, longest_pause_s = 0.5;
// Who was dialed last lets the other one try first: it may be the only one that can.
constexpr double pause_of_dialed_s = 0.2;
constexpr double look_every_s = 0.25; // while something is not acknowledged
constexpr double least_chance_s = 1;  // for another connection, however long the last sign of life is ago
// When a path that was cut is open again, asking anew is sooner there than TCP, which waits a second at first
// and longer each time. But a path that is slower now than it was needs more than that.
constexpr double first_patience_s = 1, least_patience_s = 0.25, trips_of_patience = 4, longest_patience_s = 2;
constexpr unsigned dials_before_doubling = 4;
// A kernel listens as long as it lives where it says so, and tries, too: a host that refuses for so long has
// none any more.
constexpr auto longest_refusal = 1s;
constexpr double first_improvement_s = 2, longest_improvement_s = 512; // pauses between two tries
constexpr double first_pulse_s = 0.05;                                 // tells the round trip
constexpr double longest_pulse_s = 5, beats_of_timeout = 8;

double in_seconds(Loop::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace

HostSession::HostSession(Loop& loop, Identity identity, std::uint32_t link, std::chrono::seconds link_timeout,
                         std::uint64_t seed, Events events, LinkStreams::Needs streams)
    : loop_(loop), identity_(std::move(identity)), link_(link), link_timeout_(link_timeout),
      events_(std::move(events)), random_(static_cast<std::minstd_rand::result_type>(seed)),
      dial_(loop,
            [this] {
              ++dials_;
              events_.dial();
            }),
      improve_(loop,
               [this] {
                 if (!is_makeshift()) return;
                 ++improvements_;
                 events_.improve();
                 improve_later();
               }),
      end_(loop,
           [this] {
             const std::uint64_t heard = streams_.bytes_heard();
             if (std::exchange(parted_bytes_, heard) != heard) return end_.set(in_seconds(link_timeout_));
             events_.give_up(error(ETIMEDOUT, "gave host {} up: no sign of life of it for {} s",
                                   identity_.name, link_timeout_.count()));
           }),
      look_(loop, [this] { look(); }), pulse_(loop, [this] { beat(); }),
      pulse_s_(std::min(longest_pulse_s, in_seconds(link_timeout_) / beats_of_timeout)),
      streams_(std::move(streams)) {}

// Not before the other side's statement is there is anything proved.
void HostSession::carried(PeerLink& by, std::uint64_t carrier, bool dialed) {
  count_improvement(is_makeshift(), by.is_makeshift());
  connection_ = &by;
  carrier_ = carrier;
  dialed_ = dialed;
  near_ = by.way() != LinkWay::Relay;
  doubted_ = dialing_ = false;
  dial_.cancel();
  improve_later();
  begin_pulse();
  streams_.carried(by, dialed);
  sent();
}

bool HostSession::is_makeshift() const {
  return connection_ != nullptr && connection_->is_makeshift();
}

// A direct way may be open, and lose what is not short: then the next try is later than the last one was.
void HostSession::count_improvement(bool was_makeshift, bool is_makeshift) {
  if (is_makeshift) {
    if (left_relay_at_) improvements_ = has_left_relay() ? improvements_ + 1 : 0;
    left_relay_at_.reset();
  } else if (was_makeshift) {
    left_relay_at_ = loop_.now();
  }
}

bool HostSession::has_left_relay() const {
  return left_relay_at_ && in_seconds(loop_.now() - *left_relay_at_) < longest_improvement_s;
}

void HostSession::improve_soon() {
  if (is_makeshift() && improvements_ == 0) improve_.set(0);
}

void HostSession::improve_later() {
  if (is_makeshift())
    improve_.set(std::min(first_improvement_s * std::exp2(improvements_), longest_improvement_s));
  else
    improve_.cancel();
}

void HostSession::begin_pulse() {
  pulse_.cancel();
  ++pings_; // an answer to an earlier one says nothing of this connection
  silent_s_ = 0;
  heard_bytes_ = connection_->bytes_heard();
  if (!connection_->is_measured()) pulse_.set(first_pulse_s);
}

// Whatever comes is a sign of life.
void HostSession::beat() {
  if (connection_ == nullptr) return;
  const std::uint64_t heard = connection_->bytes_heard();
  silent_s_ = std::exchange(heard_bytes_, heard) == heard ? silent_s_ + pulse_s_ : 0;
  if (silent_s_ >= in_seconds(link_timeout_) / 2)
    return events_.silent(error(ETIMEDOUT, "the connection to host {} is dead: no sign of life for {:.0f} s",
                                identity_.name, silent_s_));
  pinged_at_ = loop_.now();
  events_.ping(++pings_);
  pulse_.set(pulse_s_);
}

// The lowest of them is what the path is like: others have waited behind something.
void HostSession::pong(std::uint64_t number) {
  if (number != pings_ || connection_ == nullptr) return;
  connection_->took_round_trip(
      std::chrono::duration_cast<std::chrono::microseconds>(loop_.now() - pinged_at_));
}

void HostSession::resumed() {
  if (ending_)
    spdlog::info("the link to host {} is up again after {:.1f} s", identity_.name,
                 in_seconds(loop_.now() - parted_at_));
  ending_ = false;
  end_.cancel();
  refused_since_.reset();
  pause_s_ = 0;
  dials_ = silences_ = 0;
}

std::uint32_t HostSession::rtt_us() const {
  return connection_ != nullptr && connection_->rtt_us() != 0 ? connection_->rtt_us() : rtt_us_;
}

std::uint32_t HostSession::lowest_rtt_us() const {
  return connection_ != nullptr && connection_->lowest_rtt_us() != 0 ? connection_->lowest_rtt_us()
                                                                     : lowest_rtt_us_;
}

double HostSession::patience_s() const {
  const double rtt_s = rtt_us() / 1e6;
  const double least = rtt_s == 0 ? first_patience_s : std::max(least_patience_s, trips_of_patience * rtt_s);
  return std::min(least * static_cast<double>(1u << std::min(silences_ / dials_before_doubling, 4u)),
                  std::max(least, longest_patience_s));
}

void HostSession::parted(const Error& why, Loop::Time last_heard) {
  rtt_us_ = rtt_us();
  lowest_rtt_us_ = lowest_rtt_us();
  connection_ = nullptr;
  streams_.parted();
  doubted_ = false;
  spdlog::log(ending_ ? spdlog::level::debug : spdlog::level::warn, "{}; trying to reach host {} again",
              why.text, identity_.name);
  if (!ending_) {
    loop_.errors().note(ErrorKind::Link, why.code, why.text);
    ending_ = true;
    parted_at_ = loop_.now();
    parted_bytes_ = streams_.bytes_heard();
    end_.set(std::max(least_chance_s, in_seconds(last_heard + link_timeout_ - parted_at_)));
  }
  if (dialing_) return; // since its path seemed dead
  if (pause_s_ == 0) pause_s_ = dialed_ ? first_pause_s : pause_of_dialed_s;
  dial_later();
}

// Half of the pause is chance, so that two that try at once do not go on doing so.
void HostSession::dial_later() {
  dialing_ = true;
  dial_.set(pause_s_ * std::uniform_real_distribution<double>(0.5, 1)(random_));
  pause_s_ = std::min(2 * pause_s_, longest_pause_s);
}

void HostSession::dial_ended(const Error& why, bool refused) {
  dialing_ = false;
  if (connection_ != nullptr && !doubted_) return;
  if (why.code == ETIMEDOUT) {
    ++silences_;
    refused_since_.reset();
  }
  if (connection_ == nullptr && refused) {
    const std::uint64_t heard = streams_.bytes_heard();
    if (std::exchange(refused_bytes_, heard) != heard || !refused_since_) refused_since_ = loop_.now();
    if (loop_.now() - *refused_since_ >= std::min<Loop::Clock::duration>(longest_refusal, link_timeout_))
      return events_.give_up(
          error(ECONNREFUSED, "gave host {} up: its kernel has ended ({})", identity_.name, why.text));
  }
  dial_later();
}

// No timer runs while nothing is under way.
void HostSession::sent() {
  streams_.sent();
  if (watching_) return;
  watching_ = true;
  look_.set(look_every_s);
}

// A path that is cut without a word is known by what TCP sends again and again. The connection may recover by
// itself, but TCP waits longer each time: another one is there sooner.
void HostSession::look() {
  watching_ = false;
  const PeerLink::Path path = connection_ != nullptr ? connection_->path() : PeerLink::Path::quiet;
  doubted_ = path == PeerLink::Path::seems_dead;
  if (path == PeerLink::Path::quiet) return;
  if (doubted_ && !dialing_) {
    pause_s_ = first_pause_s;
    dial_later();
  }
  sent();
}

void HostSession::publish(Counters& counters, const protocol::Link& link) {
  if (!row_) row_.emplace(counters.link(identity_.name, identity_.host, LinkState::Up));
  const LinkCounters& row = *row_;
  row->state.set(
      static_cast<std::uint64_t>(connection_ != nullptr ? LinkState::Up : LinkState::Reconnecting));
  row->carriers.set(carrier_);
  row->bytes_in.set(link.bytes_in);
  row->bytes_out.set(link.bytes_out);
  row->credit.set((link.credit - link.credit_used) * link.fragment);
  row->rtt_us.set(lowest_rtt_us());
  if (connection_ != nullptr) {
    row->way.set(static_cast<std::uint64_t>(connection_->way()));
    row->encrypted.set(connection_->encrypted() ? 1 : 0);
  }
  row->unacknowledged.set(link.sequence - link.acknowledged);
  row->messages_in.set(link.messages_in);
  row->messages_out.set(link.messages_out);
  row->resent_bytes.set(link.resent);
  row->stalls.set(stalls_);
  row->queue.set(link.log.size());
  row->streams.set(connection_ != nullptr ? streams_.count() : 0);
}

} // namespace parc::daemon
