// SPDX-License-Identifier: BSD-3-Clause
// The other hosts: listening, connecting on demand, one session per pair of kernels, and the connections that
// carry it one after another. Peers owns both; the engine owns what their bytes mean.
//
// A connection that has proved the key takes the place of an older one, in the order in which the smaller
// identity says so (handshake.hpp). Of two that are being made at once, the one that the smaller identity
// began stays.
//
// A stranger is who connected and has not proved the key. There are only so many at a time; others wait in
// the backlog until one goes, and the oldest has to when its time is over. Who connects tries again when the
// other side was not there yet or hung up on it.
#pragma once

#include "daemon/base/complaint.hpp"
#include "daemon/base/counters.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/link/endpoint_address.hpp"
#include "daemon/link/host_session.hpp"
#include "daemon/link/key.hpp"
#include "daemon/link/listeners.hpp"
#include "daemon/link/peer_link.hpp"
#include "daemon/link/pending_link.hpp"
#include "daemon/link/resolver.hpp"
#include "daemon/link/stream_maker.hpp"
#include "daemon/settings/config.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parc::daemon {

class Peers {
public:
  // A link's index in the engine, this_host, or why there is none.
  using Connected = std::function<void(Result<std::int32_t>)>;

  struct Hooks {
    // Called at a step's end. A link that is lost has been broken in the engine.
    std::function<void(std::uint32_t link)> link_up;
    std::function<void(std::uint32_t link)> link_lost;
  };
  // `config` may change (hosts_changed()); `self` needs no port.
  Peers(Loop& loop, protocol::Engine& engine, StreamMaker& streams, const Config& config, const Key& key,
        LocalHost self, Hooks hooks);
  ~Peers();

  // `predecessor`: the identity of the kernel that ran here before; 0: none known.
  void listen(ListensAt at, std::uint64_t predecessor);
  void stop(); // no session begins or goes on from here on
  // The kernel at that link has said what makes no sense, which ends the session with it.
  void said_nonsense(std::uint32_t link, const Error& why);
  [[nodiscard]] const LocalHost& self() const { return self_; }
  [[nodiscard]] LocalHost self_at(const Address& at) const; // for who connects there

  // Where a host is, by what somebody has found out; that counts until the settings are read again. There is
  // room for some thousands.
  void learn(const std::string& host, HostAddress address);
  struct NamedKernel {
    std::string name;
    std::int32_t link = this_host; // where it is one of this kernel
    EndpointAddress address;       // port 0: it listens nowhere
  };
  // The kernel at the link `from` is linked to those. A host that [hosts] names stays there.
  void learn(std::int32_t from, const std::vector<NamedKernel>& others);
  [[nodiscard]] std::vector<NamedKernel> linked() const; // to this one, at this moment
  // Finds or makes the session with a host by the name people use. `connected` is called once, later; who is
  // in haste hears at once that nobody listens there yet.
  void connect(const std::string& host, Connected connected, bool in_haste = false);
  // The same of a host that another kernel has named, with its address (as text; empty: not known), where
  // nothing is said of that name here.
  void connect(const std::string& host, const std::string& address, Connected connected);
  // The same with the kernel at an address that was handed on.
  void connect(const EndpointAddress& address, Connected connected);
  // To the kernel with that identity, or this_host; none: there is none at this moment.
  [[nodiscard]] std::optional<std::int32_t> link_to(std::uint64_t identity) const;
  [[nodiscard]] EndpointAddress describe(const protocol::Address& address) const; // for others to connect to
  [[nodiscard]] std::vector<std::string> known() const; // names of hosts, this one among them
  // Of the host at a link, or this one: its name; and the round trip that TCP last measured, or 0.
  [[nodiscard]] std::string name_of(std::int32_t link) const;
  [[nodiscard]] std::uint32_t rtt_us(std::int32_t link) const;

  std::uint64_t read();  // the turn's second step: takes what has arrived
  std::uint64_t write(); // the turn's fourth step

