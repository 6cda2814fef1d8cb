// SPDX-License-Identifier: BSD-3-Clause
// Peers' other half: which connection a session has, when it goes on, begins and ends.
#include "daemon/link/peers.hpp"

#include <algorithm>
#include <cerrno>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

constexpr std::size_t max_links = 1024;

} // namespace

Verdict Peers::judge(const PendingLink& link) {
  const std::uint64_t self = self_.identity;
  const std::uint64_t peer = link.identity();
  if (peer == self) return Verdict::Itself;
  if (stopping_) return Verdict::Leaving;
  // Who dials knows whether it needs the connection.
  const HostSession* const session = find(peer);
  const bool carried = session != nullptr && session->connection() != nullptr && !session->doubted();
  if (link.role() == Role::Initiator && (carried || link.purpose().calls_back)) return Verdict::Duplicate;
  for (const auto& other : pending_) {
    if (other.get() == &link || other->identity() != peer) continue;
    if (other->role() == link.role()) continue; // the same side dialed both: it knows why
    const bool under_way = other->stage() == PendingLink::Stage::shaking && other->accepted_by_us();
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

std::uint64_t Peers::next_carrier(const PendingLink& link) const {
  const HostSession* session = find(link.identity());
  const bool goes_on = session != nullptr && session->identity().number >= link.handshake().peer().session;
  return goes_on ? session->carrier() + 1 : 1;
}

// Nothing of what was said holds when this side has ended or begun a session meanwhile.
bool Peers::still_true(const PendingLink& link) const {
  return !stopping_ && session_number(link.identity()) == link.handshake().session();
}

// The numbers that both sides have said decide whether a session goes on or begins.
bool Peers::adopt(PendingLink& link) {
  const Handshake& said = link.handshake();
  const Peer& peer = said.peer();
  if (!still_true(link)) return false;
  const HostSession::Way way = way_of(link);
  if (find(peer.predecessor) != nullptr)
    end(peer.predecessor,
        error(ECONNRESET, "gave the kernel of host {} up: another has been started in its place", peer.name));
  const std::uint32_t number = std::max(said.session(), peer.session);
  HostSession* session = find(peer.identity);
  if (session != nullptr && session->identity().number != number) {
    end(peer.identity, error(ECONNRESET, "host {} has given this one up meanwhile", peer.name));
    session = nullptr;
  }
  if (session != nullptr && said.carrier() <= session->carrier()) return false;
  const bool goes_on = session != nullptr;
  if (!goes_on) session = &begin(link, number);
  std::unique_ptr<Stream> stream = link.take_stream();
  swept_ = false;
  // A connection that is dead without a word is known to be in half of the time after which the session is
  // given up.
  stream->limit_silence(std::chrono::milliseconds(std::chrono::seconds(config_.link_timeout_s)) / 2);
  PeerLink* const older = session->connection();
  links_.push_back(std::make_unique<PeerLink>(*this, engine_, *session, std::move(stream)));
  session->carried(*links_.back(), said.carrier(), link.role() == Role::Initiator);
  if (older != nullptr) older->close(error(ESTALE, "another connection has taken its place"));
  if (goes_on) engine_.attach(session->link());
  session->set_way(way);
  if (link.role() == Role::Acceptor && peer.port != 0)
    loop_.after_step([this, identity = peer.identity] { call_back(identity); });
  established(link, session->link());
  return true;
}

// The engine's link comes with its first carrier attached.
HostSession& Peers::begin(const PendingLink& link, std::uint32_t number) {
  const Peer& peer = link.handshake().peer();
  const std::uint32_t index = engine_.add_link({.fragment = peer.fragment_size,
                                                .self = static_cast<std::uint32_t>(self_.identity),
                                                .peer = static_cast<std::uint32_t>(peer.identity)});
  HostSession::Hooks hooks{
      .dial = [this, identity = peer.identity] { loop_.after_step([this, identity] { redial(identity); }); },
      .give_up =
          [this, identity = peer.identity](Error why) {
            loop_.after_step([this, identity, why = std::move(why)] { end(identity, why); });
          }};
  auto made = std::make_unique<HostSession>(loop_, HostSession::Identity{peer.identity, number, peer.name},
                                            index, std::chrono::seconds(config_.link_timeout_s),
                                            self_.identity + index, std::move(hooks));
  loop_.after_step([this, index] { hooks_.link_up(index); });
  spdlog::info("link to host {} ({}) is up", peer.name, link.address());
  return *sessions_.emplace(peer.identity, std::move(made)).first->second;
}

// Where the other kernel is, as this connection shows.
HostSession::Way Peers::way_of(const PendingLink& link) const {
  const HostSession* known = find(link.identity());
  if (known == nullptr && link.role() == Role::Initiator) known = find(link.purpose().session);
  HostSession::Way way = known != nullptr ? known->way() : HostSession::Way{};
  if (!link.purpose().host.empty() && link.purpose().named) way.host = link.purpose().host;
  Address at = link.peer_address();
  const Peer& peer = link.handshake().peer();
  way.advertised.reset();
  if (auto told = numeric_address(peer.advertised, peer.port); told && peer.port != 0)
    way.advertised = std::move(told).value();
  if (link.role() == Role::Initiator) {
    way.address = way.met = at;
  } else if (peer.port != 0) {
    at.set_port(peer.port);
    if (!way.advertised)
      way.address = at;
    else if (!way.met)
      way.address = way.advertised;
    if (config_.hosts.contains(peer.name)) way.host = peer.name;
  }
  return way;
}

// What has dialed this one may listen elsewhere, or nowhere that is reached from here: a refusal at an
// address tells something only where this side has met it.
void Peers::call_back(std::uint64_t identity) {
  const HostSession* const session = find(identity);
  if (session == nullptr || stopping_) return;
  if (!place_of(*session) && !session->way().host.empty())
    return look_up(identity, [this, identity](const Result<void>&) { call_back_now(identity); });
  call_back_now(identity);
}

void Peers::call_back_now(std::uint64_t identity) {
  const HostSession* const session = find(identity);
  if (session == nullptr || stopping_) return;
  const auto at = place_of(*session);
  if (!at || session->way().met == at) return;
  (void)dial(*at, {.session = identity, .calls_back = true, .patience_s = double(config_.connect_timeout_s)});
}

void Peers::called_back(const PendingLink& link) {
  HostSession* const session = find(link.purpose().session);
  if (session == nullptr || link.identity() != link.purpose().session) return;
  HostSession::Way way = session->way();
  way.met = link.peer_address();
  session->set_way(std::move(way));
}

// As [hosts] says; else in turn where it is known to be and where its name was found.
std::optional<Address> Peers::place_of(const HostSession& session) const {
  return session.place(config_.hosts.contains(session.way().host));
}

// Where it is known to be nobody has to be asked. Its name, whose address may have changed, is looked up
// beside.
void Peers::redial(std::uint64_t identity) {
  HostSession* const session = find(identity);
  if (session == nullptr || stopping_) return;
  const auto at = place_of(*session);
  if (!session->way().host.empty() && (!at || session->dials() % 2 == 0))
    look_up(identity, [this, identity, awaited = !at](const Result<void>& found) {
      if (awaited) redial_now(identity, found);
    });
  if (at) dial_again(*session, *at);
}

void Peers::redial_now(std::uint64_t identity, const Result<void>& found) {
  HostSession* const session = find(identity);
  if (session == nullptr || stopping_) return;
  if (const auto at = place_of(*session))
    dial_again(*session, *at);
  else
    session->dial_ended(found ? error(ENOENT, "the address of host {} is not known", session->way().host)
                              : found.error(),
                        false);
}

void Peers::look_up(std::uint64_t identity, std::function<void(const Result<void>&)> then) {
  const HostAddress where = address_of(find(identity)->way().host);
  resolver_.resolve(where.address, where.port, std::chrono::seconds(config_.connect_timeout_s),
                    [this, identity, then = std::move(then)](Result<std::vector<Address>> addresses) {
                      HostSession* const still = find(identity);
                      if (still == nullptr) return;
                      Result<void> found = addresses ? success() : Result<void>(addresses.error());
                      if (addresses) still->set_named(std::move(addresses).value());
                      loop_.after_step([then, found = std::move(found)] { then(found); });
                    });
}

void Peers::dial_again(HostSession& session, const Address& at) {
  PendingLink::Purpose purpose{
      .session = session.identity().host, .met = session.way().met == at, .patience_s = session.patience_s()};
  if (const Result<void> dialed = dial(at, std::move(purpose)); !dialed)
    session.dial_ended(dialed.error(), false);
}

// Who is shaking hands at this moment lives, whatever refuses.
void Peers::redialed(const PendingLink& link, const Error& why) {
  HostSession* const session = find(link.purpose().session);
  if (session == nullptr) return;
  const std::uint64_t identity = session->identity().host;
  const bool lives = std::ranges::any_of(pending_, [&](const auto& other) {
    return other->role() == Role::Acceptor && other->stage() == PendingLink::Stage::shaking &&
           other->identity() == identity;
  });
  if (lives) session->lives();
  const bool met = link.purpose().met && !lives;
  if (link.identity() != 0 && link.identity() != identity)
    return session->dial_ended(error(ECONNREFUSED, "another kernel runs at {}", link.address()), met);
  session->dial_ended(why, met && why.code == ECONNREFUSED);
}

void Peers::end(std::uint64_t identity, const Error& why) {
  const auto found = sessions_.find(identity);
  if (found == sessions_.end()) return;
  const std::unique_ptr<HostSession> session = std::move(found->second);
  sessions_.erase(found);
  ended_[identity] = session->identity().number;
  spdlog::warn("{}", why.text);
  loop_.errors().note(ErrorKind::Link, why.code, why.text);
  if (session->connection() != nullptr) session->connection()->close(why);
  engine_.break_link(session->link());
  loop_.after_step([this, link = session->link()] { hooks_.link_lost(link); });
}

void Peers::said_nonsense(std::uint32_t link, const Error& why) {
  const HostSession* const session = session_at(static_cast<std::int32_t>(link));
  if (session == nullptr) return; // it has ended meanwhile
  ++links_refused_;
  end(session->identity().host,
      error(why.code, "closed the connection to host {}: {}", session->identity().name, why.text));
}

// A statement that is refused has changed nothing: the session goes on with another connection. From anything
// else there is no way back.
void Peers::broke_rules(PeerLink& link, protocol::Refusal refusal) {
  ++links_refused_;
  const HostSession& session = link.session();
  const Error why = error(EPROTO, "closed the connection to host {}: {}", session.identity().name,
                          protocol::describe(refusal));
  if (engine_.link(session.link()).carrier.stage == protocol::Carrier::Stage::stating)
    link.close(why);
  else
    end(session.identity().host, why);
}

} // namespace parc::daemon
