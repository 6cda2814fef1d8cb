// SPDX-License-Identifier: BSD-3-Clause
#include "examples/cg/messages.hpp"

#include <numeric>

namespace parc::examples::cg {
namespace {

constexpr int up = 1, down = 2, sums = 3; // tags

} // namespace

void Halo::exchange(int peer, Strip::Side side) {
  const bool above = side == Strip::Side::Above;
  operations_.push_back(parc_.initread(peer, above ? down : up, strip_.ghosts(side)));
  operations_.push_back(parc_.initwrite(peer, above ? up : down, strip_.border(side)));
}

void Halo::start() {
  if (parc_.rank() > 0) exchange(parc_.rank() - 1, Strip::Side::Above);
  if (parc_.rank() + 1 < parc_.size()) exchange(parc_.rank() + 1, Strip::Side::Below);
}

void Halo::wait() {
  parc_.wait_all(operations_);
  operations_.clear();
}

Reduction::Reduction(Context& parc)
    : parc_(parc), sums_{
                       {parc.buffer<double>(1), parc.buffer<double>(static_cast<std::size_t>(parc.size()))},
                       {parc.buffer<double>(1), parc.buffer<double>(static_cast<std::size_t>(parc.size()))}} {
  for (int i = 1; i < parc.size(); ++i) peers_.push_back((parc.rank() + i) % parc.size());
  start_reads(sums_[current_]);
}

void Reduction::start_reads(Sum& sum) {
  for (const int peer : peers_)
    sum.reads.push_back(
        parc_.initread(peer, sums, sum.parts.span().subspan(static_cast<std::size_t>(peer), 1)));
}

void Reduction::start(double part) {
  Sum& sum = sums_[current_];
  sum.own[0] = sum.parts[static_cast<std::size_t>(parc_.rank())] = part;
  for (const int peer : peers_) sum.writes.push_back(parc_.initwrite(peer, sums, sum.own));
  start_reads(sums_[1 - current_]);
}

double Reduction::wait() {
  Sum& sum = sums_[current_];
  parc_.wait_all(sum.reads);
  parc_.wait_all(sum.writes);
  sum.reads.clear();
  sum.writes.clear();
  current_ = 1 - current_;
  return std::accumulate(sum.parts.begin(), sum.parts.end(), 0.0);
}

} // namespace parc::examples::cg
