// SPDX-License-Identifier: BSD-3-Clause
// The loop is epoll itself and not libevent: libevent's timers are a system call each and in milliseconds by
// default, while epoll_pwait2 takes the next due time in nanoseconds with the wait.
#include "tools/wanlink/relay.hpp"

#include "tools/wanlink/address.hpp"
#include "tools/wanlink/control.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace parc::wanlink {
namespace {

// What an epoll event is about: a host's number from 0, or one of these.
constexpr std::uint64_t control_event = ~0ULL;
constexpr std::uint64_t signal_event = ~0ULL - 1;
// Connections of control clients have their descriptor above this bit.
constexpr std::uint64_t connection_event = 1ULL << 32;

// Packets taken from one host before others get their turn.
constexpr int take_budget = 32;
// How long a large segment may occupy the wire: 64 KiB at 100 Mbit/s. It is delivered when its last byte has
// crossed the wire, so its first bytes are late by up to this.
constexpr Nanoseconds segment_time = 5'300'000;
// How much later a packet may be delivered that had to wait for the wire, so that one waking serves several.
// On a virtual machine a sleep with a timer costs 25 us of CPU time, which is most of what the relay takes.
constexpr Nanoseconds gathering_time = 150'000;

constexpr Nanoseconds shortest_sleep = 10'000;
constexpr Nanoseconds wake_time_step = 500;
constexpr Nanoseconds max_wake_time = 100'000;

Nanoseconds clock_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

} // namespace

Relay::Relay(std::vector<Host> hosts, const TwoWayChange& change, const Settings& settings,
             std::uint64_t seed)
    : hosts_(std::move(hosts)), random_(seed), started_(clock_now()) {
  for (std::size_t from = 0; from < hosts_.size(); ++from)
    for (std::size_t to = 0; to < hosts_.size(); ++to) {
      links_.emplace_back(settings);
      links_.back().change(from < to ? change.forth : change.back, 0);
    }
}

Result<void> Relay::close(const std::vector<Direction>& directions) {
  for (const auto& [from, to, ports] : directions) {
    const auto sender = find_host(from), receiver = find_host(to);
    if (!sender || !receiver || *sender == *receiver)
      return error(EINVAL, "--closed {}:{} names no two hosts of this emulation", from, to);
    links_[link_index(*sender, *receiver)].close(ports);
  }
  return success();
}

Result<void> Relay::prepare(const Paths& paths, int signals, RealtimePolicy realtime) {
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return system_error("cannot make an epoll descriptor");
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    PARC_TRY(watch(hosts_[i].device.fd(), i));
  }
  PARC_TRY(control, listen_for_control(paths));
  control_ = std::move(control);
  PARC_TRY(watch(control_.get(), control_event));
  signals_ = signals;
  PARC_TRY(watch(signals_, signal_event));
  PARC_TRY(limit_segments());
  prctl(PR_SET_TIMERSLACK, 1UL);
  PARC_TRY(SchedulingClass::acquire(realtime));
  return success();
}

Result<void> Relay::watch(int fd, std::uint64_t what) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = what;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return system_error("cannot watch a descriptor");
  return success();
}

Result<int> Relay::run(const std::function<std::optional<int>()>& on_signal) {
  std::array<epoll_event, 32> events;
  for (;;) {
    deliver_due();
    const int ready = rest(events);
    if (ready < 0 && errno != EINTR)
      return system_error("cannot wait for packets (epoll_pwait2, Linux 5.11)");
    for (int i = 0; i < ready; ++i) {
      const std::uint64_t what = events[static_cast<std::size_t>(i)].data.u64;
      if (what < hosts_.size()) {
        take_from(what);
      } else if (what == control_event) {
        accept_control();
      } else if (what == signal_event) {
        if (const auto result = on_signal()) return *result;
      } else {
        const Fd connection(static_cast<int>(what & ~connection_event));
        answer_control(connection.get(), [this](const nlohmann::json& request) { return handle(request); });
      }
    }
  }
}

