// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/network.hpp"

namespace parc::sim {

// Changes a field of the header that begins the last `added` bytes: a wild byte is mostly refused at the
// first check, a field with a likely value goes deep.
void Wire::mutate(std::size_t added, std::size_t header, Random& random) {
  const std::size_t begin = pipe_.size() - added;
  headers_.emplace_back();
  for (std::size_t i = 0; i < header; ++i) headers_.back().push_back(pipe_.at(begin + i));
  if (headers_.size() > 8) headers_.pop_front();

  if (random.one_in(4)) { // the entries of an older train
    const auto& old = headers_[random.below(headers_.size())];
    for (std::size_t i = random.one_in(2) ? sizeof(protocol::Prefix) : 0; i < std::min(old.size(), header);
         ++i)
      pipe_.at(begin + i) = old[i];
    return;
  }
  const std::size_t width = random.pick<std::size_t>({1, 2, 4, 8});
  if (header < width) return;
  const std::size_t from = random.one_in(3) || header < sizeof(protocol::Prefix)
                               ? 0
                               : std::min(sizeof(protocol::Prefix), header - width);
  const std::size_t at = (from + random.below(header - width - from + 1)) / width * width;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value |= static_cast<std::uint64_t>(pipe_.at(begin + at + i)) << (8 * i);
  switch (random.below(6)) {
  case 0: value = random.below(10); break;
  case 1: ++value; break;
  case 2: --value; break;
  case 3: value ^= std::uint64_t{1} << random.below(8 * width); break;
  case 4: value = ~std::uint64_t{0} >> random.below(64); break;
  case 5: value = random.below(~std::uint64_t{0}); break;
  }
  for (std::size_t i = 0; i < width; ++i) pipe_.at(begin + at + i) = static_cast<std::byte>(value >> (8 * i));
}

} // namespace parc::sim
