// SPDX-License-Identifier: BSD-3-Clause
// The engine as a peer's bytes meet it: one link, a job with two ranks here (0 and 2) and two over there
// (1 and 3), reads posted, writes under way. Used by the fuzz target and by the program that makes its
// corpus, so that the trains of the corpus fit.
//
// An input is a sequence of records, each what one readv takes: a 16-bit length and so many bytes. A length
// of 0 is the end of the carrier, and the begin of the next.
#pragma once

#include "protocol/engine.hpp"
#include "tests/sim/invariants.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace parc::fuzz {

using namespace protocol;

inline constexpr std::uint32_t fragment = 512;
inline constexpr std::uint32_t self_host = 1, peer_host = 2;

inline Settings settings() {
  Settings settings;
  settings.pool = 65'536;
  settings.link_window = 4096;
  settings.unmatched = 100 * envelope_bytes;
  settings.departed_kept = 1;
  return settings;
}

inline Space space(const Engine& engine, std::uint64_t endpoint) {
  return endpoint == engine.kernel() ? Space::kernels : Space::programs;
}
// A tag below 0 is any.
inline ReadRequest read_request(std::int64_t source, std::int32_t tag) {
  ReadRequest request;
  request.source = source;
  request.tag = tag < 0 ? 0 : static_cast<std::uint64_t>(tag);
  request.ignore = tag < 0 ? ~std::uint64_t{0} : 0;
  return request;
}

class Target : Listener {
public:
  Target() : engine_(settings(), *this) {
    link_ = engine_.add_link({fragment, self_host, peer_host});
    const auto there = static_cast<std::int32_t>(link_);
    first_ = engine_.add_endpoint();
    second_ = engine_.add_endpoint();
    group_ = engine_.add_group(
        std::vector<Address>{{here, first_}, {there, first_}, {here, second_}, {there, second_}});
    write(first_, 1, 1, 100);
    write(first_, 3, 2, 3000);
    write(second_, 1, 3, 9000);
    write(engine_.kernel(), link_, 4, 700);
    read(first_, 1, 1, 4096);
    read(first_, -1, -1, 100);
    read(second_, 3, 2, 6000, true);
    read(engine_.kernel(), -1, -1, 1000);
    read(second_, 1, 9, 0);
    get(first_, 1, 5, 2000);
    get(second_, 3, 100, 700);
    get(second_, 1, 0, 0);
  }
  ~Target() {
    engine_.break_link(link_);
    check();
    engine_.drop_group(group_);
    check();
    if (held_ != 0) std::abort();
    while (ended_[kernel_read_]) read(engine_.kernel(), -1, -1, 1000); // what came whole is still to be read
    if (engine_.pool_in_use() != 0) std::abort();
    for (std::size_t i = 0; i < ended_.size(); ++i)
      if (!ended_[i] && i != kernel_read_) std::abort(); // that one waits for any kernel
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // The bytes of one record, in as many steps as the engine's plans make of them; false: refused.
  bool take(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      std::array<iovec, 8> places;
      const std::size_t count = engine_.plan_read(link_, places);
      std::size_t taken = 0;
      for (std::size_t i = 0; i < count && taken < bytes.size(); ++i) {
        const std::size_t n = std::min(bytes.size() - taken, places[i].iov_len);
        std::memcpy(places[i].iov_base, bytes.data() + taken, n);
        taken += n;
      }
      if (taken == 0) std::abort(); // there is always a place
      bytes = bytes.subspan(taken);
      if (engine_.took(link_, taken) != Refusal::none) return false;
    }
    if (++records_ % 3 == 0 && records_ < 200)
      read(records_ % 2 == 0 ? first_ : second_, -1, -1, 64 * records_);
    if (records_ == 5) engine_.cancel(cancelable_);
    if (records_ == 40) engine_.leave(second_), second_ = first_;
    if (engine_.pool_in_use() > settings().pool + engine_.link(link_).fragment) std::abort();
    check();
    return true;
  }

