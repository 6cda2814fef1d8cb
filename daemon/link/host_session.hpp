// SPDX-License-Identifier: BSD-3-Clause
// What this kernel knows of one other, beyond the connection that carries it at the moment. When that ends,
// or the path under it seems dead, others are tried with growing pauses. The other kernel is given up when
// there was no sign of life for link_timeout, or when its host answers for a second that no kernel is there.
// While a third kernel relays for want of another way, a direct one is tried now and then.
//
// It makes no connection itself: it says when one should be tried.
#pragma once

#include "daemon/base/counters.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/link/candidates.hpp"
#include "daemon/link/handshake.hpp"
#include "daemon/link/link_streams.hpp"
#include "protocol/objects.hpp"
#include "system/error.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>

namespace parc::daemon {

class PeerLink;

class HostSession {
public:
  struct Identity {
    std::uint64_t host = 0;   // of the other kernel, as Peer has it
    std::uint32_t number = 0; // of the session, from 1: rises each time that one of the two gave it up
    std::string name;         // as the host calls itself
  };
  struct Events {
    std::function<void()> dial;         // tries once; dial_ended() follows
    std::function<void()> improve;      // tries once beside the connection, where no other kernel relays
    std::function<void(Error)> give_up; // may be called from inside any call of this; the session stays
    std::function<void(std::uint64_t number)> ping; // pong() follows, where the other kernel lives
    std::function<void(Error)> silent;              // its connection is to be closed
  };

  // `seed`: of its pauses; not the same on both sides.
  HostSession(Loop& loop, Identity identity, std::uint32_t link, std::chrono::seconds link_timeout,
              std::uint64_t seed, Events events, LinkStreams::Needs streams);

  // It has a connection, number `carrier`; `dialed`: this side made it.
  void carried(PeerLink& by, std::uint64_t carrier, bool dialed);
  void resumed(); // over that, both know what the other has
  void parted(const Error& why, Loop::Time last_heard);
  // Code 0: there is a connection. `refused`: there is no such kernel any more where it was met.
  void dial_ended(const Error& why, bool refused);
  void lives() { refused_since_.reset(); } // as its key proves, on a connection that is not up yet
  void pong(std::uint64_t number);
  void sent();                  // something that is to be acknowledged
  void stalled() { ++stalls_; } // there was more to send than its connection took
  void publish(Counters& counters, const protocol::Link& link);

  [[nodiscard]] const Identity& identity() const { return identity_; }
  [[nodiscard]] bool only_relays() const { return drawn_identity(identity_.host) != identity_.host; }
  [[nodiscard]] KeyUse use() const { return only_relays() ? KeyUse::relay : KeyUse::link; } // of its key
  [[nodiscard]] std::uint32_t rtt_us() const;                        // as TCP last measured it; 0: not yet
  [[nodiscard]] std::uint32_t lowest_rtt_us() const;                 // of this path, likewise
  [[nodiscard]] std::uint32_t link() const { return link_; }         // in the engine
  [[nodiscard]] PeerLink* connection() const { return connection_; } // none: parted
  [[nodiscard]] bool is_near() const { return near_; }               // nobody relayed the last one
  [[nodiscard]] bool is_makeshift() const; // it has a connection, and a direct one is to take its place
  // Not long ago, for a direct connection: where that is in vain, the relay is the better way.
  [[nodiscard]] bool has_left_relay() const;
  void improve_soon(); // its makeshift connection, unless that has been tried
  [[nodiscard]] std::uint64_t carrier() const { return carrier_; } // the number of the last one
  [[nodiscard]] LinkStreams& streams() { return streams_; }        // beside that
  [[nodiscard]] const LinkStreams& streams() const { return streams_; }
  [[nodiscard]] Candidates& candidates() { return candidates_; } // where to dial it
  [[nodiscard]] const Candidates& candidates() const { return candidates_; }
  [[nodiscard]] double patience_s() const;                // with the TCP of the other host, for the next dial
  [[nodiscard]] unsigned dials() const { return dials_; } // since the last connection
  [[nodiscard]] bool doubted() const { return doubted_; } // its path seems dead: another is tried

private:
  void look();
  void begin_pulse();
  void beat();
  void dial_later();
  void count_improvement(bool was_makeshift, bool is_makeshift);
  void improve_later();

  Loop& loop_;
  Identity identity_;
  std::uint32_t link_;
  std::chrono::seconds link_timeout_;
  Events events_;
  PeerLink* connection_ = nullptr;
  std::uint64_t carrier_ = 0;
  std::uint32_t rtt_us_ = 0, lowest_rtt_us_ = 0; // of connections that have ended
  std::uint64_t stalls_ = 0;
  bool dialed_ = false;
  bool near_ = false;
  bool doubted_ = false;
  bool watching_ = false; // look_ is set
  bool dialing_ = false;  // a try is under way or will be
  Loop::Time parted_at_;
  std::optional<Loop::Time> refused_since_;
  std::uint64_t parted_bytes_ = 0, refused_bytes_ = 0; // that had been heard then, over any stream
  Candidates candidates_;
  bool ending_ = false; // end_ is set
  double pause_s_ = 0;
  unsigned dials_ = 0;
  unsigned silences_ = 0; // dials that nobody answered
  std::minstd_rand random_;
  unsigned improvements_ = 0;
  std::optional<Loop::Time> left_relay_at_;
  Timer dial_;
  Timer improve_;
  Timer end_;
  Timer look_;
  Timer pulse_; // of a connection whose path nobody measures
  double pulse_s_;
  std::uint64_t heard_bytes_ = 0; // at the last beat
  double silent_s_ = 0;
  std::uint64_t pings_ = 0;
  Loop::Time pinged_at_{};
  std::optional<LinkCounters> row_;
  LinkStreams streams_;
};

} // namespace parc::daemon
