// SPDX-License-Identifier: BSD-3-Clause
// The memory of one simulated operation: pieces with guards between them, and contents that tell which
// message and which offset a byte belongs to.
#pragma once

#include "protocol/pieces.hpp"
#include "tests/sim/network.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace parc::sim {

inline std::byte content(std::size_t message, std::uint64_t offset) {
  const std::uint64_t mixed = (offset + 1) * 0x9e3779b97f4a7c15u ^ message * 0xc2b2ae3d27d4eb4fu;
  return static_cast<std::byte>(mixed >> 29);
}

class Memory {
public:
  Memory(std::uint64_t length, Random& random) : bytes_(length + 1024 + 64, guard) {
    const std::uint64_t longest = random.one_in(4) ? random.pick<std::uint64_t>({1, 50, 700}) : length + 1;
    std::size_t at = random.below(32), gaps = 63;
    for (std::uint64_t left = length; left != 0;) {
      std::uint64_t n = std::min(left, 1 + random.below(longest));
      if (gaps == 0) n = left;
      pieces_.append({bytes_.data() + at, n});
      at += n;
      left -= n;
      if (gaps != 0 && random.one_in(2)) at += random.below(16), --gaps;
    }
  }

  [[nodiscard]] const protocol::Pieces& pieces() const { return pieces_; }

  void fill(std::size_t message) const {
    std::uint64_t offset = 0;
    pieces_.each(0, pieces_.size(), [&](std::byte* base, std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) base[i] = content(message, offset++);
    });
  }
  [[nodiscard]] bool holds(std::size_t message, std::uint64_t begin, std::uint64_t end) const {
    return all_of(begin, end,
                  [&](std::byte b, std::uint64_t offset) { return b == content(message, offset); });
  }
  // What its program does with bytes that it has been told of; nobody else touches them after that.
  void use(std::uint64_t begin, std::uint64_t end) const {
    pieces_.each(begin, end - begin, [&](std::byte* base, std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) base[i] = ~base[i];
    });
  }
  [[nodiscard]] bool used(std::size_t message, std::uint64_t begin, std::uint64_t end) const {
    return all_of(begin, end,
                  [&](std::byte b, std::uint64_t offset) { return b == ~content(message, offset); });
  }
  // Nothing was written between the pieces, nor behind the first `used` bytes of them.
  [[nodiscard]] bool guarded(std::uint64_t used) {
    std::vector<std::byte> copy = bytes_;
    pieces_.each(0, used, [&](const std::byte* base, std::uint64_t n) {
      std::fill_n(copy.begin() + (base - bytes_.data()), n, guard);
    });
    return std::count(copy.begin(), copy.end(), guard) == static_cast<std::ptrdiff_t>(copy.size());
  }

private:
  template <class Test> [[nodiscard]] bool all_of(std::uint64_t begin, std::uint64_t end, Test test) const {
    bool right = true;
    std::uint64_t offset = begin;
    pieces_.each(begin, end - begin, [&](const std::byte* base, std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) right = right && test(base[i], offset++);
    });
    return right;
  }

  static constexpr std::byte guard{0x5a};
  std::vector<std::byte> bytes_;
  protocol::Pieces pieces_;
};

} // namespace parc::sim
