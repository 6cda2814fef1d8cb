// SPDX-License-Identifier: BSD-3-Clause
#include "tests/model/cells.hpp"

namespace parc::model {
namespace {

constexpr std::size_t pairs = 2; // the receiver that waits, and the one that it waits for

struct State {
  enum Step : std::uint8_t { starts, flushes, announces, looks, sleeps, finished };
  Step step = starts;
  std::uint8_t waiting[pairs] = {}, published[pairs] = {}, drained[pairs] = {};
  bool tells[pairs] = {}; // it has drained, and is about to look who wants a bell
  bool wants = false, rung = false;

  [[nodiscard]] int in_flight(std::size_t pair) const { return published[pair] - drained[pair]; }
  [[nodiscard]] int started(std::size_t pair) const { return published[pair] + waiting[pair]; }
};

class Model final : public Explorer<State> {
public:
  explicit Model(const Cells& setting) : set_(setting) {}

private:
  void step(const State& state) override {
    step_sender(state);
    for (std::size_t pair = 0; pair < pairs; ++pair) step_receiver(state, pair);
  }
  [[nodiscard]] bool all_done(const State& s) const override {
    return s.drained[0] == set_.messages && s.drained[1] == set_.messages;
  }
  [[nodiscard]] std::string picture(const State& s) const override {
    std::string text = "the sender is in step " + std::to_string(s.step);
    for (std::size_t pair = 0; pair < pairs; ++pair)
      text += "; for receiver " + std::to_string(pair) + " " + std::to_string(s.waiting[pair]) + " wait, " +
              std::to_string(s.published[pair]) + " were published, " + std::to_string(s.drained[pair]) +
              " drained";
    return text;
  }

  // The first cell of each pair is its own.
  [[nodiscard]] bool has_cell(const State& s, std::size_t pair) const {
    const int taken = s.in_flight(0) + s.in_flight(1);
    const int kept = s.in_flight(pair) != 0 && s.in_flight(1 - pair) == 0 && !set_.shared_by_all ? 1 : 0;
    return taken + kept < set_.cells;
  }
  [[nodiscard]] bool may_publish(const State& s, std::size_t pair) const {
    return has_cell(s, pair) && !(set_.one_queue && pair == 1 && s.waiting[0] != 0);
  }
  [[nodiscard]] bool may_go_on(const State& s) const {
    return (s.waiting[0] != 0 && may_publish(s, 0)) || (s.waiting[1] != 0 && may_publish(s, 1));
  }
  void publish_what_waits(State& s) const {
    for (std::size_t pair = 0; pair < pairs; ++pair)
      for (; s.waiting[pair] != 0 && may_publish(s, pair); --s.waiting[pair]) ++s.published[pair];
  }

  void step_sender(State s) {
    switch (s.step) {
    case State::starts: {
      const std::size_t pair = s.started(0) < set_.messages ? 0 : 1;
      if (s.started(pair) == set_.messages) {
        s.step = State::flushes;
      } else {
        ++s.waiting[pair];
        publish_what_waits(s); // in a call
      }
      return visit(s);
    }
    case State::flushes:
      s.wants = false;
      publish_what_waits(s);
      s.step = s.waiting[0] + s.waiting[1] == 0 ? State::finished
               : set_.looks_first               ? State::looks
                                                : State::announces;
      return visit(s);
    case State::announces:
      s.wants = true;
      s.step = set_.looks_first ? State::sleeps : State::looks;
      return visit(s);
    case State::looks:
      s.step = may_go_on(s) ? State::flushes : set_.looks_first ? State::announces : State::sleeps;
      return visit(s);
    case State::sleeps:
      if (!s.rung) return;
      s.rung = false;
      s.step = State::flushes;
      return visit(s);
    case State::finished: return;
    }
  }

  void step_receiver(State s, std::size_t pair) {
    if (s.tells[pair]) {
      s.tells[pair] = false;
      s.rung = s.rung || s.wants;
      return visit(s);
    }
    const bool takes = pair == 1 || s.drained[1] == set_.messages;
    if (!takes || s.in_flight(pair) == 0) return;
    ++s.drained[pair];
    s.tells[pair] = true;
    visit(s);
  }

  Cells set_;
};

} // namespace

Explored explore(const Cells& setting) {
  return Model(setting).run({});
}

} // namespace parc::model
