// SPDX-License-Identifier: BSD-3-Clause
#include "tests/model/places.hpp"

#include <algorithm>
#include <array>

namespace parc::model {
namespace {

constexpr std::size_t most_pairs = 3, most_room = 2;

struct OfPair {
  std::uint8_t sent;     // envelopes
  std::uint8_t returned; // of those, read, as far as the sender knows
  std::uint8_t arrived;
  std::uint8_t read; // a bit for each message
  std::uint8_t told; // so many were, as the receiver has said
};

struct State {
  std::array<OfPair, most_pairs> pairs;
  std::array<std::uint8_t, most_room> envelopes; // on their way: a pair, from 1 on
  std::array<std::uint8_t, most_room> notices;   // the same, and what they say: pair * 16 + count
  std::uint8_t next_read;
};

class Model final : public Explorer<State> {
public:
  explicit Model(const Places& setting) : set_(setting) {}

private:
  void step(const State& state) override {
    for (std::uint8_t pair = 0; pair < set_.pairs; ++pair) {
      send(state, pair);
      tell(state, pair);
    }
    take_envelope(state);
    take_notice(state);
    read(state);
  }
  [[nodiscard]] bool all_done(const State& s) const override { return s.next_read == set_.reads.size(); }
  static std::uint8_t count_read(const OfPair& pair) {
    return static_cast<std::uint8_t>(__builtin_popcount(pair.read));
  }
  // As the sender knows it.
  [[nodiscard]] bool may_send(const State& s, std::uint8_t pair) const {
    std::uint8_t all = 0;
    for (const OfPair& each : s.pairs) all = static_cast<std::uint8_t>(all + each.sent - each.returned);
    const int left = std::max(set_.of_link - all, 0);
    if (set_.sharing == Sharing::first_come) return left > 0;
    const int unread = s.pairs[pair].sent - s.pairs[pair].returned;
    return unread < set_.own || unread < left;
  }
  // False: there is no room.
  [[nodiscard]] bool put(std::array<std::uint8_t, most_room>& socket, std::uint8_t item) const {
    for (std::size_t i = 0; i < set_.room; ++i)
      if (socket[i] == 0) return socket[i] = item, true;
    return false;
  }
  static std::uint8_t take(std::array<std::uint8_t, most_room>& socket) {
    const std::uint8_t first = socket[0];
    socket[0] = socket[1];
    socket[1] = 0;
    return first;
  }

  void send(const State& s, std::uint8_t pair) {
    if (s.pairs[pair].sent == set_.messages || !may_send(s, pair)) return;
    State next = s;
    ++next.pairs[pair].sent;
    if (put(next.envelopes, static_cast<std::uint8_t>(pair + 1))) visit(next);
  }

  void take_envelope(const State& s) {
    if (s.envelopes[0] == 0) return;
    State next = s;
    ++next.pairs[take(next.envelopes) - 1u].arrived;
    int kept = 0;
    for (const OfPair& each : next.pairs) kept += each.arrived - count_read(each);
    const int places =
        set_.sharing == Sharing::first_come ? set_.of_link : set_.of_link + set_.pairs * set_.own;
    if (kept > places) broken(picture(next));
    visit(next);
  }

  void read(const State& s) {
    if (s.next_read == set_.reads.size()) return;
    const auto [pair, message] = set_.reads[s.next_read];
    if (s.pairs[pair].arrived <= message) return;
    State next = s;
    next.pairs[pair].read = static_cast<std::uint8_t>(next.pairs[pair].read | 1u << message);
    ++next.next_read;
    visit(next);
  }

  void tell(const State& s, std::uint8_t pair) {
    const std::uint8_t now = count_read(s.pairs[pair]);
    if (now - s.pairs[pair].told < set_.told_after) return;
    State next = s;
    next.pairs[pair].told = now;
    if (put(next.notices, static_cast<std::uint8_t>((pair + 1) * 16 + now))) visit(next);
  }

  void take_notice(const State& s) {
    if (s.notices[0] == 0) return;
    State next = s;
    const std::uint8_t notice = take(next.notices);
    next.pairs[notice / 16 - 1u].returned = notice % 16;
    visit(next);
  }

  [[nodiscard]] std::string picture(const State& s) const override {
    std::string text = std::to_string(s.next_read) + " read; ";
    for (std::uint8_t pair = 0; pair < set_.pairs; ++pair) {
      const OfPair& each = s.pairs[pair];
      text += "pair " + std::to_string(pair) + ": " + std::to_string(each.sent) + " sent, " +
              std::to_string(each.arrived) + " arrived, " + std::to_string(each.returned) + " returned; ";
    }
    return text;
  }

  const Places& set_;
};

} // namespace

Explored explore(const Places& setting) {
  return Model(setting).run({});
}

} // namespace parc::model
