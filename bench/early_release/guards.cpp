// SPDX-License-Identifier: BSD-3-Clause
#include "bench/early_release/programs.hpp"
#include "shm/segment.hpp"

#include <sys/mman.h>

namespace parc::bench {

Result<std::vector<Row>> measure_guards(int repeats) {
  constexpr std::size_t sizes[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10};
  constexpr int times = 2000;
  std::vector<Row> rows;
  for (const std::size_t bytes : sizes) {
    PARC_TRY(segment,
             shm::Segment::create(4 << 20)); // as parc_alloc's: the guarded part is one of three mappings
    std::byte* const pages = segment.data() + (1 << 20);
    std::fill_n(pages, bytes, std::byte{1});
    Row row{size_text(bytes), "protect and unprotect", "us", "its transfer at 1 Gbit/s",
            bytes >= (64 << 10) ? "<= 0.01" : ""};
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const double begin = seconds_now();
      for (int i = 0; i < times; ++i)
        if (mprotect(pages, bytes, PROT_NONE) != 0 || mprotect(pages, bytes, PROT_READ | PROT_WRITE) != 0)
          return system_error("cannot protect pages");
      row.add((seconds_now() - begin) / times * 1e6, static_cast<double>(bytes) * 8 / 1e9 * 1e6);
    }
    rows.push_back(row);
  }
  return rows;
}

} // namespace parc::bench
