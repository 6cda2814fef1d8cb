// SPDX-License-Identifier: BSD-3-Clause
// What must come of the simulated programs' operations, without knowing how an engine works: MPI's matching
// order, no message heard of before what its writer was released from, one outcome per operation, the
// outcomes that a departure or a lost link allows, and, when everything rests, no operation left that could
// have gone on. It is told what programs and networks do (before the engines hear of it) and what the engines
// answer; the first answer that breaks a rule throws Violation.
#pragma once

#include "protocol/engine.hpp"
#include "tests/sim/violation.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace parc::sim {

inline constexpr std::size_t none = ~std::size_t{0};

// A rank, or a kernel: whoever sends and receives.
struct Actor {
  std::size_t host = 0;
  std::uint64_t job = 0;          // 0: a kernel
  std::vector<std::size_t> peers; // actors by the row that this one has for them; none: not known yet
  std::size_t members = 0;        // of its job: the first rows
  std::uint64_t endpoint = 0;
  bool left = false;
  bool killed = false;
  bool drained = false;
  std::uint64_t releases = 0; // waits that have returned before their reads had begun

  [[nodiscard]] bool departed() const { return left || killed; }
};

struct Message {
  std::size_t from = none;
  std::size_t to = none;
  protocol::Space space = protocol::Space::programs;
  std::uint64_t tag = 0;
  std::uint64_t size = 0;
  bool synchronous = false;
  std::uint64_t gate = 0;   // its writer's releases before it, which have to begin before anybody hears of it
  std::size_t read = none;  // that took it
  std::size_t claim = none; // the probe whose it is
  bool cancel_asked = false;
  bool over = false;    // for the writer
  bool unheard = false; // it was over before its gate opened
  protocol::Fault fault = protocol::Fault::none;
};

struct Read {
  std::size_t at = none;
  std::size_t source = none; // none: any
  protocol::Space space = protocol::Space::programs;
  std::uint64_t tag = 0;
  std::uint64_t ignore = ~std::uint64_t{0};
  std::uint64_t room = 0;
  bool probe = false;
  bool no_wait = false;
  bool claim = false;         // of a probe
  bool late = false;          // of a probe that claims: it stands among the reads
  std::size_t claimed = none; // the message that it reads, whatever matches
  bool cancel_asked = false;
  bool taken = false;        // by its library, for a message that no engine knows of: the engine's no more
  std::uint64_t release = 0; // the number of its release; 0: none
  std::size_t message = none;
  bool over = false;
};

class Oracle {
public:
  std::vector<Actor> actors;
  std::vector<Message> messages;
  std::vector<Read> reads;
  std::set<std::size_t> hostile; // hosts whose word counts for nothing

  // What a message carries for its reader, by which it is known again.
  static std::uint64_t data_of(std::size_t message) { return message * 0x9e3779b97f4a7c15 + 1; }

  void lose_link(std::size_t a, std::size_t b) { lost_.insert({a, b}), lost_.insert({b, a}); }

  void note_get(std::size_t asker, std::size_t target) { gets_.insert({asker, target}); }
  void note_put(std::size_t from, std::size_t to) { gets_.insert({from, to}), puts_.insert({from, to}); }
  // Of releases of `from` the one that keeps what was started behind so many.
  [[nodiscard]] const Read* holder(std::size_t from, std::uint64_t gate) const;

  // A row of an actor's table: new, or the same as before.
  void note_row(std::size_t actor, std::size_t row, std::size_t peer);

  // What the engines answer. Sources are addresses as the actor knows them.
  void begun(std::size_t read, const protocol::Outcome& outcome);
  void finished_read(std::size_t read, const protocol::Outcome& outcome);
  void finished_write(std::size_t message, const protocol::Outcome& outcome);
  void drained(std::size_t actor);

  // A get, put or atomic of `from` at `to` has ended; not well: `refused` where its place may not be there.
  void check_transfer(const std::string& name, std::size_t from, std::size_t to, protocol::Fault fault,
                      bool refused) const;

  // Nothing moves any more.
  void check_rest() const;
  // Messages that `actor` can still read, surely or perhaps.
  [[nodiscard]] std::size_t readable(std::size_t actor, protocol::Space space, bool surely) const;
  // Whether something between these two may be lost on the way.
  [[nodiscard]] bool may_be_lost(std::size_t a, std::size_t b) const { return apart(a, b); }
  // Its receiver is told of no more of the pair than it has places for.
  [[nodiscard]] bool may_be_held(std::size_t from, std::size_t to) const;
  [[nodiscard]] bool fabricated(std::size_t read) const { return fabricated_.contains(read); }
  [[nodiscard]] bool begun(const Read& read) const { // a probe never does
    return read.message != none || fabricated(static_cast<std::size_t>(&read - reads.data()));
  }

private:
  [[nodiscard]] bool apart(std::size_t a, std::size_t b) const;
  [[nodiscard]] bool fits(const Read& read, const Message& message) const;
  [[nodiscard]] bool
  open(const Message& message) const; // may still be read: a writer may lose it and its reader find it
  [[nodiscard]] bool certain(const Message& message) const;
  void check_gate(const Message& message) const;
  [[nodiscard]] bool hopeless(const Read& read) const;
  [[nodiscard]] bool has_stranger(std::size_t actor) const;
  void begun_claimed(std::size_t read, std::size_t source, const protocol::Outcome& outcome);
  void finished_probe(std::size_t read, const protocol::Outcome& outcome);
  void check_no_older(std::size_t read, std::size_t source, const protocol::Outcome& outcome) const;
  [[nodiscard]] bool is(const Message& message, const protocol::Outcome& outcome) const;
  std::size_t source_of(const Read& read, const protocol::Outcome& outcome);
  [[noreturn]] void fail(const std::string& what) const { throw Violation(what); }
  [[nodiscard]] std::string name(const Message& message) const;
  [[nodiscard]] std::string name(const Read& read) const;

  std::set<std::pair<std::size_t, std::size_t>> lost_; // links, by their hosts
  std::set<std::pair<std::size_t, std::size_t>> gets_; // who has got or put, or tried to, from or to whom
  std::set<std::pair<std::size_t, std::size_t>> puts_;
  std::set<std::size_t> fabricated_; // reads that took what a hostile host made up
};

} // namespace parc::sim
