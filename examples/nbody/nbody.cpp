// SPDX-License-Identifier: BSD-3-Clause
// nbody (N-Body of erMPI 2005): particles under pairwise forces, as many on each rank. In every step a rank
// sums the forces on its particles, its own block of sources first and then those of the other ranks, moves
// them, and sends them to all others. Source blocks are the outer loop: a block that is still on its way
// holds up only its own turn.
//   parc run -n 4 --hosts a:2,b:2 --early-release nbody --particles 2048
#include "examples/steps/steps.hpp"

#include <cmath>
#include <cstring>
#include <vector>

namespace {

using parc::Context;
using parc::examples::Options;

struct Particle {
  double x, y, z, mass;
};
struct Vector {
  double x, y, z;
};
using Block = std::vector<Particle>;

constexpr double time_step = 1e-3, softening = 1e-2;

// The same particles however many ranks there are.
Block initial_block(std::size_t first, std::size_t size) {
  Block block;
  for (std::size_t i = first; i < first + size; ++i) {
    const auto t = static_cast<double>(i);
    block.push_back({std::fmod(t * 0.754877666, 1.0), std::fmod(t * 0.569840290, 1.0),
                     std::fmod(t * 0.438579021, 1.0), 1 + std::fmod(t * 0.31, 1.0)});
  }
  return block;
}

// The same sums `times` over.
void add_forces(std::vector<Vector>& forces, const Block& targets, const Block& sources, int times) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    Vector sum{};
    for (int k = 0; k < times; ++k) {
      sum = forces[i];
      for (const Particle& source : sources) {
        const double x = source.x - targets[i].x, y = source.y - targets[i].y, z = source.z - targets[i].z;
        const double squared = x * x + y * y + z * z + softening;
        const double pull = source.mass / (squared * std::sqrt(squared));
        sum.x += pull * x;
        sum.y += pull * y;
        sum.z += pull * z;
      }
      parc::examples::forget_results();
    }
    forces[i] = sum;
  }
}

// One rank's particles; `block_of` gives the positions of every rank's at this step.
class Cloud {
public:
  Cloud(std::size_t rank, std::size_t ranks, std::size_t particles)
      : rank_(rank), ranks_(ranks),
        own_(initial_block(particles * rank / ranks,
                           particles * (rank + 1) / ranks - particles * rank / ranks)),
        velocities_(own_.size(), {0, 0, 0}), forces_(own_.size()) {}

  template <class BlockOf> void calculate(const BlockOf& block_of, int times = 1) {
    std::fill(forces_.begin(), forces_.end(), Vector{0, 0, 0});
    for (std::size_t i = 0; i < ranks_; ++i) add_forces(forces_, own_, block_of((rank_ + i) % ranks_), times);
  }

  void move() {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      velocities_[i].x += time_step * forces_[i].x;
      velocities_[i].y += time_step * forces_[i].y;
      velocities_[i].z += time_step * forces_[i].z;
      own_[i].x += time_step * velocities_[i].x;
      own_[i].y += time_step * velocities_[i].y;
      own_[i].z += time_step * velocities_[i].z;
    }
  }

  [[nodiscard]] Block& own() { return own_; }
  [[nodiscard]] const Block& own() const { return own_; }

private:
  std::size_t rank_, ranks_;
  Block own_;
  std::vector<Vector> velocities_, forces_;
};

void exchange(Context& parc, Cloud& cloud, std::vector<Block>& others) {
  const int size = parc.size();
  std::vector<parc::Operation> reads;
  for (int i = 1; i < size; ++i) {
    const int from = (parc.rank() + i) % size;
    reads.push_back(parc.initread(from, 0, std::span(others[static_cast<std::size_t>(from)])));
  }
  // Nearest first, as they are needed there: the rank before this one needs this block next after its own.
  for (int i = 1; i < size; ++i) parc.write((parc.rank() + size - i) % size, 0, std::span(cloud.own()));
  parc.wait_all(reads);
}

bool is_right(const Cloud& cloud, std::size_t rank, std::size_t ranks, std::size_t particles, int steps) {
  std::vector<Cloud> all;
  for (std::size_t i = 0; i < ranks; ++i) all.emplace_back(i, ranks, particles);
  for (int step = 0; step < steps; ++step) {
    for (Cloud& each : all) each.calculate([&](std::size_t i) -> const Block& { return all[i].own(); });
    for (Cloud& each : all) each.move();
  }
  const Block& right = all[rank].own();
  return std::memcmp(right.data(), cloud.own().data(), right.size() * sizeof(Particle)) == 0;
}

int simulate(std::size_t particles, const Options& options) {
  Context parc;
  const auto ranks = static_cast<std::size_t>(parc.size()), rank = static_cast<std::size_t>(parc.rank());
  Cloud cloud(rank, ranks, particles);
  std::vector<Block> others;
  for (std::size_t i = 0; i < ranks; ++i) others.push_back(Cloud(i, ranks, particles).own());
  const auto timing = time_steps(parc, options, [&](int step) {
    if (!options.only_messages)
      cloud.calculate([&](std::size_t i) -> const Block& { return i == rank ? cloud.own() : others[i]; },
                      options.times(parc.rank(), step));
    cloud.move();
    if (!options.alone) exchange(parc, cloud, others);
  });
  const bool correct =
      !options.check || is_right(cloud, rank, ranks, particles, options.warm_up + options.steps);
  return say("nbody", parc, options, timing, correct);
}

} // namespace

int main(int count, char** arguments) {
  std::size_t particles = 1024;
  Options options;
  const parc::examples::Program program{
      .name = "nbody",
      .purpose = "Particles under pairwise forces, a block of them on each rank",
      .sizes = {{"--particles", "Of all ranks together", particles, 2, 1 << 24}},
      .presets = {{"A", 10240, 200}, {"B", 20480, 100}, {"C", 40960, 50}, {"small", 1024, 50}}};
  return parc::examples::run_program(program, options, count, arguments,
                                     [&] { return simulate(particles, options); });
}
