// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/host_sessions.hpp"

#include <algorithm>
#include <cerrno>
#include <spdlog/spdlog.h>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::size_t max_links = 1024, max_streams = 2 * max_links;
constexpr std::size_t most_ended_relays = 4096; // of which the number of the last session is kept

} // namespace

HostSessions::HostSessions(Needs needs, Events events)
    : needs_(std::move(needs)), events_(std::move(events)) {}

HostSession* HostSessions::look(std::uint64_t identity) const {
  const auto found = sessions_.find(identity);
  return found == sessions_.end() ? nullptr : found->second.get();
}

const HostSession* HostSessions::find(std::uint64_t identity) const {
  return look(identity);
}

std::optional<std::int32_t> HostSessions::carried(std::uint64_t identity) const {
  const HostSession* const session = find(identity);
  if (session == nullptr || session->connection() == nullptr) return std::nullopt;
  return static_cast<std::int32_t>(session->link());
}

bool HostSessions::any_near() const {
  const KeyUse use = needs_.keys_are();
  return std::ranges::any_of(sessions_, [use](const auto& each) {
    return each.second->is_near() && serves(each.second->use(), use);
  });
}

bool HostSessions::full() const {
  return sessions_.size() >= max_links;
}

std::size_t HostSessions::relaying() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(sessions_, [](const auto& each) { return each.second->only_relays(); }));
}

const HostSession* HostSessions::at(std::int32_t link) const {
  for (const auto& [identity, session] : sessions_)
    if (static_cast<std::int32_t>(session->link()) == link) return session.get();
  return nullptr;
}

const HostSession* HostSessions::named(const std::string& host, KeyUse use) const {
  return only(host, [use](const HostSession& session) {
    return session.connection() != nullptr && serves(session.use(), use);
  });
}

const HostSession* HostSessions::expected(const std::string& host, KeyUse use) const {
  return only(host, [use](const HostSession& session) { return serves(session.use(), use); });
}

template <class Counts> const HostSession* HostSessions::only(const std::string& host, Counts counts) const {
  if (const auto identity = needs_.directory.identity_of(host))
    if (const HostSession* const session = find(*identity); session != nullptr && counts(*session))
      return session;
  if (needs_.directory.is_undecided(host)) return nullptr;
  const HostSession* found = nullptr;
  for (const auto& [number, session] : sessions_) {
    if (session->identity().name != host || !counts(*session)) continue;
    if (session->only_relays() && sessions_.contains(drawn_identity(number))) continue; // it has both
    if (found != nullptr) return nullptr;                                               // which is meant?
    found = session.get();
  }
  return found;
}

std::uint32_t HostSessions::number(std::uint64_t identity) const {
  if (const HostSession* session = find(identity)) return session->identity().number;
  const auto last = ended_.find(identity);
  return last == ended_.end() ? 1 : last->second + 1;
}

std::uint64_t HostSessions::next_carrier(const PendingLink& link) const {
  const HostSession* session = find(link.identity());
  const bool goes_on = session != nullptr && session->identity().number >= link.handshake().peer().session;
  return goes_on ? session->carrier() + 1 : 1;
}

// Nothing of what was said holds when this side has ended or begun a session meanwhile.
bool HostSessions::still_true(const PendingLink& link) const {
  return !stopping_ && number(link.identity()) == link.handshake().session();
}

