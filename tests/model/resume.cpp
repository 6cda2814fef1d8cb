// SPDX-License-Identifier: BSD-3-Clause
#include "tests/model/resume.hpp"

#include "tests/model/queue.hpp"

#include <algorithm>

namespace parc::model {
namespace {

enum class Stage : std::uint8_t { none, stating, stated, up }; // stated: ours is out, theirs is awaited
enum class Kind : std::uint8_t { nothing, statement, header, fragment, acknowledgement };

struct Token {
  Kind kind;
  std::uint8_t number; // of a train or a fragment
  std::uint8_t count;  // fragments of a train; of a statement, missing
};
constexpr std::size_t room = 2;

// The two directions of one carrier.
struct Carrier {
  Token down[room]; // from the sender
  Token up[room];
};

struct State {
  Carrier carriers[2]; // by the last bit of their numbers: the newest and the one before
  struct {
    Stage stage;
    std::uint8_t carrier;            // number
    std::uint8_t acknowledged, sent; // fragments; sent: on this carrier
    std::uint8_t sequence, acknowledged_train, stated;
    std::uint8_t counts[4]; // fragments of the trains behind acknowledged_train
    std::uint8_t written;   // fragments of the last train; its header comes first
    bool header_written;
    std::uint8_t cut_off; // 255: not even its header
  } from;
  struct {
    Stage stage;
    std::uint8_t carrier;
    std::uint8_t delivered, reading, due, missing, told;
  } to;
  std::uint8_t breaks;
};

class Model final : public Explorer<State> {
public:
  explicit Model(const Resuming& setting) : set_(setting) {}

  Explored run() {
    State start{};
    start.from.stage = start.to.stage = Stage::stating;
    return Explorer::run(start);
  }

private:
  void step(const State& state) override {
    lose(state);
    write(state);
    read(state);
    attach(state);
  }
  [[nodiscard]] bool all_done(const State& s) const override {
    return s.from.acknowledged == set_.fragments && s.to.delivered == set_.fragments;
  }
  [[nodiscard]] std::string picture(const State& s) const override {
    return "sender: stage " + std::to_string(int(s.from.stage)) + ", carrier " +
           std::to_string(s.from.carrier) + ", acknowledged " + std::to_string(s.from.acknowledged) +
           ", train " + std::to_string(s.from.sequence) + "; receiver: stage " +
           std::to_string(int(s.to.stage)) + ", carrier " + std::to_string(s.to.carrier) + ", delivered " +
           std::to_string(s.to.delivered) + ", train " + std::to_string(s.to.reading) + ", due " +
           std::to_string(s.to.due) + ", missing " + std::to_string(s.to.missing);
  }
  static Carrier& of(State& s, std::uint8_t number) { return s.carriers[number % 2]; }
  [[nodiscard]] static bool half_written(const State& s) {
    return s.from.sequence != s.from.acknowledged_train &&
           (!s.from.header_written || s.from.written != last_count(s));
  }
  static std::uint8_t last_count(const State& s) {
    return s.from.counts[s.from.sequence - s.from.acknowledged_train - 1];
  }

  static void detach_sender(State& s) {
    if (s.from.stage == Stage::up) {
      s.from.cut_off = 0;
      if (half_written(s))
        s.from.cut_off =
            s.from.header_written ? static_cast<std::uint8_t>(last_count(s) - s.from.written) : 255;
    }
    s.from.stage = Stage::none;
  }
  void detach_receiver(State& s) const {
    if (s.to.due != 0) s.to.missing = set_.forgetful ? 0 : s.to.due;
    s.to.due = 0;
    s.to.stage = Stage::none;
  }

  void lose(const State& s) {
    if (s.breaks == set_.breaks) return;
    if (s.from.stage != Stage::none) {
      State next = s;
      ++next.breaks;
      detach_sender(next);
      visit(next);
    }
    if (s.to.stage != Stage::none) {
      State next = s;
      ++next.breaks;
      detach_receiver(next);
      visit(next);
    }
  }

  // The sender's side makes a new carrier where either has lost the last one; the receiver takes it up later.
  void attach(const State& s) {
    const bool lost =
        s.from.stage == Stage::none || (s.to.stage == Stage::none && s.to.carrier == s.from.carrier);
    if (lost && s.to.carrier == s.from.carrier) {
      State next = s;
      detach_sender(next);
      ++next.from.carrier;
      of(next, next.from.carrier) = {};
      next.from.stage = Stage::stating;
      visit(next);
    }
    if (s.to.carrier != s.from.carrier) {
      State next = s;
      detach_receiver(next);
      next.to.carrier = next.from.carrier;
      next.to.stage = Stage::stating;
      next.to.told = next.to.reading;
      visit(next);
    }
  }

