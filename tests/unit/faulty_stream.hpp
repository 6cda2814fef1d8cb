// SPDX-License-Identifier: BSD-3-Clause
// Streams in memory that do whatever a stream may: they move one byte or many, would block although there is
// something to move, hold back readiness, and end or break at any byte, with some of what was under way lost.
// All of it is chance from one seed.
#pragma once

#include "daemon/link/stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace parc::daemon::test {

struct Faults {
  std::size_t most_at_once = 100'000; // bytes a call moves
  unsigned stalls = 4;                // one call of so many would block for no reason; 0: none
  std::uint64_t most_of_life = 0;     // bytes before a connection breaks, at most; 0: it never does
};

class FaultyNetwork {
public:
  FaultyNetwork(std::uint64_t seed, const Faults& faults) : faults_(faults), random_(seed) {}

  // Both ends of a new connection; the first one is being made.
  std::array<std::unique_ptr<Stream>, 2> connect(const Address& from, const Address& to);
  void tick();                     // what would block may be ready again
  [[nodiscard]] bool idle() const; // nothing is under way
  [[nodiscard]] unsigned breaks() const { return breaks_; }

private:
  class End;
  struct Wire {
    std::array<std::vector<std::byte>, 2> under_way; // by who sent it
    std::array<bool, 2> ended{};                     // nothing more comes from this end
    int code = 0;                                    // that it ends with once all is read; 0: orderly
    std::uint64_t left = 0;                          // before it breaks; 0: for ever
  };
  static constexpr std::size_t room = 60'000; // in a wire, each way

  std::uint64_t any(std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most)(random_);
  }
  bool stalls() { return faults_.stalls != 0 && any(faults_.stalls - 1) == 0; }
  void cut(Wire& wire);

  Faults faults_;
  std::mt19937_64 random_;
  std::vector<End*> ends_;
  unsigned breaks_ = 0;
};

class FaultyNetwork::End final : public Stream {
public:
  End(FaultyNetwork& network, std::shared_ptr<Wire> wire, std::size_t side, const Address& local,
      const Address& peer, unsigned until_open)
      : Stream(local, peer), network_(network), wire_(std::move(wire)), side_(side), until_open_(until_open) {
    network_.ends_.push_back(this);
  }
  ~End() override {
    std::erase(network_.ends_, this);
    if (!wire_->ended[side_]) network_.cut(*wire_);
  }

  int opened() override {
    if (until_open_ != 0) return --until_open_, EINPROGRESS;
    return 0;
  }

  Transfer read(std::span<const iovec> to) override {
    std::vector<std::byte>& from = wire_->under_way[1 - side_];
    if (network_.stalls() || (from.empty() && !wire_->ended[1 - side_])) {
      readable_ = false;
      return {.status = Transfer::Status::would_block};
    }
    if (from.empty() && wire_->code == 0) return {.status = Transfer::Status::ended};
    if (from.empty()) return {.status = Transfer::Status::broken, .code = wire_->code};
    std::size_t most =
        std::min<std::size_t>(from.size(), 1 + network_.any(network_.faults_.most_at_once - 1));
    std::size_t moved = 0;
    for (const iovec& part : to) {
      const std::size_t n = std::min(part.iov_len, most - moved);
      std::memcpy(part.iov_base, from.data() + moved, n);
      moved += n;
    }
    from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(moved));
    return {.bytes = moved};
  }

  Transfer write(std::span<const iovec> from) override {
    if (wire_->ended[1 - side_]) return {.status = Transfer::Status::broken, .code = EPIPE};
    std::vector<std::byte>& to = wire_->under_way[side_];
    if (network_.stalls() || to.size() >= room) {
      writable_ = false;
      return {.status = Transfer::Status::would_block};
    }
    std::size_t most =
        std::min<std::size_t>(room - to.size(), 1 + network_.any(network_.faults_.most_at_once - 1));
    if (wire_->left != 0) most = std::min<std::size_t>(most, wire_->left);
    std::size_t moved = 0;
    for (const iovec& part : from) {
      const std::size_t n = std::min(part.iov_len, most - moved);
      const auto* const bytes = static_cast<const std::byte*>(part.iov_base);
      to.insert(to.end(), bytes, bytes + n);
      moved += n;
    }
    if (wire_->left != 0 && (wire_->left -= moved) == 0) network_.cut(*wire_);
    return {.bytes = moved};
  }

  void end_output() override { wire_->ended[side_] = true; }
  std::optional<PathReport> path() const override {
    return PathReport{.sample = {.delivery_rate = 100'000 + network_.any(2'000'000'000),
                                 .min_rtt_us = static_cast<std::uint32_t>(network_.any(20'000)),
                                 .rtt_variation_us = 10},
                      .rtt_us = 100,
                      .waits = true,
                      .retransmits = network_.any(3) == 0 ? 2u : 0u};
  }
  void limit(const PathLimits&) override {}
  void limit_silence(std::chrono::milliseconds) override {}

  void tick() {
    if (until_open_ != 0) return;
    if (network_.any(1) == 0) readable_ = true;
    if (network_.any(1) == 0) writable_ = true;
  }

  [[nodiscard]] bool idle() const {
    return until_open_ == 0 && !wire_->ended[1 - side_] && wire_->under_way[1 - side_].empty();
  }

private:
  FaultyNetwork& network_;
  std::shared_ptr<Wire> wire_;
  std::size_t side_;
  unsigned until_open_; // so many questions later it is
};

inline std::array<std::unique_ptr<Stream>, 2> FaultyNetwork::connect(const Address& from, const Address& to) {
  auto wire = std::make_shared<Wire>();
  // Now and then in the handshake.
  if (faults_.most_of_life != 0) wire->left = 1 + any(any(3) == 0 ? 800 : faults_.most_of_life);
  const auto until_open = static_cast<unsigned>(any(3));
  return {std::make_unique<End>(*this, wire, 0, from, to, until_open),
          std::make_unique<End>(*this, wire, 1, to, from, 0)};
}

// Nobody sends any more; of what is under way a part arrives.
inline void FaultyNetwork::cut(Wire& wire) {
  ++breaks_;
  wire.ended = {true, true};
  wire.code = any(1) == 0 ? ECONNRESET : 0;
  for (auto& bytes : wire.under_way) bytes.resize(any(1) == 0 ? bytes.size() : any(bytes.size()));
}

inline void FaultyNetwork::tick() {
  for (End* const end : ends_) end->tick();
}

inline bool FaultyNetwork::idle() const {
  return std::ranges::all_of(ends_, &End::idle);
}

} // namespace parc::daemon::test