  void hosts_changed();                                                // [hosts] was read again
  [[nodiscard]] std::string key_text() const { return to_text(key_); } // for who may have it
  void publish(Counters& counters);

private:
  friend class PeerLink;
  friend class PendingLink;
  struct Attempt { // one host that somebody waits for
    struct Waiting {
      Connected connected;
      std::optional<Loop::Time> end; // no round begins later for it; none: it is in haste
    };
    std::string host;
    std::uint64_t wanted = 0; // the identity of the kernel that is to answer; 0: whoever does
    std::vector<Waiting> waiting;
    std::vector<Address> addresses;
    std::size_t next = 0;       // of the addresses, to try in this round
    std::uint64_t identity = 0; // known, and its other connection is about to be up
    std::string why;            // what was tried last failed
    bool may_change = false;    // soon: another round is worth it
    double pause_s = 0;         // before that
    std::optional<Timer> again;
    bool waits = false; // for it
  };

  Result<void> dial(const Address& address, PendingLink::Purpose purpose);
  void attempt(const std::string& host, Connected connected, bool in_haste);
  void attempt(const EndpointAddress& address, Connected connected);
  Attempt* begin_attempt(const std::string& host, Connected connected, std::optional<Loop::Time> end);
  [[nodiscard]] HostAddress address_of(const std::string& host) const;
  [[nodiscard]] std::vector<std::string> in_use() const;
  [[nodiscard]] const HostSession* session_named(const std::string& host) const;

  // peer_sessions.cpp
  HostSession& begin(const PendingLink& link, std::uint32_t number);
  HostSession::Way way_of(const PendingLink& link) const;
  void call_back(std::uint64_t identity);
  void call_back_now(std::uint64_t identity);
  void called_back(const PendingLink& link);
  [[nodiscard]] std::optional<Address> place_of(const HostSession& session) const;
  void redial(std::uint64_t identity);
  void redial_now(std::uint64_t identity, const Result<void>& found);
  void look_up(std::uint64_t identity, std::function<void(const Result<void>&)> then);
  void dial_again(HostSession& session, const Address& at);
  void redialed(const PendingLink& link, const Error& why);
  void end(std::uint64_t identity, const Error& why);
  HostSession* find(std::uint64_t identity) const;
  [[nodiscard]] const HostSession* session_at(std::int32_t link) const;

  bool room();
  void accept(std::unique_ptr<Stream> stream); // that somebody else has made to this kernel
  void resolved(const std::string& host, Result<std::vector<Address>> addresses);
  void begin_round(Attempt& attempt);
  void try_next(Attempt& attempt);
  void finish(const std::string& host, const Result<std::int32_t>& result);
  void answer(Connected connected, const Result<std::int32_t>& result);
  void reached(const PendingLink& link, std::uint32_t index);
  static void note(Attempt& attempt, const Error& why);
  [[nodiscard]] Loop::Time end_of_patience() const;
  void fail(Attempt& attempt, const Error& why);
  void established(const PendingLink& link, std::uint32_t index);
  bool finish_with_session(const PendingLink& link);
  void fail_waiting_for(std::uint64_t identity, const Error& why);

  // From PendingLink
  Verdict judge(const PendingLink& link);                     // its peer has proved the key
  std::uint32_t session_number(std::uint64_t identity) const; // that goes on, or would begin
  bool still_true(const PendingLink& link) const;
  std::uint64_t next_carrier(const PendingLink& link) const;
  bool adopt(PendingLink& link);         // its handshake has ended well; false: it is not needed
  void refused(const PendingLink& link); // its handshake failed, or ended by a verdict
  void failed(const PendingLink& link, bool was_refused, const Error& why);

  // From PeerLink
  void broke_rules(PeerLink& link, protocol::Refusal refusal);
  void closed(const PeerLink& link, const Error& why);

  Loop& loop_;
  protocol::Engine& engine_;
  const Config& config_;
  Key key_;
  LocalHost self_;
  Hooks hooks_;
  Resolver resolver_;
  StreamMaker& streams_;
  ListensAt listens_;
  Complaint refused_;
  Complaint dropped_;
  std::vector<std::unique_ptr<PendingLink>> pending_; // the oldest first
  std::vector<std::unique_ptr<PeerLink>> links_;
  std::map<std::uint64_t, std::unique_ptr<HostSession>> sessions_; // by identity
  std::map<std::uint64_t, std::uint32_t> ended_;    // the number of the last session, by identity
  std::map<std::string, Attempt> attempts_;         // by host
  std::map<std::string, std::uint64_t> identities_; // of hosts reached before, by the name used
  std::map<std::string, HostAddress> learned_;      // by name
  std::uint64_t links_refused_ = 0;                 // or closed for a malformed frame
  bool stopping_ = false;
  bool swept_ = true; // nothing that is over is left in these
};

} // namespace parc::daemon
