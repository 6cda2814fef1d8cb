// SPDX-License-Identifier: BSD-3-Clause
// One session per pair of kernels, and the connections that carry it one after another. The engine owns what
// their bytes mean.
//
// A connection that has proved the key takes the place of an older one, in the order in which the smaller
// identity says so (handshake.hpp).
#pragma once

#include "daemon/base/counters.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/link/host_directory.hpp"
#include "daemon/link/host_session.hpp"
#include "daemon/link/locator.hpp"
#include "daemon/link/peer_link.hpp"
#include "daemon/link/pending_link.hpp"
#include "daemon/settings/config.hpp"
#include "protocol/engine.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parc::daemon {

class HostSessions final : PeerLink::Owner {
public:
  struct Needs {
    Loop& loop;
    protocol::Engine& engine;
    const Config& config;
    Locator& locator;
    const HostDirectory& directory;
    std::uint64_t self; // this kernel's identity
    Dial dial;
    std::function<KeyUse()> keys_are; // of this kernel
  };
  struct Events { // at a step's end; a link that is lost has been broken in the engine
    std::function<void(std::uint32_t link)> link_up;
    std::function<void(std::uint32_t link)> link_lost;
    std::function<void(std::uint32_t link, std::uint64_t number)> ping;  // pong() follows
    std::function<void(std::uint32_t link, unsigned count)> ask_streams; // the other kernel is to make them
  };
  HostSessions(Needs needs, Events events);

  void stop() { stopping_ = true; } // no session begins or goes on from here on
  [[nodiscard]] bool stopping() const { return stopping_; }

  // By the identity of the other kernel; none: there is no session with it at this moment.
  [[nodiscard]] const HostSession* find(std::uint64_t identity) const;
  // The link of a session that has a connection.
  [[nodiscard]] std::optional<std::int32_t> carried(std::uint64_t identity) const;
  [[nodiscard]] const HostSession* at(std::int32_t link) const;
  // With the only kernel of that name that a link is up to, unless it is yet to be seen whether it is the
  // one; `use`: what the link is good for, at least.
  [[nodiscard]] const HostSession* named(const std::string& host, KeyUse use) const;
  // Likewise, with one whose connection may be about to be made anew.
  [[nodiscard]] const HostSession* expected(const std::string& host, KeyUse use) const;
  [[nodiscard]] const std::map<std::uint64_t, std::unique_ptr<HostSession>>& all() const { return sessions_; }
  [[nodiscard]] bool any_near() const; // that may relay, now or soon
  [[nodiscard]] bool full() const;
  [[nodiscard]] std::size_t relaying() const; // so many have proved no more than a relay key
  [[nodiscard]] bool is_guest(const PendingLink& link) const;

  // For a handshake that is under way: the number of the session that goes on, or would begin, and that of
  // the connection that would carry it.
  [[nodiscard]] std::uint32_t number(std::uint64_t identity) const;
  [[nodiscard]] std::uint64_t next_carrier(const PendingLink& link) const;
  [[nodiscard]] bool still_true(const PendingLink& link) const;
  // One has ended well: the link of its session; none: it is not needed.
  std::optional<std::uint32_t> adopt(PendingLink& link);
  // One more connection of a session has ended well; false: it is not needed.
  bool adopt_subflow(PendingLink& link);
  [[nodiscard]] Verdict judge_subflow(const PendingLink& link) const;
  void subflow_failed(const PendingLink& link, const Error& why);
  void asked_streams(std::int32_t link, unsigned count);
  void keys_changed(const std::vector<Credential>& keys); // what was made with others is made anew
  // What a session dialed ended so; code 0: with a connection. `lives`: that kernel shakes hands elsewhere.
  void redialed(const PendingLink& link, const Error& why, bool lives);
  void called_back(const PendingLink& link); // it answers there

  void pong(std::int32_t link, std::uint64_t number);
  void said_nonsense(std::uint32_t link, const Error& why); // which ends the session
  std::uint64_t read();
  std::uint64_t write();
  [[nodiscard]] std::uint64_t refused() const { return refused_; } // links, for a malformed frame or message
  void publish(Counters& counters);

private:
  HostSession* look(std::uint64_t identity) const;
  template <class Counts> const HostSession* only(const std::string& host, Counts counts) const;
  HostSession& begin(const PendingLink& link, std::uint32_t number);
  void carry(HostSession& session, PendingLink& link);
  [[nodiscard]] PeerLink& make_link(HostSession& session, PendingLink& link, std::uint32_t subflow);
  [[nodiscard]] Candidates candidates_of(const PendingLink& link) const;
  void end(std::uint64_t identity, const Error& why);
  void silent(std::uint64_t identity, const Error& why);
  void broke_rules(PeerLink& link, protocol::Refusal refusal) override;
  void closed(const PeerLink& link, const Error& why) override;

  // host_redials.cpp
  void call_back(std::uint64_t identity);
  void call_back_now(std::uint64_t identity);
  void improve(std::uint64_t identity);
  void improve_now(std::uint64_t identity);
  [[nodiscard]] bool is_looked_up(const HostSession& session) const;
  [[nodiscard]] std::optional<Address> place_of(const HostSession& session) const;
  void redial(std::uint64_t identity);
  void redial_through(std::uint64_t identity, const Result<std::vector<Address>>& tunnel);
  void redial_now(std::uint64_t identity, const Result<void>& found);
  void look_up(std::uint64_t identity, std::function<void(const Result<void>&)> then);
  void dial_again(HostSession& session, const Address& at);
  void dial_subflow(std::uint64_t identity, std::uint32_t number);

  Needs needs_;
  Events events_;
  std::vector<std::unique_ptr<PeerLink>> links_;
  std::map<std::uint64_t, std::unique_ptr<HostSession>> sessions_; // by identity
  std::map<std::uint64_t, std::uint32_t> ended_; // the number of the last session, by identity
  std::deque<std::uint64_t> ended_relays_;       // of those, the oldest first
  std::uint64_t refused_ = 0;
  bool stopping_ = false;
  bool swept_ = true; // no link that is closed is left
};

} // namespace parc::daemon
