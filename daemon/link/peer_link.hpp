// SPDX-License-Identifier: BSD-3-Clause
// One TCP connection to another kernel: connecting, shaking hands, carrying a session's bytes. It moves them
// between the socket and the engine's plans and decides nothing.
//
// Edge-triggered: a side that answered EAGAIN is left alone until the loop reports it again. A short read is
// no such answer: a reset that came behind the bytes may have been reported together with them, and only
// once.
#pragma once

#include "daemon/event.hpp"
#include "daemon/link/handshake.hpp"
#include "daemon/link/path_gauge.hpp"
#include "daemon/link/resolver.hpp"
#include "daemon/settings/config.hpp"
#include "protocol/engine.hpp"
#include "system/fd.hpp"

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
    double patience_s = 0;     // with its TCP
  };
  // An accepted connection, or one to be made.
  PeerLink(Kernel& kernel, const Key& key, Fd accepted);
  PeerLink(Kernel& kernel, const Key& key, Purpose purpose, Fd connecting, const Address& address);

  std::uint64_t read();  // takes what has arrived, within the turn's budget
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
  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] const std::string& address() const { return address_; } // in words
  [[nodiscard]] const Handshake& handshake() const { return handshake_; }
  [[nodiscard]] std::uint64_t identity() const { return handshake_.peer().identity; }
  [[nodiscard]] bool accepted_by_us() const {
    return accepted_;
  } // a verdict is given; the other side's may be due
  [[nodiscard]] std::uint32_t index() const { return index_; } // in the engine, once up
  [[nodiscard]] std::uint32_t rtt_us() const { return rtt_us_; }
  enum class Path : std::uint8_t { quiet, waits, seems_dead };
  // What TCP knows: nothing is under way; something is; the other host has not answered for several times.
  [[nodiscard]] Path path() const;
  // When the other host gave a sign of life, as far as TCP knows; from the close on.
  [[nodiscard]] std::chrono::steady_clock::time_point last_heard() const { return last_heard_; }

private:
  void watch(double patience_s);
  void ready(short what);
  void connected();
  void out_of_patience();
  void resumed();
  void shake();
  void linger();
  bool send_handshake();
  void go_up();
  void measure_path();
  void limit_silence();
  void choose_congestion(std::uint32_t min_rtt_us);
  void limit_flight(std::uint64_t bytes);

  Kernel& kernel_;
  Role role_;
  Handshake handshake_;
  State state_;
  const std::chrono::steady_clock::time_point born_ = std::chrono::steady_clock::now();
  Fd socket_;
  Purpose purpose_;
  std::string address_;
  Event event_;
  double patience_s_ = 0;
  Event patience_; // for connecting and shaking hands, and for what follows a refusal
  std::chrono::steady_clock::time_point last_heard_{};
  bool readable_ = false;
  bool writable_ = false;
  bool accepted_ = false;
  bool resumed_ = false;
  bool path_known_ = false;
  HostSession* session_ = nullptr; // while it is up: that it carries
  std::uint32_t index_ = 0;
  std::uint32_t rtt_us_ = 0;
  std::uint64_t bytes_to_measure_ = 0;
  PathGauge gauge_;
  std::uint32_t low_water_ = 0; // TCP_NOTSENT_LOWAT
  std::uint64_t flight_ = 0;    // how much may be unacknowledged
};

// What every socket between kernels is set to; and what those that listen or dial are, which those that come
// in inherit.
Result<void> prepare_socket(int fd);
Result<void> prepare_socket(int fd, const Config& config);

// Why connect() to an address did not succeed, with what to do about it.
Error connect_failure(int code, const std::string& address);

} // namespace parc::daemon
