// SPDX-License-Identifier: BSD-3-Clause
// The two kinds of messages of conjugate gradients: rows for the neighbours, and sums over all ranks. Both
// are started and waited for, and what is calculated in between needs nothing of theirs.
#pragma once

#include "examples/cg/strip.hpp"

#include <parc/parc.hpp>
#include <vector>

namespace parc::examples::cg {

class Halo {
public:
  Halo(Context& parc, Strip& strip) : parc_(parc), strip_(strip) {}

  void start();
  void wait();

private:
  void exchange(int peer, Strip::Side side);

  Context& parc_;
  Strip& strip_;
  std::vector<Operation> operations_;
};

// A sum to which every rank gives a part. All write theirs to all, which takes the network's latency once;
// what has come is added in the order of ranks, so that all have the same bits. Nobody has to pass anything
// on: a sum makes progress while all ranks calculate.
//
// The reads of a sum are started with the one before it, whose parts lie in other memory. No rank can be two
// sums ahead, as it needs every other's part of each: every part that arrives finds its read.
class Reduction {
public:
  explicit Reduction(Context& parc);

  void start(double part);
  [[nodiscard]] double wait();

private:
  struct Sum {
    Buffer<double> own;
    Buffer<double> parts; // by rank
    std::vector<Operation> reads = {}, writes = {};
  };
  void start_reads(Sum& sum);

  Context& parc_;
  std::vector<int> peers_; // the next rank first, so that not all write to the same one
  Sum sums_[2];
  std::size_t current_ = 0;
};

} // namespace parc::examples::cg
