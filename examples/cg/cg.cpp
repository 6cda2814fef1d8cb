// SPDX-License-Identifier: BSD-3-Clause
// cg: preconditioned conjugate gradients on a square grid, a strip of its rows on each rank. An iteration
// sums two numbers over all ranks, (p, q) and (s, s), and each sum is needed at once: its messages are too
// short to take any time but the network's latency, and nothing hides that. With --hide the same iterates are
// calculated in another order (de Sturler and van der Vorst 1995): the forward sweep of the preconditioner
// lies behind the first sum, the backward sweep behind the second. The rows for the neighbours are hidden
// behind the interior's product either way.
//   parc run -n 4 --hosts a:2,b:2 cg --size 1024 --hide
#include "examples/cg/check.hpp"
#include "examples/cg/messages.hpp"
#include "examples/cg/phases.hpp"
#include "examples/cg/strip.hpp"
#include "examples/steps/steps.hpp"

#include <algorithm>
#include <iostream>
#include <string>

namespace parc::examples::cg {
namespace {

using Way = Strip::Way;

struct Problem {
  std::size_t columns = 512;
  std::size_t rows = 0; // of all ranks; 0: as many as columns
  bool hide = false;
  std::vector<double> asleep; // milliseconds of the phases

  [[nodiscard]] Way way() const { return hide ? Way::Hidden : Way::Blocking; }
};

class Solver {
public:
  Solver(Context& parc, const Problem& problem, const Options& options)
      : parc_(parc), options_(options), hide_(problem.hide), phases_(options, problem.asleep),
        strip_(shape_of(parc, problem), problem.way()), halo_(parc, strip_), sum_(parc) {
    start_sum(strip_.residual());
    rho_ = finish_sum();
    strip_.backward(1);
    strip_.advance(0);
  }

  void iterate(int step) {
    if (step == options_.warm_up) phases_.begin();
    const int times = options_.times(parc_.rank(), step);
    double part = 0;
    phases_.communicate(Phase::Halo, [&] { halo_.start(); });
    phases_.calculate(Phase::Interior, [&] { part = strip_.multiply_interior(times); });
    phases_.communicate(Phase::Halo, [&] { halo_.wait(); });
    phases_.calculate(Phase::Border, [&] { part += strip_.multiply_border(); });
    start_sum(part);
    if (!hide_) finish_gamma();
    phases_.calculate(Phase::Forward, [&] { strip_.forward(times); });
    if (hide_) finish_gamma();
    phases_.calculate(Phase::Residual, [&] { part = strip_.residual(); });
    start_sum(part);
    if (!hide_) finish_rho();
    phases_.calculate(Phase::Backward, [&] { strip_.backward(times); });
    if (hide_) finish_rho();
    phases_.calculate(Phase::Advance, [&] { strip_.advance(beta_); });
  }

  [[nodiscard]] Strip& strip() { return strip_; }
  [[nodiscard]] std::vector<Part> parts() const { return phases_.parts(); }

private:
  // One that is not calculated has no more rows than it sends.
  static Shape shape_of(const Context& parc, const Problem& problem) {
    Shape shape = strip_of(problem.columns, problem.rows, static_cast<std::size_t>(parc.rank()),
                           static_cast<std::size_t>(parc.size()));
    if (!problem.asleep.empty()) shape.rows = std::min<std::size_t>(shape.rows, 2);
    return shape;
  }

  void start_sum(double part) {
    own_ = part;
    phases_.communicate(Phase::Start, [&] { sum_.start(part); });
  }
  double finish_sum() {
    double sum = own_;
    phases_.communicate(Phase::Sums, [&] { sum = sum_.wait(); });
    return sum;
  }
  void finish_gamma() { strip_.set_step(ratio(rho_, finish_sum())); }
  void finish_rho() {
    const double last = rho_;
    rho_ = finish_sum();
    beta_ = ratio(rho_, last);
  }

  Context& parc_;
  const Options& options_;
  const bool hide_;
  Phases phases_;
  Strip strip_;
  Halo halo_;
  Reduction sum_;
  double own_ = 0;
  double rho_ = 0, beta_ = 0;
};

// A rank that ends so ends the job: not before the first one has said why.
int refuse(Context& parc, const std::string& why) {
  if (parc.rank() == 0) std::cerr << "cg: " + why + "\n";
  parc.barrier();
  return 2;
}

int solve(const Problem& problem, const Options& options) {
  Context parc;
  if (problem.rows < static_cast<std::size_t>(parc.size()))
    return refuse(parc, std::to_string(problem.rows) + " rows are too few for " +
                            std::to_string(parc.size()) + " ranks; choose --size so that each has one");
  if (!problem.asleep.empty() && (options.check || options.only_messages))
    return refuse(parc, "what is slept is not calculated: --asleep goes neither with --check nor with "
                        "--only-messages");
  Solver solver(parc, problem, options);
  auto timing = time_steps(parc, options, [&](int step) { solver.iterate(step); });
  timing.parts = solver.parts();
  const bool correct = !options.check || is_right(solver.strip(), problem.way(), parc.rank(), parc.size(),
                                                  options.warm_up + options.steps);
  return say("cg", parc, options, timing, correct);
}

} // namespace
} // namespace parc::examples::cg

int main(int count, char** arguments) {
  using namespace parc::examples;
  cg::Problem problem;
  Options options;
  const Program program{
      .name = "cg",
      .purpose = "Conjugate gradients with a preconditioner, a strip of rows on each rank",
      .sizes = {{"--size", "Rows and columns of the grid", problem.columns, 1, 1 << 20},
                {"--rows", "Rows, where it is no square (0: it is one)", problem.rows, 0, 1 << 20}},
      .flags = {{"--hide", "Calculate behind the sums over all ranks", problem.hide}},
      .numbers = {{"--asleep",
                   "Sleep in place of calculating: milliseconds of interior, border, forward, residual, "
                   "backward and advance, as --alone tells them",
                   problem.asleep, cg::Phases::calculations}}};
  return run_program(program, options, count, arguments, [&] {
    if (problem.rows == 0) problem.rows = problem.columns;
    return cg::solve(problem, options);
  });
}