// The numbers that both sides have said decide whether a session goes on or begins.
std::optional<std::uint32_t> HostSessions::adopt(PendingLink& link) {
  const Handshake& said = link.handshake();
  const Peer& peer = said.peer();
  if (!still_true(link)) return std::nullopt;
  Candidates candidates = candidates_of(link);
  for (const std::uint64_t dead : peer.predecessors)
    if (dead != peer.identity && find(dead) != nullptr)
      end(dead, error(ECONNRESET, "gave the kernel of host {} up: another has been started in its place",
                      peer.name));
  const std::uint32_t number = std::max(said.session(), peer.session);
  HostSession* session = look(peer.identity);
  if (session != nullptr && session->identity().number != number) {
    end(peer.identity, error(ECONNRESET, "host {} has given this one up meanwhile", peer.name));
    session = nullptr;
  }
  if (session != nullptr && said.carrier() <= session->carrier()) return std::nullopt;
  const bool goes_on = session != nullptr;
  if (!goes_on) {
    session = &begin(link, number);
    candidates.resolved({}); // what its name meant then may be somebody else's
  }
  carry(*session, link);
  if (goes_on) needs_.engine.attach(session->link());
  session->candidates() = std::move(candidates);
  if (link.role() == Role::Acceptor && peer.port != 0 && !is_guest(link))
    needs_.loop.after_step([this, identity = peer.identity] { call_back(identity); });
  return session->link();
}

bool HostSessions::adopt_subflow(PendingLink& link) {
  const Handshake& said = link.handshake();
  HostSession* const session = look(link.identity());
  const bool same = session != nullptr && session->identity().number == said.peer().session &&
                    said.session() == said.peer().session;
  const auto subflow = same && !stopping_ ? needs_.engine.add_subflow(session->link()) : std::nullopt;
  if (!subflow) return false;
  session->streams().began(make_link(*session, link, *subflow));
  if (link.role() == Role::Initiator) session->streams().dial_ended({});
  return true;
}

// Only for who may write to programs, and where that goes on.
Verdict HostSessions::judge_subflow(const PendingLink& link) const {
  const HostSession* const session = find(link.identity());
  const bool dialed = link.role() == Role::Initiator;
  const std::uint32_t number = dialed ? link.purpose().subflow_of : link.handshake().peer().session;
  if (session == nullptr || session->identity().number != number || session->only_relays() ||
      needs_.keys_are() == KeyUse::relay || (dialed && link.purpose().session != link.identity()))
    return Verdict::NoSession;
  std::size_t all = 0;
  for (const auto& [identity, each] : sessions_) all += each->streams().count();
  return session->streams().count() < StreamCount::most && all < max_streams ? Verdict::Accepted
                                                                             : Verdict::Full;
}

void HostSessions::subflow_failed(const PendingLink& link, const Error& why) {
  HostSession* const session = look(link.purpose().session);
  if (session != nullptr && session->identity().number == link.purpose().subflow_of)
    session->streams().dial_ended(why);
}

void HostSessions::asked_streams(std::int32_t link, unsigned count) {
  const HostSession* const session = at(link);
  if (session != nullptr) look(session->identity().host)->streams().asked(count);
}

PeerLink& HostSessions::make_link(HostSession& session, PendingLink& link, std::uint32_t subflow) {
  std::unique_ptr<Stream> stream = link.take_stream();
  // A connection that is dead without a word is known to be in half of the time after which the session is
  // given up.
  stream->limit_silence(std::chrono::milliseconds(std::chrono::seconds(needs_.config.link_timeout_s)) / 2);
  links_.push_back(std::make_unique<PeerLink>(static_cast<Owner&>(*this), needs_.loop, needs_.engine, session,
                                              std::move(stream), name_of(link.handshake().key()), subflow));
  return *links_.back();
}

void HostSessions::carry(HostSession& session, PendingLink& link) {
  PeerLink* const older = session.connection();
  PeerLink& made = make_link(session, link, 0);
  session.carried(made, link.handshake().carrier(), link.role() == Role::Initiator);
  if (older != nullptr) older->close(error(ESTALE, "another connection has taken its place"));
}

