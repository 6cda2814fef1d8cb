// SPDX-License-Identifier: BSD-3-Clause
// What the simulated programs get, put and add.
#include "tests/sim/host.hpp"
#include "tests/sim/world.hpp"

namespace parc::sim {

using namespace protocol;

// Some of it, mostly; else what is not there.
void World::get(std::size_t index) {
  const Actor& actor = oracle_.actors[index];
  if (actor.job == 0 || actor.peers.empty()) return;
  const auto row = static_cast<std::uint32_t>(random_.below(actor.peers.size()));
  const std::size_t target = actor.peers[row];
  if (target == none) return;
  const std::uint64_t there = windows_.bytes(target), offset = random_.below(there + 1);
  Place place{Windows::number, offset,
              random_.one_in(4) ? there - offset : random_.below(there - offset + 1)};
  if (random_.one_in(20)) place.length += random_.below(2 * (there - place.length) + 2);
  if (random_.one_in(50)) place.window = random_.below(20);
  if (random_.one_in(50)) place.offset = ~std::uint64_t{0} - random_.below(3);
  const auto rows = in_rows(place, random_.one_in(8) ? there : place.length);
  const bool gated = gates_[index].keeps_puts_to(static_cast<std::int32_t>(row));
  const Get& get = windows_.start(index, target, place, random_);
  say("actor " + std::to_string(index) + " starts get " + std::to_string(windows_.last()) + " of " +
      std::to_string(place.length) + " bytes at " + std::to_string(place.offset) + " of window " +
      std::to_string(place.window) + " of " + std::to_string(target));
  ++tally_.gets;
  const std::uint64_t handle =
      engine_of(index).get(actor.endpoint, {.cookie = windows_.last() | of_get,
                                            .target = row,
                                            .window = place.window,
                                            .offset = place.offset,
                                            .flags = when(random_.one_in(3), MessageFlags::from_end),
                                            .memory = get.memory->pieces(),
                                            .rows = rows,
                                            .gated = gated});
  if (gated && handle != 0) gates_[index].keep(handle);
}

// Sometimes what is wanted of `bytes` bytes of a window is rows of them, upwards or downwards.
std::optional<Rows> World::in_rows(Place& place, std::uint64_t bytes) {
  if (place.length < 2 || !random_.one_in(3)) return {};
  const std::uint64_t row = 1 + random_.below(random_.one_in(2) ? 40 : place.length);
  const std::uint64_t stride = row + random_.below(random_.one_in(2) ? 9 : bytes);
  const std::uint64_t fit = bytes < row ? 0 : (bytes - row) / stride + 1;
  if (fit == 0) return {};
  rows_ = {row, static_cast<std::int64_t>(stride)};
  place.length = row * fit;
  if (random_.one_in(2)) {
    rows_.stride = -rows_.stride;
    place.offset += (fit - 1) * stride;
  }
  place.rows = &rows_;
  return rows_;
}

// Into its own stripe there, mostly; else what is not there, or another window.
void World::put(std::size_t index) {
  const Actor& actor = oracle_.actors[index];
  if (actor.job == 0 || actor.peers.empty()) return;
  const auto row = static_cast<std::uint32_t>(random_.below(actor.peers.size()));
  const std::size_t target = actor.peers[row];
  if (target == none) return;
  Place place = windows_.stripe_of(target, index);
  const std::uint64_t from = random_.one_in(4) ? 0 : random_.below(place.length + 1);
  place.offset += from;
  place.length = random_.one_in(4) ? place.length - from : random_.below(place.length - from + 1);
  if (random_.one_in(50)) place.window = Windows::number + 1 + random_.below(20);
  if (random_.one_in(50)) place.offset = ~std::uint64_t{0} - random_.below(3);
  if (random_.one_in(50)) place.offset = windows_.bytes(target) + 1 + random_.below(100);
  const auto rows = in_rows(place, place.length);
  const bool gated = target != index && gates_[index].shut();
  const Put& put = windows_.start_put(index, target, place, random_);
  const std::size_t id = windows_.puts().last();
  say("actor " + std::to_string(index) + " starts put " + std::to_string(id) + " of " +
      std::to_string(place.length) + " bytes at " + std::to_string(place.offset) + " of window " +
      std::to_string(place.window) + " of " + std::to_string(target) + (gated ? ", gated" : ""));
  ++tally_.puts;
  const std::uint64_t handle =
      engine_of(index).write(actor.endpoint, {.cookie = id | of_put,
                                              .destination = row,
                                              .tag = place.window,
                                              .data = place.offset,
                                              .flags = when(random_.one_in(3), MessageFlags::from_end),
                                              .memory = put.memory->pieces(),
                                              .gated = gated,
                                              .put = true,
                                              .rows = rows});
  puts_.resize(id + 1);
  puts_[id] = handle;
  if (gated && !windows_.puts()[id].over()) gates_[index].keep(handle, static_cast<std::int32_t>(row));
}

void World::add(std::size_t index) {
  const Actor& actor = oracle_.actors[index];
  if (actor.job == 0 || actor.peers.empty()) return;
  const auto row = static_cast<std::uint32_t>(random_.below(actor.peers.size()));
  const std::size_t target = actor.peers[row];
  if (target == none) return;
  Place place = windows_.counter_of(target);
  if (random_.one_in(50)) place.window = Windows::number + 1;
  const bool gated = target != index && gates_[index].shut();
  const std::size_t id = windows_.start_add(index, target, place.window);
  say("actor " + std::to_string(index) + " starts addition " + std::to_string(id) + " to the counter of " +
      std::to_string(target) + (gated ? ", gated" : ""));
  ++tally_.adds;
  const std::uint64_t handle =
      engine_of(index).get(actor.endpoint, {.cookie = id | of_add,
                                            .target = row,
                                            .window = place.window,
                                            .offset = place.offset,
                                            .flags = MessageFlags::none,
                                            .memory = {},
                                            .atomic = Atomic{1, 0, Atomic::What::add, 8, 0, 0},
                                            .gated = gated});
  adds_.resize(id + 1);
  adds_[id] = gated ? handle : 0;
  if (gated && handle != 0) gates_[index].keep(handle, static_cast<std::int32_t>(row));
}

} // namespace parc::sim
