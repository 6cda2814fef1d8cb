// SPDX-License-Identifier: BSD-3-Clause
// Engines joined by pipes, each pair by one link, with everything that they tell recorded: the bench on which
// the engine's unit tests stand.
#pragma once

#include "protocol/engine.hpp"
#include "tests/sim/pipe.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace parc::sim {

using namespace protocol;

struct Op {
  std::uint64_t handle = 0;
  bool begun = false;
  bool wanted = false;
  bool finished = false;
  Outcome outcome;
  Progress progress;
};

class Recorder : public Listener {
public:
  std::uint64_t make() { return ops_.emplace_back(), ops_.size() - 1; }
  Op& op(std::uint64_t cookie) { return ops_.at(cookie); }
  std::vector<std::uint64_t> gone;                          // endpoints' cookies
  std::map<std::uint64_t, std::vector<std::byte>*> windows; // by those, window 1 of each
  std::size_t held = 0;                                     // of these, for gets and puts
  CrossMemory* of = nullptr;                                // whose they are; none: they are here

private:
  void begun(std::uint64_t cookie, const Outcome& outcome) override {
    BOOST_TEST(!op(cookie).begun);
    BOOST_TEST(!op(cookie).finished);
    op(cookie).begun = true;
    op(cookie).outcome = outcome;
  }
  void wanted(std::uint64_t cookie) override {
    BOOST_TEST(!op(cookie).finished);
    BOOST_TEST(!op(cookie).wanted);
    op(cookie).wanted = true;
  }
  void progressed(std::uint64_t cookie, const Progress& progress) override {
    BOOST_TEST(!op(cookie).finished);
    BOOST_TEST(progress.front >= op(cookie).progress.front);
    BOOST_TEST(progress.back >= op(cookie).progress.back);
    op(cookie).progress = progress;
  }
  void finished(std::uint64_t cookie, const Outcome& outcome) override {
    BOOST_TEST(!op(cookie).finished);
    op(cookie).finished = true;
    op(cookie).outcome = outcome;
  }
  void drained(std::uint64_t cookie) override { gone.push_back(cookie); }
  bool place(std::uint64_t cookie, const Place& place, bool acquainted, Pieces& memory,
             std::uint64_t& hold) override {
    const auto found = windows.find(cookie);
    if (found == windows.end() || place.window != 1 || !acquainted || place.offset > found->second->size() ||
        place.length > found->second->size() - place.offset)
      return false;
    memory = {};
    memory.append({found->second->data() + place.offset, place.length, of});
    hold = cookie;
    ++held;
    return true;
  }
  void let_go(std::uint64_t /*hold*/) override {
    BOOST_TEST(held != 0u);
    --held;
  }

  std::deque<Op> ops_;
};

using Bytes = std::vector<std::byte>;

inline Bytes pattern(std::size_t length, std::uint32_t seed) {
  Bytes bytes(length);
  std::minstd_rand random(seed + 1);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() >> 8);
  return bytes;
}

// Of a read: a tag below 0 is any.
struct AnyOr {
  AnyOr(std::int32_t wanted) // NOLINT: tests name tags by numbers
      : tag(wanted < 0 ? 0 : static_cast<std::uint64_t>(wanted)), ignore(wanted < 0 ? ~std::uint64_t{0} : 0) {
  }
  std::uint64_t tag, ignore;
};

inline constexpr std::uint64_t job = 7;

