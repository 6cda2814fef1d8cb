// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/doctor/doctor_hosts.hpp"

#include "system/fd.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace parc::tools::diagnosis {
namespace {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

bool is_numeric(const std::string& address) {
  std::array<std::byte, sizeof(in6_addr)> any;
  return inet_pton(AF_INET, address.c_str(), any.data()) == 1 ||
         inet_pton(AF_INET6, address.c_str(), any.data()) == 1;
}

struct Free {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, Free>;

std::string text_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  if (getnameinfo(address, length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return host.data();
}

// One connection attempt. What a name stands for is tried in the system's order; the first counts, as it does
// for parcd where it answers at all.
class Attempt {
public:
  explicit Attempt(Reach& reach) : reach_(reach) {
    const Target& target = reach.target;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int failure =
        getaddrinfo(target.address.c_str(), std::to_string(target.port).c_str(), &hints, &found);
    if (failure != 0) {
      reach_.unresolved = failure == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(failure);
      return;
    }
    addresses_.reset(found);
    next_ = found;
    begin();
  }

  [[nodiscard]] bool open() const { return static_cast<bool>(socket_); }
  [[nodiscard]] int fd() const { return socket_.get(); }
  void ready() {
    int code = 0;
    socklen_t size = sizeof code;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &code, &size);
    tcp_info info{};
    size = sizeof info;
    if (code == 0 && getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
      reach_.rtt_us = info.tcpi_rtt;
    end(code);
  }
  void give_up() { end(ETIMEDOUT); }

private:
  void begin() {
    while (next_ != nullptr && !socket_) {
      const addrinfo* const now = next_;
      next_ = now->ai_next;
      const std::string address = text_of(now->ai_addr, now->ai_addrlen);
      reach_.place = place_of(address, reach_.target.port);
      reach_.is_here = is_loopback(address) && !is_numeric(reach_.target.address);
      socket_.reset(::socket(now->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (!socket_ || (connect(socket_.get(), now->ai_addr, now->ai_addrlen) != 0 && errno != EINPROGRESS)) {
        reach_.failed = errno;
        socket_.reset();
        continue;
      }
      sockaddr_storage own{};
      socklen_t length = sizeof own;
      if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0)
        reach_.from = text_of(reinterpret_cast<sockaddr*>(&own), length);
    }
  }
  void end(int code) {
    socket_.reset();
    reach_.failed = code == 0 ? std::nullopt : std::optional(code);
    if (code == 0)
      next_ = nullptr;
    else
      begin();
  }

  Reach& reach_;
  Addresses addresses_;
  const addrinfo* next_ = nullptr;
  Fd socket_;
};

void link_up(Target& target, const CounterSnapshot::Link& link) {
  target.linked = true;
  target.reconnecting = link.state == LinkState::Reconnecting;
  target.rtt_us = link.rtt_us;
  target.way = link.way;
  target.encrypted = link.encrypted;
}

std::string linked_text(const Target& target) {
  const std::string_view how = target.way == LinkWay::Ssh     ? " through ssh"
                               : target.way == LinkWay::Relay ? " by a relay"
                                                              : "";
  return fmt::format("linked{}{}", how, target.encrypted ? "" : ", not encrypted");
}

// The kernel has seen more of the path than one connection.
std::uint64_t round_trip(const Reach& reach) {
  return reach.target.rtt_us != 0 ? reach.target.rtt_us : reach.rtt_us;
}

std::string round_trip_text(const Reach& reach) {
  const std::uint64_t us = round_trip(reach);
  return us == 0 ? "" : fmt::format(", round trip {:.3f} ms", static_cast<double>(us) / 1e3);
}

} // namespace

std::string place_of(const std::string& address, std::uint16_t port) {
  const bool is_v6 = address.find(':') != address.npos;
  return is_v6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

Result<Target> parse_target(const std::string& text) {
  const auto wrong = [&] {
    return error(EINVAL, "\"{}\" is no place of a host; write NAME=ADDRESS:PORT, as b=10.0.0.2:7272", text);
  };
  const auto equals = text.find('=');
  if (equals == text.npos || equals == 0) return wrong();
  Target target{.host = text.substr(0, equals), .address = text.substr(equals + 1), .port = default_port};
  std::string& address = target.address;
  const bool brackets = address.starts_with('[');
  const auto closing = address.find(']');
  if (brackets && closing == address.npos) return wrong();
  const auto colon = brackets                                ? address.find(':', closing)
                     : std::ranges::count(address, ':') == 1 ? address.find(':')
                                                             : address.npos;
  if (colon != address.npos) {
    const char* const end = address.data() + address.size();
    const auto [stop, failure] = std::from_chars(address.data() + colon + 1, end, target.port);
    if (failure != std::errc{} || stop != end || target.port == 0) return wrong();
  }
  address = brackets ? address.substr(1, closing - 1) : address.substr(0, colon);
  if (address.empty()) return wrong();
  return target;
}

std::vector<Target> find_targets(const Settings& settings, const std::optional<CounterSnapshot>& counters,
                                 const std::vector<std::string>& named, const std::vector<Target>& at) {
  std::vector<Target> targets = at;
  const auto known = [&](const std::string& host) { return std::ranges::find(targets, host, &Target::host); };
  const auto add = [&](const std::string& host) {
    if (host == settings.name || known(host) != targets.end()) return;
    const auto entry = settings.hosts.find(host);
    if (entry == settings.hosts.end())
      targets.push_back({.host = host, .address = host, .port = default_port});
    else
      targets.push_back({.host = host, .address = entry->second.address, .port = entry->second.port});
  };
  for (const std::string& host : named) add(host);
  if (named.empty() && at.empty())
    for (const auto& [host, address] : settings.hosts) add(host);
  if (!counters || !counters->alive) return targets;
  for (const auto& link : counters->links) {
    if (const auto target = known(link.peer); target != targets.end()) {
      link_up(*target, link);
      // The kernel was told where it is, or has found another way: what its name says is no matter.
      const bool is_at = std::ranges::find(at, link.peer, &Target::host) != at.end();
      if (link.state == LinkState::Up && !is_at && !settings.hosts.contains(link.peer)) target->named = false;
    } else if (named.empty() && at.empty())
      link_up(targets.emplace_back(Target{.host = link.peer, .address = {}, .named = false}), link);
  }
  return targets;
}

std::vector<Reach> reach(const std::vector<Target>& targets, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  std::vector<Reach> all;
  all.reserve(targets.size());
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (const Target& target : targets) {
    Reach& each = all.emplace_back();
    each.target = target;
    if (target.named) attempts.push_back(std::make_unique<Attempt>(each));
  }
  auto end = Clock::now() + patience;
  for (;;) {
    std::erase_if(attempts, [](const auto& attempt) { return !attempt->open(); });
    if (attempts.empty()) return all;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) { // what else a name stands for gets as long
      for (const auto& attempt : attempts) attempt->give_up();
      end = Clock::now() + patience;
      continue;
    }
    std::vector<pollfd> events;
    for (const auto& attempt : attempts) events.push_back({attempt->fd(), POLLOUT, 0});
    if (poll(events.data(), events.size(), static_cast<int>(left.count())) < 0) continue;
    for (std::size_t i = 0; i < events.size(); ++i)
      if (events[i].revents != 0) attempts[i]->ready();
  }
}

Path longest_path(const std::vector<Reach>& reaches) {
  Path longest;
  for (const Reach& each : reaches)
    if (const std::uint64_t us = round_trip(each); us != 0 && (longest.to.empty() || us > longest.rtt_us))
      longest = {.to = each.target.host, .rtt_us = us};
  return longest;
}

Finding check_reach(const Reach& reach) {
  const Target& target = reach.target;
  const std::string& host = target.host;
  Finding finding{"to " + host, Level::ok,
                  fmt::format("{} accepts connections{}", reach.place, round_trip_text(reach))};
  if (target.linked && !target.reconnecting) {
    finding.found = linked_text(target) + round_trip_text(reach);
    const bool dialed_well = !reach.failed && reach.unresolved.empty();
    if (dialed_well || target.way != LinkWay::Direct) return finding;
  } else if (!target.named) {
    finding.level = Level::problem;
    finding.found = "the connection is broken, and is being made again";
    finding.mend = fmt::format("see whether {} is up: parc doctor --hosts {}", host, host);
    return finding;
  }
  const std::string entry = fmt::format("{} = \"ADDRESS:PORT\" under [hosts] in parcd.toml", host);
  if (!reach.unresolved.empty()) {
    finding.level = Level::problem;
    finding.found = fmt::format("the name {} has no address: {}", target.address, reach.unresolved);
    finding.mend = fmt::format("write {}, or the name into /etc/hosts", entry);
  } else if (reach.is_here) {
    finding.level = Level::problem;
    finding.found = fmt::format("its name stands for {}, which is this host itself", reach.place);
    finding.mend = fmt::format("take that line out of /etc/hosts, or write {}", entry);
  } else if (reach.failed == ECONNREFUSED) {
    finding.level = Level::problem;
    finding.found = fmt::format("{} refuses connections: no kernel listens there", reach.place);
    finding.mend = fmt::format("start one there: parcd --detach --listen 0.0.0.0; where one runs "
                               "(parc status on {0}), does it listen on this address and port? If not: {1}",
                               host, entry);
  } else if (reach.failed == ETIMEDOUT) {
    finding.level = Level::problem;
    finding.found = fmt::format("{} does not answer: a firewall drops what comes there, or the host is down",
                                reach.place);
    finding.mend =
        fmt::format("if it is up, let TCP port {0} in, on {1} and on the way: ufw allow {0}/tcp, or "
                    "firewall-cmd --permanent --add-port={0}/tcp and firewall-cmd --reload",
                    target.port, host);
  } else if (reach.failed) {
    finding.level = Level::problem;
    finding.found = fmt::format("{} cannot be reached: {}", reach.place, std::strerror(*reach.failed));
    finding.mend = fmt::format("ip route get {}; where a firewall rejects it, let TCP port {} in",
                               target.address, target.port);
  }
  if (target.linked && !target.reconnecting) { // made from there
    finding.level = Level::warning;
    finding.found += "; the kernels have a link, but this host could not make it again";
  }
  return finding;
}

Findings check_pairs(const Pairs& pairs) {
  Findings findings;
  for (const std::string& problem : pairs.problems)
    findings.push_back({"pairs", Level::problem, problem,
                        "let in the TCP port of one of the two on its firewall, or see that both have a link "
                        "to a third host, which relays (parc hosts)"});
  if (!pairs.summary.empty() && pairs.problems.empty())
    findings.push_back({"pairs", Level::ok, pairs.summary});
  return findings;
}

Finding check_listening(const Settings& settings, const std::vector<Reach>& others) {
  std::string listens;
  for (const std::string& address : settings.listen) listens += (listens.empty() ? "" : " and ") + address;
  Finding finding{"listening", Level::ok, "on " + listens};
  if (!std::ranges::all_of(settings.listen, is_loopback)) return finding;
  finding.found += ", which other hosts do not reach";
  const bool needed = std::ranges::any_of(others, [](const Reach& each) {
    const bool is_linked = each.target.linked && !each.target.reconnecting; // one side that dials is enough
    return !is_linked && !each.from.empty() && !is_loopback(each.from);
  });
  finding.level = needed ? Level::problem : Level::information;
  finding.mend = "listen = \"0.0.0.0\" in parcd.toml (or the address of one of this host's networks), then "
                 "parc stop and "
                 "parcd --detach";
  return finding;
}

} // namespace parc::tools::diagnosis
