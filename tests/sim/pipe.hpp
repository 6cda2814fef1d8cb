// SPDX-License-Identifier: BSD-3-Clause
// One direction of a connection between two engines, in memory: what a socket does to their bytes, with every
// length chosen by the caller. Bytes leave in the order in which they came.
#pragma once

#include "protocol/engine.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace parc::sim {

class Pipe {
public:
  explicit Pipe(std::size_t room = std::size_t{1} << 20) : room_(room) {}

  [[nodiscard]] std::size_t size() const { return bytes_.size() - head_; }
  [[nodiscard]] std::size_t free() const { return room_ - size(); }
  std::byte& at(std::size_t index) { return bytes_[head_ + index]; }

  // Writes at most `most` bytes of what the engine has to say; returns how many.
  std::size_t fill(protocol::Engine& engine, std::uint32_t link, std::size_t most,
                   std::uint32_t subflow = 0) {
    std::size_t left = std::min(most, free());
    const std::size_t before = left;
    for (const iovec& part : engine.plan_write(link, subflow)) {
      const std::size_t n = std::min(left, part.iov_len);
      const auto* base = static_cast<const std::byte*>(part.iov_base);
      bytes_.insert(bytes_.end(), base, base + n);
      left -= n;
    }
    if (before != left) engine.wrote(link, before - left, subflow);
    return before - left;
  }

  // Reads at most `most` bytes into the places that the engine has for them.
  std::size_t drain(protocol::Engine& engine, std::uint32_t link, std::size_t most, std::size_t iovecs,
                    protocol::Refusal& refusal, std::uint32_t subflow = 0) {
    std::array<iovec, 64> places;
    const std::size_t count =
        engine.plan_read(link, std::span(places).first(std::min<std::size_t>(iovecs, 64)), subflow);
    const std::size_t before = std::min(most, size());
    std::size_t left = before;
    for (std::size_t i = 0; i < count && left != 0; ++i) {
      const std::size_t n = std::min(left, places[i].iov_len);
      std::memcpy(places[i].iov_base, bytes_.data() + head_, n);
      head_ += n;
      left -= n;
    }
    if (head_ == bytes_.size() || head_ > (std::size_t{1} << 16)) {
      bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    if (before != left) refusal = engine.took(link, before - left, subflow);
    return before - left;
  }

  void clear() { bytes_.clear(), head_ = 0; }

private:
  std::size_t room_;
  std::vector<std::byte> bytes_;
  std::size_t head_ = 0;
};

} // namespace parc::sim
