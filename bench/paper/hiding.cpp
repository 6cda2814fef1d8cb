// SPDX-License-Identifier: BSD-3-Clause
// What a calculation pays for the messages that it hides (section 4.1's overhead): the same calculation alone
// and beside an exchange, in turn. Invariant: a time is processor time of one process, so that nobody else's
// work is in it; what the kernel takes from the calculation is the kernel's own.
#include "bench/figures/rank.hpp"
#include "bench/paper/roles.hpp"
#include "bench/paper/rounds.hpp"

#include <array>
#include <cstring>
#include <ctime>
#include <sys/resource.h>

namespace parc::bench {

namespace {

constexpr int tag_exchange = 0, tag_plan = 1;
constexpr double all_turns = 3; // seconds, of all turns

double time_on(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}
double own_time() {
  return time_on(CLOCK_THREAD_CPUTIME_ID);
}

// A few KiB, over and over: nothing of it leaves the first cache.
class Calculation {
public:
  Calculation() {
    for (std::size_t i = 0; i < field_.size(); ++i) field_[i] = static_cast<double>(i % 7);
  }
  void run(std::int64_t passes) {
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      for (std::size_t i = 1; i + 1 < field_.size(); ++i)
        field_[i] = 0.25 * field_[i - 1] + 0.5 * field_[i] + 0.25 * field_[i + 1];
      asm volatile("" : : "r"(field_.data()) : "memory");
    }
  }
  double timed(std::int64_t passes) {
    const double begin = own_time();
    run(passes);
    return own_time() - begin;
  }
  std::int64_t passes_of(double seconds) {
    constexpr std::int64_t probe = 1000;
    double least = timed(probe);
    for (int i = 0; i < 10; ++i) least = std::min(least, timed(probe));
    return static_cast<std::int64_t>(seconds / least * probe) + 1;
  }

private:
  std::array<double, 512> field_;
};

struct Exchange {
  const Rank& rank;
  void* out;
  void* in;
  std::size_t bytes;
  parc_op read = PARC_OP_NULL, write = PARC_OP_NULL;

  Result<void> start() {
    read = parc_initread(rank.get(), rank.other(), tag_exchange, in, bytes);
    PARC_TRY(checked(read));
    write = parc_initwrite(rank.get(), rank.other(), tag_exchange, out, bytes);
    return checked(write);
  }
  Result<void> finish() {
    PARC_TRY(checked(parc_wait(rank.get(), write, nullptr)));
    return checked(parc_wait(rank.get(), read, nullptr));
  }
};

struct Plan {
  std::int64_t passes; // of a calculation that takes twice as long as the exchange, and no less than 2 ms
  std::int64_t turns;
};

// Both ranks have rank 0's.
Result<Plan> make_plan(Exchange& exchange, Calculation& calculation) {
  constexpr int tries = 10;
  double begin = 0;
  for (int i = -tries; i < tries; ++i) {
    if (i == 0) begin = seconds_now();
    PARC_TRY(exchange.start());
    PARC_TRY(exchange.finish());
  }
  const double t_com = (seconds_now() - begin) / tries;
  const double t_calc = std::max(0.002, 2 * t_com);
  Plan plan{calculation.passes_of(t_calc), std::clamp(static_cast<int>(all_turns / 3 / t_calc), 20, 200)};
  parc_context* const p = exchange.rank.get();
  PARC_TRY(checked(exchange.rank.number() == 0 ? parc_write(p, 1, tag_plan, &plan, sizeof plan)
                                               : parc_read(p, 0, tag_plan, &plan, sizeof plan, nullptr)));
  PARC_TRY(checked(parc_barrier(p)));
  return plan;
}

// The middle half's mean: what the machine did besides hits few turns.
double middle(std::vector<double> values) {
  std::ranges::sort(values);
  double sum = 0;
  const std::size_t quarter = values.size() / 4;
  for (std::size_t i = quarter; i < values.size() - quarter; ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - 2 * quarter);
}

struct Samples {
  std::vector<double> alone, beside, calls, kernel;
  double voluntary = 0, involuntary = 0;

  // At both ends of what counts, with opposite signs.
  void count_switches(double sign) {
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    voluntary += sign * static_cast<double>(used.ru_nvcsw);
    involuntary += sign * static_cast<double>(used.ru_nivcsw);
  }
};

Result<void> take_turn(Exchange& exchange, Calculation& calculation, std::int64_t passes, clockid_t kernel,
                       Samples& samples) {
  calculation.run(passes);    // until the kernels have come to rest
  samples.count_switches(+1); // of the calculation alone: taken off
  samples.alone.push_back(calculation.timed(passes));
  samples.count_switches(-1);
  samples.count_switches(-1);
  const double before = time_on(kernel), begin = own_time();
  PARC_TRY(exchange.start());
  const double started = own_time();
  samples.beside.push_back(calculation.timed(passes));
  samples.kernel.push_back(time_on(kernel) - before); // before there is a wait, beside which it polls
  const double ended = own_time();
  PARC_TRY(exchange.finish());
  samples.calls.push_back(own_time() - ended + started - begin);
  samples.count_switches(+1);
  return success();
}

} // namespace

Result<Figures> hiding(std::size_t bytes, pid_t kernel) {
  PARC_TRY(rank, Rank::join());
  PARC_TRY(out, Shared::make(rank, bytes));
  PARC_TRY(in, Shared::make(rank, bytes));
  std::memset(out.get(), 1, bytes);
  std::memset(in.get(), 2, bytes);
  Exchange exchange{rank, out.get(), in.get(), bytes};
  Calculation calculation;
  PARC_TRY(plan, make_plan(exchange, calculation));
  clockid_t kernels_clock{};
  if (const int code = clock_getcpuclockid(kernel, &kernels_clock); code != 0)
    return error(code, "cannot read the processor time of process {}: {}", kernel, std::strerror(code));
  Samples samples;
  for (std::int64_t i = 0; i < plan.turns; ++i) {
    PARC_TRY(take_turn(exchange, calculation, plan.passes, kernels_clock, samples));
  }
  PARC_TRY(checked(parc_barrier(rank.get())));
  const bool first = rank.number() == 0;
  PARC_TRY(rank.leave());
  if (!first) return Figures();
  const double t_calc = middle(samples.alone), turns = static_cast<double>(plan.turns);
  return Figures{{"t_calc", t_calc},
                 {"calculation", middle(samples.beside) - t_calc},
                 {"calls", middle(samples.calls)},
                 {"kernel", middle(samples.kernel)},
                 {"voluntary", samples.voluntary / turns},
                 {"involuntary", samples.involuntary / turns}};
}

} // namespace parc::bench
