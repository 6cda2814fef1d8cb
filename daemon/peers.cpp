// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/peers.hpp"

#include "daemon/kernel.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t max_links = 1024;
constexpr std::size_t max_strangers = 64;
// A stranger's time when others wait for its place. A handshake takes two round trips.
constexpr auto time_of_stranger = 500ms;
constexpr double first_pause_s = 0.02, longest_pause_s = 0.5; // between two rounds of an attempt
// With the TCP of a host whose session is to go on. When a path that was cut is open again, asking anew every
// quarter of a second is sooner there than TCP, which waits a second at first and longer each time.
constexpr double least_patience_s = 0.25, round_trips_of_patience = 4, first_patience_s = 1;

Result<std::uint16_t> bind_one(const std::string& text, std::uint16_t port, const Config& config,
                               Fd& listener) {
  PARC_TRY(address, numeric_address(text, port));
  listener.reset(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener) return system_error("cannot make a socket for {}", address.text());
  const int yes = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.family() == AF_INET6) setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  PARC_TRY(prepare_socket(listener.get(), config));
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0 ||
      ::listen(listener.get(), accept_backlog) != 0)
    return system_error("cannot listen on {}", address.text());
  address.length = sizeof address.storage;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return address.port();
}

// Projections.
const PeerLink& as_link(const std::unique_ptr<PeerLink>& link) {
  return *link;
}

} // namespace

Peers::Peers(Kernel& kernel, const Key& key)
    : kernel_(kernel), key_(key), resolver_(kernel.loop()),
      acceptor_(kernel.loop(), {.room = [this] { return room(); },
                                .accepted = [this](Fd socket) { accept(std::move(socket)); }}),
      refused_(kernel.loop(), "connections refused"), dropped_(kernel.loop(), "connections dropped") {}
Peers::~Peers() = default;

Result<Peers::Listeners> Peers::bind(const Config& config) {
  Error last;
  for (std::uint32_t port = config.port.first; port <= config.port.last; ++port) {
    Listeners made;
    made.port = static_cast<std::uint16_t>(port);
    std::vector<std::string> addresses;
    bool all = true;
    for (const std::string& address : config.listen) {
      Fd listener;
      Result<std::uint16_t> result = bind_one(address, made.port, config, listener);
      if (!result) {
        last = std::move(result).error();
        if (last.code == EADDRNOTAVAIL && config.listen.size() > 1)
          continue; // no IPv6 here, say; one address is enough
        all = false;
        break;
      }
      made.port = result.value();
      made.hosts.push_back(local_address(listener.get()).host());
      made.sockets.push_back(std::move(listener));
      addresses.push_back(address);
    }
    if (!all || addresses.empty()) continue;
    made.words = fmt::format("{}, port {}{}", fmt::join(addresses, " and "), made.port,
                             std::ranges::all_of(addresses, is_loopback) ? ", on loopback only" : "");
    return made;
  }
  if (last.code == EADDRINUSE)
    last.text += "; another parcd or program has that port: choose another with --port";
  return last;
}

void Peers::listen(Listeners listeners) {
  listens_at_ = std::move(listeners.hosts);
  for (Fd& socket : listeners.sockets) acceptor_.listen(std::move(socket));
}

LocalHost Peers::self_at(int socket) const {
  LocalHost self = kernel_.self();
  const Address at = local_address(socket);
  const char* const any = at.family() == AF_INET ? "0.0.0.0" : "::";
  const auto heard = [&](const std::string& host) { return host == any || host == at.host(); };
  if (std::ranges::none_of(listens_at_, heard)) self.port = 0;
  return self;
}

// The oldest comes first among the connections.
bool Peers::room() {
  const auto strangers = std::ranges::count_if(connections_, &PeerLink::is_stranger, as_link);
  if (static_cast<std::size_t>(strangers) < max_strangers) return true;
  const auto oldest = std::ranges::find_if(connections_, &PeerLink::is_stranger, as_link);
  if (Clock::now() - (*oldest)->born() < time_of_stranger) return false;
  (*oldest)->close(error(ETIMEDOUT, "it did not prove the key in time, and others wait"));
  return true;
}

void Peers::accept(Fd socket) {
  if (!prepare_socket(socket.get())) return;
  connections_.push_back(std::make_unique<PeerLink>(kernel_, key_, std::move(socket)));
}

HostSession* Peers::find(std::uint64_t identity) const {
  const auto found = sessions_.find(identity);
  return found == sessions_.end() ? nullptr : found->second.get();
}

HostSession* Peers::carried_by(const PeerLink& link) const {
  HostSession* const session = find(link.identity());
  return session != nullptr && session->connection() == &link ? session : nullptr;
}

