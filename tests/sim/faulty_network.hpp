// SPDX-License-Identifier: BSD-3-Clause
// A network of hosts in memory, in virtual time, whose streams do whatever a stream may: they move one byte
// or many, would block although there is something to move, hold back readiness, and end or break at any
// byte, with some of what was under way lost. Two hosts may be kept apart: nothing arrives, and nobody is
// told. All of it is chance from one seed. A host is known by its port.
#pragma once

#include "daemon/base/loop.hpp"
#include "daemon/link/stream_maker.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace parc::sim {

using daemon::Loop, daemon::PathLimits, daemon::PathReport, daemon::Stream, daemon::Transfer;

struct StreamFaults {
  std::size_t most_at_once = 100'000; // bytes a call moves
  unsigned stalls = 4;                // one call of so many would block for no reason; 0: none
  std::uint64_t most_of_life = 0;     // bytes before a connection breaks, at most; 0: it never does
};

class FaultyNetwork {
public:
  FaultyNetwork(std::uint64_t seed, const StreamFaults& chosen) : faults(chosen), random_(seed) {}

  // Of the kernel at that address, from now on.
  std::unique_ptr<daemon::StreamMaker> streams_of(const daemon::Address& at);
  void hang_up(const daemon::Address& at) { hung_up_.insert(at.port()); } // who dials is refused
  void answer_again(const daemon::Address& at) { hung_up_.erase(at.port()); }
  // It is being made: there or refused some time later, or never while they are apart.
  std::unique_ptr<Stream> connect(const daemon::Address& from, const daemon::Address& to);

  void part(const daemon::Address& a, const daemon::Address& b) { apart_.try_emplace(pair(a, b), time); }
  void join(const daemon::Address& a, const daemon::Address& b) { apart_.erase(pair(a, b)); }

  void cut_all(); // whatever is connected breaks
  // Some of the time passes, and what would block may be ready again.
  void tick();
  // Nothing is under way that arrives without something else happening before.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] std::optional<Loop::Time> next_break() const; // for want of any answer

  StreamFaults faults;
  Loop::Time time{};
  unsigned breaks = 0;

private:
  using Accept = std::function<void(std::unique_ptr<Stream>)>;
  class End;
  class Streams;
  using Pair = std::pair<std::uint16_t, std::uint16_t>; // the smaller port first
  struct Wire {
    Pair hosts;
    std::array<std::vector<std::byte>, 2> under_way; // by who sent it
    std::array<bool, 2> ended{};                     // nothing more comes from this end
    int code = 0;                                    // that it ends with once all is read; 0: orderly
    std::uint64_t left = 0;                          // before it breaks; 0: for ever
  };
  static constexpr std::size_t room = 60'000; // in a wire, each way
  static Pair pair(const daemon::Address& a, const daemon::Address& b) {
    return std::minmax(a.port(), b.port());
  }

  std::uint64_t any(std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most)(random_);
  }
  bool stalls() { return faults.stalls != 0 && any(faults.stalls - 1) == 0; }
  void cut(Wire& wire);

  std::mt19937_64 random_;
  std::map<std::uint16_t, Accept> accepts_;
  std::set<std::uint16_t> hung_up_;
  std::map<Pair, Loop::Time> apart_; // since when
  std::vector<End*> ends_;
};

class FaultyNetwork::End final : public Stream {
public:
  // `far`: what its peer accepts; none: it has been accepted itself.
  End(FaultyNetwork& network, std::shared_ptr<Wire> wire, std::size_t side, const daemon::Address& local,
      const daemon::Address& peer, std::unique_ptr<Stream> far, unsigned until_open)
      : Stream(local, peer), network_(network), wire_(std::move(wire)), side_(side), far_(std::move(far)),
        until_open_(until_open) {
    network_.ends_.push_back(this);
  }
  ~End() override {
    std::erase(network_.ends_, this);
    if (!wire_->ended[side_]) network_.cut(*wire_);
  }

  int opened() override {
    if (far_ == nullptr) return 0;
    if (apart()) return EINPROGRESS;
    if (until_open_ != 0) return --until_open_, EINPROGRESS;
    const auto accept = network_.accepts_.find(peer().port());
    if (accept == network_.accepts_.end() || network_.hung_up_.contains(peer().port())) return ECONNREFUSED;
    accept->second(std::move(far_));
    return 0;
  }

  [[nodiscard]] bool readable() const override { return readable_; }
  [[nodiscard]] bool writable() const override { return writable_; }