  // What the engine says next, one train.
  std::vector<std::uint8_t> say() {
    std::vector<std::uint8_t> bytes;
    for (const iovec& part : engine_.plan_write(link_)) {
      const auto* base = static_cast<const std::uint8_t*>(part.iov_base);
      bytes.insert(bytes.end(), base, base + part.iov_len);
    }
    if (!bytes.empty()) engine_.wrote(link_, bytes.size());
    return bytes;
  }
  void rest() { engine_.flush_acknowledgements(); }
  void attach() { engine_.attach(link_); }

private:
  void check() {
    const std::string broken = Invariants::broken(engine_);
    if (broken.empty()) return;
    std::fprintf(stderr, "the engine breaks an invariant: %s\n", broken.c_str());
    std::abort();
  }
  Pieces memory(std::uint64_t length) {
    memory_.push_back(std::make_unique<std::byte[]>(length));
    return {memory_.back().get(), length};
  }
  void write(std::uint64_t endpoint, std::uint32_t to, std::uint64_t tag, std::uint64_t length) {
    cancelable_ = engine_.write(endpoint, {.cookie = next(),
                                           .destination = to,
                                           .tag = tag,
                                           .data = length,
                                           .space = space(engine_, endpoint),
                                           .flags = when(length % 9 == 0, MessageFlags::from_end) |
                                                    when(length % 1000 == 0, MessageFlags::synchronous),
                                           .memory = memory(length)});
  }
  void read(std::uint64_t endpoint, std::int64_t source, std::int32_t tag, std::uint64_t room,
            bool from_end = false) {
    if (endpoint == engine_.kernel()) kernel_read_ = ended_.size();
    ReadRequest request = read_request(source, tag);
    request.cookie = next();
    request.space = space(engine_, endpoint);
    request.memory = memory(room);
    request.flags = when(from_end, MessageFlags::from_end);
    engine_.read(endpoint, request);
  }
  void get(std::uint64_t endpoint, std::uint32_t from, std::uint64_t offset, std::uint64_t length) {
    engine_.get(endpoint, {.cookie = next(),
                           .target = from,
                           .window = 1,
                           .offset = offset,
                           .flags = when(length % 1000 == 0, MessageFlags::from_end),
                           .memory = memory(length)});
  }
  std::uint64_t next() {
    ended_.push_back(false);
    return ended_.size() - 1;
  }

  void begun(std::uint64_t cookie, const Outcome&) override {
    if (ended_.at(cookie)) std::abort();
  }
  void progressed(std::uint64_t cookie, const Progress&) override {
    if (ended_.at(cookie)) std::abort();
  }
  void finished(std::uint64_t cookie, const Outcome&) override {
    if (ended_.at(cookie)) std::abort();
    ended_[cookie] = true;
  }
  void drained(std::uint64_t) override {}
  bool place(std::uint64_t, const Place& place, bool acquainted, Pieces& memory,
             std::uint64_t& hold) override {
    const auto span = span_of(place);
    if (!acquainted || place.window != 1 || !span || span->high > window_.size()) return false;
    memory = {};
    if (!append_place(memory, Pieces(window_.data() + span->low, span->length()), place)) std::abort();
    hold = ++holds_;
    ++held_;
    return true;
  }
  void let_go(std::uint64_t hold) override {
    if (hold == 0 || hold > holds_ || held_-- == 0) std::abort();
  }

  std::vector<std::byte> window_ = std::vector<std::byte>(10'000); // of each rank
  std::uint64_t holds_ = 0, held_ = 0;
  std::deque<bool> ended_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  Engine engine_;
  std::uint32_t link_ = 0;
  std::uint64_t first_ = 0, second_ = 0, cancelable_ = 0;
  std::uint64_t group_ = 0;
  std::size_t kernel_read_ = 0;
  std::uint64_t records_ = 0;
};

} // namespace parc::fuzz
