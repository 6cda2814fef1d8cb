// SPDX-License-Identifier: BSD-3-Clause
// One connection to another kernel, from the end of its handshake on: it carries a session's bytes, or some
// of them as a subflow. It moves them between its stream and the engine's plans and decides nothing.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/link/link_secrets.hpp"
#include "daemon/link/path_gauge.hpp"
#include "daemon/link/stream.hpp"
#include "daemon/link/train_timer.hpp"
#include "protocol/engine.hpp"
#include "system/error.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace parc::daemon {

class HostSession;

class PeerLink {
public:
  class Owner { // of the connections of all sessions
  public:
    virtual void broke_rules(PeerLink& link, protocol::Refusal refusal) = 0;
    virtual void closed(const PeerLink& link, const Error& why) = 0; // the object goes at the step's end

  protected:
    ~Owner() = default;
  };
  // The session outlives it, or closes it.
  PeerLink(Owner& owner, Loop& loop, protocol::Engine& engine, HostSession& session,
           std::unique_ptr<Stream> stream, KeyName key, std::uint32_t subflow = 0);

  std::uint64_t read();  // takes what has arrived, within the turn's budget
  std::uint64_t write(); // sends what the engine has to say

  void close(Error why); // tells its owner

  [[nodiscard]] bool open() const { return stream_ != nullptr; }
  [[nodiscard]] std::string local_host() const { return open() ? stream_->local().host() : std::string(); }
  [[nodiscard]] std::uint32_t subflow() const { return subflow_; } // of the session's link; 0: its first one
  [[nodiscard]] std::optional<Address> peer_address() const {
    return open() ? std::optional(stream_->peer()) : std::nullopt;
  }
  [[nodiscard]] LinkWay way() const;
  [[nodiscard]] bool is_makeshift() const { // nobody has asked for that way
    return open() && stream_->peer().relayed() && !stream_->is_ordered();
  }
  [[nodiscard]] bool encrypted() const { return encrypted_; }
  [[nodiscard]] KeyName key() const { return key_; }              // that it was made with
  [[nodiscard]] HostSession& session() const { return session_; } // while it is open
  [[nodiscard]] std::uint32_t rtt_us() const { return rtt_us_; }  // as last measured
  [[nodiscard]] std::uint32_t lowest_rtt_us() const { return lowest_rtt_us_; }
  [[nodiscard]] bool held_up() const { return held_up_; } // PathReport's, as last measured
  // Whether its stream knows what the path is like. Where it does not, its owner asks the other side.
  [[nodiscard]] bool is_measured() const { return open() && stream_->path().has_value(); }
  void took_round_trip(std::chrono::microseconds time);
  [[nodiscard]] std::uint64_t bytes_heard() const { return bytes_heard_; }
  enum class Path : std::uint8_t { quiet, waits, seems_dead };
  // What its stream knows: nothing is under way; something is; the other host has not answered for several
  // times.
  [[nodiscard]] Path path() const;
  // When the other host gave a sign of life, as far as its stream knows; from the close on.
  [[nodiscard]] Loop::Time last_heard() const { return last_heard_; }

private:
  [[nodiscard]] std::uint64_t bytes_a_turn() const;
  void resumed();
  void broke(const Transfer& how);
  void measure_path();
  void time_trains();
  bool gauge(PathSample sample);
  void take(const PathReport& report);

  Owner& owner_;
  Loop& loop_;
  protocol::Engine& engine_;
  HostSession& session_;
  std::unique_ptr<Stream> stream_; // none: it is closed
  const std::uint32_t index_;      // in the engine
  const std::uint32_t subflow_;
  const KeyName key_;
  bool resumed_ = false;
  const bool encrypted_;
  std::uint32_t rtt_us_ = 0, lowest_rtt_us_ = 0; // 0: not measured yet
  bool held_up_ = true;
  std::uint64_t bytes_heard_ = 0;
  std::uint64_t bytes_to_measure_ = 0, unbroken_ = 0; // PathSample
  PathGauge gauge_;
  const bool times_trains_; // its stream knows nothing of the path
  TrainTimer timer_;
  bool was_full_ = false; // of what the timer has seen
  Loop::Time last_heard_{};
};

} // namespace parc::daemon