  Transfer read(std::span<const iovec> to) override {
    if (given_up()) return {.status = Transfer::Status::broken, .code = ETIMEDOUT};
    std::vector<std::byte>& from = wire_->under_way[1 - side_];
    if (apart() || network_.stalls() || (from.empty() && !wire_->ended[1 - side_])) {
      readable_ = false;
      return {.status = Transfer::Status::would_block};
    }
    if (from.empty() && wire_->code == 0) return {.status = Transfer::Status::ended};
    if (from.empty()) return {.status = Transfer::Status::broken, .code = wire_->code};
    const std::size_t most = std::min<std::size_t>(from.size(), at_once());
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
    if (given_up()) return {.status = Transfer::Status::broken, .code = ETIMEDOUT};
    if (wire_->ended[1 - side_] && !apart()) return {.status = Transfer::Status::broken, .code = EPIPE};
    std::vector<std::byte>& to = wire_->under_way[side_];
    if (network_.stalls() || to.size() >= room || wire_->ended[1 - side_]) {
      writable_ = false;
      return {.status = Transfer::Status::would_block};
    }
    std::size_t most = std::min<std::size_t>(room - to.size(), at_once());
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

  void break_off() { network_.cut(*wire_); }
  void end_output() override { wire_->ended[side_] = true; }
  std::optional<PathReport> path() const override {
    const bool lost = network_.any(3) == 0 || unanswered();
    return PathReport{.sample = {.delivery_rate = 100'000 + network_.any(2'000'000'000),
                                 .min_rtt_us = static_cast<std::uint32_t>(network_.any(20'000)),
                                 .rtt_variation_us = 10},
                      .rtt_us = 100,
                      .waits = !wire_->under_way[side_].empty(),
                      .retransmits = lost ? 2u : 0u};
  }
  void limit(const PathLimits&) override {}
  void limit_silence(std::chrono::milliseconds longest) override { longest_silence_ = longest; }

  void tick() {
    if (far_ != nullptr) return;
    if (network_.any(1) == 0 || given_up()) readable_ = true;
    if (network_.any(1) == 0) writable_ = true;
  }

  [[nodiscard]] bool idle() const {
    if (apart()) return !given_up();
    if (far_ != nullptr) return false;
    return writable_ && !wire_->ended[1 - side_] && wire_->under_way[1 - side_].empty();
  }
  // When it breaks if nothing is heard until then.
  [[nodiscard]] std::optional<Loop::Time> breaks_at() const {
    if (!unanswered() || longest_silence_.count() == 0) return {};
    return network_.apart_.at(wire_->hosts) + longest_silence_;
  }

private:
  [[nodiscard]] bool apart() const { return network_.apart_.contains(wire_->hosts); }
  [[nodiscard]] bool unanswered() const { return apart() && !wire_->under_way[side_].empty(); }
  [[nodiscard]] bool given_up() const {
    const auto at = breaks_at();
    return at && *at <= network_.time;
  }
  [[nodiscard]] std::size_t at_once() const { return 1 + network_.any(network_.faults.most_at_once - 1); }

  FaultyNetwork& network_;
  std::shared_ptr<Wire> wire_;
  std::size_t side_;
  std::unique_ptr<Stream> far_; // of one that is being made
  unsigned until_open_;         // so many questions later it is
  std::chrono::milliseconds longest_silence_{};
  bool readable_ = false, writable_ = false;
};

class FaultyNetwork::Streams final : public daemon::StreamMaker {
public:
  Streams(FaultyNetwork& network, const daemon::Address& at) : network_(network), at_(at) {}
  Result<std::unique_ptr<Stream>> dial(const daemon::Address& to, daemon::KeyUse) override {
    return network_.connect(at_, to);
  }
  void accept_for(Acceptance owner) override {
    network_.accepts_[at_.port()] = std::move(owner.accepted);
    network_.hung_up_.erase(at_.port());
  }
  void resume() override {}

private:
  FaultyNetwork& network_;
  daemon::Address at_;
};

inline std::unique_ptr<daemon::StreamMaker> FaultyNetwork::streams_of(const daemon::Address& at) {
  return std::make_unique<Streams>(*this, at);
}

inline std::unique_ptr<Stream> FaultyNetwork::connect(const daemon::Address& from,
                                                      const daemon::Address& to) {
  auto wire = std::make_shared<Wire>();
  wire->hosts = pair(from, to);
  // Now and then in the handshake.
  if (faults.most_of_life != 0) wire->left = 1 + any(any(3) == 0 ? 800 : faults.most_of_life);
  auto far = std::make_unique<End>(*this, wire, 1, to, from, nullptr, 0);
  return std::make_unique<End>(*this, wire, 0, from, to, std::move(far), static_cast<unsigned>(any(3)));
}

// Nobody sends any more; of what is under way a part arrives.
inline void FaultyNetwork::cut(Wire& wire) {
  ++breaks;
  wire.ended = {true, true};
  wire.code = any(1) == 0 ? ECONNRESET : 0;
  for (auto& bytes : wire.under_way) bytes.resize(any(1) == 0 ? bytes.size() : any(bytes.size()));
}

inline void FaultyNetwork::tick() {
  time += std::chrono::microseconds(any(100));
  for (End* const end : ends_) end->tick();
}

inline void FaultyNetwork::cut_all() {
  for (End* const end : ends_) end->break_off();
}

inline bool FaultyNetwork::idle() const {
  return std::ranges::all_of(ends_, &End::idle);
}

inline std::optional<Loop::Time> FaultyNetwork::next_break() const {
  std::optional<Loop::Time> first;
  for (const End* const end : ends_)
    if (const auto at = end->breaks_at(); at && (!first || *at < *first)) first = at;
  return first;
}

} // namespace parc::sim
