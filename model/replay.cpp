// SPDX-License-Identifier: BSD-3-Clause
#include "model/replay.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace parc::model {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double rounding = 1e-12;  // s
constexpr double least_part = 1e-3; // of a byte

// ---- A direction between two hosts

// Those that are under way share evenly, so what each of them has sent grows alike: by a level that they have
// in common. A transfer that begins at one level is through when its bytes have been added to it.
struct Point {
  double time, level;
};

struct Awaited {
  double level;
  std::uint32_t rank;
  double lag; // from there to when the rank knows
  bool operator>(const Awaited& other) const { return level > other.level; }
};

template <class Value> using LeastFirst = std::priority_queue<Value, std::vector<Value>, std::greater<>>;

struct Pipe {
  explicit Pipe(const Wire& its_wire) : wire(its_wire) {}

  Wire wire;
  double level = 0;
  double updated = 0;
  std::vector<Point> curve = {{0, 0}}; // between these it rises evenly, or not at all
  LeastFirst<double> ends;             // the levels at which those under way are through
  LeastFirst<Awaited> awaited;
  std::uint64_t version = 0; // of what is planned

  // When it was reached; never: it has not been yet.
  [[nodiscard]] double when(double wanted) const {
    if (wanted > level) return never;
    const auto after = std::ranges::lower_bound(curve, wanted, {}, &Point::level);
    if (after == curve.begin()) return after->time;
    const Point &to = *after, &from = *(after - 1);
    return from.time + (to.time - from.time) * (wanted - from.level) / (to.level - from.level);
  }

  void advance(double now) {
    if (now <= updated) return;
    if (!ends.empty()) {
      level += (now - updated) * wire.bandwidth / static_cast<double>(ends.size());
      const double next = next_level();
      if (next > level && next - level < least_part) level = next;
    }
    updated = now;
    curve.push_back({now, level});
    while (!ends.empty() && ends.top() <= level) ends.pop();
  }

  // At which something is through, or somebody is to be told.
  [[nodiscard]] double next_level() const {
    return std::min(ends.empty() ? never : ends.top(), awaited.empty() ? never : awaited.top().level);
  }
};

struct Progress { // of a transfer
  double begun = never;
  double from_level = 0;
  struct Waiter {
    std::uint32_t rank;
    double needs, lag;
  };
  std::vector<Waiter> waiters; // until it begins
};

// ---- What happens when

struct Event {
  enum class Kind : std::uint8_t { rank_goes_on, transfer_begins, pipe_moves, first_bytes };
  double time;
  std::uint64_t number; // those of one time in the order in which they were planned
  Kind kind;
  std::uint32_t which; // rank, transfer, pipe, rank
  std::uint64_t version = 0;
};
struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return std::tie(a.time, a.number) > std::tie(b.time, b.number);
  }
};

