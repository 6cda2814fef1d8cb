// SPDX-License-Identifier: BSD-3-Clause
// The world's subflows: more byte streams between two hosts, which come and go at any moment.
#include "tests/sim/host.hpp"
#include "tests/sim/world.hpp"

namespace parc::sim {

namespace {
constexpr std::uint64_t changes = 6, doubts = 6, ends = 12, retires = 20; // one in so many steps, or changes
} // namespace

// The smaller host begins one; the larger one takes it up some time later.
void World::change_subflows(std::size_t host) {
  if (most_subflows_ == 0 || !random_.one_in(changes)) return;
  const std::size_t other = random_.below(hosts_.size());
  if (other == host) return;
  Host& at = *hosts_[host];
  const std::uint32_t link = at.links.at(other);
  Line& between = line(host, other);
  if (!at.engine.link(link).open || between.given_up) return;
  const std::size_t side = host < other ? 0 : 1;
  if (side == 0 && between.subflows.size() < most_subflows_) {
    auto made = std::make_unique<Line::Subflow>();
    const auto [low, high] = std::minmax(host, other);
    made->up = Wire(between.room, between.delay, oracle_.hostile.contains(low));
    made->down = Wire(between.room, between.delay, oracle_.hostile.contains(high));
    made->numbers[0] = at.engine.add_subflow(link).value();
    between.subflows.push_back(std::move(made));
    return;
  }
  if (between.subflows.empty()) return;
  Line::Subflow& subflow = *between.subflows[random_.below(between.subflows.size())];
  if (subflow.over[side]) return;
  if (subflow.numbers[side] == 0) {
    subflow.numbers[side] = at.engine.add_subflow(link).value();
  } else if (random_.one_in(ends)) {
    say("host " + std::to_string(host) + " ends a subflow to host " + std::to_string(other));
    ++tally_.subflows;
    drop(subflow, host, other);
  } else if (random_.one_in(doubts)) {
    ++tally_.doubted;
    at.engine.doubt_subflow(link, subflow.numbers[side]);
  } else if (random_.one_in(retires)) {
    at.engine.retire_subflow(link, subflow.numbers[side], random_.one_in(2));
  }
}

// The other one notices when it has read what is left.
void World::drop(Line::Subflow& subflow, std::size_t host, std::size_t other) {
  const std::size_t side = host < other ? 0 : 1;
  if (subflow.over[side]) return;
  Host& at = *hosts_[host];
  if (subflow.numbers[side] != 0) at.engine.drop_subflow(at.links.at(other), subflow.numbers[side]);
  subflow.over[side] = true;
  (side == 0 ? subflow.up : subflow.down).cut(random_.spread(100'000));
  (side == 0 ? subflow.down : subflow.up).cut(0);
}

// What one has ended, the other ends; what one has begun, the other takes up at the latest when all is calm.
bool World::sweep_subflows(std::size_t host, std::size_t other, bool calm) {
  const std::size_t side = host < other ? 0 : 1;
  bool changed = false;
  Line& between = line(host, other);
  for (const auto& subflow : between.subflows) {
    if (subflow->over[side]) continue;
    if ((side == 0 ? subflow->down : subflow->up).at_end()) {
      drop(*subflow, host, other);
      changed = true;
    } else if (calm && subflow->numbers[side] == 0) {
      subflow->numbers[side] = hosts_[host]->engine.add_subflow(hosts_[host]->links.at(other)).value();
      changed = true;
    }
  }
  std::erase_if(between.subflows, [](const auto& each) { return each->over[0] && each->over[1]; });
  return changed;
}

bool World::read_subflows(std::size_t host, std::size_t other, bool calm) {
  const std::size_t side = host < other ? 0 : 1;
  const auto open = [&] { return hosts_[host]->engine.link(hosts_[host]->links.at(other)).open; };
  bool moved = sweep_subflows(host, other, calm);
  Line& between = line(host, other);
  for (std::size_t i = 0; i < between.subflows.size() && open(); ++i)
    for (std::uint64_t tries = calm ? 4 : random_.below(3); tries != 0 && open(); --tries) {
      Line::Subflow& subflow = *between.subflows[i];
      if (subflow.numbers[side] == 0 || subflow.over[side]) break;
      moved |= read(side == 0 ? subflow.down : subflow.up, host, other, calm, subflow.numbers[side]);
    }
  return moved;
}

bool World::write_subflows(std::size_t host, std::size_t other, bool calm) {
  const std::size_t side = host < other ? 0 : 1;
  bool moved = false;
  for (const auto& subflow : line(host, other).subflows)
    for (std::uint64_t tries = calm ? 4 : random_.below(3); tries != 0; --tries) {
      if (subflow->numbers[side] == 0 || subflow->over[side]) break;
      moved |= write(side == 0 ? subflow->up : subflow->down, host, other, calm, subflow->numbers[side]);
    }
  return moved;
}

} // namespace parc::sim
