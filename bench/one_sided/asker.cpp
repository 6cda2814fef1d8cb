// SPDX-License-Identifier: BSD-3-Clause
#include "bench/one_sided/asker.hpp"
#include "bench/figures/bench.hpp"
#include "bench/figures/rank.hpp"
#include "bench/one_sided/work.hpp"

#include <cstring>
#include <functional>
#include <iostream>
#include <utility>

namespace parc::bench {
namespace {

constexpr std::uint64_t window = 1;
constexpr std::size_t window_bytes = std::size_t{4} << 20;
constexpr std::size_t memory_bytes = std::size_t{64} << 20; // of the asker
constexpr int tag_compute = 1, tag_over = 2, tag_flag = 3;
constexpr double computing = 0.4; // seconds of a target that was told to

// Ends the process where a call fails: with a sentence, in the middle of a measurement.
void must(std::int64_t result) {
  if (result >= 0) return;
  std::cerr << parc_error_detail() << '\n';
  std::exit(1);
}

class Asker {
public:
  Asker(const Rank& rank, void* memory, int order, int repeats)
      : parc_(rank.get()), to_(static_cast<unsigned char*>(memory)), next_(to_ + window_bytes), order_(order),
        repeats_(repeats) {}

  // HUNT's table 2: a value that is used at once, and two of one page.
  void measure_short() {
    const auto get_early = [this](std::size_t at) {
      const parc_place from{1, window, at};
      const parc_op get = parc_initget(parc_, &from, to_ + at, 8, PARC_EARLY);
      must(get);
      must(parc_wait(parc_, get, nullptr));
    };
    report("8 bytes", {{"blocking", [this] { get(0, 8), use(0); }}, {"early", [&] { get_early(0), use(0); }}},
           30);
    report("two gets of 8 bytes in a page",
           {{"blocking", [this] { get(0, 8), get(64, 8), use(0), use(64); }},
            {"non-blocking",
             [this] {
               parc_op gets[] = {start(0, 8), start(64, 8)};
               must(parc_waitall(parc_, 2, gets, nullptr));
               use(0), use(64);
             }},
            {"early", [&] { get_early(0), get_early(64), use(0), use(64); }}},
           30);
  }

  // HUNT's figures 8 and 9: what was got is copied and calculated with, from its first page to its last.
  void measure_overlap() {
    for (const std::size_t kib : {32u, 64u, 128u, 256u, 1024u, 4096u})
      for (const double part : {0.5, 1.0}) measure_overlap(kib << 10, part);
  }

  // FT's exchange: eight gets, and then work on each.
  void measure_several() {
    constexpr std::size_t count = 8, bytes = 256 << 10;
    const double alone = time([this] { start_all(count, bytes), wait_all(); });
    for (const double part : {0.5, 1.0}) {
      unsigned char* const own = buffer(count * bytes);
      Work work(bytes, alone / count * part);
      const auto work_on = [&](std::size_t i) { work.on_all(to_ + i * bytes); };
      Measured found{size_text(bytes) + " eight times, work " + (part < 1 ? "half" : "equal"), alone, 0, {}};
      found.work = time([&] {
        for (std::size_t i = 0; i < count; ++i) work_on(i);
      });
      const auto get_and_work = [&] {
        for (std::size_t i = 0; i < count; ++i) get(i * bytes, bytes);
        for (std::size_t i = 0; i < count; ++i) work_on(i);
      };
      report(std::move(found), {{"blocking", get_and_work},
                                {"non-blocking",
                                 [&] {
                                   start_all(count, bytes);
                                   for (std::size_t i = 0; i < count; ++i) {
                                     must(parc_wait(parc_, started_[i], nullptr));
                                     work_on(i);
                                   }
                                 }},
                                {"early", [&] { released(own, get_and_work); }}});
    }
  }

  // The kernel of the target answers while its program computes.
  void measure_computing() {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20}) {
      Measured found{size_text(bytes), 0, 0, {}};
      for (int i = 0; i < repeats_; ++i) {
        found.samples["idle"].push_back(several(bytes));
        must(parc_write(parc_, 1, tag_compute, nullptr, 0));
        get(0, 8); // behind which the program has been told
        found.samples["computing"].push_back(several(bytes));
        must(parc_read(parc_, 1, tag_compute, nullptr, 0, nullptr));
      }
      std::cout << Json(found).dump() << '\n';
    }
  }

  // Until the target has heard of what was put, and said so.
  void measure_flag() {
    const auto put = [this](std::size_t bytes) {
      const parc_place to{1, window, 0};
      must(parc_put(parc_, &to, to_, bytes));
    };
    const auto tell = [this] {
      must(parc_write(parc_, 1, tag_flag, nullptr, 0));
      must(parc_read(parc_, 1, tag_flag, nullptr, 0, nullptr));
    };
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{64} << 10})
      report("put of " + size_text(bytes) + " and a message",
             {{"message", [&, bytes] { put(bytes), tell(); }},
              {"quiet, message", [&, bytes] { put(bytes), must(parc_quiet(parc_)), tell(); }}},
             30);
  }

