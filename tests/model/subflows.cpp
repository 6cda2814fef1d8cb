// SPDX-License-Identifier: BSD-3-Clause
#include "tests/model/subflows.hpp"

#include "tests/model/queue.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace parc::model {
namespace {

constexpr std::size_t room = 2, most_fragments = 3, most_carriers = 3;

// A fragment is two tokens: of both, what is between may be anything. The first carrier's others are of a
// message that came whole, and of a reader that has left.
enum class Kind : std::uint8_t { nothing, begin, end, acknowledgement, whole, left };
struct Token {
  Kind kind;
  std::uint8_t number; // of a fragment; of trains that are acknowledged
};

enum class End : std::uint8_t { none, up, over };

struct Carrier {
  Token down[room]; // from the sender
  Token up[room];
  struct {
    End stage;
    std::uint8_t log[most_fragments]; // fragments that were sent and not acknowledged, from 1; 0: dealt again
    std::uint8_t sent;                // trains that are not acknowledged
    std::uint8_t half;                // fragment of which the end is to be written, from 1
    bool doubted;
  } from;
  struct {
    End stage;
    std::uint8_t received; // trains that it has not acknowledged
    std::uint8_t half;     // fragment that has begun, from 1
    bool in_place;         // where its begin went
  } to;
};

struct State {
  Carrier carriers[most_carriers]; // the first one, and subflows
  struct {
    bool acknowledged[most_fragments];
    bool received; // whole: the program has its memory again
  } from;
  struct {
    bool counted[most_fragments];
    bool told_whole, left;
  } to;
  std::uint8_t breaks, doubts;
  bool heard_left;
};

class Model final : public Explorer<State> {
public:
  explicit Model(const Subflows& setting) : set_(setting) {}

  Explored run() {
    State start{};
    start.carriers[0].from.stage = start.carriers[0].to.stage = End::up;
    return Explorer::run(start);
  }

private:
  void step(const State& s) override {
    for (std::size_t at = 0; at <= set_.subflows; ++at) {
      if (at != 0) change(s, at);
      write(s, at);
      read(s, at);
    }
    tell(s);
  }
  [[nodiscard]] bool all_done(const State& s) const override {
    return s.from.received && s.to.left && s.heard_left;
  }
  [[nodiscard]] std::string picture(const State& s) const override {
    std::string text = "counted ";
    for (std::size_t i = 0; i != set_.fragments; ++i) text += s.to.counted[i] ? '1' : '0';
    text += ", acknowledged ";
    for (std::size_t i = 0; i != set_.fragments; ++i) text += s.from.acknowledged[i] ? '1' : '0';
    for (std::size_t at = 0; at <= set_.subflows; ++at) {
      const Carrier& c = s.carriers[at];
      text += "; carrier " + std::to_string(at) + ": sender " + std::to_string(int(c.from.stage)) +
              ", sent " + std::to_string(c.from.sent) + ", half " + std::to_string(c.from.half) +
              (c.from.doubted ? ", doubted" : "") + ", receiver " + std::to_string(int(c.to.stage)) +
              ", received " + std::to_string(c.to.received) + ", half " + std::to_string(c.to.half);
    }
    return text + (s.from.received ? "; received" : "") + (s.to.left ? "; left" : "");
  }

  // Subflows are alike, and of a message that is acknowledged whole nothing else matters.
  void see(State& s) {
    if (set_.subflows == 2 && std::memcmp(&s.carriers[1], &s.carriers[2], sizeof(Carrier)) > 0)
      std::swap(s.carriers[1], s.carriers[2]);
    if (s.from.received) {
      std::fill(std::begin(s.from.acknowledged), std::end(s.from.acknowledged), true);
      for (Carrier& c : s.carriers) deal_again(c);
    }
    visit(s);
  }

  [[nodiscard]] bool complete(const State& s) const {
    return std::all_of(s.to.counted, s.to.counted + set_.fragments, [](bool each) { return each; });
  }

  // A subflow begins at the sender, is taken up by the receiver, is doubted, and ends at either.
  void change(const State& s, std::size_t at) {
    const Carrier& c = s.carriers[at];
    const bool gone = c.from.stage != End::up && c.to.stage != End::up && c.down[0].kind == Kind::nothing &&
                      c.up[0].kind == Kind::nothing;
    if (gone && c.from.stage == c.to.stage && !s.from.received) {
      State next = s;
      next.carriers[at] = {};
      next.carriers[at].from.stage = End::up;
      see(next);
    }
    if (c.to.stage == End::none && c.from.stage != End::none) {
      State next = s;
      next.carriers[at].to.stage = End::up;
      see(next);
    }
    if (c.from.stage == End::up && !c.from.doubted && s.doubts != set_.doubts) {
      State next = s;
      ++next.doubts;
      next.carriers[at].from.doubted = true;
      deal_again(next.carriers[at]);
      see(next);
    }
    end(s, at);
  }

