// SPDX-License-Identifier: BSD-3-Clause
// The windows of the simulated programs, the gets from them, and what must come of these: each byte was in
// the window at some moment between the start of the get and its telling; nobody gets what is outside, hidden
// or a stranger's; what is held is let go, once. A window is its program's own bytes, and behind them a
// stripe for each other (puts.hpp).
#pragma once

#include "tests/sim/memory.hpp"
#include "tests/sim/oracle.hpp"
#include "tests/sim/puts.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace parc::sim {

struct Get {
  std::size_t asker = none, target = none;
  Spot place;
  std::uint64_t started = 0;      // by the clock of the stores
  bool acquainted = false;        // when it was started
  std::unique_ptr<Memory> memory; // none: it is over
  std::vector<std::byte> seen;    // as it was told
  protocol::Progress progress;
};

class Windows {
public:
  explicit Windows(Oracle& oracle)
      : oracle_(oracle),
        puts_(
            oracle, [this](std::size_t actor, std::uint64_t at) { return look(actor, at); },
            [this](std::size_t actor, std::uint64_t since) { return may_be_hidden(actor, since); }) {}

  static constexpr std::uint64_t number = 7; // of the only window that a program has

  void expose(std::size_t actor, std::uint64_t bytes, std::uint64_t stripe);
  [[nodiscard]] std::uint64_t bytes(std::size_t actor) const;
  void store(std::size_t actor, std::uint64_t cell, std::uint64_t cells); // new bytes, by its program
  [[nodiscard]] std::uint64_t cells(std::size_t actor) const;
  void hide(std::size_t actor, bool hidden);
  void note_row(std::size_t actor, std::size_t peer) { rows_.insert({actor, peer}); }

  Get& start(std::size_t asker, std::size_t target, const protocol::Place& place, Random& random);
  [[nodiscard]] std::size_t last() const { return gets_.size() - 1; }
  // An addition of one to the window's counter, which nothing else changes; or somewhere else.
  std::size_t start_add(std::size_t asker, std::size_t target, std::uint64_t number_of_window);
  [[nodiscard]] protocol::Place counter_of(std::size_t actor) const;
  [[nodiscard]] std::size_t asker_of_add(std::size_t add) const { return adds_[add].asker; }
  void finished_add(std::size_t add, const protocol::Outcome& outcome);
  Put& start_put(std::size_t from, std::size_t to, const protocol::Place& place, Random& random);
  [[nodiscard]] protocol::Place stripe_of(std::size_t actor, std::size_t whose) const;

  // From the engines.
  bool place(std::size_t target, const protocol::Place& place, bool acquainted, protocol::Pieces& memory,
             std::uint64_t& hold);
  void let_go(std::uint64_t hold);
  void progressed(std::size_t get, const protocol::Progress& progress);
  void finished(std::size_t get, const protocol::Outcome& outcome);
  void finished_put(std::size_t put, const protocol::Outcome& outcome);
  [[nodiscard]] Puts& puts() { return puts_; }
  // Some windows are in memory that only their program can do atomic operations on, when it looks. True: it
  // has.
  bool operate(std::size_t actor);

  void check_silent(std::size_t actor) const; // one that was killed
  void check_rest(bool last);
  [[nodiscard]] std::uint64_t bytes_got() const { return bytes_got_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

private:
  class Apart;
  struct Window {
    static constexpr std::uint64_t cell = 32;                  // bytes that are stored together
    std::vector<std::byte> memory;                             // with a guard on either side
    std::uint64_t bytes = 0, own = 0, stripe = 0, counter = 0; // where that is
    std::vector<std::vector<std::uint64_t>> versions; // by cell: when each was stored, which it is named by
    bool hidden = true;
    std::shared_ptr<Apart> apart; // none: it is shared with the kernel
    std::uint64_t changed_at = 0; // when it was hidden, or shown, the last time
  };

  struct Add {
    std::size_t asker = none, target = none;
    bool acquainted = false, right = false, over = false, made = false;
    std::uint64_t before = 0, started = 0;
  };
  void check_adds() const;
  [[nodiscard]] const std::byte* look(std::size_t actor, std::uint64_t at) const;
  [[nodiscard]] bool may_be_hidden(std::size_t actor, std::uint64_t since) const;
  [[nodiscard]] bool acquainted(std::size_t target, std::size_t asker) const;
  [[nodiscard]] bool is_there(const Window& window, const protocol::Place& place) const;
  void check_bytes(Get& get, std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] bool doubtful(const Get& get) const;
  [[nodiscard]] std::string name(std::size_t get) const;

  static constexpr std::size_t most_stripes = 12; // of two jobs
  Oracle& oracle_;
  Puts puts_;
  std::map<std::size_t, Window> windows_; // by actor
  std::set<std::pair<std::size_t, std::size_t>> rows_;
  std::vector<Get> gets_;
  std::vector<Add> adds_;
  std::map<std::uint64_t, std::size_t> holds_; // by name: whose window
  std::uint64_t last_hold_ = 0, clock_ = 0, bytes_got_ = 0, refused_ = 0;
};

} // namespace parc::sim