// The engine's link comes with its first carrier attached.
HostSession& HostSessions::begin(const PendingLink& link, std::uint32_t number) {
  const Peer& peer = link.handshake().peer();
  const std::uint32_t index = needs_.engine.add_link({.fragment = peer.fragment_size,
                                                      .self = static_cast<std::uint32_t>(needs_.self),
                                                      .peer = static_cast<std::uint32_t>(peer.identity),
                                                      .kernels_only = link.use() == KeyUse::relay});
  HostSession::Events events{
      .dial = [this,
               identity = peer.identity] { needs_.loop.after_step([this, identity] { redial(identity); }); },
      .improve = [this,
                  identity =
                      peer.identity] { needs_.loop.after_step([this, identity] { improve(identity); }); },
      .give_up =
          [this, identity = peer.identity](Error why) {
            needs_.loop.after_step([this, identity, why = std::move(why)] { end(identity, why); });
          },
      .ping =
          [this, index](std::uint64_t ping) {
            needs_.loop.after_step([this, index, ping] { events_.ping(index, ping); });
          },
      .silent =
          [this, identity = peer.identity](Error why) {
            needs_.loop.after_step([this, identity, why = std::move(why)] { silent(identity, why); });
          }};
  auto made = std::make_unique<HostSession>(
      needs_.loop, HostSession::Identity{peer.identity, number, peer.name}, index,
      std::chrono::seconds(needs_.config.link_timeout_s), needs_.self + index, std::move(events),
      LinkStreams::Needs{
          .loop = needs_.loop,
          .engine = needs_.engine,
          .link = index,
          .fixed = link.use() == KeyUse::relay ? 1 : needs_.config.streams,
          .dial =
              [this, identity = peer.identity, number] {
                needs_.loop.after_step([this, identity, number] { dial_subflow(identity, number); });
              },
          .ask =
              [this, index](unsigned count) {
                needs_.loop.after_step([this, index, count] { events_.ask_streams(index, count); });
              }});
  needs_.loop.after_step([this, index] { events_.link_up(index); });
  spdlog::info("link to host {} ({}) is up{}", peer.name, link.address(),
               link.use() == KeyUse::relay ? ", for relaying only" : "");
  return *sessions_.emplace(peer.identity, std::move(made)).first->second;
}

// Who holds a relay key and has dialed this kernel, which holds more: where it says that it is nobody is
// dialed, or looked up.
bool HostSessions::is_guest(const PendingLink& link) const {
  return link.use() == KeyUse::relay && link.role() == Role::Acceptor && needs_.keys_are() == KeyUse::link;
}

// Where the other kernel is, as this connection shows.
Candidates HostSessions::candidates_of(const PendingLink& link) const {
  const HostSession* known = find(link.identity());
  if (known == nullptr && link.role() == Role::Initiator) known = find(link.purpose().session);
  Candidates made = known != nullptr ? known->candidates() : Candidates{};
  if (is_guest(link)) return made;
  if (!link.purpose().host.empty() && link.purpose().named) made.named(link.purpose().host);
  const Peer& peer = link.handshake().peer();
  std::optional<Address> advertised;
  if (auto told = numeric_address(peer.advertised, peer.port); told && peer.port != 0)
    advertised = std::move(told).value();
  const bool advertised_elsewhere = advertised.has_value();
  made.advertised(std::move(advertised));
  Address at = link.peer_address();
  if (at.relayed()) {
    const Address::RelayTarget by = at.relay_target();
    made.relayed(
        relayed_address(drawn_identity(peer.identity), by.via.empty() ? peer.name : by.name, by.via));
  } else if (link.role() == Role::Initiator) {
    made.answered(at, needs_.loop.now());
  } else if (peer.port != 0) {
    at.set_port(peer.port);
    if (!advertised_elsewhere && at.port() != 0) made.seen(at);
    if (needs_.directory.is_configured(peer.name)) made.named(peer.name);
  }
  return made;
}

// Who is shaking hands at this moment lives, whatever refuses.
void HostSessions::redialed(const PendingLink& link, const Error& why, bool lives) {
  HostSession* const session = look(link.purpose().session);
  if (session == nullptr) return;
  if (lives) session->lives();
  const bool met = link.purpose().met && !lives;
  if (link.identity() != 0 && link.identity() != session->identity().host)
    return session->dial_ended(error(ECONNREFUSED, "another kernel runs at {}", link.address()), met);
  session->dial_ended(why, met && why.code == ECONNREFUSED);
}

void HostSessions::called_back(const PendingLink& link) {
  HostSession* const session = look(link.purpose().session);
  if (session != nullptr && link.identity() == link.purpose().session)
    session->candidates().answered_back(link.peer_address(), needs_.loop.now());
}

