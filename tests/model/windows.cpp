// SPDX-License-Identifier: BSD-3-Clause
#include "tests/model/windows.hpp"

#include "tests/model/queue.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>

namespace parc::model {
namespace {

constexpr std::uint8_t puts = 2, most_parts = 3;
// What the asker says, in its order.
enum Entry : std::uint8_t { first_put, second_put, told, got, entries };

enum class Kind : std::uint8_t { nothing, envelope, part, want };
struct Token {
  Kind kind;
  std::uint8_t entry, part;
  std::uint8_t value; // of an answer's part
};
constexpr std::size_t room = 2;

// Of one part: due, on one of the second carriers until that acknowledges it, or over.
enum class Way : std::uint8_t { on_a_second, on_the_other, none, due, over };

struct Carrier {
  Token down[room], up[room]; // from the asker, and to it
  // Bits: parts that have been taken, of each put and of the answer. What is owed needs no room.
  std::uint8_t taken_of[puts], taken_answer;
  bool at_asker, at_target; // still there
};

struct State {
  Carrier first;
  Carrier seconds[2]; // the last, and the one before, which the other side may still read
  std::uint8_t last;  // of these
  struct {
    std::uint8_t said; // envelopes
    Way parts[puts][most_parts];
    std::uint8_t got[most_parts]; // 0: not yet
    bool has_got;
  } asker;
  struct {
    std::uint8_t heard, next; // envelopes; the one that is to take effect
    std::uint8_t here[puts];  // bits: parts that are in place
    bool asked[puts];
    std::uint8_t window[most_parts]; // by which put
    Way answer[most_parts];
  } target;
  std::uint8_t ends;
};

std::uint8_t with(std::uint8_t bits, std::uint8_t part) {
  return static_cast<std::uint8_t>(bits | 1U << part);
}

class Model final : public Explorer<State> {
public:
  explicit Model(const Windows& setting) : set_(setting) {}

  Explored run() {
    State start{};
    start.first.at_asker = start.first.at_target = true;
    start.seconds[0].at_asker = start.seconds[0].at_target = true;
    for (auto& parts : start.asker.parts) std::fill(std::begin(parts), std::end(parts), Way::none);
    std::fill(std::begin(start.target.answer), std::end(start.target.answer), Way::none);
    return Explorer::run(start);
  }

private:
  void step(const State& s) override {
    say(s);
    send_parts(s);
    take_effect(s);
    answer(s);
    read(s);
    end_carriers(s);
  }
  [[nodiscard]] bool all_done(const State& s) const override { return s.asker.has_got; }
  [[nodiscard]] std::string picture(const State& s) const override {
    std::string text = "said " + std::to_string(s.asker.said) + ", heard " + std::to_string(s.target.heard) +
                       ", next " + std::to_string(s.target.next) + "; window";
    for (std::uint8_t i = 0; i < set_.parts; ++i) text += " " + std::to_string(s.target.window[i]);
    text += "; got";
    for (std::uint8_t i = 0; i < set_.parts; ++i) text += " " + std::to_string(s.asker.got[i]);
    return text + "; carriers ended " + std::to_string(s.ends);
  }

  // ---- The asker

  void say(const State& s) {
    if (s.asker.said == entries) return;
    State next = s;
    if (push(next.first.down, {Kind::envelope, next.asker.said++, 0, 0})) visit(next);
  }

  void send_parts(const State& s) {
    for (std::uint8_t put = 0; put < puts; ++put)
      for (std::uint8_t part = 0; part < set_.parts; ++part)
        if (s.asker.parts[put][part] == Way::due) send(s, put, part);
  }
  void send(const State& s, std::uint8_t put, std::uint8_t part) {
    State next = s;
    next.asker.parts[put][part] = Way::over;
    if (push(next.first.down, {Kind::part, put, part, 0})) visit(next);
    next = s;
    Carrier& second = next.seconds[next.last];
    next.asker.parts[put][part] = Way(s.last);
    if (second.at_asker && push(second.down, {Kind::part, put, part, 0})) visit(next);
  }

  void hear(State& s, Token token, Carrier* second) {
    switch (token.kind) {
    case Kind::want:
      for (std::uint8_t part = 1; part < set_.parts; ++part) s.asker.parts[token.entry][part] = Way::due;
      break;
    case Kind::part:
      if (second != nullptr) second->taken_answer = with(second->taken_answer, token.part);
      take_answer(s, token);
      break;
    default: broken(picture(s));
    }
    visit(s);
  }
  // When it has ended its buffer is the program's.
  void take_answer(State& s, Token token) {
    if (s.asker.has_got) {
      if (set_.stores_late) broken("stored behind its end: " + picture(s));
      return;
    }
    if (token.value != puts) broken("got what was before: " + picture(s));
    s.asker.got[token.part] = token.value;
    s.asker.has_got =
        std::all_of(s.asker.got, s.asker.got + set_.parts, [](std::uint8_t v) { return v != 0; });
    if (s.asker.has_got) check_window(s);
  }

  // ---- The target

  [[nodiscard]] bool in_place(const State& s, std::uint8_t put) const {
    return s.target.here[put] == (1U << set_.parts) - 1;
  }
  void check_window(const State& s) {
    for (std::uint8_t part = 0; part < set_.parts; ++part)
      if (s.target.window[part] != puts) broken("the window is not what was put last: " + picture(s));
  }
  static void store(State& s, std::uint8_t put, std::uint8_t part) {
    s.target.window[part] = static_cast<std::uint8_t>(put + 1);
    s.target.here[put] = with(s.target.here[put], part);
  }

