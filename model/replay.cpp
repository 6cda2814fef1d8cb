// SPDX-License-Identifier: BSD-3-Clause
#include "model/replay.hpp"

#include <algorithm>
#include <cassert>
#include <deque>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace parc::model {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double rounding = 1e-12; // s

// ---- A direction between two hosts

struct Pipe {
  Wire wire;
  double free = 0; // when all that has begun is through
};

struct Progress {        // of a transfer
  double leaves = never; // its first byte: what was begun before it goes first
  struct Waiter {
    std::uint32_t rank;
    double needs, lag;
  };
  std::vector<Waiter> waiters; // until it begins
};

// ---- What happens when

struct Event {
  enum class Kind : std::uint8_t { rank_goes_on, transfer_begins, first_bytes };
  double time;
  std::uint64_t number; // those of one time in the order in which they were planned
  Kind kind;
  std::uint32_t which; // rank, transfer, rank
};
struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return std::tie(a.time, a.number) > std::tie(b.time, b.number);
  }
};

class Replay {
public:
  Replay(const Run& run, const Wires& wires, const Waits& waits)
      : run_(run), waits_(waits), progress_(run.transfers.size()), ranks_(run.ranks.size()),
        touched_(run.transfers.size()), loose_(run.transfers.size()) {
    for (const auto& actions : run.ranks)
      for (const Action& each : actions)
        if (each.kind == Action::Kind::touch)
          for (const std::uint32_t transfer : each.transfers) touched_[transfer] = true;
    pipe_of_.reserve(run.transfers.size());
    for (const Transfer& each : run.transfers) pipe_of_.push_back(pipe_for(each, wires));
  }

  Replayed run() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) plan(0, Event::Kind::rank_goes_on, rank);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      assert(event.time >= now_);
      now_ = event.time;
      happen(event);
    }
    std::ranges::sort(result_.marks);
    return std::move(result_);
  }