const std::string& Peers::name_of(std::uint32_t link) const {
  static const std::string unknown = "an unknown host";
  const auto found = names_.find(link);
  return found == names_.end() ? unknown : found->second;
}

void Peers::connect(const std::string& host, Connected connected) {
  std::int32_t known = host == kernel_.config().name || host == "localhost" ? this_host : -2;
  if (const auto identity = identities_.find(host); known != this_host && identity != identities_.end())
    if (const HostSession* session = find(identity->second);
        session != nullptr && session->connection() != nullptr)
      known = static_cast<std::int32_t>(session->link());
  if (known >= this_host) {
    kernel_.after_step([known, connected = std::move(connected)] { connected(known); });
    return;
  }
  const auto named = kernel_.config().hosts.find(host);
  attempt(host, named != kernel_.config().hosts.end() ? named->second : HostAddress{host, default_port}, {},
          std::move(connected));
}

void Peers::attempt(const std::string& host, const HostAddress& where, std::optional<double> patience_s,
                    Connected connected) {
  auto [place, fresh] = attempts_.try_emplace(host);
  Attempt& attempt = place->second;
  attempt.waiting.push_back(std::move(connected));
  attempt.once = patience_s.has_value() && (fresh || attempt.once);
  if (!fresh) return;
  attempt.host = host;
  attempt.patience_s = patience_s.value_or(kernel_.config().connect_timeout_s);
  resolver_.resolve(where.address, where.port, [this, host](Result<std::vector<Address>> addresses) {
    resolved(host, std::move(addresses));
  });
}

void Peers::resolved(const std::string& host, Result<std::vector<Address>> addresses) {
  const auto found = attempts_.find(host);
  if (found == attempts_.end()) return;
  if (!addresses)
    return finish(host, std::move(addresses).error().in(fmt::format("cannot reach host {}", host)));
  Attempt& attempt = found->second;
  attempt.addresses = std::move(addresses).value();
  attempt.began = Clock::now();
  attempt.pause_s = first_pause_s;
  attempt.again = Event::timer(kernel_.loop(), [this, host](short) {
    kernel_.after_step([this, host] { // the attempt may end, and this timer with it
      const auto waiting = attempts_.find(host);
      if (waiting != attempts_.end() && waiting->second.waits) begin_round(waiting->second);
    });
  });
  begin_round(attempt);
}

void Peers::begin_round(Attempt& attempt) {
  attempt.waits = false;
  attempt.next = 0;
  attempt.last_round = {};
  try_next(attempt);
}

void Peers::try_next(Attempt& attempt) {
  while (attempt.next < attempt.addresses.size()) {
    const Address address = attempt.addresses[attempt.next++];
    Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket || !prepare_socket(socket.get(), kernel_.config()) ||
        (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0 &&
         errno != EINPROGRESS)) {
      const int code = errno;
      note(attempt, connect_failure(code, address.text()));
      continue;
    }
    const double patience_s = kernel_.config().connect_timeout_s;
    connections_.push_back(std::make_unique<PeerLink>(kernel_, key_, attempt.host, std::move(socket), address,
                                                      std::min(patience_s, attempt.patience_s)));
    return;
  }
  const auto pause =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(attempt.pause_s));
  if (!attempt.once && Clock::now() + pause < attempt.last_round) {
    attempt.waits = true;
    attempt.again.add(attempt.pause_s);
    attempt.pause_s = std::min(2 * attempt.pause_s, longest_pause_s);
    return;
  }
  const std::string host = attempt.host;
  const int code = attempt.why.code == ECONNREFUSED ? ECONNREFUSED : EHOSTUNREACH;
  const Error failure = error(code, "cannot reach host {}: {}", host, attempt.why.text);
  if (!attempt.once) spdlog::warn("{}", failure.text);
  finish(host, failure);
}

// Whoever waited hears it at the step's end: an actor may be in the middle of something.
void Peers::finish(const std::string& host, const Result<std::int32_t>& result) {
  const auto found = attempts_.find(host);
  if (found == attempts_.end()) return;
  for (Connected& connected : found->second.waiting)
    kernel_.after_step([connected = std::move(connected), result] { connected(result); });
  attempts_.erase(found);
}

// What may be over soon is tried again: nobody listened yet, or the other side hung up.
void Peers::note(Attempt& attempt, const Error& why) {
  attempt.why = why;
  if (why.code == ECONNREFUSED || why.code == ECONNRESET)
    attempt.last_round = attempt.began + std::chrono::seconds(kernel_.config().connect_timeout_s);
}

void Peers::fail(Attempt& attempt, const Error& why) {
  if (attempt.waits) return;
  note(attempt, why);
  try_next(attempt);
}

