// SPDX-License-Identifier: BSD-3-Clause
// One simulated host: an engine, and the ears that carry its words into the world.
#pragma once

#include "tests/sim/world.hpp"

namespace parc::sim {

class World::Ears final : public protocol::Listener {
public:
  explicit Ears(World& world) : world_(world) {}

private:
  void begun(std::uint64_t cookie, const protocol::Outcome& outcome) override {
    world_.begun(cookie, outcome);
  }
  void wanted(std::uint64_t cookie) override { world_.wanted(cookie); }
  void progressed(std::uint64_t cookie, const protocol::Progress& progress) override {
    world_.progressed(cookie, progress);
  }
  void finished(std::uint64_t cookie, const protocol::Outcome& outcome) override {
    world_.finished(cookie, outcome);
  }
  void drained(std::uint64_t cookie) override { world_.oracle_.drained(cookie); }
  bool place(std::uint64_t cookie, const protocol::Place& place, bool acquainted, protocol::Pieces& memory,
             std::uint64_t& hold) override {
    return world_.windows_.place(cookie, place, acquainted, memory, hold);
  }
  void let_go(std::uint64_t hold) override { world_.windows_.let_go(hold); }

  World& world_;
};

struct World::Host {
  Host(const protocol::Settings& s, std::unique_ptr<Ears> e)
      : settings(s), ears(std::move(e)), engine(s, *ears) {}
  protocol::Settings settings;
  std::unique_ptr<Ears> ears;
  protocol::Engine engine;
  std::map<std::size_t, std::uint32_t> links; // by the other host
  std::map<std::size_t, std::uint64_t>
      carriers; // the one that it is attached to, as Line counts them; 0: none
  std::map<std::size_t, std::uint64_t> adopted; // the last one that it was attached to
  bool moved = false;
};

} // namespace parc::sim