private:
  struct Rank {
    struct Released { // whose first bytes had not come when last looked at
      std::uint32_t transfer;
      std::size_t number;
    };
    struct Held { // may leave when those released up to this number have begun to arrive
      std::uint32_t transfer;
      std::size_t behind;
    };
    std::size_t next = 0;
    std::size_t releases = 0;
    bool rests_at_touch = false;
    std::vector<Released> released;
    std::deque<Held> held;
  };

  std::uint32_t pipe_for(const Transfer& transfer, const Wires& wires) {
    const std::uint32_t from = run_.host_of[transfer.from], to = run_.host_of[transfer.to];
    const auto key =
        from == to ? std::tuple(from, to, transfer.from, transfer.to) : std::tuple(from, to, 0u, 0u);
    const auto [found, added] = pipe_numbers_.emplace(key, static_cast<std::uint32_t>(pipes_.size()));
    if (added) pipes_.push_back({.wire = wires.between(from, to)});
    return found->second;
  }

  void plan(double time, Event::Kind kind, std::uint32_t which) {
    events_.push({time, number_++, kind, which});
  }

  void happen(const Event& event) {
    switch (event.kind) {
    case Event::Kind::rank_goes_on: go_on(event.which); break;
    case Event::Kind::transfer_begins: begin(event.which); break;
    case Event::Kind::first_bytes: let_go(event.which); break;
    }
  }

  // ---- Wires

  [[nodiscard]] double latency_of(std::uint32_t transfer) const {
    return pipes_[pipe_of_[transfer]].wire.latency;
  }

  void begin(std::uint32_t transfer) {
    Progress& progress = progress_[transfer];
    if (progress.leaves != never) return; // once is enough
    Pipe& pipe = pipes_[pipe_of_[transfer]];
    progress.leaves = std::max(now_, pipe.free);
    pipe.free = progress.leaves + run_.transfers[transfer].bytes / pipe.wire.bandwidth;
    for (const Progress::Waiter& each : std::exchange(progress.waiters, {}))
      plan(std::max(now_, when_sent(transfer, each.needs) + each.lag), Event::Kind::rank_goes_on, each.rank);
    plan(progress.leaves + pipe.wire.latency, Event::Kind::first_bytes, run_.transfers[transfer].to);
  }

  [[nodiscard]] double when_sent(std::uint32_t transfer, double bytes) const {
    const double leaves = progress_[transfer].leaves;
    return leaves == never ? never : leaves + bytes / pipes_[pipe_of_[transfer]].wire.bandwidth;
  }

  // ---- Ranks

  void go_on(std::uint32_t number) {
    Rank& rank = ranks_[number];
    const auto& actions = run_.ranks[number];
    while (rank.next < actions.size()) {
      const Action& action = actions[rank.next];
      double until = now_;
      switch (action.kind) {
      case Action::Kind::calculate: until += action.seconds; break;
      case Action::Kind::mark: result_.marks.push_back(now_); break;
      case Action::Kind::begin: begin_all(number, action); break;
      case Action::Kind::wait:
        if (!pass_wait(number, action, until)) return;
        break;
      case Action::Kind::touch:
        if (!pass_touch(number, action, until)) return;
        break;
      }
      ++rank.next;
      if (until > now_) {
        plan(until, Event::Kind::rank_goes_on, number);
        return;
      }
    }
  }

  void begin_all(std::uint32_t rank, const Action& action) {
    for (const std::uint32_t transfer : action.transfers) {
      if (action.asks)
        plan(now_ + latency_of(transfer), Event::Kind::transfer_begins, transfer);
      else
        send(rank, transfer);
    }
  }

  [[nodiscard]] bool by_early_release() const {
    return waits_.where == Waits::Where::released || waits_.where == Waits::Where::begun;
  }

  [[nodiscard]] bool is_moved(std::uint32_t rank, std::uint32_t transfer, const Action& wait) const {
    return waits_.where != Waits::Where::there &&
           (waits_.place == Waits::everywhere || waits_.place == wait.place) &&
           run_.transfers[transfer].from != rank && touched_[transfer];
  }

  // False: not yet; the rank is woken when it may be.
  bool pass_wait(std::uint32_t number, const Action& action, double& until) {
    bool released = false;
    for (const std::uint32_t transfer : action.transfers) {
      const bool moved = is_moved(number, transfer, action);
      if (!moved && !is_there(number, transfer, run_.transfers[transfer].bytes)) return false;
      if (moved && waits_.where == Waits::Where::begun && !is_there(number, transfer, 0)) return false;
      if (!moved || is_here(transfer)) continue;
      released = true;
    }
    for (const std::uint32_t transfer : action.transfers)
      if (is_moved(number, transfer, action)) {
        loose_[transfer] = true;
        if (waits_.where == Waits::Where::released)
          ranks_[number].released.push_back({transfer, ++ranks_[number].releases});
      }
    until += action.seconds;
    if (released && by_early_release()) until += waits_.release;
    return true;
  }

  bool pass_touch(std::uint32_t number, const Action& action, double& until) {
    Rank& rank = ranks_[number];
    const double part = by_early_release() ? action.part : 1;
    for (const std::uint32_t transfer : action.transfers) {
      if (!loose_[transfer] || is_there(number, transfer, part * run_.transfers[transfer].bytes)) continue;
      rank.rests_at_touch = true;
      return false;
    }
    if (std::exchange(rank.rests_at_touch, false)) until += waits_.wake;
    return true;
  }

  [[nodiscard]] bool is_here(std::uint32_t transfer) const {
    const double when = when_sent(transfer, run_.transfers[transfer].bytes);
    return when != never && when + latency_of(transfer) <= now_;
  }

  // Whether the rank knows of so many bytes. Who sends hears of them a way back later.
  bool is_there(std::uint32_t rank, std::uint32_t transfer, double bytes) {
    const Transfer& what = run_.transfers[transfer];
    const double lag = latency_of(transfer) * (what.from == rank && what.to != rank ? 2 : 1);
    const double when = when_sent(transfer, bytes);
    if (when == never) {
      progress_[transfer].waiters.push_back({rank, bytes, lag});
      return false;
    }
    if (when + lag <= now_ + rounding) return true;
    plan(when + lag, Event::Kind::rank_goes_on, rank);
    return false;
  }

  // Behind a wait that was released it leaves when what that was for has begun to arrive.
  void send(std::uint32_t number, std::uint32_t transfer) {
    ranks_[number].held.push_back({transfer, ranks_[number].releases});
    let_go(number);
  }

  void let_go(std::uint32_t number) {
    Rank& rank = ranks_[number];
    std::erase_if(rank.released, [this](const Rank::Released& each) {
      const double leaves = progress_[each.transfer].leaves;
      return leaves != never && leaves + latency_of(each.transfer) <= now_ + rounding;
    });
    while (!rank.held.empty() &&
           (rank.released.empty() || rank.held.front().behind < rank.released.front().number)) {
      const std::uint32_t transfer = rank.held.front().transfer;
      rank.held.pop_front();
      begin(transfer);
    }
  }

  const Run& run_;
  const Waits waits_;
  std::vector<Progress> progress_;
  std::vector<Pipe> pipes_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>
      pipe_numbers_;
  std::vector<std::uint32_t> pipe_of_; // by transfer
  std::vector<Rank> ranks_;
  std::vector<bool> touched_; // by transfer: its receiver's touches are known
  std::vector<bool> loose_;   // its wait has been passed by
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::uint64_t number_ = 0;
  double now_ = 0;
  Replayed result_;
};

} // namespace

Replayed replay(const Run& run, const Wires& wires, const Waits& waits) {
  return Replay(run, wires, waits).run();
}

Run only_messages(Run run) {
  for (auto& actions : run.ranks)
    for (Action& each : actions) each.seconds = 0;
  return run;
}

} // namespace parc::model
