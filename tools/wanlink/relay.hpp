// SPDX-License-Identifier: BSD-3-Clause
// The relay: one thread that reads what the hosts send, keeps each packet as long as its link says, and
// delivers it. It stands for hardware, so it runs at real-time priority where it may, and counts how late it
// was. Invariant: it never waits for anything but the next packet, the next due time, a request or a signal.
#pragma once

#include "system/error.hpp"
#include "system/scheduling.hpp"
#include "tools/wanlink/isolation.hpp"
#include "tools/wanlink/link.hpp"

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <queue>
#include <span>
#include <sys/epoll.h>
#include <vector>

namespace parc::wanlink {

class Relay {
public:
  Relay(std::vector<Host> hosts, const TwoWayChange& change, const Settings& settings, std::uint64_t seed);

  // The sender of each direction can open no connection to the receiver.
  [[nodiscard]] Result<void> close(const std::vector<Direction>& directions);
  // Opens what the loop needs; `signals` is a signalfd.
  [[nodiscard]] Result<void> prepare(const Paths& paths, int signals, RealtimePolicy realtime);
  // Relays until `on_signal`, called when a signal is there, gives a value.
  [[nodiscard]] Result<int> run(const std::function<std::optional<int>()>& on_signal);

private:
  struct Due {
    Nanoseconds time;
    std::size_t link;
    bool operator>(const Due& other) const { return time > other.time; }
  };

  [[nodiscard]] Result<void> watch(int fd, std::uint64_t what);
  void take_from(std::size_t host);
  [[nodiscard]] int rest(std::span<epoll_event> events);
  void deliver_due();
  void write_to(std::size_t host, const Packet& packet);
  void schedule_all();
  [[nodiscard]] Result<void> limit_segments();

  void accept_control();
  [[nodiscard]] nlohmann::json handle(const nlohmann::json& request);
  [[nodiscard]] nlohmann::json change_links(const nlohmann::json& request);
  [[nodiscard]] nlohmann::json status(bool reset);
  [[nodiscard]] nlohmann::json link_status(std::size_t from, std::size_t to, Nanoseconds now) const;
  [[nodiscard]] std::optional<std::size_t> find_host(const nlohmann::json& name) const;

  [[nodiscard]] std::size_t link_index(std::size_t from, std::size_t to) const {
    return from * hosts_.size() + to;
  }

  std::vector<Host> hosts_;
  std::deque<Link> links_; // [from * hosts + to]; from == to is never used
  std::priority_queue<Due, std::vector<Due>, std::greater<>>
      due_; // the front packet of every link that has one
  PacketStore store_;
  Random random_;
  std::uint64_t refused_ = 0; // packets that a host's device did not take
  Nanoseconds started_ = 0;
  // How long this machine takes to wake the relay, in the middle: what timers showed so far. Waking that much
  // earlier, and taking arrivals to have been that much earlier, keeps it out of the delay.
  Nanoseconds wake_time_ = 30'000;
  Nanoseconds arrival_correction_ = 0; // for what is read in this turn
  Fd epoll_;
  Fd control_;
  int signals_ = -1;
};

} // namespace parc::wanlink
