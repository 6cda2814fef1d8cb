// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/pending_link.hpp"

#include "daemon/link/socket_stream.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace parc::daemon {
namespace {

constexpr double least_handshake_s = 1, trips_of_handshake = 6; // with a kernel, for a session to go on
constexpr double linger_s = 2;   // for the other side to read why it was refused
constexpr int linger_reads = 64; // of what it still says, at a time; who says more is cut off

bool is_via(const Address& address) {
  return address.relayed() && !address.relay_target().via.empty();
}

Nonce fresh_nonce() {
  Nonce nonce;
  fill_random(nonce);
  return nonce;
}

} // namespace

PendingLink::PendingLink(const Shared& shared, LocalHost self, std::unique_ptr<Stream> accepted)
    : owner_(shared.owner), role_(Role::Acceptor),
      handshake_(role_, std::move(self), shared.keys, fresh_nonce(),
                 {.stream_proves_key = accepted->proves_key()}),
      stage_(Stage::shaking), born_(shared.loop.now()), stream_(std::move(accepted)),
      address_(stream_->peer().text()), via_(false), relayed_(stream_->peer().relayed()),
      handshake_s_(shared.handshake_s), patience_s_(handshake_s_),
      patience_(shared.loop, [this] { out_of_patience(); }) {
  patience_.set(patience_s_);
}

PendingLink::PendingLink(const Shared& shared, LocalHost self, Purpose purpose,
                         std::unique_ptr<Stream> connecting)
    : owner_(shared.owner), role_(Role::Initiator),
      handshake_(role_, std::move(self), shared.keys, fresh_nonce(),
                 {.stream_proves_key = connecting->proves_key(),
                  .use = purpose.use,
                  .subflow = purpose.subflow_of != 0}),
      stage_(Stage::connecting), born_(shared.loop.now()), stream_(std::move(connecting)),
      purpose_(std::move(purpose)), address_(stream_->peer().text()), via_(is_via(stream_->peer())),
      relayed_(stream_->peer().relayed()), handshake_s_(shared.handshake_s), patience_s_(purpose_.patience_s),
      patience_(shared.loop, [this] { out_of_patience(); }) {
  patience_.set(patience_s_);
}

void PendingLink::enter(Stage next) {
  assert(stage_ < next && (next != Stage::lingering || stage_ == Stage::shaking));
  stage_ = next;
}

void PendingLink::out_of_patience() {
  if (stage_ == Stage::lingering) return drop(handshake_.failure());
  if (via_)
    return drop(error(ETIMEDOUT,
                      "{} has not led there within {} s; does a parcd run there, and does [hosts] of no host "
                      "on the way lead back?",
                      address_, patience_s_));
  drop(role_ == Role::Acceptor
           ? error(ETIMEDOUT, "it did not prove the key within {} s", patience_s_)
           : error(ETIMEDOUT,
                   "{} does not answer within {} s; is a parcd running there, and no firewall between?",
                   address_, patience_s_));
}

std::uint64_t PendingLink::advance() {
  if (stage_ == Stage::connecting) connect();
  return stage_ == Stage::shaking || stage_ == Stage::lingering ? shake() : 0;
}

void PendingLink::connect() {
  const int code = stream_->opened();
  if (code == EINPROGRESS) return;
  if (code != 0)
    return drop(via_ ? error(code, "{} does not lead there: {}", address_, stream_->describe(code))
                     : connect_failure(code, stream_->peer()));
  enter(Stage::shaking);
  patience_s_ = std::min(handshake_s_, std::max(least_handshake_s, trips_of_handshake * patience_s_));
  patience_.set(patience_s_);
}

std::uint64_t PendingLink::send() {
  std::uint64_t moved = 0;
  while ((!handshake_.outgoing().empty() || stream_->holds()) && stream_->writable()) {
    const auto bytes = handshake_.outgoing();
    const iovec from{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const Transfer sent = stream_->write({&from, 1});
    if (sent.status == Transfer::Status::would_block) break;
    if (sent.status != Transfer::Status::moved) {
      closed(sent);
      handshake_.sent(bytes.size()); // nobody will hear it
      return moved + 1;
    }
    handshake_.sent(sent.bytes);
    moved += sent.bytes;
  }
  return moved;
}

// Only what the handshake takes is taken from the stream: what follows stays there for the engine.
std::uint64_t PendingLink::shake() {
  std::uint64_t moved = send();
  while (stage_ == Stage::shaking && stream_->readable() &&
         handshake_.state() == Handshake::State::Exchanging) {
    std::array<std::byte, handshake::longest_frame> bytes;
    const iovec to{bytes.data(), handshake_.wanted()};
    const Transfer got = stream_->read({&to, 1});
    if (got.status == Transfer::Status::would_block) break;
    moved += got.bytes + 1;
    if (got.status == Transfer::Status::moved) {
      if (!std::exchange(bound_, true)) handshake_.bind(stream_->binding());
      (void)handshake_.feed(std::span(bytes).first(got.bytes));
      answer();
    } else {
      closed(got);
    }
    if (stage_ == Stage::shaking) moved += send();
  }
  if (handshake_.state() == Handshake::State::Established && handshake_.outgoing().empty()) {
    if (!owner_.adopt(*this))
      drop(error(ECONNABORTED, "another connection to host {} has taken its place", handshake_.peer().name));
    return moved + 1;
  }
  if (stage_ == Stage::over || handshake_.state() != Handshake::State::Failed) return moved;
  if (stage_ == Stage::shaking) {
    owner_.refused(*this);
    enter(Stage::lingering);
    patience_.set(linger_s);
  }
  return moved + linger();
}

void PendingLink::closed(const Transfer& how) {
  // Of what encrypts, the stream knows more.
  const bool said =
      how.status == Transfer::Status::broken && (how.code == EPROTO || how.code == EPROTOTYPE ||
                                                 how.code == EPROTONOSUPPORT || how.code == EKEYREJECTED);
  handshake_.closed(said ? error(how.code, "{}", stream_->describe(how.code)) : Error());
}

// What the handshake asks of who knows the other connections and sessions.
void PendingLink::answer() {
  if (handshake_.state() == Handshake::State::Deciding) {
    const Verdict verdict = owner_.judge(*this);
    accepted_ = verdict == Verdict::Accepted;
    handshake_.decide(verdict, owner_.session_number(identity()));
  }
  if (handshake_.state() == Handshake::State::Agreed) {
    if (!owner_.still_true(*this)) return drop(error(ESTALE, "what was said holds no more"));
    handshake_.adopt(owner_.next_carrier(*this));
  }
}

// What was said last must arrive before the close, or a reset would overtake it.
std::uint64_t PendingLink::linger() {
  if (handshake_.outgoing().empty() && !stream_->holds() && !std::exchange(said_all_, true))
    stream_->end_output();
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
  drop(handshake_.failure());
  return moved + 1;
}

std::unique_ptr<Stream> PendingLink::take_stream() {
  assert(handshake_.state() == Handshake::State::Established);
  enter(Stage::over);
  patience_.cancel();
  return std::move(stream_);
}

void PendingLink::drop(Error why) {
  if (stage_ == Stage::over) return;
  const bool was_refused = stage_ == Stage::lingering;
  enter(Stage::over);
  patience_.cancel();
  stream_.reset();
  owner_.failed(*this, was_refused, why);
}

} // namespace parc::daemon