// A host may have got another address.
void Peers::hosts_changed() {
  identities_.clear();
}

Verdict Peers::judge(const PeerLink& link) {
  const std::uint64_t self = kernel_.self().identity;
  const std::uint64_t peer = link.identity();
  if (peer == self) return Verdict::Itself;
  if (kernel_.stopping()) return Verdict::Leaving;
  // Who dials knows whether it needs the connection.
  const HostSession* const session = find(peer);
  const bool carried = session != nullptr && session->connection() != nullptr && !session->doubted();
  if (carried && link.role() == Role::Initiator) return Verdict::Duplicate;
  for (const auto& other : connections_) {
    if (other.get() == &link || other->identity() != peer) continue;
    const bool under_way = other->state() == PeerLink::State::shaking && other->accepted_by_us();
    const bool begun_by_smaller = (other->role() == Role::Initiator) == (self < peer);
    if (under_way && begun_by_smaller) return Verdict::Duplicate;
  }
  return session != nullptr || sessions_.size() < max_links ? Verdict::Accepted : Verdict::Full;
}

std::uint32_t Peers::session_number(std::uint64_t identity) const {
  if (const HostSession* session = find(identity)) return session->identity().number;
  const auto last = ended_.find(identity);
  return last == ended_.end() ? 1 : last->second + 1;
}

std::uint64_t Peers::next_carrier(const PeerLink& link) const {
  const HostSession* session = find(link.identity());
  const bool goes_on = session != nullptr && session->identity().number >= link.handshake().peer().session;
  return goes_on ? session->carrier() + 1 : 1;
}

// The numbers that both sides have said decide whether a session goes on or begins. None of it holds when
// this side has ended or begun one meanwhile.
HostSession* Peers::adopt(PeerLink& link) {
  const Handshake& said = link.handshake();
  const Peer& peer = said.peer();
  if (kernel_.stopping() || session_number(peer.identity) != said.session()) return nullptr;
  if (find(peer.predecessor) != nullptr)
    end(peer.predecessor,
        error(ECONNRESET, "gave the kernel of host {} up: another has been started in its place", peer.name));
  const std::uint32_t number = std::max(said.session(), peer.session);
  HostSession* session = find(peer.identity);
  if (session != nullptr && session->identity().number != number) {
    end(peer.identity, error(ECONNRESET, "host {} has given this one up meanwhile", peer.name));
    session = nullptr;
  }
  if (session != nullptr) {
    if (said.carrier() <= session->carrier()) return nullptr;
    PeerLink* const older = session->connection();
    session->carried(link, said.carrier(), link.role() == Role::Initiator);
    if (older != nullptr) older->close(error(ESTALE, "another connection has taken its place"));
    kernel_.engine().attach(session->link());
    find_way(link);
    return session;
  }
  const std::uint32_t index =
      kernel_.engine().add_link({.fragment = peer.fragment_size,
                                 .self = static_cast<std::uint32_t>(kernel_.self().identity),
                                 .peer = static_cast<std::uint32_t>(peer.identity),
                                 .write_table = peer.write_table});
  HostSession::Hooks hooks{
      .dial = [this, identity = peer.identity] { kernel_.after_step([this, identity] { dial(identity); }); },
      .give_up =
          [this, identity = peer.identity](Error why) {
            kernel_.after_step([this, identity, why = std::move(why)] { end(identity, why); });
          },
      .waits_for_answers =
          [this, index] {
            const protocol::Link& of = kernel_.engine().link(index);
            return of.sequence != of.acknowledged;
          }};
  auto made = std::make_unique<HostSession>(
      kernel_.loop(), HostSession::Identity{peer.identity, number, peer.name}, index,
      std::chrono::seconds(kernel_.config().link_timeout_s), std::move(hooks));
  made->carried(link, said.carrier(), link.role() == Role::Initiator);
  session = sessions_.emplace(peer.identity, std::move(made)).first->second.get();
  find_way(link);
  names_[index] = peer.name;
  kernel_.control().listen(index);
  spdlog::info("link to host {} ({}) is up", peer.name, link.address());
  return session;
}

void Peers::find_way(const PeerLink& link) {
  const bool dialed = link.role() == Role::Initiator;
  const Peer& peer = link.handshake().peer();
  const auto old = ways_.find(link.identity());
  const bool by_name = old != ways_.end() && old->second.by_name;
  if (dialed && old != ways_.end() && old->second.host == link.host()) return;
  const std::string& name = dialed ? link.host() : peer.name;
  const auto named = kernel_.config().hosts.find(name);
  if (named != kernel_.config().hosts.end()) {
    ways_[link.identity()] = {name, named->second, true};
  } else if (dialed) {
    ways_[link.identity()] = {name, {name, default_port}, true};
  } else if (!by_name && peer.port != 0) {
    const std::string address = link.peer_host();
    ways_[link.identity()] = {fmt::format("{} port {}", address, peer.port), {address, peer.port}, false};
  }
}

