// SPDX-License-Identifier: BSD-3-Clause
// The two ranks of parc probe: ordinary programs, one on each host. Rank 0 decides what is measured for how
// long, and prints its samples as JSON; rank 1 follows. A rank only ever compares times of its own clock.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <parc/parc.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int tag_ping = 0, tag_order = 1, tag_ready = 2, tag_rate = 3, tag_data = 4;

double seconds_since(Clock::time_point begin) {
  return Seconds(Clock::now() - begin).count();
}

class Measurement {
public:
  explicit Measurement(parc::Context& p) : p_(p), other_(1 - p.rank()) {}

  // ---- Round trips of 8 bytes

  std::vector<double> time_round_trips() {
    constexpr std::size_t least = 10, most = 1000;
    constexpr double for_s = 0.5;
    std::vector<double> us;
    const auto run = [&](std::size_t wanted) {
      us.clear();
      for (const auto begin = Clock::now();
           us.size() < wanted && (us.size() < least || seconds_since(begin) < for_s);)
        us.push_back(ping(true) * 1e6);
    };
    run(most / 10); // both sides poll, and the connection is warm
    run(most);
    (void)ping(false);
    return us;
  }

  void answer_round_trips() {
    for (std::uint64_t goes_on = 1; goes_on != 0;) {
      p_.read(other_, tag_ping, std::span(&goes_on, 1));
      p_.write(other_, tag_ping, std::span(&goes_on, 1));
    }
  }

  // ---- Streams of long messages

  struct Order {
    std::uint32_t there; // rank 0 writes
    std::uint32_t bytes; // of a message
    std::uint64_t count; // of messages; 0: that was all
    double round_trip_s;
  };

  // Bytes a second of several streams, each long beside a round trip.
  std::vector<double> time_streams(bool there, double round_trip_s) {
    constexpr std::size_t most = 11, least = 3;
    constexpr double all_s = 2;
    const double each_s = std::max(0.1, 20 * round_trip_s);
    Order order{there, least_bytes, least_count, round_trip_s};
    for (;; grow(order)) { // the first ones also open the window of the connection
      const auto begin = Clock::now();
      (void)stream(order);
      if (seconds_since(begin) >= each_s) break;
    }
    std::vector<double> rates;
    for (const auto begin = Clock::now();
         rates.size() < most && (rates.size() < least || seconds_since(begin) < all_s);)
      rates.push_back(stream(order));
    return rates;
  }

  void follow_streams() {
    for (;;) {
      Order order{};
      p_.read(other_, tag_order, std::span(&order, 1));
      if (order.count == 0) return;
      if (order.there != 0) {
        const double rate = receive(order);
        p_.write(other_, tag_rate, std::span(&rate, 1));
      } else {
        send(order);
      }
    }
  }

  void end_streams() {
    const Order end{};
    p_.write(other_, tag_order, std::span(&end, 1));
  }

private:
  static constexpr std::size_t in_flight = 16;
  static constexpr std::uint32_t least_bytes = 1 << 10, most_bytes = 1 << 20;
  static constexpr std::uint64_t least_count = 4 * in_flight;

  double ping(bool goes_on) {
    std::uint64_t word = goes_on ? 1 : 0;
    const auto begin = Clock::now();
    p_.write(other_, tag_ping, std::span(&word, 1));
    p_.read(other_, tag_ping, std::span(&word, 1));
    return seconds_since(begin);
  }

  static void grow(Order& order) {
    if (order.bytes < most_bytes)
      order.bytes *= 2;
    else
      order.count *= 2;
  }

  double stream(const Order& order) {
    p_.write(other_, tag_order, std::span(&order, 1));
    if (order.there == 0) return receive(order);
    send(order);
    double rate = 0;
    p_.read(other_, tag_rate, std::span(&rate, 1));
    return rate;
  }

  void send(const Order& order) {
    prepare();
    std::uint64_t ready = 0;
    p_.read(other_, tag_ready, std::span(&ready, 1));
    const auto place = memory_.span().first(order.bytes);
    for (std::uint64_t i = 0; i < order.count; ++i) {
      auto& write = operations_[i % in_flight];
      if (write) write.wait();
      write = p_.initwrite(other_, tag_data, place);
    }
    p_.wait_all(operations_);
  }

  // From the word that this side is ready until all is there, but for the round trip in which nothing can
  // come.
  double receive(const Order& order) {
    prepare();
    const auto start = [&](std::uint64_t i) {
      const std::size_t at = i % in_flight;
      operations_[at] = p_.initread(other_, tag_data, memory_.span().subspan(at * most_bytes, order.bytes));
    };
    for (std::uint64_t i = 0; i < in_flight; ++i) start(i);
    const std::uint64_t ready = 1;
    const auto begin = Clock::now();
    p_.write(other_, tag_ready, std::span(&ready, 1));
    for (std::uint64_t i = 0; i < order.count; ++i) {
      operations_[i % in_flight].wait();
      if (i + in_flight < order.count) start(i + in_flight);
    }
    const double took = seconds_since(begin);
    return static_cast<double>(order.count * order.bytes) / std::max(took - order.round_trip_s, took / 2);
  }

  void prepare() {
    if (memory_.size() == 0) memory_ = p_.buffer<std::byte>(in_flight * most_bytes);
  }

  parc::Context& p_;
  int other_;
  parc::Buffer<std::byte> memory_;                         // a place for each message in flight
  std::array<parc::Operation, in_flight> operations_ = {}; // go before it
};

void measure(parc::Context& p) {
  Measurement measurement(p);
  if (p.rank() == 1) {
    measurement.answer_round_trips();
    measurement.follow_streams();
    return;
  }
  nlohmann::json samples{{"from", p.host(0)}, {"to", p.host(1)}};
  auto round_trips = measurement.time_round_trips();
  samples["round_trip_us"] = round_trips;
  const auto middle = round_trips.begin() + static_cast<std::ptrdiff_t>(round_trips.size() / 2);
  std::ranges::nth_element(round_trips, middle);
  const double round_trip_s = *middle / 1e6;
  samples["there_bytes_per_s"] = measurement.time_streams(true, round_trip_s);
  samples["back_bytes_per_s"] = measurement.time_streams(false, round_trip_s);
  measurement.end_streams();
  std::cout << samples.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

} // namespace

int main() {
  try {
    parc::Context p;
    if (p.size() != 2) {
      std::cerr << "parc-probe: this is the program that parc probe runs, on two hosts\n";
      return 2;
    }
    measure(p);
    return std::cout ? 0 : 1;
  } catch (const std::exception& failure) {
    std::cerr << "parc-probe: " << failure.what() << '\n';
    return 1;
  }
}
