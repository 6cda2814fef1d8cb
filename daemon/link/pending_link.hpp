// SPDX-License-Identifier: BSD-3-Clause
// A connection on its way to being a link: it connects and shakes hands (handshake.hpp), and then its owner
// gives the stream to a PeerLink. One that is refused lingers until the other side has read why.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/link/handshake.hpp"
#include "daemon/link/stream.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace parc::daemon {

inline constexpr double patience_with_relays_s = 3; // a relay has to be found, and to find who is dialed

class PendingLink {
public:
  enum class Stage : std::uint8_t { connecting, shaking, lingering, over };

  // Why this side dialed: for somebody who asked for a host by its name, or for a session to go on.
  struct Purpose {
    std::string host = {};
    bool named = true;            // `host` is its name
    std::uint64_t attempt = 0;    // of who dials hosts: the one that this belongs to
    std::uint64_t session = 0;    // the identity of the other kernel
    bool met = false;             // there before
    bool calls_back = false;      // only to see that it answers there
    bool improves = false;        // in place of a connection that another kernel relays, while that goes on
    double patience_s = 0;        // with its connecting
    KeyUse use = KeyUse::link;    // what it is to be good for
    std::uint32_t subflow_of = 0; // that session's number: beside its connection; 0: in place of that
    // By a session that has no connection, or a doubtful one.
    [[nodiscard]] bool is_needed() const { return session != 0 && !calls_back && !improves; }
  };
  class Owner { // who knows the other connections, and the sessions
  public:
    virtual Verdict
    judge(const PendingLink& link) = 0; // its peer has proved the key, or its stream that of who accepts
    virtual std::uint32_t session_number(std::uint64_t identity) const = 0; // that goes on, or would begin
    virtual bool still_true(const PendingLink& link) const = 0;
    virtual std::uint64_t next_carrier(const PendingLink& link) const = 0;
    virtual bool adopt(PendingLink& link) = 0; // its handshake has ended well; false: it is not needed
    virtual void refused(const PendingLink& link) = 0; // its handshake failed, or ended by a verdict
    // It is over otherwise, or what was refused has been said; the object goes at the step's end.
    virtual void failed(const PendingLink& link, bool was_refused, const Error& why) = 0;

  protected:
    ~Owner() = default;
  };
  struct Shared { // by all that an owner has
    Owner& owner;
    Loop& loop;
    const std::vector<Credential>& keys;
    double handshake_s; // the time for shaking hands
  };
  // One that came in, or one that is being made; `self`: what is said of this host there.
  PendingLink(const Shared& shared, LocalHost self, std::unique_ptr<Stream> accepted);
  PendingLink(const Shared& shared, LocalHost self, Purpose purpose, std::unique_ptr<Stream> connecting);

  std::uint64_t advance(); // as far as it goes; returns how much that was
  void drop(Error why);    // tells its owner

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] bool accepted_by_us() const { return accepted_; } // the other side's verdict may be due
  // It came from outside and has not proved the key, or has been refused.
  [[nodiscard]] bool is_stranger() const {
    return role_ == Role::Acceptor && !accepted_ && (stage_ == Stage::shaking || stage_ == Stage::lingering);
  }
  [[nodiscard]] Loop::Time born() const { return born_; }
  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] const Purpose& purpose() const { return purpose_; }
  [[nodiscard]] bool relayed() const { return relayed_; }
  [[nodiscard]] bool via() const { return via_; } // that relay alone, as [hosts] says
  [[nodiscard]] const Address& peer_address() const { return stream_->peer(); } // while it is pending
  [[nodiscard]] const std::string& address() const { return address_; }         // the same in words, for good
  [[nodiscard]] const Handshake& handshake() const { return handshake_; }
  [[nodiscard]] std::uint64_t identity() const { // 0: not proved yet
    return handshake_.proved() ? handshake_.peer().identity : 0;
  }
  [[nodiscard]] KeyUse use() const { return handshake_.use(); }
  [[nodiscard]] bool is_subflow() const { return handshake_.subflow(); }
  // When its handshake has ended well: it is over with that.
  [[nodiscard]] std::unique_ptr<Stream> take_stream();

private:
  void enter(Stage next);
  void connect();
  void out_of_patience();
  std::uint64_t shake();
  std::uint64_t send();
  void closed(const Transfer& how);
  void answer();
  std::uint64_t linger();

  Owner& owner_;
  Role role_;
  Handshake handshake_;
  Stage stage_;
  const Loop::Time born_;
  std::unique_ptr<Stream> stream_; // none: it is over
  Purpose purpose_;
  std::string address_;
  bool via_;
  bool relayed_;
  double handshake_s_;
  double patience_s_;
  Timer patience_;
  bool accepted_ = false;
  bool said_all_ = false;
  bool bound_ = false; // the handshake, to the connection
};

// Begins to make a connection; what becomes of it is told to who owns those.
using Dial = std::function<Result<void>(const Address& to, PendingLink::Purpose why)>;

} // namespace parc::daemon
