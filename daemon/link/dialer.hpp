// SPDX-License-Identifier: BSD-3-Clause
// Hosts that somebody waits for a link to: their names are looked up and their addresses dialed, the next one
// beside those that have not answered after a moment (RFC 8305), in rounds, as long as another round may find
// what this one did not: a kernel that is only about to listen, or one that hung up.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/link/endpoint_address.hpp"
#include "daemon/link/host_directory.hpp"
#include "daemon/link/host_sessions.hpp"
#include "daemon/link/locator.hpp"
#include "daemon/link/pending_link.hpp"
#include "daemon/settings/config.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace parc::daemon {

class Dialer {
public:
  // A link's index in the engine, this_host, or why there is none.
  using Connected = std::function<void(Result<std::int32_t>)>;

  struct Needs {
    Loop& loop;
    Locator& locator;
    const Config& config;
    HostDirectory& directory;
    const HostSessions& sessions;
    Dial dial;
    // Of the connections that an attempt is making: whether one has been answered; and those are not needed.
    std::function<bool(std::uint64_t attempt)> answered;
    std::function<void(std::uint64_t attempt)> drop;
  };
  explicit Dialer(Needs needs) : needs_(std::move(needs)) {}

  // `connected` is called once, at a step's end; who is in haste hears at once that nobody listens there yet.
  // `relayed`: where nothing else leads there, those that this one is linked to may relay; `identity`: that
  // of the kernel, if it is known; `to_relay`: a link is wanted that is good for that, at least; `use`: of
  // the key that is proved there, which Peers knows.
  struct Wish {
    bool in_haste = false;
    bool relayed = true;
    std::uint64_t identity = 0;
    bool to_relay = false;
    KeyUse use = KeyUse::link;
  };
  void reach(const std::string& host, Connected connected, Wish wish);
  void reach(const EndpointAddress& address, Connected connected,
             bool relayed); // nobody has to know its name
  void answer(Connected connected, const Result<std::int32_t>& result);

  // What became of a connection that was being made, on whose side ever.
  void established(const PendingLink& link, std::int32_t index);
  void refused(const PendingLink& link, const Error& why);
  void failed(const PendingLink& link, const Error& why);
  void ended(std::uint64_t identity, const Error& why); // none to that kernel is there or under way any more

private:
  struct Attempt { // one host that somebody waits for
    struct Waiting {
      Connected connected;
      std::optional<Loop::Time> end; // no round begins later for it; none: it is in haste
      std::uint64_t meant = 0;       // the identity of the kernel that it wants; 0: whoever has the name
    };
    std::string host;
    std::uint64_t number = 0; // of all attempts
    std::uint64_t wanted = 0; // the identity of the kernel that is to answer; 0: whoever does
    KeyUse use = KeyUse::link;
    std::vector<Waiting> waiting;
    bool tunnelled = false;             // each round asks for the tunnel again
    bool is_called = false;             // the other side has to dial
    bool locating = false;              // its addresses are being found out
    std::optional<Address> relay;       // to be tried once, when those of its own are of no use
    std::optional<Address> relay_asked; // which is being tried, or was
    bool relay_silent = false;          // nobody has answered: in the next round again
    Loop::Time relay_from{};            // while its own may become of some
    Loop::Time relay_since{};           // it is being tried
    std::vector<Address> addresses;
    std::size_t next = 0;           // of the addresses, to try in this round
    unsigned under_way = 0;         // connections that are being made
    unsigned rounds = 0;            // that have begun
    bool is_here = false;           // one of the addresses is this kernel's
    std::optional<Timer> stagger;   // then the next one is dialed beside them
    std::uint64_t identity = 0;     // known, and its other connection is about to be up
    std::optional<Error> not_found; // its name leads nowhere
    std::string why;                // what was tried last failed
    bool may_change = false;        // soon: another round is worth it
    double pause_s = 0;             // before that
    std::optional<Timer> again;
    bool waits = false; // for it
  };

  Attempt* begin(const std::string& host, Attempt::Waiting waiting);
  Attempt* find(const std::string& host);
  void resolved(const std::string& host, Result<std::vector<Address>> addresses);
  void locate(Attempt& attempt);
  [[nodiscard]] bool leads_through_tunnel(const Attempt& attempt) const;
  void begin_round(Attempt& attempt);
  bool try_relay(Attempt& attempt);
  void try_next(Attempt& attempt);
  bool dial(Attempt& attempt, const Address& address, double patience_s);
  Attempt* find(const PendingLink& link);
  void finish(const std::string& host, const Result<std::int32_t>& result);
  bool finish_with_session(const PendingLink& link);
  void reached(const PendingLink& link, std::int32_t index);
  void called(const PendingLink& link, std::int32_t index);
  [[nodiscard]] bool is_to_call(const std::string& host) const;
  void await_call(Attempt& attempt);
  static void note(Attempt& attempt, const Error& why);
  void fail(Attempt& attempt, const Error& why);
  void fail(Attempt& attempt, const Error& why, const PendingLink& link);
  void no_relay(Attempt& attempt, const Error& why);
  void go_on(Attempt& attempt, const Error& why);
  [[nodiscard]] Loop::Time end_of_patience() const;

  Needs needs_;
  std::map<std::string, Attempt> attempts_; // by host
  std::uint64_t numbers_ = 0;
};

} // namespace parc::daemon