void HostSessions::end(std::uint64_t identity, const Error& why) {
  const auto found = sessions_.find(identity);
  if (found == sessions_.end()) return;
  const std::unique_ptr<HostSession> session = std::move(found->second);
  sessions_.erase(found);
  const bool is_new = ended_.insert_or_assign(identity, session->identity().number).second;
  if (is_new && session->only_relays()) ended_relays_.push_back(identity);
  if (ended_relays_.size() > most_ended_relays) { // whoever holds a relay key draws as many as it likes
    ended_.erase(ended_relays_.front());
    ended_relays_.pop_front();
  }
  spdlog::warn("{}", why.text);
  needs_.loop.errors().note(ErrorKind::Link, why.code, why.text);
  session->streams().end();
  if (session->connection() != nullptr) session->connection()->close(why);
  needs_.engine.break_link(session->link());
  needs_.loop.after_step([this, link = session->link()] { events_.link_lost(link); });
}

// Whatever carries it may be what hangs: another one is to.
void HostSessions::silent(std::uint64_t identity, const Error& why) {
  const HostSession* const session = find(identity);
  if (session == nullptr || session->connection() == nullptr) return;
  if (const auto near = session->candidates().tunnel()) needs_.locator.renew(*near);
  session->connection()->close(why);
}

// The session outlives it.
void HostSessions::keys_changed(const std::vector<Credential>& keys) {
  std::vector<KeyName> known;
  for (const Credential& each : keys) known.push_back(name_of(each.key));
  for (std::size_t i = 0; i < links_.size(); ++i) // what ends here may make others
    if (PeerLink* const link = links_[i].get();
        link->open() && std::ranges::find(known, link->key()) == known.end())
      link->close(error(EKEYREVOKED, "the connection to host {} was made with a key that is gone",
                        link->session().identity().name));
}

void HostSessions::pong(std::int32_t link, std::uint64_t number) {
  const HostSession* const session = at(link);
  if (session != nullptr) look(session->identity().host)->pong(number);
}

void HostSessions::said_nonsense(std::uint32_t link, const Error& why) {
  const HostSession* const session = at(static_cast<std::int32_t>(link));
  if (session == nullptr) return; // it has ended meanwhile
  ++refused_;
  end(session->identity().host,
      error(why.code, "closed the connection to host {}: {}", session->identity().name, why.text));
}

// A statement that is refused has changed nothing: the session goes on with another connection. From anything
// else there is no way back.
void HostSessions::broke_rules(PeerLink& link, protocol::Refusal refusal) {
  ++refused_;
  const HostSession& session = link.session();
  const Error why = error(EPROTO, "closed the connection to host {}: {}", session.identity().name,
                          protocol::describe(refusal));
  if (link.subflow() == 0 &&
      needs_.engine.link(session.link()).carrier.stage == protocol::Carrier::Stage::stating)
    link.close(why);
  else
    end(session.identity().host, why);
}

void HostSessions::closed(const PeerLink& link, const Error& why) {
  swept_ = false;
  HostSession& session = link.session();
  const bool over = find(session.identity().host) != &session;
  if (link.subflow() != 0 && !over) return session.streams().closed(link, why);
  if (session.connection() != &link || over) return; // it has another, or has ended
  needs_.engine.detach(session.link());
  session.parted(why, link.last_heard());
}

// By index: what ends or begins here may make others.
std::uint64_t HostSessions::read() {
  std::uint64_t work = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) work += links_[i]->read();
  if (!std::exchange(swept_, true)) std::erase_if(links_, [](const auto& link) { return !link->open(); });
  return work;
}

std::uint64_t HostSessions::write() {
  std::uint64_t work = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) work += links_[i]->write();
  return work;
}

void HostSessions::publish(Counters& counters) {
  counters.set(Counter::Links, sessions_.size());
  for (const auto& [identity, session] : sessions_)
    session->publish(counters, needs_.engine.link(session->link()));
}

} // namespace parc::daemon
