// SPDX-License-Identifier: BSD-3-Clause
// Whether conjugate gradients have come to what they should.
#pragma once

#include "examples/cg/strip.hpp"

namespace parc::examples::cg {

// A rank's strip is, bit for bit, as this process alone finds it when it calculates all strips. And what it
// finds is right as far as rounding allows: the residual that is carried on is b - A x, both sweeps undo L
// L^T, the other way has the same x, and x is nearer to the one that b is made for than at first.
[[nodiscard]] bool is_right(Strip& strip, Strip::Way way, int rank, int ranks, int iterations);

} // namespace parc::examples::cg
