// SPDX-License-Identifier: BSD-3-Clause
// The other hosts: where they are (HostDirectory), who waits for a link to them (Dialer), the sessions with
// their kernels (HostSessions), and between these the connections whose handshake is under way.
//
// Of two connections that are being made at once, the one that the smaller identity began stays.
//
// A stranger is who connected and has not proved the key. There are only so many at a time; others wait in
// the backlog until one goes, and the oldest has to when its time is over. Who connects tries again when the
// other side was not there yet or hung up on it.
#pragma once

#include "daemon/base/complaint.hpp"
#include "daemon/base/counters.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/link/dialer.hpp"
#include "daemon/link/endpoint_address.hpp"
#include "daemon/link/host_directory.hpp"
#include "daemon/link/host_sessions.hpp"
#include "daemon/link/key.hpp"
#include "daemon/link/listeners.hpp"
#include "daemon/link/locator.hpp"
#include "daemon/link/pending_link.hpp"
#include "daemon/link/stream_maker.hpp"
#include "daemon/settings/config.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parc::daemon {

class Peers final : PendingLink::Owner {
public:
  using Connected = Dialer::Connected;

  // `config` may change (hosts_changed()); `self` needs no port; `tunnels`: none: nobody is behind one.
  Peers(Loop& loop, protocol::Engine& engine, StreamMaker& streams, const Config& config, const Keys& keys,
        LocalHost self, HostSessions::Events events, Tunnels* tunnels = nullptr);

  void listen(ListensAt at, const Predecessors& predecessors);
  void stop() { sessions_.stop(); } // no session begins or goes on from here on
  // The kernel at that link has said what makes no sense, which ends the session with it.
  void pong(std::int32_t link, std::uint64_t number) { sessions_.pong(link, number); }
  void asked_streams(std::int32_t link, unsigned count) { sessions_.asked_streams(link, count); }
  void said_nonsense(std::uint32_t link, const Error& why) { sessions_.said_nonsense(link, why); }
  [[nodiscard]] const LocalHost& self() const { return self_; }

  // Where a host is, by what somebody has found out; that counts until the settings are read again. There is
  // room for some thousands.
  void learn(const std::string& host, HostAddress address) { directory_.learn(host, std::move(address)); }
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
  void connect(const std::string& host, Connected connected, Dialer::Wish wish = {});
  // The same of a host that another kernel has named, with its address (as text; empty: not known), where
  // nothing is said of that name here.
  void connect(const std::string& host, const std::string& address, Connected connected);
  // The same with the kernel at an address that was handed on.
  void connect(const EndpointAddress& address, Connected connected);
  // To the kernel with that identity, or this_host; none: there is none at this moment.
  [[nodiscard]] std::optional<std::int32_t> link_to(std::uint64_t identity) const;
  [[nodiscard]] EndpointAddress describe(const protocol::Address& address) const; // for others to connect to
  // Where parc is installed on other hosts, by their names, likewise.
  [[nodiscard]] std::vector<std::array<std::string, 2>> prefixes() const;
  [[nodiscard]] std::vector<std::string> relays() const;           // hosts that only relay, as [hosts] says
  [[nodiscard]] HostPlace place_of(const std::string& host) const; // as [hosts] says
  [[nodiscard]] std::vector<std::string> known() const;            // names of hosts, this one among them
  // Of the host at a link, or this one: its name; and the lowest round trip of its path, or 0.
  [[nodiscard]] std::string name_of(std::int32_t link) const;
  [[nodiscard]] std::uint32_t rtt_us(std::int32_t link) const;
  [[nodiscard]] std::uint64_t identity_of(std::int32_t link) const; // of the kernel there; 0: there is none
  // Links that are up and not relayed: to the kernel with that identity, or, where that is 0, that name; and
  // some of all, the shortest round trip first.
  [[nodiscard]] std::optional<std::int32_t> near_link(std::uint64_t identity, const std::string& name) const;
  [[nodiscard]] std::vector<std::int32_t> near_links() const;
  [[nodiscard]] bool only_relays(std::int32_t link) const; // it has proved a relay key, and no other
  [[nodiscard]] bool may_ask(std::int32_t link) const;     // for relaying
  [[nodiscard]] bool is_near(std::int32_t link) const;     // it is not relayed itself
  // The link there is for relaying, as [hosts] says, or because this kernel holds no other key.
  [[nodiscard]] bool is_for_relaying(const std::string& host) const { return use_for(host) == KeyUse::relay; }
  [[nodiscard]] SshAddress configured_ssh(const std::string& host) const { // of [hosts]
    return directory_.configured_ssh(host);
  }
  [[nodiscard]] bool is_via(const std::string& host) const { // as [hosts] says
    return !directory_.address_of(host).via.relay.empty();
  }
  // How that host is reached at this moment: "direct", "ssh" or "relay"; empty: it is not, or it is this one.
  [[nodiscard]] std::string way_of(std::int32_t link) const;
  [[nodiscard]] bool encrypted(std::int32_t link) const;
  [[nodiscard]] unsigned streams_of(std::int32_t link) const;      // that it has at this moment
  [[nodiscard]] std::string way_to(const std::string& host) const; // by the name people use