private:
  using Ways = std::vector<std::pair<std::string, std::function<void()>>>;

  void get(std::size_t at, std::size_t bytes) {
    const parc_place from{1, window, at};
    must(parc_get(parc_, &from, to_ + at, bytes));
  }
  parc_op start(std::size_t at, std::size_t bytes) {
    const parc_place from{1, window, at};
    const parc_op get = parc_initget(parc_, &from, to_ + at, bytes, 0);
    must(get);
    return get;
  }
  void start_all(std::size_t count, std::size_t bytes) {
    started_.clear();
    for (std::size_t i = 0; i < count; ++i) started_.push_back(start(i * bytes, bytes));
  }
  void wait_all() { must(parc_waitall(parc_, static_cast<int>(started_.size()), started_.data(), nullptr)); }
  void use(std::size_t at) const { sum_ = sum_ + to_[at]; }

  // Into a buffer of its own, as what is known of one buffer decides how it is waited for.
  void released(unsigned char* into, const std::function<void()>& what) {
    unsigned char* const before = std::exchange(to_, into);
    must(parc_set_order(parc_, order_));
    must(parc_set_release(parc_, PARC_RELEASE_FULL));
    what();
    must(parc_set_release(parc_, PARC_RELEASE_OFF));
    must(parc_set_order(parc_, PARC_ORDER_ANY));
    to_ = before;
  }
  unsigned char* buffer(std::size_t bytes) { return std::exchange(next_, next_ + bytes); }

  static double once(const std::function<void()>& what) {
    const double begin = seconds_now();
    what();
    return seconds_now() - begin;
  }
  static double time(const std::function<void()>& what) {
    std::vector<double> times;
    for (int i = 0; i < 7; ++i) times.push_back(once(what));
    return median(times);
  }
  double several(std::size_t bytes) {
    std::vector<double> times;
    const double end = seconds_now() + computing / 2;
    do times.push_back(once([&] { get(0, bytes); }));
    while (seconds_now() < end);
    return median(times);
  }

  void measure_overlap(std::size_t bytes, double part) {
    unsigned char* const own = buffer(bytes);
    const double alone = time([&] { get(0, bytes); });
    Work work(bytes, alone * part);
    Measured found{size_text(bytes) + ", work " + (part < 1 ? "half" : "equal"), alone, 0, {}};
    found.work = time([&] { work.on_all(to_); });
    Ways ways{{"blocking", [&] { get(0, bytes), work.on_all(to_); }},
              {"early", [&] { released(own, [&] { get(0, bytes), work.on_all(to_); }); }}};
    for (std::size_t strip :
         {std::size_t{16} << 10, std::size_t{64} << 10, std::size_t{256} << 10, bytes / 2}) {
      if (strip >= bytes || bytes / strip > 256 ||
          (strip == bytes / 2 && ways.back().first == "strips of " + size_text(strip)))
        continue;
      ways.emplace_back("strips of " + size_text(strip), [&, strip] {
        started_.clear();
        for (std::size_t at = 0; at < bytes; at += strip) started_.push_back(start(at, strip));
        for (std::size_t i = 0; i < started_.size(); ++i) {
          must(parc_wait(parc_, started_[i], nullptr));
          work.on(to_, i * strip, (i + 1) * strip);
        }
      });
    }
    report(std::move(found), ways);
  }

  // A sample of each way is the median of some of its runs; all ways take turns.
  void report(Measured found, const Ways& ways, int runs = 5) {
    for (int repeat = 0; repeat < repeats_; ++repeat) {
      Samples of_this;
      for (int run = 0; run < runs; ++run)
        for (const auto& [name, way] : ways) of_this[name].push_back(once(way));
      for (const auto& [name, seconds] : of_this) found.samples[name].push_back(median(seconds));
    }
    std::cout << Json(found).dump() << '\n';
  }
  void report(const std::string& name, const Ways& ways, int runs) {
    report(Measured{name, 0, 0, {}}, ways, runs);
  }

  parc_context* parc_;
  unsigned char *to_, *next_;
  int order_, repeats_;
  std::vector<parc_op> started_;
  mutable volatile unsigned sum_ = 0;
};

// Computes when it is told to, answers, and waits for the end otherwise.
Result<void> be_target(const Rank& rank) {
  for (;;) {
    parc_status status;
    const parc_op told = parc_initread(rank.get(), 0, PARC_ANY_TAG, nullptr, 0);
    PARC_TRY(checked(told));
    PARC_TRY(checked(parc_wait(rank.get(), told, &status)));
    if (status.tag == tag_over) return success();
    if (status.tag == tag_compute) calculate_for(computing);
    PARC_TRY(checked(parc_write(rank.get(), 0, status.tag, nullptr, 0)));
  }
}

} // namespace

Result<void> be_rank(const std::string& part, int order, int repeats) {
  PARC_TRY(rank, Rank::join());
  const std::size_t bytes = rank.number() == 1 ? window_bytes : memory_bytes;
  PARC_TRY(memory, Shared::make(rank, bytes));
  std::memset(memory.get(), rank.number() + 1, bytes);
  if (rank.number() == 1) {
    PARC_TRY(
        checked(parc_expose(rank.get(), window, memory.get(), window_bytes, PARC_MAY_GET | PARC_MAY_PUT)));
  }
  PARC_TRY(checked(parc_barrier(rank.get())));
  if (rank.number() == 1) {
    PARC_TRY(be_target(rank));
  } else {
    Asker asker(rank, memory.get(), order, repeats);
    if (part == "short") asker.measure_short();
    if (part == "overlap") asker.measure_overlap();
    if (part == "several") asker.measure_several();
    if (part == "computing") asker.measure_computing();
    if (part == "flag") asker.measure_flag();
    PARC_TRY(checked(parc_write(rank.get(), 1, tag_over, nullptr, 0)));
  }
  PARC_TRY(checked(parc_barrier(rank.get())));
  if (rank.number() == 1) {
    PARC_TRY(checked(parc_unexpose(rank.get(), window)));
  }
  return rank.leave();
}

} // namespace parc::bench
