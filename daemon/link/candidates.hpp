// SPDX-License-Identifier: BSD-3-Clause
// The addresses where another kernel may be, each with where it came from and when that kernel last answered
// there to a dial of this one: only there a refusal tells that it has ended. Pure: no clock, no socket.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/link/address.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parc::daemon {

struct Candidate {
  enum class Source : std::uint8_t {
    dialed,      // this side has reached it there
    called_back, // the same, only to see whether it answers: whether others can is not known
    seen,        // its connection came from that host, and it says that it listens at that port
    advertised,  // it says that others reach it there
    resolved,    // its name was looked up
    relayed      // others had a link there
  };
  Address address;
  Source source;
  std::optional<Loop::Time> answered; // none: it never has, as far as this side knows
};

class Candidates {
public:
  // Of the same kernel: this side's dial to that address ended with it.
  void answered(const Address& at, Loop::Time when);
  void answered_back(const Address& at, Loop::Time when); // the connection was not needed
  void relayed(const Address& by) { put(Source::relayed, by); }
  void seen(const Address& at) { put(Source::seen, at); }
  void advertised(std::optional<Address> at);     // none: it says so no more
  void resolved(const std::vector<Address>& all); // in place of what was before
  void named(const std::string& name) { name_ = name; }

  // The name that people used last for it; empty: none.
  [[nodiscard]] const std::string& name() const { return name_; }
  // Where to dial it at the `turn`-th time, from 0: in turn where its name was found and where it is known to
  // listen. `by_name`: the latter is not for this host, unless it answered there and no name was found.
  [[nodiscard]] std::optional<Address> dial(unsigned turn, bool by_name) const;
  // All of these but for relays.
  [[nodiscard]] std::vector<Address> places(bool by_name) const;
  [[nodiscard]] std::optional<Address> relay() const; // where others had a link there; none: nobody had
  // The near end of the tunnel through which it has answered last; none: it has answered otherwise.
  [[nodiscard]] std::optional<Address> tunnel() const;
  [[nodiscard]] bool has_answered_at(const Address& at) const;
  [[nodiscard]] std::optional<Address> for_others() const; // where they are told that it listens
  [[nodiscard]] bool known() const { return listens_at().has_value(); }

private:
  using Source = Candidate::Source;
  [[nodiscard]] const Candidate* find(Source source) const;
  [[nodiscard]] const Candidate* last_answered() const;
  [[nodiscard]] std::optional<Address> listens_at() const;
  void put(Source source, const Address& at);
  void drop(Source source);

  std::string name_;
  std::vector<Candidate> all_; // one of each source, many resolved; what came last is last
};

} // namespace parc::daemon