// By the name that was used last, whose address may have changed, or where the last connection came from.
void Peers::dial(std::uint64_t identity) {
  HostSession* const session = find(identity);
  if (session == nullptr || kernel_.stopping()) return;
  const auto failed = [this, identity](const Result<std::int32_t>& result) {
    HostSession* const still = find(identity);
    if (still == nullptr) return;
    if (!result)
      still->dial_ended(result.error());
    else if (still->connection() == nullptr)
      still->dial_ended(error(EHOSTUNREACH, "another kernel answers there"));
    else
      still->dial_ended({});
  };
  const auto found = ways_.find(identity);
  if (found == ways_.end()) return;
  const Way way = found->second;
  const double rtt_s = session->rtt_us() / 1e6;
  const double patience_s =
      rtt_s == 0 ? first_patience_s : std::max(least_patience_s, round_trips_of_patience * rtt_s);
  attempt(way.host, way.where, patience_s, failed);
}

void Peers::end(std::uint64_t identity, const Error& why) {
  const auto found = sessions_.find(identity);
  if (found == sessions_.end()) return;
  const std::unique_ptr<HostSession> session = std::move(found->second);
  sessions_.erase(found);
  ways_.erase(identity);
  ended_[identity] = session->identity().number;
  spdlog::warn("{}", why.text);
  if (session->connection() != nullptr) session->connection()->close(why);
  kernel_.engine().break_link(session->link());
  kernel_.link_lost(session->link());
}

// A statement that is refused has changed nothing: the session goes on with another connection. From anything
// else there is no way back.
void Peers::broke_rules(PeerLink& link, protocol::Refusal refusal) {
  ++links_refused_;
  const Error why = error(EPROTO, "closed the connection to host {}: {}", link.handshake().peer().name,
                          protocol::describe(refusal));
  if (kernel_.engine().link(link.index()).carrier.stage == protocol::Carrier::Stage::stating)
    link.close(why);
  else
    end(link.identity(), why);
}

void Peers::established(PeerLink& link) {
  acceptor_.resume();
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
      ++links_refused_;
      refused_.say(
          fmt::format("refused a connection from {}: {}", link.address(), link.handshake().failure().text));
    }
    return;
  }
  const auto found = attempts_.find(link.host());
  if (found == attempts_.end()) return;
  if (verdict == Verdict::Itself) {
    finish(link.host(), this_host);
  } else if (verdict == Verdict::Duplicate) {
    found->second.identity = link.identity();
    if (const HostSession* session = find(link.identity());
        session != nullptr && session->connection() != nullptr) {
      identities_[link.host()] = link.identity();
      finish(link.host(), static_cast<std::int32_t>(session->link()));
    }
  } else {
    fail(found->second, Error(link.handshake().failure()).in(link.address()));
  }
}

void Peers::closed(PeerLink& link, PeerLink::State was, Error why) {
  swept_ = false;
  acceptor_.resume();
  if (was == PeerLink::State::up) {
    HostSession* const session = carried_by(link);
    if (session == nullptr) return; // it has another, or has ended
    kernel_.engine().detach(link.index());
    session->parted(why, link.last_heard());
    return;
  }
  // What was refused has been said, and acted on, when it was.
  if (was != PeerLink::State::lingering) {
    const auto found = attempts_.find(link.host());
    if (link.host().empty())
      dropped_.say(fmt::format("dropped a connection from {}: {}", link.address(), why.text));
    else if (found != attempts_.end())
      fail(found->second, why);
  }
  fail_waiting_for(link.identity(), why);
}

// Attempts whose own connection was a duplicate wait for the other one: where that died before it was up,
// they need a new one.
void Peers::fail_waiting_for(std::uint64_t identity, const Error& why) {
  const bool hope = std::any_of(connections_.begin(), connections_.end(), [&](const auto& other) {
    return other->state() != PeerLink::State::closed && other->identity() == identity;
  });
  if (identity == 0 || hope) return;
  std::vector<std::string> waiting;
  for (const auto& [host, attempt] : attempts_)
    if (attempt.identity == identity) waiting.push_back(host);
  for (const std::string& host : waiting) {
    Attempt& attempt = attempts_.at(host);
    attempt.identity = 0;
    fail(attempt, Error{ECONNRESET, why.text});
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