class Replay {
public:
  Replay(const Run& run, const Wires& wires, const Waits& waits)
      : run_(run), wires_(wires), waits_(waits), progress_(run.transfers.size()), ranks_(run.ranks.size()),
        touched_(run.transfers.size()), loose_(run.transfers.size()) {
    for (const auto& actions : run.ranks)
      for (const Action& each : actions)
        if (each.kind == Action::Kind::touch)
          for (const std::uint32_t transfer : each.transfers) touched_[transfer] = true;
    pipe_of_.reserve(run.transfers.size());
    for (const Transfer& each : run.transfers) pipe_of_.push_back(pipe_for(each));
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

  std::uint32_t pipe_for(const Transfer& transfer) {
    const std::uint32_t from = run_.host_of[transfer.from], to = run_.host_of[transfer.to];
    const auto key =
        from == to ? std::tuple(from, to, transfer.from, transfer.to) : std::tuple(from, to, 0u, 0u);
    const auto [found, added] = pipe_numbers_.emplace(key, static_cast<std::uint32_t>(pipes_.size()));
    if (added) pipes_.emplace_back(wires_.between(from, to));
    return found->second;
  }

  void plan(double time, Event::Kind kind, std::uint32_t which, std::uint64_t version = 0) {
    events_.push({time, number_++, kind, which, version});
  }

  void happen(const Event& event) {
    switch (event.kind) {
    case Event::Kind::rank_goes_on: go_on(event.which); break;
    case Event::Kind::transfer_begins: begin(event.which); break;
    case Event::Kind::pipe_moves:
      if (event.version != pipes_[event.which].version) break;
      move(pipes_[event.which]);
      plan_next(event.which);
      break;
    case Event::Kind::first_bytes: let_go(event.which); break;
    }
  }

  // ---- Wires

  [[nodiscard]] double latency_of(std::uint32_t transfer) const {
    return pipes_[pipe_of_[transfer]].wire.latency;
  }

  void begin(std::uint32_t transfer) {
    Progress& progress = progress_[transfer];
    if (progress.begun != never) return; // once is enough
    const std::uint32_t number = pipe_of_[transfer];
    Pipe& pipe = pipes_[number];
    move(pipe);
    progress.begun = now_;
    progress.from_level = pipe.level;
    const double bytes = run_.transfers[transfer].bytes;
    if (bytes > 0 && !std::isinf(pipe.wire.bandwidth)) pipe.ends.push(pipe.level + bytes);
    for (const Progress::Waiter& each : std::exchange(progress.waiters, {}))
      tell(transfer, each.rank, each.needs, each.lag);
    plan_next(number);
    plan(now_ + latency_of(transfer), Event::Kind::first_bytes, run_.transfers[transfer].to);
  }

  [[nodiscard]] double when_sent(std::uint32_t transfer, double bytes) const {
    const Progress& progress = progress_[transfer];
    const Pipe& pipe = pipes_[pipe_of_[transfer]];
    if (progress.begun == never || bytes <= 0 || std::isinf(pipe.wire.bandwidth)) return progress.begun;
    return pipe.when(progress.from_level + bytes);
  }

  // When it knows that so many bytes have been sent.
  void tell(std::uint32_t transfer, std::uint32_t rank, double bytes, double lag) {
    if (const double when = when_sent(transfer, bytes); when != never)
      plan(std::max(now_, when + lag), Event::Kind::rank_goes_on, rank);
    else if (Progress& progress = progress_[transfer]; progress.begun == never)
      progress.waiters.push_back({rank, bytes, lag});
    else
      pipes_[pipe_of_[transfer]].awaited.push({progress.from_level + bytes, rank, lag});
  }

  // As far as it has come by now.
  void move(Pipe& pipe) {
    pipe.advance(now_);
    for (; !pipe.awaited.empty() && pipe.awaited.top().level <= pipe.level; pipe.awaited.pop()) {
      const Awaited& each = pipe.awaited.top();
      plan(std::max(now_, pipe.when(each.level) + each.lag), Event::Kind::rank_goes_on, each.rank);
    }
  }

  void plan_next(std::uint32_t number) {
    Pipe& pipe = pipes_[number];
    ++pipe.version;
    if (pipe.ends.empty()) return;
    const double takes =
        (pipe.next_level() - pipe.level) * static_cast<double>(pipe.ends.size()) / pipe.wire.bandwidth;
    // Late in a long run the time may be too little to be added to it.
    const double then = std::max(now_ + takes, std::nextafter(now_, never));
    plan(then, Event::Kind::pipe_moves, number, pipe.version);
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
    result_.end = std::max(result_.end, now_);
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
    const std::uint32_t pipe = pipe_of_[transfer];
    move(pipes_[pipe]);
    const double when = when_sent(transfer, bytes);
    if (when == never) {
      tell(transfer, rank, bytes, lag);
      plan_next(pipe);
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
      const double begun = progress_[each.transfer].begun;
      return begun != never && begun + latency_of(each.transfer) <= now_ + rounding;
    });
    while (!rank.held.empty() &&
           (rank.released.empty() || rank.held.front().behind < rank.released.front().number)) {
      const std::uint32_t transfer = rank.held.front().transfer;
      rank.held.pop_front();
      begin(transfer);
    }
  }

  const Run& run_;
  const Wires& wires_;
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