class Hosts {
public:
  // One rank on each of `place`'s hosts: place[rank] is its host.
  // With a small window, so that messages of some 100 kB are more than it lets go at once.
  static Settings small_window() { return {.link_window = 262'144}; }
  explicit Hosts(std::vector<std::uint32_t> place, Settings settings = small_window(),
                 std::uint32_t fragment = 4096) {
    const std::uint32_t count = *std::max_element(place.begin(), place.end()) + 1;
    for (std::uint32_t h = 0; h < count; ++h) {
      records_.push_back(std::make_unique<Recorder>());
      engines_.push_back(std::make_unique<Engine>(settings, *records_.back()));
    }
    for (std::uint32_t a = 0; a < count; ++a)
      for (std::uint32_t b = a + 1; b < count; ++b) {
        links_[{a, b}] = engines_[a]->add_link({fragment, a + 1, b + 1});
        links_[{b, a}] = engines_[b]->add_link({fragment, b + 1, a + 1});
        pipes_[{a, b}] = Pipe();
        pipes_[{b, a}] = Pipe();
      }
    start(job, place);
  }

  void start(std::uint64_t id, const std::vector<std::uint32_t>& place) {
    places_[id] = place;
    for (std::uint32_t rank = 0; rank < place.size(); ++rank)
      endpoints_[{id, rank}] = engines_[place[rank]]->add_endpoint();
    for (std::uint32_t h = 0; h < engines_.size(); ++h) {
      std::vector<Address> members;
      for (std::uint32_t rank = 0; rank < place.size(); ++rank) members.push_back(address(h, rank, id));
      groups_[{id, h}] = engines_[h]->add_group(members);
    }
    for (std::uint32_t rank = 0; rank < place.size(); ++rank)
      BOOST_REQUIRE(engines_[place[rank]]->open(endpoint(rank, id), rank));
  }
  // Of a rank, as a host sees it.
  [[nodiscard]] Address address(std::uint32_t seen_from, std::uint32_t rank, std::uint64_t id = job) const {
    const std::uint32_t host = host_of(rank, id);
    return {host == seen_from ? here : static_cast<std::int32_t>(link(seen_from, host)), endpoint(rank, id)};
  }
  void drop(std::uint32_t host, std::uint64_t id = job) {
    engines_[host]->drop_group(groups_.at({id, host}));
  }

  Engine& engine(std::uint32_t host) { return *engines_[host]; }
  Recorder& record(std::uint32_t host) { return *records_[host]; }
  [[nodiscard]] std::uint32_t link(std::uint32_t from, std::uint32_t to) const {
    return links_.at({from, to});
  }
  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank, std::uint64_t id = job) const {
    return places_.at(id)[rank];
  }
  [[nodiscard]] std::uint64_t endpoint(std::uint32_t rank, std::uint64_t id = job) const {
    return endpoints_.at({id, rank});
  }

  // Of rank `at`: the operation's record, which stays where it is.
  Op& read(std::uint32_t at, std::int64_t source, AnyOr tag, Bytes& memory, bool from_end = false) {
    return post(at, ReadRequest{.source = source,
                                .tag = tag.tag,
                                .ignore = tag.ignore,
                                .flags = when(from_end, MessageFlags::from_end),
                                .memory = {memory.data(), memory.size()}});
  }
  Op& probe(std::uint32_t at, std::int64_t source, AnyOr tag, bool no_wait = false) {
    return post(at, ReadRequest{.source = source,
                                .tag = tag.tag,
                                .ignore = tag.ignore,
                                .flags = when(no_wait, MessageFlags::no_wait),
                                .memory = {},
                                .probe = true});
  }
  Op& post(std::uint32_t at, ReadRequest request, std::uint64_t id = job) {
    const std::uint32_t host = host_of(at, id);
    request.cookie = record(host).make();
    const std::uint64_t handle = engine(host).read(endpoint(at, id), request);
    return named(host, request.cookie, handle);
  }
  Op& write(std::uint32_t from, std::uint32_t to, std::uint64_t tag, Bytes& memory, bool from_end = false) {
    return post(from, WriteRequest{.destination = to,
                                   .tag = tag,
                                   .flags = when(from_end, MessageFlags::from_end),
                                   .memory = {memory.data(), memory.size()}});
  }
  Op& post(std::uint32_t from, WriteRequest request, std::uint64_t id = job) {
    const std::uint32_t host = host_of(from, id);
    request.cookie = record(host).make();
    const std::uint64_t handle = engine(host).write(endpoint(from, id), request);
    return named(host, request.cookie, handle);
  }
  Op& get(std::uint32_t at, std::uint32_t target, std::uint64_t offset, Bytes& memory, bool from_end = false,
          std::uint64_t window = 1) {
    return post(at, GetRequest{.target = target,
                               .window = window,
                               .offset = offset,
                               .flags = when(from_end, MessageFlags::from_end),
                               .memory = {memory.data(), memory.size()}});
  }
  Op& atomic(std::uint32_t at, std::uint32_t target, std::uint64_t offset, const Atomic& atomic,
             std::uint64_t window = 1) {
    return post(at, GetRequest{.target = target,
                               .window = window,
                               .offset = offset,
                               .flags = MessageFlags::none,
                               .memory = {},
                               .atomic = atomic});
  }
  Op& post(std::uint32_t at, GetRequest request) {
    const std::uint32_t host = host_of(at);
    request.cookie = record(host).make();
    return named(host, request.cookie, engine(host).get(endpoint(at), request));
  }
  Op& put(std::uint32_t from, std::uint32_t to, std::uint64_t offset, Bytes& memory, bool from_end = false,
          std::uint64_t window = 1) {
    return post(from, WriteRequest{.destination = to,
                                   .tag = window,
                                   .data = offset,
                                   .flags = when(from_end, MessageFlags::from_end),
                                   .memory = {memory.data(), memory.size()},
                                   .put = true});
  }
  void expose(std::uint32_t rank, Bytes& memory) { record(host_of(rank)).windows[rank] = &memory; }
  // Between kernels: the peer is a host.
  Op& kernel_read(std::uint32_t at, std::int64_t host, Bytes& memory) {
    ReadRequest request{.cookie = record(at).make(),
                        .source = host,
                        .ignore = ~std::uint64_t{0},
                        .space = Space::kernels,
                        .memory = {memory.data(), memory.size()}};
    if (host >= 0) request.source = link(at, static_cast<std::uint32_t>(host));
    return named(at, request.cookie, engine(at).read(engine(at).kernel(), request));
  }
  Op& kernel_write(std::uint32_t from, std::uint32_t host, Bytes& memory) {
    const WriteRequest request{.cookie = record(from).make(),
                               .destination = link(from, host),
                               .tag = 1,
                               .space = Space::kernels,
                               .memory = {memory.data(), memory.size()}};
    return named(from, request.cookie, engine(from).write(engine(from).kernel(), request));
  }
  Op& kernel_probe(std::uint32_t at, std::uint32_t host) {
    const ReadRequest request{.cookie = record(at).make(),
                              .source = link(at, host),
                              .ignore = ~std::uint64_t{0},
                              .space = Space::kernels,
                              .memory = {},
                              .probe = true};
    return named(at, request.cookie, engine(at).read(engine(at).kernel(), request));
  }
  void cancel(std::uint32_t rank, const Op& op) { engine(host_of(rank)).cancel(op.handle); }

  // Host 0 speaks, and host 1 hears it.
  void hear() {
    Refusal refusal = Refusal::none;
    pipe(0, 1).fill(engine(0), link(0, 1), 1 << 20);
    pipe(0, 1).drain(engine(1), link(1, 0), 1 << 20, 64, refusal);
    BOOST_REQUIRE_MESSAGE(refusal == Refusal::none, "refused: " << describe(refusal));
  }
  // Moves at most `most` bytes each way on each link; false when there was nothing to move.
  bool step(std::size_t most = std::size_t{1} << 20) {
    bool moved = false;
    for (auto& [pair, pipe] : pipes_) {
      const auto [from, to] = pair;
      if (!engine(to).link(link(to, from)).open) continue;
      Refusal refusal = Refusal::none;
      moved |= pipe.drain(engine(to), link(to, from), most, 64, refusal) != 0;
      BOOST_REQUIRE_MESSAGE(refusal == Refusal::none, "refused: " << describe(refusal));
    }
    for (auto& engine : engines_) moved |= engine->copy() != 0;
    for (auto& [pair, pipe] : pipes_)
      moved |= pipe.fill(engine(pair.first), link(pair.first, pair.second), most) != 0;
    return moved;
  }

  // Until nothing moves any more, kernels asleep.
  void settle(std::size_t most = std::size_t{1} << 20) {
    for (std::size_t rounds = 0;; ++rounds) {
      BOOST_REQUIRE_MESSAGE(rounds < 10'000'000, "the engines never rest");
      if (step(most)) continue;
      bool owes = false;
      for (auto& engine : engines_) {
        owes |= engine->owes_acknowledgement();
        engine->flush_acknowledgements();
      }
      if (!owes) return;
    }
  }

  // So many, each of some of what there is to move.
  void steps(int count) {
    for (int i = 0; i < count; ++i) (void)step(i % 5 == 0 ? 100'000 : 700);
  }
  void depart(std::uint32_t rank, bool cleanly) {
    if (cleanly)
      engine(host_of(rank)).leave(endpoint(rank));
    else
      engine(host_of(rank)).kill(endpoint(rank));
  }
  // The link, or its carrier alone.
  void cut(std::uint32_t a, std::uint32_t b, bool for_good) {
    if (for_good)
      break_link(a, b);
    else
      break_carrier(a, b);
  }
  // What is under way between them is lost; the next carrier is there at once.
  void break_carrier(std::uint32_t a, std::uint32_t b) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      engine(from).attach(link(from, to));
      pipes_[{from, to}].clear();
    }
  }
  void break_link(std::uint32_t a, std::uint32_t b) {
    engine(a).break_link(link(a, b));
    engine(b).break_link(link(b, a));
    pipes_[{a, b}].clear();
    pipes_[{b, a}].clear();
  }
  Pipe& pipe(std::uint32_t from, std::uint32_t to) { return pipes_[{from, to}]; }

private:
  Op& named(std::uint32_t host, std::uint64_t cookie, std::uint64_t handle) {
    Op& op = record(host).op(cookie);
    op.handle = handle;
    return op;
  }

  std::vector<std::unique_ptr<Recorder>> records_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> links_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Pipe> pipes_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> endpoints_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> groups_; // by job and host
  std::map<std::uint64_t, std::vector<std::uint32_t>> places_;
};

} // namespace parc::sim
