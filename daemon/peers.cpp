// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/peers.hpp"

#include "daemon/kernel.hpp"

#include <algorithm>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

namespace parc::daemon {
namespace {

constexpr int backlog = 128;
constexpr std::size_t max_connections = 1024;
constexpr std::size_t max_strangers = 64; // connections that have not proved the key

Result<std::uint16_t> bind_one(const std::string& text, std::uint16_t port, const Config& config,
                               Fd& listener) {
  PARC_TRY(address, numeric_address(text, port));
  listener.reset(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener) return system_error("cannot make a socket for {}", address.text());
  const int yes = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.family() == AF_INET6) setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  PARC_TRY(prepare_socket(listener.get(), config.send_buffer, config.receive_buffer));
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0 ||
      ::listen(listener.get(), backlog) != 0)
    return system_error("cannot listen on {}", address.text());
  address.length = sizeof address.storage;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  // The port stands in the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

} // namespace

Peers::Peers(Kernel& kernel, const Key& key) : kernel_(kernel), key_(key), resolver_(kernel.loop()) {}
Peers::~Peers() = default;

Result<std::uint16_t> Peers::bind(const Config& config, std::vector<Fd>& listeners) {
  Error last;
  for (std::uint32_t port = config.port.first; port <= config.port.last; ++port) {
    listeners.clear();
    std::uint16_t bound = static_cast<std::uint16_t>(port);
    bool all = true;
    for (const std::string& address : config.listen) {
      Result<std::uint16_t> result = bind_one(address, bound, config, listeners.emplace_back());
      if (!result && result.error().code == EADDRNOTAVAIL && !listeners.empty() && config.listen.size() > 1) {
        listeners.pop_back(); // no IPv6 here, say; one address is enough
        continue;
      }
      if (!result) {
        last = std::move(result).error();
        all = false;
        break;
      }
      bound = result.value();
    }
    if (all && !listeners.empty()) return bound;
  }
  listeners.clear();
  if (last.code == EADDRINUSE)
    last.text += "; another parcd or program has that port: choose another with --port";
  return last;
}

void Peers::listen(std::vector<Fd> listeners) {
  listeners_ = std::move(listeners);
  for (const Fd& listener : listeners_) {
    const int fd = listener.get();
    listening_.emplace_back(kernel_.loop(), fd, EV_READ | EV_PERSIST, [this, fd](short) { accept(fd); });
    listening_.back().add();
  }
}

void Peers::accept(int listener) {
  Fd socket(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return;
  const auto strangers = std::count_if(connections_.begin(), connections_.end(), [](const auto& link) {
    return link->role() == Role::Acceptor && link->state() == PeerLink::State::shaking;
  });
  if (static_cast<std::size_t>(strangers) >= max_strangers || connections_.size() >= max_connections) return;
  if (!prepare_socket(socket.get(), 0, 0)) return;
  connections_.push_back(std::make_unique<PeerLink>(kernel_, key_, std::move(socket)));
}

PeerLink* Peers::find_up(std::uint64_t identity) const {
  const auto found = std::find_if(connections_.begin(), connections_.end(), [&](const auto& link) {
    return link->state() == PeerLink::State::up && link->identity() == identity;
  });
  return found == connections_.end() ? nullptr : found->get();
}

const std::string& Peers::name_of(std::uint32_t link) const {
  static const std::string unknown = "an unknown host";
  const auto found = names_.find(link);
  return found == names_.end() ? unknown : found->second;
}

void Peers::connect(const std::string& host, Connected connected) {
  std::int32_t known = host == kernel_.config().name || host == "localhost" ? this_host : -2;
  if (const auto identity = identities_.find(host); known != this_host && identity != identities_.end())
    if (const PeerLink* link = find_up(identity->second)) known = static_cast<std::int32_t>(link->index());
  if (known >= this_host) {
    kernel_.after_step([known, connected = std::move(connected)] { connected(known); });
    return;
  }
  auto [place, fresh] = attempts_.try_emplace(host);
  Attempt& attempt = place->second;
  attempt.waiting.push_back(std::move(connected));
  if (!fresh) return;
  attempt.host = host;
  const auto named = kernel_.config().hosts.find(host);
  const HostAddress where =
      named != kernel_.config().hosts.end() ? named->second : HostAddress{host, default_port};
  resolver_.resolve(where.address, where.port, [this, host](Result<std::vector<Address>> addresses) {
    const auto found = attempts_.find(host);
    if (found == attempts_.end()) return;
    if (!addresses)
      return finish(host, std::move(addresses).error().in(fmt::format("cannot reach host {}", host)));
    found->second.addresses = std::move(addresses).value();
    try_next(found->second);
  });
}

void Peers::try_next(Attempt& attempt) {
  while (!attempt.addresses.empty()) {
    const Address address = attempt.addresses.front();
    attempt.addresses.erase(attempt.addresses.begin());
    Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket ||
        !prepare_socket(socket.get(), kernel_.config().send_buffer, kernel_.config().receive_buffer) ||
        (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0 &&
         errno != EINPROGRESS)) {
      attempt.why = system_error("{} cannot be reached", address.text()).text;
      continue;
    }
    connections_.push_back(
        std::make_unique<PeerLink>(kernel_, key_, attempt.host, std::move(socket), address));
    return;
  }
  const std::string host = attempt.host;
  finish(host, error(EHOSTUNREACH, "cannot reach host {}: {}", host, attempt.why));
}