  void take_effect(const State& s) {
    const std::uint8_t entry = s.target.next;
    if (entry == s.target.heard) return;
    State next = s;
    if (entry < puts) {
      if (!s.target.asked[entry]) return ask(s, entry);
      if (!in_place(s, entry) && !set_.overtakes) return;
    } else if (entry == told) {
      if (!in_place(s, first_put) || !in_place(s, second_put)) broken("told before: " + picture(s));
      check_window(s);
    } else {
      std::fill(next.target.answer, next.target.answer + set_.parts, Way::due);
    }
    ++next.target.next;
    visit(next);
  }
  // What came with its envelope is stored now.
  void ask(const State& s, std::uint8_t put) {
    State next = s;
    next.target.asked[put] = true;
    store(next, put, 0);
    if (set_.parts == 1 || push(next.first.up, {Kind::want, put, 0, 0})) visit(next);
  }

  void answer(const State& s) {
    for (std::uint8_t part = 0; part < set_.parts; ++part) {
      if (s.target.answer[part] != Way::due) continue;
      const Token token{Kind::part, got, part, s.target.window[part]};
      State next = s;
      next.target.answer[part] = Way::over;
      if (push(next.first.up, token)) visit(next);
      next = s;
      Carrier& second = next.seconds[next.last];
      next.target.answer[part] = Way(s.last);
      if (second.at_target && push(second.up, token)) visit(next);
    }
  }

  void receive(State& s, Token token, Carrier* second) {
    switch (token.kind) {
    case Kind::envelope:
      ++s.target.heard;
      if (set_.asks_at_once && token.entry < puts && !s.target.asked[token.entry]) {
        s.target.asked[token.entry] = true;
        store(s, token.entry, 0);
        if (!push(s.first.up, {Kind::want, token.entry, 0, 0})) return;
      }
      break;
    case Kind::part:
      if (second != nullptr) second->taken_of[token.entry] = with(second->taken_of[token.entry], token.part);
      if (set_.stores_late || (s.target.here[token.entry] & 1U << token.part) == 0)
        store(s, token.entry, token.part);
      break;
    default: broken(picture(s));
    }
    visit(s);
  }

  // ---- The carriers

  void read(const State& s) {
    if (s.first.down[0].kind != Kind::nothing) {
      State next = s;
      receive(next, pop(next.first.down), nullptr);
    }
    if (s.first.up[0].kind != Kind::nothing) {
      State next = s;
      hear(next, pop(next.first.up), nullptr);
    }
    for (const std::uint8_t i : {std::uint8_t{0}, std::uint8_t{1}}) {
      if (s.seconds[i].at_target && s.seconds[i].down[0].kind != Kind::nothing) {
        State next = s;
        receive(next, pop(next.seconds[i].down), &next.seconds[i]);
      }
      if (s.seconds[i].at_asker && s.seconds[i].up[0].kind != Kind::nothing) {
        State next = s;
        hear(next, pop(next.seconds[i].up), &next.seconds[i]);
      }
      acknowledge(s, i);
    }
  }

  // Of what was sent on that carrier; a part of it may be due again, or on another, which it stays.
  void acknowledge(const State& s, std::uint8_t i) {
    State next = s;
    Carrier& carrier = next.seconds[i];
    if (s.seconds[i].at_asker) {
      for (std::uint8_t put = 0; put < puts; ++put)
        for (std::uint8_t part = 0; part < set_.parts; ++part)
          take(next.asker.parts[put][part], i, carrier.taken_of[put], part);
      visit_if_changed(s, next);
    }
    next = s;
    if (s.seconds[i].at_target) {
      for (std::uint8_t part = 0; part < set_.parts; ++part)
        take(next.target.answer[part], i, carrier.taken_answer, part);
      visit_if_changed(s, next);
    }
  }
  static void take(Way& way, std::uint8_t carrier, std::uint8_t& taken, std::uint8_t part) {
    if ((taken & 1U << part) != 0 && way == Way(carrier)) way = Way::over;
    taken = static_cast<std::uint8_t>(taken & ~(1U << part));
  }
  void visit_if_changed(const State& s, const State& next) {
    if (std::memcmp(&s, &next, sizeof s) != 0) visit(next);
  }

  // Each side finds it out for itself, and sends again what it had on it. The asker makes another, while the
  // target may still read the one before.
  void end_carriers(const State& s) {
    for (const std::uint8_t i : {std::uint8_t{0}, std::uint8_t{1}}) {
      const Carrier& carrier = s.seconds[i];
      const bool may_end = s.ends < set_.ends || carrier.at_asker != carrier.at_target;
      const auto ends = static_cast<std::uint8_t>(s.ends + (carrier.at_asker && carrier.at_target ? 1 : 0));
      if (carrier.at_asker && may_end) {
        State next = s;
        next.ends = ends;
        next.seconds[i].at_asker = false;
        for (auto& parts : next.asker.parts) send_again(parts, i);
        visit(next);
      }
      if (carrier.at_target && may_end) {
        State next = s;
        next.ends = ends;
        next.seconds[i].at_target = false;
        send_again(next.target.answer, i);
        visit(next);
      }
    }
    const auto other = static_cast<std::uint8_t>(1 - s.last);
    if (s.seconds[s.last].at_asker || s.seconds[other].at_target || s.seconds[other].at_asker) return;
    State next = s;
    next.last = other;
    next.seconds[other] = {};
    next.seconds[other].at_asker = next.seconds[other].at_target = true;
    visit(next);
  }
  void send_again(Way (&parts)[most_parts], std::uint8_t carrier) const {
    for (Way& part : parts)
      if (part == Way(carrier)) part = set_.forgets ? Way::over : Way::due;
  }

  Windows set_;
};

} // namespace

Explored explore(const Windows& setting) {
  return Model(setting).run();
}

} // namespace parc::model