// Waits for an event or the next due time, and learns from the clock how long waking takes.
int Relay::rest(std::span<epoll_event> events) {
  const Nanoseconds before = clock_now();
  timespec timeout{};
  Nanoseconds target = 0;
  if (!due_.empty()) {
    target = due_.top().time + (links_[due_.top().link].front().waited ? gathering_time : 0);
    const Nanoseconds left = std::max<Nanoseconds>(0, target - wake_time_ - before);
    timeout = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  }
  const int ready = epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 due_.empty() ? nullptr : &timeout, nullptr);
  const Nanoseconds after = clock_now();
  const bool slept = after - before > shortest_sleep;
  arrival_correction_ = slept ? wake_time_ : 0;
  if (ready == 0 && slept) {
    const bool late = after > target;
    wake_time_ =
        std::clamp<Nanoseconds>(wake_time_ + (late ? wake_time_step : -wake_time_step), 0, max_wake_time);
  }
  return ready;
}

void Relay::take_from(std::size_t host) {
  for (int taken = 0; taken < take_budget; ++taken) {
    const std::span<std::byte> room = store_.room();
    const ssize_t length = read(hosts_[host].device.fd(), room.data(), room.size());
    if (length <= 0) return;
    PacketBytes data = store_.take(static_cast<std::size_t>(length));
    const auto facts = inspect(data.bytes());
    if (!facts || facts->host == 0 || facts->host > hosts_.size() || facts->host == host + 1) continue;
    const std::size_t link = link_index(host, facts->host - 1);
    if (links_[link].offer(std::move(data), *facts, clock_now() - arrival_correction_, random_))
      due_.push({links_[link].front().due, link});
  }
}

void Relay::deliver_due() {
  if (due_.empty()) return;
  for (Nanoseconds now = clock_now(); !due_.empty() && due_.top().time <= now + wake_time_;
       now = clock_now()) {
    const std::size_t index = due_.top().link;
    due_.pop();
    Link& link = links_[index];
    write_to(index % hosts_.size(), link.front());
    link.delivered(now);
    if (!link.empty()) due_.push({link.front().due, index});
  }
}

void Relay::write_to(std::size_t host, const Packet& packet) {
  const auto bytes = packet.data.bytes();
  if (write(hosts_[host].device.fd(), bytes.data(), bytes.size()) < 0) refused_ += packet.wire_packets;
}

void Relay::schedule_all() {
  due_ = {};
  for (std::size_t i = 0; i < links_.size(); ++i)
    if (!links_[i].empty()) due_.push({links_[i].front().due, i});
}

// A host's device has one limit for all its links: the slowest link decides. With loss there are no large
// segments at all, because each packet is lost on its own.
Result<void> Relay::limit_segments() {
  for (std::size_t from = 0; from < hosts_.size(); ++from) {
    double limit = 65'536;
    for (std::size_t to = 0; to < hosts_.size(); ++to) {
      const Settings& settings = links_[link_index(from, to)].settings();
      if (from == to) continue;
      if (settings.loss > 0) limit = 0;
      if (settings.rate > 0)
        limit = std::min(limit, static_cast<double>(settings.rate) * static_cast<double>(segment_time) / 8e9);
    }
    PARC_TRY(hosts_[from].device.limit_segments(static_cast<std::uint32_t>(limit)));
  }
  return success();
}

