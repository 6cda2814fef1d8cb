// SPDX-License-Identifier: BSD-3-Clause
#include "bench/one_sided/asker.hpp"
#include "bench/figures/bench.hpp"
#include "bench/one_sided/work.hpp"

#include <cstring>
#include <iostream>

namespace parc::bench {
namespace {

constexpr std::size_t asker_windows = 24; // as long as so many is the asker's memory

struct Part {
  const char* name;
  void (*measure)(Asker&);
};
constexpr Part parts[] = {
    {"machine", measure_machine}, {"short", measure_short},
    {"overlap", measure_overlap}, {"computing", measure_computing},
    {"flag", measure_flag},       {"ft", measure_ft},
    {"is", measure_is},           {"mg", measure_mg},
    {"many", measure_many},       {"puts", measure_puts},
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

void must(std::int64_t result) {
  if (result >= 0) return;
  std::cerr << parc_error_detail() << '\n';
  std::exit(1);
}

void Asker::get_to(std::size_t to, std::size_t at, std::size_t bytes, int from) {
  const parc_place place{from, the_window, at};
  must(parc_get(parc_, &place, to_ + to, bytes));
}

parc_op Asker::start_to(std::size_t to, std::size_t at, std::size_t bytes, int from) {
  const parc_place place{from, the_window, at};
  const parc_op get = parc_initget(parc_, &place, to_ + to, bytes, 0);
  must(get);
  return get;
}

void Asker::start_all(std::size_t count, std::size_t bytes) {
  started_.clear();
  for (std::size_t i = 0; i < count; ++i) started_.push_back(start(i * bytes, bytes));
}

void Asker::wait_all() {
  must(parc_waitall(parc_, static_cast<int>(started_.size()), started_.data(), nullptr));
}

unsigned char* Asker::buffer(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(end_ - next_)) must((std::cerr << "there is no memory left\n", -1));
  return std::exchange(next_, next_ + bytes);
}

void Asker::released(unsigned char* into, const Release& how, const std::function<void()>& what) {
  unsigned char* const before = std::exchange(to_, into);
  must(parc_set_order(parc_, how.order));
  must(parc_set_strip(parc_, how.strip));
  must(parc_set_train(parc_, how.train));
  must(parc_set_release(parc_, PARC_RELEASE_FULL));
  what();
  must(parc_settle(parc_, nullptr, 0));
  must(parc_set_release(parc_, PARC_RELEASE_OFF));
  must(parc_set_train(parc_, 0));
  must(parc_set_strip(parc_, 0));
  must(parc_set_order(parc_, PARC_ORDER_ANY));
  to_ = before;
}

double Asker::once(const std::function<void()>& what) {
  const double begin = seconds_now();
  what();
  return seconds_now() - begin;
}

double Asker::time(const std::function<void()>& what) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) times.push_back(once(what));
  return median(times);
}

void Asker::report(Measured found, const Ways& ways, int runs) const {
  for (int repeat = 0; repeat < repeats_; ++repeat) {
    Samples of_this;
    for (int run = 0; run < runs; ++run)
      for (const auto& [name, way] : ways) of_this[name].push_back(once(way));
    for (const auto& [name, seconds] : of_this) found.samples[name].push_back(median(seconds));
  }
  std::cout << Json(found).dump() << '\n';
}

Result<void> be_rank(const std::string& part, int order, int repeats) {
  PARC_TRY(rank, Rank::join());
  const std::size_t windows = rank.number() == 0 ? asker_windows : 1;
  PARC_TRY(memory, Shared::make(rank, windows * window_bytes));
  std::memset(memory.get(), rank.number() + 1, windows * window_bytes);
  if (rank.number() != 0) {
    PARC_TRY(checked(
        parc_expose(rank.get(), the_window, memory.get(), window_bytes, PARC_MAY_GET | PARC_MAY_PUT)));
  }
  PARC_TRY(checked(parc_barrier(rank.get())));
  if (rank.number() != 0) {
    PARC_TRY(be_target(rank));
  } else {
    Asker asker(rank, memory.get(), windows, order, repeats);
    for (const Part& each : parts)
      if (part == each.name) each.measure(asker);
    for (int target = 1; target < parc_size(rank.get()); ++target) {
      PARC_TRY(checked(parc_write(rank.get(), target, tag_over, nullptr, 0)));
    }
  }
  PARC_TRY(checked(parc_barrier(rank.get())));
  if (rank.number() != 0) {
    PARC_TRY(checked(parc_unexpose(rank.get(), the_window)));
  }
  return rank.leave();
}

} // namespace parc::bench
