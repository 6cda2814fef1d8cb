// SPDX-License-Identifier: BSD-3-Clause
// A calculation of a wanted length over what was got: each page is copied away, and then calculated with.
#pragma once

#include <cstddef>
#include <vector>

namespace parc::bench {

inline constexpr std::size_t page = 4096;

class Work {
public:
  // Of `bytes` bytes; `seconds` long with nobody beside.
  Work(std::size_t bytes, double seconds);

  // On the pages that begin in [begin, end) of `got`, upwards.
  void on(const unsigned char* got, std::size_t begin, std::size_t end);
  void on_all(const unsigned char* got) { on(got, 0, copy_.size()); }

private:
  std::vector<unsigned char> copy_;
  unsigned rounds_ = 0; // a page
};

// Keeps the core for that long.
void calculate_for(double seconds);

} // namespace parc::bench
