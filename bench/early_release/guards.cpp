// SPDX-License-Identifier: BSD-3-Clause
#include "bench/early_release/programs.hpp"
#include "shm/guarded_pages.hpp"

namespace parc::bench {
namespace {

double transfer_us(std::size_t bytes) { // at 1 Gbit/s
  return static_cast<double>(bytes) * 8 / 1e9 * 1e6;
}

// Microseconds of each, over many.
template <class Once> Result<double> time_of(int times, const Once& once) {
  const double begin = seconds_now();
  for (int i = 0; i < times; ++i)
    if (!once()) return system_error("cannot protect pages");
  return (seconds_now() - begin) / times * 1e6;
}

} // namespace

Result<std::vector<Row>> measure_guards(int repeats) {
  constexpr std::size_t sizes[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10}, whole = 4 << 20;
  std::vector<Row> rows;
  for (const std::size_t bytes : sizes) {
    Row row{size_text(bytes), "protect and unprotect", "us", "its transfer at 1 Gbit/s",
            bytes >= (64 << 10) ? "<= 0.01" : ""};
    PARC_TRY(pages, shm::GuardedPages::make(bytes));
    for (int repeat = 0; repeat < repeats; ++repeat) {
      PARC_TRY(us, time_of(2000, [&pages = pages] { return pages.close() && pages.open(); }));
      row.add(us, transfer_us(bytes));
    }
    rows.push_back(row);
  }
  Row row{size_text(whole), "guard, a fault and opening", "us", "its transfer at 1 Gbit/s", "<= 0.01"};
  PARC_TRY(pages, shm::GuardedPages::make(whole)); // as in the library, all is opened with one call
  for (int repeat = 0; repeat < repeats; ++repeat) {
    PARC_TRY(us, time_of(200, [&pages = pages] {
               if (!pages.close()) return false;
               pages.touch();
               return true;
             }));
    row.add(us, transfer_us(whole));
  }
  rows.push_back(row);
  return rows;
}

} // namespace parc::bench