// Whoever waited hears it at the step's end: an actor may be in the middle of something.
void Peers::finish(const std::string& host, const Result<std::int32_t>& result) {
  const auto found = attempts_.find(host);
  if (found == attempts_.end()) return;
  for (Connected& connected : found->second.waiting)
    kernel_.after_step([connected = std::move(connected), result] { connected(result); });
  attempts_.erase(found);
}

void Peers::fail(Attempt& attempt, const std::string& why) {
  attempt.why = why;
  try_next(attempt);
}

Verdict Peers::judge(const PeerLink& link) {
  const std::uint64_t self = kernel_.self().identity;
  const std::uint64_t peer = link.identity();
  if (peer == self) return Verdict::Itself;
  if (kernel_.stopping()) return Verdict::Leaving;
  for (const auto& other : connections_) {
    if (other.get() == &link || other->identity() != peer) continue;
    if (other->state() == PeerLink::State::up) return Verdict::Duplicate;
    const bool under_way = other->state() == PeerLink::State::shaking && other->accepted_by_us();
    const bool begun_by_smaller = (other->role() == Role::Initiator) == (self < peer);
    if (under_way && begun_by_smaller) return Verdict::Duplicate;
  }
  return Verdict::Accepted;
}

void Peers::established(PeerLink& link) {
  names_[link.index()] = link.handshake().peer().name;
  kernel_.control().listen(link.index());
  spdlog::info("link to host {} ({}) is up", link.handshake().peer().name, link.address());
  const auto index = static_cast<std::int32_t>(link.index());
  if (!link.host().empty()) {
    identities_[link.host()] = link.identity();
    finish(link.host(), index);
  }
  std::vector<std::string> waiting;
  for (const auto& [host, attempt] : attempts_)
    if (attempt.identity == link.identity()) waiting.push_back(host);
  for (const std::string& host : waiting) {
    identities_[host] = link.identity();
    finish(host, index);
  }
}

void Peers::refused(PeerLink& link) {
  const Verdict verdict = link.handshake().verdict();
  if (link.host().empty()) {
    if (verdict == Verdict::Accepted) {
      count_refused();
      spdlog::warn("refused a connection from {}: {}", link.address(), link.handshake().failure().text);
    }
    return;
  }
  const auto found = attempts_.find(link.host());
  if (found == attempts_.end()) return;
  if (verdict == Verdict::Itself) {
    finish(link.host(), this_host);
  } else if (verdict == Verdict::Duplicate) {
    found->second.identity = link.identity();
    if (const PeerLink* other = find_up(link.identity())) {
      identities_[link.host()] = link.identity();
      finish(link.host(), static_cast<std::int32_t>(other->index()));
    }
  } else {
    spdlog::warn("link to host {} ({}): {}", link.host(), link.address(), link.handshake().failure().text);
    fail(found->second, fmt::format("{}: {}", link.address(), link.handshake().failure().text));
  }
}

void Peers::closed(PeerLink& link, PeerLink::State was, Error why) {
  swept_ = false;
  if (was == PeerLink::State::up) {
    spdlog::warn("{}", why.text);
    kernel_.engine().break_link(link.index());
    kernel_.link_lost(link.index());
    return;
  }
  const auto found = attempts_.find(link.host());
  if (was == PeerLink::State::lingering) {
    // What the refusal means was said; but a duplicate whose other connection died before it was up needs a
    // new one.
    if (found != attempts_.end() && link.handshake().verdict() == Verdict::Duplicate &&
        found->second.identity != 0) {
      const bool hope = std::any_of(connections_.begin(), connections_.end(), [&](const auto& other) {
        return other->state() != PeerLink::State::closed && other->identity() == link.identity();
      });
      if (!hope) fail(found->second, why.text);
    }
    return;
  }
  if (link.host().empty()) {
    spdlog::warn("dropped a connection from {}: {}", link.address(), why.text);
  } else if (found != attempts_.end()) {
    fail(found->second, why.text);
  }
}

std::uint64_t Peers::read() {
  std::uint64_t work = 0;
  // By index: an established link may make others while it is read.
  for (std::size_t i = 0; i < connections_.size(); ++i) work += connections_[i]->read();
  if (!swept_) {
    swept_ = true;
    std::erase_if(connections_, [](const auto& link) { return link->state() == PeerLink::State::closed; });
  }
  return work;
}

std::uint64_t Peers::write() {
  std::uint64_t work = 0;
  for (std::size_t i = 0; i < connections_.size(); ++i) work += connections_[i]->write();
  return work;
}

} // namespace parc::daemon
