// SPDX-License-Identifier: BSD-3-Clause
// The streams of a link beside the first one (protocol/subflows.cpp): how many there should be, when one is
// dialed, doubted, closed. Only where the first one is direct, and only by the side that has dialed it: the
// other one asks for them.
//
// It makes no connection itself: it says when one should be tried.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/link/peer_link.hpp"
#include "daemon/link/stream_count.hpp"
#include "protocol/engine.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace parc::daemon {

class LinkStreams {
public:
  struct Needs {
    Loop& loop;
    protocol::Engine& engine;
    std::uint32_t link = 0;                  // in the engine
    unsigned fixed = 0;                      // so many; 0: as its path shows
    std::function<void()> dial;              // tries once; dial_ended() follows
    std::function<void(unsigned count)> ask; // the other side
  };
  explicit LinkStreams(Needs needs);

  void carried(const PeerLink& first, bool dialed); // the link has this one
  void parted() { first_ = nullptr; }
  void began(PeerLink& subflow);
  void closed(const PeerLink& subflow, const Error& why);
  void dial_ended(const Error& why); // code 0: there is one
  void asked(unsigned count);        // by the other side
  void sent();                       // something, over any of them
  void end();                        // the link does: all are closed

  [[nodiscard]] unsigned count() const { return 1 + static_cast<unsigned>(subflows_.size()); }
  [[nodiscard]] bool may_dial() const { // at this moment
    return first_ != nullptr && dialed_ && first_->way() == LinkWay::Direct;
  }
  [[nodiscard]] std::uint64_t bytes_heard() const; // over any that there ever was

private:
  struct Subflow {
    PeerLink* connection;
    Loop::Time since;
    bool waits = false; // something was under way when it was last looked at,
    std::uint64_t acknowledged = 0;
    Loop::Time moved_at = {}; // and since then nothing of that was acknowledged
    std::optional<Loop::Time> doubted_since = {}, retired_at = {};
  };

  void tick();
  void look_at_subflows(const protocol::Link& link, Loop::Time now);
  void count_streams(const protocol::Link& link, Loop::Time now);
  void follow();
  void use(unsigned all);
  void retire(Subflow& subflow, bool retired);
  void pause(bool longer);
  [[nodiscard]] bool held_up() const;
  [[nodiscard]] unsigned used() const;
  [[nodiscard]] bool is_over(const Subflow& subflow, Loop::Time now) const;
  [[nodiscard]] const protocol::Subflow& of(const Subflow& subflow) const;

  Needs needs_;
  const PeerLink* first_ = nullptr; // none: parted
  bool dialed_ = false;
  std::vector<Subflow> subflows_;
  StreamCount count_;
  unsigned asked_ = 1, told_ = 1;
  unsigned dialing_ = 0;
  double pause_s_ = 0;
  bool ticks_ = false, ticks_slowly_ = false;
  bool waits_ = false; // before another try
  Loop::Time looked_at_{};
  std::uint64_t bytes_acknowledged_ = 0, bytes_moved_ = 0; // of the link, when it was last looked at
  std::uint64_t first_acknowledged_ = 0;
  Loop::Time first_moved_at_{};
  Timer tick_;
  Timer again_;
};

} // namespace parc::daemon
