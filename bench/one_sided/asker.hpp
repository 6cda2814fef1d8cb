// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a measurement: rank 0 gets from the windows of the others, and puts there, in several ways,
// one after the other, again and again, so that what changes on the machine changes for all of them.
#pragma once

#include "bench/figures/figures.hpp"
#include "bench/figures/rank.hpp"

#include <functional>
#include <map>
#include <utility>

namespace parc::bench {

using Samples = std::map<std::string, std::vector<double>>; // of each way: seconds

struct Measured {
  std::string name;         // the case
  double get = 0, work = 0; // seconds, each alone
  Samples samples;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Measured, name, get, work, samples)

// Rank 0 prints a line of JSON for each Measured of this part. `order`: in which it says that it touches what
// it gets, an enum parc_order.
[[nodiscard]] Result<void> be_rank(const std::string& part, int order, int repeats);

inline constexpr std::size_t window_bytes = std::size_t{4} << 20; // of each target

// Ends the process where a call fails: with a sentence, in the middle of a measurement.
void must(std::int64_t result);

// How waits are released: PARC_RELEASE_FULL, and what HUNT's programs could say.
struct Release {
  int order = PARC_ORDER_ANY;
  std::size_t strip = 0;
  int train = 0;
};

class Asker {
public:
  using Ways = std::vector<std::pair<std::string, std::function<void()>>>;

  // Its memory is as long as `windows` windows.
  Asker(const Rank& rank, void* memory, std::size_t windows, int order, int repeats)
      : parc_(rank.get()), to_(static_cast<unsigned char*>(memory)), next_(to_ + window_bytes),
        end_(to_ + windows * window_bytes), order_(order), repeats_(repeats) {}

  [[nodiscard]] parc_context* parc() const { return parc_; }
  [[nodiscard]] int order() const { return order_; }
  [[nodiscard]] int repeats() const { return repeats_; }
  // Where it gets to: released() changes that.
  [[nodiscard]] unsigned char* to() const { return to_; }

  // Of rank `from`, at that place of its window, to the same place here.
  void get(std::size_t at, std::size_t bytes, int from = 1) { get_to(at, at, bytes, from); }
  void get_to(std::size_t to, std::size_t at, std::size_t bytes, int from);
  [[nodiscard]] parc_op start(std::size_t at, std::size_t bytes, int from = 1) {
    return start_to(at, at, bytes, from);
  }
  [[nodiscard]] parc_op start_to(std::size_t to, std::size_t at, std::size_t bytes, int from);
  void start_all(std::size_t count, std::size_t bytes);
  void wait_all();
  void wait(std::size_t index) { must(parc_wait(parc_, started_[index], nullptr)); }
  std::vector<parc_op>& started() { return started_; }
  void use(std::size_t at) const { sum_ = sum_ + to_[at]; }

  // A buffer of its own, as what is known of one decides how it is waited for.
  [[nodiscard]] unsigned char* buffer(std::size_t bytes);
  void released(unsigned char* into, const std::function<void()>& what) {
    released(into, {.order = order_}, what);
  }
  void released(unsigned char* into, const Release& how, const std::function<void()>& what);

  [[nodiscard]] static double once(const std::function<void()>& what);
  [[nodiscard]] static double time(const std::function<void()>& what); // of several, the median

  // A sample of each way is the median of some of its runs; all ways take turns.
  void report(Measured found, const Ways& ways, int runs = 5) const;
  void report(const std::string& name, const Ways& ways, int runs) const {
    report(Measured{name, 0, 0, {}}, ways, runs);
  }

private:
  parc_context* parc_;
  unsigned char *to_, *next_, *end_;
  int order_, repeats_;
  std::vector<parc_op> started_;
  mutable volatile unsigned sum_ = 0;
};

// transfers.cpp: HUNT's tables 1 and 2, figures 6 to 9; what the target's part is in them.
void measure_machine(Asker& asker);
void measure_short(Asker& asker);
void measure_overlap(Asker& asker);
void measure_computing(Asker& asker);
void measure_flag(Asker& asker);
// exchanges.cpp: figures 10 and 11, and what else section 6.2 has programs do.
void measure_ft(Asker& asker);
void measure_is(Asker& asker);
void measure_mg(Asker& asker);
void measure_many(Asker& asker);
void measure_puts(Asker& asker);

inline constexpr int tag_compute = 1, tag_over = 2, tag_flag = 3; // what a target is told
inline constexpr std::uint64_t the_window = 1;
inline constexpr double computing = 0.4; // seconds of a target that was told to

} // namespace parc::bench
