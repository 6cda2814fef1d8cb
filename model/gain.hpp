// SPDX-License-Identifier: BSD-3-Clause
// The model of hiding (1994, section 2): what a step of a parallel program takes where communication follows
// calculation (A.1), what it takes where one hides the other (A.2), and the gain, which is the ratio of the
// two. Everything follows from three numbers:
//
//   x      t_com / t_calc, how long a task communicates for each second that it calculates; 1 / gamma
//   f      the fraction of its calculation behind which communication can be hidden, 0 to 1
//   Omega  what hiding costs, as a fraction of the calculation, from 0 on
//
// and x from what programs and machines are like (section 2.2): q messages one after the other, each of b
// bytes behind i / p operations of a task,
//
//   x = q (i_cs / (i / p) + gamma_h / gamma_s)
//
// with the software granularity gamma_s = (i / p) / b, the hardware granularity gamma_h = r_op / r_com, and
// i_cs operations to start a message. A message is long where gamma_h / gamma_s is most of that, and short
// where i_cs is.
//
// Pure. Arguments are finite and not negative, f is at most 1; nothing else is asked for, and a step that
// takes no time at all has a speedup and a gain of 1. Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace parc::model {

// ---- One step (2.1; 2.2, equations 1, 2 and 4)

struct Hiding {
  double f = 1;
  double omega = 0;
};

// In units of t_calc: what (A.1) takes, and what (A.2) does.
[[nodiscard]] double blocking_time(double x);
[[nodiscard]] double hidden_time(double x, const Hiding& hiding);

// Equation 4: blocking_time / hidden_time. At most 2.
[[nodiscard]] double gain(double x, const Hiding& hiding);

// Equation 1 from times: (t_calc + t_com) / max(t_calc, t_com).
[[nodiscard]] double gain_of_times(double t_calc, double t_com);

// ---- Which granularity (2.3.1)

// Where there is most to gain: the x at which what can hide and what it hides take the same time, f + Omega,
// and the gain there: (1 + f + Omega) / (1 + Omega), 2 - Omega / (1 + Omega) where f is 1.
[[nodiscard]] double best_x(const Hiding& hiding);
[[nodiscard]] double largest_gain(const Hiding& hiding);

// Hiding gains where x is larger than this, and loses where it is smaller: Omega, whatever f is. Where f is 0
// nothing gains.
[[nodiscard]] double least_x(const Hiding& hiding);

// The x between which the gain is at least `wanted`; nothing where it never is.
struct Range {
  double least, most; // most may be infinite: for a gain of at most 1
};
[[nodiscard]] std::optional<Range> range_of_x(double wanted, const Hiding& hiding);

// ---- Times on a machine (2.2, equation 3)

struct Link {
  double startup = 0;   // s, of a message: t_cs
  double bandwidth = 0; // bytes/s: r_com; infinite where bytes cost nothing
};

// t_cs + b / r_com
[[nodiscard]] double transfer_time(double bytes, const Link& link);

// ---- Many processors (2.3.2, equation 6)

// How many messages of a task follow one another, by the number of processors: a constant, sqrt(p) (a mesh),
// p (all to all).
using Messages = std::function<double(double p)>;

// A program of fixed size on any number of processors. `alone`: what a step takes on one, t_seq. `message`:
// t_tr, what one of its messages takes. For long messages their ratio is lambda = p gamma_s / gamma_h.
struct Program {
  double alone;
  double message;
  Messages messages;

  [[nodiscard]] double x(double p) const; // p q / lambda
};

[[nodiscard]] double speedup(const Program& program, double p);                       // (A.1)
[[nodiscard]] double speedup(const Program& program, double p, const Hiding& hiding); // (A.2)

struct Best {
  std::uint64_t p;
  double value;
};
// The number of processors from 1 to `most` with the largest value; the smallest where several have it.
[[nodiscard]] Best largest(std::uint64_t most, const std::function<double(double p)>& value);
// The largest number from 1 to `most` with an efficiency, speedup / p, of at least this; nothing where not
// even one has it.
[[nodiscard]] std::optional<std::uint64_t>
most_with_efficiency(std::uint64_t most, double efficiency, const std::function<double(double p)>& speedup);

// ---- Conjugate gradients on a mesh (4.3)

// T(p) = a / p + b sqrt(p) and T_lh(p) = (1 - f) a / p + max(f a / p + omega, b sqrt(p)), of the same form
// with q = sqrt(p), lambda = a / b and Omega = omega p / a: hiding costs the more, the more processors there
// are. Reductions that are hidden are begun once more, also where there is one processor: the speedup with
// hiding has T_lh(1) in it, and so the gain is no quotient of the two speedups.
struct ConjugateGradients {
  double flop;      // s: t_fl
  double startup;   // s: t_s
  double word;      // s: t_w
  double unknowns;  // N
  double nonzeroes; // of a row: n_z

  [[nodiscard]] double a() const { return (9 + 4 * nonzeroes) * flop * unknowns; }
  [[nodiscard]] double b() const { return 6 * (startup + 3 * word); }
  [[nodiscard]] double omega() const { return 24 * (startup + 3 * word); }
  [[nodiscard]] double f() const { return 2 * nonzeroes / (9 + 4 * nonzeroes); }

  [[nodiscard]] double time(double p) const;
  [[nodiscard]] double hidden_time(double p) const;
};

} // namespace parc::model
