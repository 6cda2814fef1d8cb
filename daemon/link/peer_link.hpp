// SPDX-License-Identifier: BSD-3-Clause
// One connection to another kernel: connecting, shaking hands, carrying a session's bytes. It moves them
// between its stream and the engine's plans and decides nothing.
#pragma once

#include "daemon/event.hpp"
#include "daemon/link/handshake.hpp"
#include "daemon/link/path_gauge.hpp"
#include "daemon/link/stream.hpp"
#include "protocol/engine.hpp"
#include "system/error.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace parc::daemon {

class HostSession;
class Kernel;

class PeerLink {
public:
  enum class State : std::uint8_t { connecting, shaking, up, lingering, closed };

  // Why this side dialed: for somebody who asked for a host by its name, or for a session to go on.
  struct Purpose {
    std::string host = {};
    std::uint64_t session = 0; // the identity of the other kernel
    bool listened = false;     // there, when it was last heard of
    double patience_s = 0;     // with its connecting
  };
  // A connection that came in, or one that is being made.
  PeerLink(Kernel& kernel, const Key& key, std::unique_ptr<Stream> accepted);
  PeerLink(Kernel& kernel, const Key& key, Purpose purpose, std::unique_ptr<Stream> connecting);

  std::uint64_t read();  // shakes hands, or takes what has arrived, within the turn's budget
  std::uint64_t write(); // sends what the engine has to say

  void close(Error why); // tells Peers; the object goes at the step's end

  [[nodiscard]] State state() const { return state_; }
  // It came from outside and has not proved the key, or has been refused.
  [[nodiscard]] bool is_stranger() const {
    return role_ == Role::Acceptor && !accepted_ && (state_ == State::shaking || state_ == State::lingering);
  }
  [[nodiscard]] std::chrono::steady_clock::time_point born() const { return born_; }
  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] const Purpose& purpose() const { return purpose_; }
  [[nodiscard]] const Address& peer_address() const { return stream_->peer(); } // until it is closed
  [[nodiscard]] const std::string& address() const { return address_; }         // the same in words, for good
  [[nodiscard]] const Handshake& handshake() const { return handshake_; }
  [[nodiscard]] std::uint64_t identity() const { return handshake_.peer().identity; }
  [[nodiscard]] bool accepted_by_us() const {
    return accepted_;
  } // a verdict is given; the other side's may be due
  [[nodiscard]] std::uint32_t index() const { return index_; } // in the engine, once up
  [[nodiscard]] std::uint32_t rtt_us() const { return rtt_us_; }
  enum class Path : std::uint8_t { quiet, waits, seems_dead };
  // What its stream knows: nothing is under way; something is; the other host has not answered for several
  // times.
  [[nodiscard]] Path path() const;
  // When the other host gave a sign of life, as far as its stream knows; from the close on.
  [[nodiscard]] std::chrono::steady_clock::time_point last_heard() const { return last_heard_; }

private:
  void be_patient(double patience_s);
  void connect();
  void out_of_patience();
  void resumed();
  std::uint64_t prepare();
  std::uint64_t shake();
  std::uint64_t linger();
  std::uint64_t send_handshake();
  void go_up();
  void broke(const Transfer& how);
  void measure_path();

  Kernel& kernel_;
  Role role_;
  Handshake handshake_;
  State state_;
  const std::chrono::steady_clock::time_point born_ = std::chrono::steady_clock::now();
  std::unique_ptr<Stream> stream_; // none: it is closed
  Purpose purpose_;
  std::string address_;
  double patience_s_ = 0;
  Event patience_; // for connecting and shaking hands, and for what follows a refusal
  std::chrono::steady_clock::time_point last_heard_{};
  bool accepted_ = false;
  bool resumed_ = false;
  bool said_all_ = false;          // before it closes
  HostSession* session_ = nullptr; // while it is up: that it carries
  std::uint32_t index_ = 0;
  std::uint32_t rtt_us_ = 0;
  std::uint64_t bytes_to_measure_ = 0;
  PathGauge gauge_;
};

} // namespace parc::daemon
