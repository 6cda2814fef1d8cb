// SPDX-License-Identifier: BSD-3-Clause
// A connection on its way to being a link: it connects and shakes hands (handshake.hpp), and then Peers gives
// its stream to a PeerLink. One that is refused lingers until the other side has read why.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/link/handshake.hpp"
#include "daemon/link/stream.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace parc::daemon {

class Peers;

class PendingLink {
public:
  enum class Stage : std::uint8_t { connecting, shaking, lingering, over };

  // Why this side dialed: for somebody who asked for a host by its name, or for a session to go on.
  struct Purpose {
    std::string host = {};
    bool named = true;         // `host` is its name
    std::uint64_t session = 0; // the identity of the other kernel
    bool met = false;          // there before
    bool calls_back = false;   // only to see that it answers there
    double patience_s = 0;     // with its connecting
  };
  // One that came in, or one that is being made. `handshake_s`: the time for shaking hands.
  PendingLink(Peers& peers, Loop& loop, const Key& key, std::unique_ptr<Stream> accepted, double handshake_s);
  PendingLink(Peers& peers, Loop& loop, const Key& key, Purpose purpose, std::unique_ptr<Stream> connecting,
              double handshake_s);

  std::uint64_t advance(); // as far as it goes; returns how much that was
  void drop(Error why);    // tells Peers; the object goes at the step's end

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] bool accepted_by_us() const { return accepted_; } // the other side's verdict may be due
  // It came from outside and has not proved the key, or has been refused.
  [[nodiscard]] bool is_stranger() const {
    return role_ == Role::Acceptor && !accepted_ && (stage_ == Stage::shaking || stage_ == Stage::lingering);
  }
  [[nodiscard]] Loop::Time born() const { return born_; }
  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] const Purpose& purpose() const { return purpose_; }
  [[nodiscard]] const Address& peer_address() const { return stream_->peer(); } // while it is pending
  [[nodiscard]] const std::string& address() const { return address_; }         // the same in words, for good
  [[nodiscard]] const Handshake& handshake() const { return handshake_; }
  [[nodiscard]] std::uint64_t identity() const { return handshake_.peer().identity; } // 0: not known yet
  // When its handshake has ended well: it is over with that.
  [[nodiscard]] std::unique_ptr<Stream> take_stream();

private:
  void enter(Stage next);
  void connect();
  void out_of_patience();
  std::uint64_t shake();
  std::uint64_t send();
  void answer();
  std::uint64_t linger();

  Peers& peers_;
  Role role_;
  Handshake handshake_;
  Stage stage_;
  const Loop::Time born_;
  std::unique_ptr<Stream> stream_; // none: it is over
  Purpose purpose_;
  std::string address_;
  double handshake_s_;
  double patience_s_;
  Timer patience_;
  bool accepted_ = false;
  bool said_all_ = false;
};

} // namespace parc::daemon