  // By a break, of which the other side hears behind what still comes; or because the other side's end was
  // read.
  void end(const State& s, std::size_t at) {
    const Carrier& c = s.carriers[at];
    const bool may_break = s.breaks != set_.breaks;
    if (c.from.stage == End::up && ((c.to.stage == End::over && c.up[0].kind == Kind::nothing) || may_break))
      for (std::size_t kept = 0; kept <= room; ++kept) {
        State next = s;
        Carrier& carrier = next.carriers[at];
        if (c.to.stage != End::over) ++next.breaks;
        if (next.breaks > set_.breaks) break;
        const auto log = carrier.from;
        carrier.from = {};
        if (set_.keeps_log) carrier.from = log;
        carrier.from.stage = End::over;
        carrier.from.half = 0;
        std::fill(std::begin(carrier.up), std::end(carrier.up), Token{});
        std::fill(carrier.down + kept, std::end(carrier.down), Token{});
        see(next);
      }
    if (c.to.stage == End::up &&
        ((c.from.stage == End::over && c.down[0].kind == Kind::nothing) || may_break))
      for (std::size_t kept = 0; kept <= room; ++kept) {
        State next = s;
        Carrier& carrier = next.carriers[at];
        if (c.from.stage != End::over) ++next.breaks;
        if (next.breaks > set_.breaks) break;
        carrier.to = {};
        carrier.to.stage = End::over;
        std::fill(std::begin(carrier.down), std::end(carrier.down), Token{});
        std::fill(carrier.up + kept, std::end(carrier.up), Token{});
        see(next);
      }
  }

  static void deal_again(Carrier& c) {
    std::fill(std::begin(c.from.log), std::end(c.from.log), std::uint8_t{0});
  }
  [[nodiscard]] bool to_be_dealt(const State& s, std::uint8_t fragment) const {
    if (s.from.acknowledged[fragment - 1]) return false;
    return std::none_of(std::begin(s.carriers), std::end(s.carriers), [&](const Carrier& c) {
      return std::find(std::begin(c.from.log), std::end(c.from.log), fragment) != std::end(c.from.log);
    });
  }
  [[nodiscard]] bool used(const State& s, std::size_t at) const {
    if (at != 0) return s.carriers[at].from.stage == End::up && !s.carriers[at].from.doubted;
    for (std::size_t other = 1; other <= set_.subflows; ++other)
      if (used(s, other)) return false;
    return true;
  }

  void write(const State& s, std::size_t at) {
    const Carrier& c = s.carriers[at];
    if (c.from.stage != End::up) return;
    if (c.from.half != 0) {
      State next = s;
      if (s.from.received && set_.unnamed) broken("written from memory of the program: " + picture(s));
      next.carriers[at].from.half = 0;
      if (push(next.carriers[at].down, {Kind::end, c.from.half})) see(next);
      return;
    }
    if (s.from.received || !used(s, at) || c.from.sent >= set_.trains) return;
    for (std::uint8_t fragment = 1; fragment <= set_.fragments; ++fragment) {
      if (!to_be_dealt(s, fragment)) continue;
      State next = s;
      Carrier& carrier = next.carriers[at];
      carrier.from.log[c.from.sent] = fragment;
      ++carrier.from.sent;
      carrier.from.half = fragment;
      if (push(carrier.down, {Kind::begin, fragment})) see(next);
      return; // in the order of need
    }
  }

  // Acknowledgements of trains; on the first carrier of the message, and behind that the reader may leave.
  void tell(const State& s) {
    for (std::size_t at = 0; at <= set_.subflows; ++at) {
      const Carrier& c = s.carriers[at];
      if (c.to.stage != End::up || c.to.received == 0) continue;
      State next = s;
      next.carriers[at].to.received = 0;
      if (push(next.carriers[at].up, {Kind::acknowledgement, c.to.received})) see(next);
    }
    if (!complete(s) || s.to.left) return;
    State next = s;
    if (!s.to.told_whole && !set_.silent) {
      next.to.told_whole = true;
      if (push(next.carriers[0].up, {Kind::whole, 0})) see(next);
    } else {
      next.to.left = true;
      if (push(next.carriers[0].up, {Kind::left, 0})) see(next);
    }
  }

  void read(const State& s, std::size_t at) {
    if (s.carriers[at].to.stage == End::up && s.carriers[at].down[0].kind != Kind::nothing) {
      State next = s;
      receive(next, next.carriers[at], pop(next.carriers[at].down));
      see(next);
    }
    if (s.carriers[at].from.stage == End::up && s.carriers[at].up[0].kind != Kind::nothing) {
      State next = s;
      hear(next, next.carriers[at], pop(next.carriers[at].up));
      see(next);
    }
  }

  // Bytes go to the program's memory, unless they were counted: they are the program's since.
  void receive(State& s, Carrier& c, Token token) {
    if (token.kind == Kind::begin ? c.to.half != 0 : c.to.half != token.number) broken(picture(s));
    bool& counted = s.to.counted[token.number - 1];
    bool in_place = set_.writes_over || !counted;
    if (token.kind == Kind::begin) c.to.in_place = in_place;
    if (set_.once_decided) in_place = c.to.in_place;
    if (in_place && (counted || s.to.left)) broken("written over what the program has: " + picture(s));
    if (token.kind == Kind::begin) {
      c.to.half = token.number;
      return;
    }
    c.to.half = 0;
    c.to.in_place = false;
    counted = true;
    ++c.to.received;
  }

  void hear(State& s, Carrier& c, Token token) {
    if (token.kind == Kind::left) {
      s.heard_left = true;
      if (!s.from.received) broken("a write fails that was read: " + picture(s));
      return;
    }
    if (token.kind == Kind::whole) {
      s.from.received = true;
      return;
    }
    for (; token.number != 0; --token.number) {
      if (c.from.log[0] != 0) s.from.acknowledged[c.from.log[0] - 1] = true;
      std::copy(c.from.log + 1, std::end(c.from.log), c.from.log);
      *(std::end(c.from.log) - 1) = 0;
      --c.from.sent;
      c.from.doubted = false;
    }
    if (std::all_of(s.from.acknowledged, s.from.acknowledged + set_.fragments,
                    [](bool each) { return each; }))
      s.from.received = true;
  }

  Subflows set_;
};

} // namespace

Explored explore(const Subflows& setting) {
  return Model(setting).run();
}

} // namespace parc::model
