// SPDX-License-Identifier: BSD-3-Clause
#include "bench/early_release/model.hpp"

#include <algorithm>
#include <cassert>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

namespace parc::bench {
namespace {

constexpr int warm_up = 10, steps = 60;
constexpr double never = std::numeric_limits<double>::infinity();

struct Message {
  double start = never, finish = never; // at the receiver: its first byte, its last
};

class Simulation {
public:
  Simulation(const Pattern& pattern, const Machine& machine, bool blocking)
      : pattern_(pattern), machine_(machine), blocking_(blocking), ranks_(pattern.size()) {}

  double run() {
    double begun = 0;
    for (;;) {
      while (settle()) {
      }
      if (slowest() == warm_up + steps) break;
      if (begun == 0 && slowest() >= warm_up) begun = now_;
      advance();
    }
    return (now_ - begun) / steps;
  }

private:
  struct Release {
    int source, step, number;
  };
  struct Held {
    Action action;
    int step, gate; // the last release before it
  };
  struct Rank {
    int step = 0;
    std::size_t action = 0;
    double left = 0; // of the calculation that it is in
    bool calculating = false;
    int releases = 0;
    std::vector<Release> released; // that have not begun when last looked at
    std::deque<Held> held;         // sends behind the gate
  };
  struct Transfer {
    double begin, end;
  };
  using Name = std::tuple<std::size_t, std::size_t, int>; // source, destination, step

  [[nodiscard]] int slowest() const { return std::ranges::min_element(ranks_, {}, &Rank::step)->step; }

  [[nodiscard]] Message message(int source, std::size_t destination, int step) const {
    if (step < 0) return {0, 0}; // before the first step everything is there
    const auto found = messages_.find({static_cast<std::size_t>(source), destination, step});
    return found == messages_.end() ? Message{} : found->second;
  }

  // When `part` of it is there.
  [[nodiscard]] static double there(const Message& message, double part) {
    return part >= 1 || message.finish == never ? message.finish
                                                : message.start + part * (message.finish - message.start);
  }

  // Does what takes no time. False: nothing was left to do.
  bool settle() {
    bool did = false;
    for (std::size_t r = 0; r < ranks_.size(); ++r) did = pass_gate(r) || did;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      while (begin_action(r)) did = true;
    return did;
  }

  bool pass_gate(std::size_t r) {
    Rank& rank = ranks_[r];
    std::erase_if(rank.released,
                  [&](const Release& each) { return message(each.source, r, each.step).start <= now_; });
    bool passed = false;
    while (!rank.held.empty() &&
           (rank.released.empty() || rank.held.front().gate < rank.released.front().number)) {
      transmit(r, rank.held.front().action, rank.held.front().step);
      rank.held.pop_front();
      passed = true;
    }
    return passed;
  }

  bool begin_action(std::size_t r) {
    Rank& rank = ranks_[r];
    if (rank.step >= warm_up + steps || rank.calculating) return false;
    const Action& action = pattern_[r][rank.action];
    const int step = rank.step - action.age;
    switch (action.kind) {
    case Action::Kind::calculate:
      if (action.peer >= 0 && there(message(action.peer, r, step), blocking_ ? 1 : action.part) > now_)
        return false;
      rank.calculating = true;
      rank.left = action.seconds * (1 + (rank.step % 2 == 0 ? action.swing : -action.swing));
      return true;
    case Action::Kind::send:
      rank.held.push_back({action, rank.step, rank.releases});
      (void)pass_gate(r);
      break;
    case Action::Kind::wait:
      if (blocking_ && message(action.peer, r, step).finish > now_) return false;
      if (!blocking_) rank.released.push_back({action.peer, step, ++rank.releases});
      break;
    }
    next(rank, r);
    return true;
  }

  void next(Rank& rank, std::size_t r) {
    rank.calculating = false;
    if (++rank.action < pattern_[r].size()) return;
    rank.action = 0;
    ++rank.step;
  }

  void transmit(std::size_t r, const Action& action, int step) {
    const auto to = static_cast<std::size_t>(action.peer);
    double& free = links_[{r, to}];
    const double start = std::max(free, now_);
    free = start + action.bytes / machine_.rate;
    messages_[{r, to, step}] = {start + machine_.delay, free + machine_.delay};
    transfers_.push_back({start, free});
  }

  // To the next moment at which something changes: a calculation ends, or something arrives.
  void advance() {
    const double speed = speed_of_calculation();
    double until = next_change_of_transfers();
    for (const Rank& rank : ranks_)
      if (rank.calculating) until = std::min(until, now_ + rank.left / speed);
    for (std::size_t r = 0; r < ranks_.size(); ++r) until = std::min(until, next_arrival(r));
    assert(until != never); // nobody waits for what nobody sends
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      if (!rank.calculating) continue;
      rank.left -= (until - now_) * speed;
      if (rank.left <= 1e-12) next(rank, r);
    }
    now_ = until;
  }

  // What the transfers leave of the cores, for those who calculate.
  [[nodiscard]] double speed_of_calculation() {
    std::erase_if(transfers_, [this](const Transfer& each) { return each.end <= now_; });
    const auto moving = static_cast<double>(
        std::ranges::count_if(transfers_, [this](const Transfer& each) { return each.begin <= now_; }));
    const auto running = static_cast<double>(std::ranges::count_if(ranks_, &Rank::calculating));
    const auto cores = static_cast<double>(machine_.cores);
    const double left = std::max(cores - moving * machine_.moving * machine_.rate, cores / 20);
    return std::min(1.0, left / std::max(running, 1.0));
  }

  [[nodiscard]] double next_change_of_transfers() const {
    double earliest = never;
    for (const Transfer& each : transfers_)
      earliest = std::min(earliest, each.begin > now_ ? each.begin : each.end);
    return machine_.moving == 0 ? never : earliest;
  }

  [[nodiscard]] double next_arrival(std::size_t r) const {
    const Rank& rank = ranks_[r];
    double earliest = never;
    const auto consider = [&](double when) {
      if (when > now_) earliest = std::min(earliest, when);
    };
    for (const Release& each : rank.released) consider(message(each.source, r, each.step).start);
    if (rank.calculating || rank.step >= warm_up + steps) return earliest;
    const Action& action = pattern_[r][rank.action];
    if (action.kind != Action::Kind::send && action.peer >= 0)
      consider(there(message(action.peer, r, rank.step - action.age),
                     blocking_ || action.kind == Action::Kind::wait ? 1 : action.part));
    return earliest;
  }

  const Pattern& pattern_;
  const Machine machine_;
  const bool blocking_;
  std::vector<Rank> ranks_;
  std::map<Name, Message> messages_;
  std::map<std::pair<std::size_t, std::size_t>, double> links_; // when each is free
  std::vector<Transfer> transfers_;
  double now_ = 0;
};

} // namespace

double simulate(const Pattern& pattern, const Machine& machine, bool blocking) {
  return Simulation(pattern, machine, blocking).run();
}

} // namespace parc::bench