  void write(const State& s) {
    State next = s;
    if (s.from.stage == Stage::stating) {
      next.from.stage = Stage::stated;
      if (push(of(next, s.from.carrier).down, {Kind::statement, 0, 0})) visit(next);
    } else if (s.from.stage == Stage::up) {
      write_train(s);
    }
    next = s;
    if (s.to.stage == Stage::stating) {
      next.to.stage = Stage::stated;
      if (push(of(next, s.to.carrier).up, {Kind::statement, s.to.reading, s.to.missing})) visit(next);
    } else if (s.to.stage == Stage::up && s.to.due == 0 && s.to.reading != s.to.told) {
      next.to.told = s.to.reading;
      if (push(of(next, s.to.carrier).up, {Kind::acknowledgement, s.to.reading, 0})) visit(next);
    }
  }

  void write_train(const State& s) {
    State next = s;
    auto& from = next.from;
    if (half_written(s)) {
      const Token token =
          from.header_written
              ? Token{Kind::fragment, static_cast<std::uint8_t>(from.sent - last_count(s) + from.written), 0}
              : Token{Kind::header, from.sequence, last_count(s)};
      from.written = static_cast<std::uint8_t>(from.written + from.header_written);
      from.header_written = true;
      if (push(of(next, from.carrier).down, token)) visit(next);
      return;
    }
    if (from.sequence - from.acknowledged_train >= set_.trains) return;
    const int left = set_.fragments - from.sent;
    for (int count = 1; count <= std::min<int>(left, set_.train); ++count) {
      next = s;
      next.from.counts[s.from.sequence - s.from.acknowledged_train] = static_cast<std::uint8_t>(count);
      ++next.from.sequence;
      next.from.sent = static_cast<std::uint8_t>(s.from.sent + count);
      next.from.written = 0;
      next.from.header_written = false;
      visit(next);
    }
  }

  void read(const State& s) {
    if (s.to.stage != Stage::none && of(const_cast<State&>(s), s.to.carrier).down[0].kind != Kind::nothing) {
      State next = s;
      receive(next, pop(of(next, s.to.carrier).down));
      visit(next);
    }
    if (s.from.stage != Stage::none &&
        of(const_cast<State&>(s), s.from.carrier).up[0].kind != Kind::nothing) {
      State next = s;
      hear(next, pop(of(next, s.from.carrier).up));
      visit(next);
    }
  }

  void receive(State& s, Token token) {
    switch (token.kind) {
    case Kind::statement:
      if (s.to.stage != Stage::stated && s.to.stage != Stage::stating) broken(picture(s));
      // The own statement may still be due: it leaves before anything else.
      if (s.to.stage == Stage::stating &&
          !push(of(s, s.to.carrier).up, {Kind::statement, s.to.reading, s.to.missing}))
        broken(picture(s));
      s.to.stage = Stage::up;
      break;
    case Kind::header:
      if (s.to.due != 0 || token.number != s.to.reading + 1) broken(picture(s));
      s.to.reading = token.number;
      s.to.due = token.count;
      s.to.missing = 0;
      break;
    case Kind::fragment:
      if (s.to.due == 0 || token.number != s.to.delivered) broken(picture(s));
      ++s.to.delivered;
      --s.to.due;
      break;
    default: broken(picture(s));
    }
  }

  void hear(State& s, Token token) {
    auto& from = s.from;
    if (token.kind == Kind::acknowledgement) {
      if (token.number > from.sequence - half_written(s)) broken(picture(s));
      acknowledge(s, token.number);
      return;
    }
    if (token.kind != Kind::statement || token.number < from.acknowledged_train ||
        token.number > from.sequence || (token.number == from.sequence && token.count < from.cut_off)) {
      broken(picture(s));
      return;
    }
    if (from.stage == Stage::stating && !push(of(s, from.carrier).down, {Kind::statement, 0, 0}))
      broken(picture(s));
    const bool again = token.number == from.stated;
    if (token.number != from.acknowledged_train) {
      acknowledge(s, token.number);
      from.acknowledged = static_cast<std::uint8_t>(from.acknowledged - (again ? 0 : token.count));
    }
    from.sequence = from.acknowledged_train = from.stated = token.number;
    from.sent = from.acknowledged;
    from.cut_off = from.written = 0;
    from.header_written = false;
    std::fill(std::begin(from.counts), std::end(from.counts), std::uint8_t{0});
    from.stage = Stage::up;
  }

  static void acknowledge(State& s, std::uint8_t train) {
    auto& from = s.from;
    while (from.acknowledged_train != train) {
      from.acknowledged = static_cast<std::uint8_t>(from.acknowledged + from.counts[0]);
      std::copy(from.counts + 1, std::end(from.counts), from.counts);
      *(std::end(from.counts) - 1) = 0;
      ++from.acknowledged_train;
    }
  }

  Resuming set_;
};

} // namespace

Explored explore(const Resuming& setting) {
  return Model(setting).run();
}

} // namespace parc::model