  std::uint64_t read();                               // the turn's second step: takes what has arrived
  std::uint64_t write() { return sessions_.write(); } // the turn's fourth step

  void hosts_changed() { directory_.forget(); } // [hosts] was read again: a host may have another address
  void use(const Keys& keys); // from now on; connections that were made with others are made anew
  [[nodiscard]] const Keys& keys() const { return keys_; } // for who may have them
  void publish(Counters& counters);

private:
  void reach(const EndpointAddress& address, Connected connected, bool relayed);
  [[nodiscard]] KeyUse use_for(const std::string& host) const;
  [[nodiscard]] Connected whole(const std::string& host, Connected connected);
  [[nodiscard]] bool has_room_for(const PendingLink& link, bool known) const;
  [[nodiscard]] bool holds(const Key& key) const;
  [[nodiscard]] LocalHost self_at(const Address& at) const; // for who connects there
  [[nodiscard]] std::vector<std::string> in_use() const;
  [[nodiscard]] PendingLink::Shared shared();
  bool room();
  void accept(std::unique_ptr<Stream> stream);
  Result<void> dial(const Address& address, PendingLink::Purpose purpose);
  [[nodiscard]] Dial dialing();
  [[nodiscard]] bool is_answered(std::uint64_t attempt) const;
  void drop(std::uint64_t attempt);
  [[nodiscard]] const PeerLink* connection_of(std::int32_t link) const;
  [[nodiscard]] bool shakes_hands_elsewhere(std::uint64_t identity) const;
  [[nodiscard]] bool has_hope_of(std::uint64_t identity) const;
  void redialed(const PendingLink& link, const Error& why);

  Verdict judge(const PendingLink& link) override;
  std::uint32_t session_number(std::uint64_t identity) const override { return sessions_.number(identity); }
  bool still_true(const PendingLink& link) const override {
    return holds(link.handshake().key()) && sessions_.still_true(link);
  }
  std::uint64_t next_carrier(const PendingLink& link) const override { return sessions_.next_carrier(link); }
  bool adopt(PendingLink& link) override;
  void refused(const PendingLink& link) override;
  void turned_away(const Error& who);
  void failed(const PendingLink& link, bool was_refused, const Error& why) override;

  Loop& loop_;
  StreamMaker& streams_;
  const Config& config_;
  Keys keys_;
  std::vector<Credential> credentials_; // the same, and what is derived from them
  LocalHost self_;
  ListensAt listens_;
  Locator locator_;
  HostDirectory directory_;
  HostSessions sessions_;
  Dialer dialer_;
  Complaint refused_;
  Complaint dropped_;
  std::vector<std::unique_ptr<PendingLink>> pending_; // the oldest first
  std::uint64_t strangers_refused_ = 0;
  bool swept_ = true; // nothing that is over is left in `pending_`
};

} // namespace parc::daemon