void Relay::accept_control() {
  Fd connection(accept4(control_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection && watch(connection.get(), connection_event | static_cast<std::uint64_t>(connection.get())))
    (void)connection.release(); // closed when its request is answered
}

nlohmann::json Relay::handle(const nlohmann::json& request) {
  const std::string what = request.value("do", "");
  if (what == "status") return status(request.value("reset", false));
  if (what == "set" || what == "up" || what == "down") return change_links(request);
  return {{"error", "unknown request"}};
}

nlohmann::json Relay::change_links(const nlohmann::json& request) {
  const auto from = find_host(request.value("from", ""));
  const auto to = find_host(request.value("to", ""));
  if (!from || !to || *from == *to)
    return {{"error", "a link is between two different hosts of this emulation"}};
  Link& forth = links_[link_index(*from, *to)];
  Link& back = links_[link_index(*to, *from)];
  if (request["do"] == "set") {
    const Nanoseconds now = clock_now();
    forth.change(request.value("forth", Change{}), now);
    back.change(request.value("back", Change{}), now);
    if (auto limited = limit_segments(); !limited) return {{"error", limited.error().text}};
  } else {
    forth.set_up(request["do"] == "up");
    if (!request.value("one_way", false)) back.set_up(request["do"] == "up");
  }
  schedule_all();
  return nlohmann::json::object();
}

nlohmann::json Relay::status(bool reset) {
  const Nanoseconds now = clock_now();
  nlohmann::json hosts = nlohmann::json::array();
  nlohmann::json links = nlohmann::json::array();
  std::uint64_t packets = 0;
  std::uint64_t late = 0;
  Nanoseconds late_max = 0;
  for (std::size_t from = 0; from < hosts_.size(); ++from) {
    nlohmann::json host{{"name", hosts_[from].name}, {"ipv4", ipv4_address(hosts_[from].number)}};
    if (hosts_[from].device.has_ipv6()) host["ipv6"] = ipv6_address(hosts_[from].number);
    hosts.push_back(std::move(host));
    for (std::size_t to = 0; to < hosts_.size(); ++to) {
      if (from == to) continue;
      links.push_back(link_status(from, to, now));
      Link& link = links_[link_index(from, to)];
      packets += link.counters().packets;
      late += link.counters().late_over_1ms;
      late_max = std::max(late_max, link.counters().late_max);
      if (reset) link.reset_counters();
    }
  }
  return {{"schema", 1},
          {"relay",
           {{"cpu_s", cpu_seconds()},
            {"elapsed_s", static_cast<double>(now - started_) / 1e9},
            {"scheduling", granted_class()},
            {"wake_us", static_cast<double>(wake_time_) / 1e3},
            {"packets", packets},
            {"late_over_1ms", late},
            {"late_max_us", static_cast<double>(late_max) / 1e3},
            {"refused", refused_}}},
          {"hosts", std::move(hosts)},
          {"links", std::move(links)}};
}

nlohmann::json Relay::link_status(std::size_t from, std::size_t to, Nanoseconds now) const {
  const Link& link = links_[link_index(from, to)];
  const Settings& settings = link.settings();
  const LinkCounters& counters = link.counters();
  return {{"from", hosts_[from].name},
          {"to", hosts_[to].name},
          {"up", link.up()},
          {"closed", link.closed()},
          {"delay_ms", static_cast<double>(settings.delay_ns) / 1e6},
          {"jitter_ms", static_cast<double>(settings.jitter_ns) / 1e6},
          {"rate_bps", settings.rate},
          {"queue_bytes", settings.queue},
          {"loss", settings.loss},
          {"connection_rate_bps", settings.connection_rate},
          {"largest_packet_bytes", settings.largest_packet},
          {"packets", counters.packets},
          {"bytes", counters.bytes},
          {"pieces", counters.pieces},
          {"dropped_queue", counters.dropped_queue},
          {"dropped_loss", counters.dropped_loss},
          {"dropped_down", counters.dropped_down},
          {"dropped_closed", counters.dropped_closed},
          {"backlog_bytes", link.backlog(now)},
          {"in_flight", link.in_flight()},
          {"late_over_1ms", counters.late_over_1ms},
          {"late_max_us", static_cast<double>(counters.late_max) / 1e3}};
}

std::optional<std::size_t> Relay::find_host(const nlohmann::json& name) const {
  const auto found = std::ranges::find_if(hosts_, [&](const Host& host) { return host.name == name; });
  if (found == hosts_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - hosts_.begin());
}

} // namespace parc::wanlink
