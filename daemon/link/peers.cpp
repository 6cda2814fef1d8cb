// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/peers.hpp"

#include "daemon/link/interfaces.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <set>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t max_strangers = 64;
constexpr std::size_t most_asked = 16;  // whether they relay
constexpr std::size_t most_guests = 64; // that have proved no more than a relay key
// A stranger's time when others wait for its place. A handshake takes two round trips.
constexpr auto time_of_stranger = 500ms;

// Why a stranger was refused, without a word of his.
const char* in_short(int code) {
  switch (code) {
  case EKEYREJECTED: return "it does not hold the key of this host; both need the same key file";
  case EPROTONOSUPPORT: return "it is a parcd of another version";
  case EPROTOTYPE: return "one of the two encrypts its links, the other does not";
  case EPROTO: return "it does not speak as a parcd does";
  case ECONNRESET: return "it ended before it said who it is";
  default: return std::strerror(code);
  }
}

Error only_relaying(const Keys& keys, const std::string& host) {
  if (keys.use == KeyUse::relay)
    return error(EACCES, "cannot reach {}: this host's kernel holds a relay key, and only relays", host);
  return error(EACCES, "host {} only relays, as [hosts] says (relay = true)", host);
}

// Projections.
const PendingLink& as_link(const std::unique_ptr<PendingLink>& link) {
  return *link;
}

} // namespace

Peers::Peers(Loop& loop, protocol::Engine& engine, StreamMaker& streams, const Config& config,
             const Keys& keys, LocalHost self, HostSessions::Events events, Tunnels* tunnels)
    : loop_(loop), streams_(streams), config_(config), keys_(keys),
      credentials_(credentials(keys, config.encryption != "none")), self_(std::move(self)),
      locator_(loop, tunnels), directory_(config), sessions_({.loop = loop,
                                                              .engine = engine,
                                                              .config = config,
                                                              .locator = locator_,
                                                              .directory = directory_,
                                                              .self = self_.identity,
                                                              .dial = dialing(),
                                                              .keys_are = [this] { return keys_.use; }},
                                                             std::move(events)),
      dialer_({.loop = loop,
               .locator = locator_,
               .config = config,
               .directory = directory_,
               .sessions = sessions_,
               .dial = dialing(),
               .answered = [this](std::uint64_t attempt) { return is_answered(attempt); },
               .drop = [this](std::uint64_t attempt) { drop(attempt); }}),
      refused_(loop, "connections refused"), dropped_(loop, "connections dropped") {
  streams_.accept_for({.room = [this] { return room(); },
                       .accepted = [this](std::unique_ptr<Stream> stream) { accept(std::move(stream)); },
                       .turned_away = [this](const Error& why) { turned_away(why); }});
}

// Whose user the system has told: nothing of that is the stranger's own.
void Peers::turned_away(const Error& who) {
  const Error why = error(who.code, "refused a connection through the link socket: {}", who.text);
  ++strangers_refused_;
  refused_.say_of_stranger(why.text, why);
}

bool Peers::is_answered(std::uint64_t attempt) const {
  return std::ranges::any_of(pending_, [attempt](const auto& link) {
    return link->purpose().attempt == attempt && link->stage() == PendingLink::Stage::shaking;
  });
}

// By index: what ends here may begin others.
// Not those whose handshake is with a kernel that has a connection already: the other side may have chosen
// this one of two, and else both sides hear that it is not needed.
void Peers::drop(std::uint64_t attempt) {
  for (std::size_t i = 0; i < pending_.size(); ++i)
    if (PendingLink& link = *pending_[i]; link.purpose().attempt == attempt &&
                                          link.stage() < PendingLink::Stage::lingering &&
                                          !link.accepted_by_us() && !sessions_.carried(link.identity()))
      link.drop(error(ECANCELED, "another address of that host has answered"));
}

Dial Peers::dialing() {
  return [this](const Address& to, PendingLink::Purpose why) { return dial(to, std::move(why)); };
}

void Peers::listen(ListensAt at, const Predecessors& predecessors) {
  listens_ = std::move(at);
  self_.port = listens_.port;
  self_.predecessors = predecessors;
  if (!listens_.advertised.empty()) self_.advertised = listens_.advertised.front();
}

LocalHost Peers::self_at(const Address& at) const {
  LocalHost self = self_;
  if (!at.is_ip()) {
    // Nobody there sees where this host is: it says so itself, for others who may reach it.
    std::vector<std::string> hosts = listens_.advertised;
    if (hosts.empty()) hosts = reachable_at(listens_.hosts, in_use());
    std::erase_if(hosts, is_loopback);
    if (hosts.empty())
      self.port = 0;
    else
      self.advertised = hosts.front();
    return self;
  }
  if (!self.advertised.empty() && !std::ranges::all_of(listens_.hosts, is_loopback)) return self;
  const char* const any = at.family() == AF_INET ? "0.0.0.0" : "::";
  const auto heard = [&](const std::string& host) { return host == any || host == at.host(); };
  if (std::ranges::none_of(listens_.hosts, heard)) self.port = 0;
  return self;
}

bool Peers::room() {
  const auto strangers = std::ranges::count_if(pending_, &PendingLink::is_stranger, as_link);
  if (static_cast<std::size_t>(strangers) < max_strangers) return true;
  const auto oldest = std::ranges::find_if(pending_, &PendingLink::is_stranger, as_link);
  if (loop_.now() - (*oldest)->born() < time_of_stranger) return false;
  (*oldest)->drop(error(ETIMEDOUT, "it did not prove the key in time, and others wait"));
  return true;
}

PendingLink::Shared Peers::shared() {
  return {
      .owner = *this, .loop = loop_, .keys = credentials_, .handshake_s = double(config_.connect_timeout_s)};
}

void Peers::accept(std::unique_ptr<Stream> stream) {
  LocalHost self = self_at(stream->local());
  pending_.push_back(std::make_unique<PendingLink>(shared(), std::move(self), std::move(stream)));
}

Result<void> Peers::dial(const Address& address, PendingLink::Purpose purpose) {
  if (keys_.use == KeyUse::relay) purpose.use = KeyUse::relay; // it has no other
  PARC_TRY(stream, streams_.dial(address, purpose.use));
  LocalHost self = self_at(stream->local());
  pending_.push_back(
      std::make_unique<PendingLink>(shared(), std::move(self), std::move(purpose), std::move(stream)));
  return success();
}

std::uint64_t Peers::read() {
  std::uint64_t work = 0;
  // By index: what ends or begins here may make others.
  for (std::size_t i = 0; i < pending_.size(); ++i) work += pending_[i]->advance();
  work += sessions_.read();
  if (!std::exchange(swept_, true))
    std::erase_if(pending_, [](const auto& link) { return link->stage() == PendingLink::Stage::over; });
  return work;
}

void Peers::publish(Counters& counters) {
  counters.set(Counter::LinksRefused, strangers_refused_ + sessions_.refused());
  sessions_.publish(counters);
}

void Peers::use(const Keys& keys) {
  keys_ = keys;
  credentials_ = credentials(keys, config_.encryption != "none");
  sessions_.keys_changed(credentials_);
}

bool Peers::holds(const Key& key) const {
  return std::ranges::find(credentials_, key, &Credential::key) != credentials_.end();
}

KeyUse Peers::use_for(const std::string& host) const {
  return directory_.address_of(host).only_relays ? KeyUse::relay : keys_.use;
}

// ---- Who is asked for

void Peers::connect(const std::string& host, Connected connected, Dialer::Wish wish) {
  if (directory_.is_this_host(host)) return dialer_.answer(std::move(connected), this_host);
  wish.use = use_for(host);
  if (wish.use == KeyUse::relay && !wish.to_relay)
    return dialer_.answer(std::move(connected), only_relaying(keys_, host));
  if (const HostSession* const session = sessions_.named(host, wish.use))
    return dialer_.answer(std::move(connected), static_cast<std::int32_t>(session->link()));
  dialer_.reach(host, wish.to_relay ? std::move(connected) : whole(host, std::move(connected)), wish);
}

// What was dialed may prove less than was wanted, where the settings have changed meanwhile.
Peers::Connected Peers::whole(const std::string& host, Connected connected) {
  return [this, host, connected = std::move(connected)](Result<std::int32_t> link) {
    connected(link && only_relays(link.value()) ? only_relaying(keys_, host) : std::move(link));
  };
}

// The other kernel may see it elsewhere than it is for us, and what is relayed is the last of all.
void Peers::connect(const std::string& host, const std::string& address, Connected connected) {
  const auto known = parse_endpoint_address(address);
  if (!known) return connect(host, std::move(connected));
  const Dialer::Wish by_name{.identity = known.value().identity};
  if (directory_.is_configured(host)) return connect(host, std::move(connected), by_name);
  const auto try_name = [this, host, by_name, connected = std::move(connected)](Result<std::int32_t> link) {
    if (link) return connected(std::move(link));
    connect(host, connected, by_name);
  };
  reach(known.value(), try_name, false);
}

void Peers::connect(const EndpointAddress& address, Connected connected) {
  reach(address, std::move(connected), true);
}

void Peers::reach(const EndpointAddress& address, Connected connected, bool relayed) {
  if (const auto link = link_to(address.identity)) return dialer_.answer(std::move(connected), *link);
  if (keys_.use == KeyUse::relay)
    return dialer_.answer(std::move(connected), only_relaying(keys_, in_words(address)));
  const auto host = directory_.configured_as(address.name);
  if (!host) return dialer_.reach(address, whole(in_words(address), std::move(connected)), relayed);
  if (use_for(*host) == KeyUse::relay)
    return dialer_.answer(std::move(connected), only_relaying(keys_, *host));
  const auto check = [this, address, connected = std::move(connected)](Result<std::int32_t> link) {
    const HostSession* const found = sessions_.find(address.identity);
    if (!link || (found != nullptr && link.value() == static_cast<std::int32_t>(found->link())))
      return connected(std::move(link));
    connected(error(ESTALE, "there is another kernel now in place of {}", in_words(address)));
  };
  dialer_.reach(*host, whole(*host, check), {.relayed = relayed, .identity = address.identity});
}

std::optional<std::int32_t> Peers::link_to(std::uint64_t identity) const {
  if (identity == self_.identity) return this_host;
  const HostSession* const session = sessions_.find(drawn_identity(identity)); // who has proved more
  if (session == nullptr) return std::nullopt;
  return static_cast<std::int32_t>(session->link());
}

bool Peers::only_relays(std::int32_t link) const {
  const HostSession* const session = sessions_.at(link);
  return session != nullptr && session->only_relays();
}

// Whoever holds more than a relay key; between two that do not, either.
bool Peers::may_ask(std::int32_t link) const {
  return keys_.use == KeyUse::relay || !only_relays(link);
}

// ---- What is told of kernels

// This side's ends of the connections that are up.
std::vector<std::string> Peers::in_use() const {
  std::vector<std::string> hosts;
  for (const auto& [identity, session] : sessions_.all())
    if (const PeerLink* const connection = session->connection())
      if (std::string host = connection->local_host(); std::ranges::find(hosts, host) == hosts.end())
        hosts.push_back(std::move(host));
  return hosts;
}

EndpointAddress Peers::describe(const protocol::Address& address) const {
  if (address.place == protocol::here)
    return {.identity = self_.identity,
            .number = address.number,
            .name = name_tag(config_.name),
            .port = self_.port,
            .hosts =
                listens_.advertised.empty() ? reachable_at(listens_.hosts, in_use()) : listens_.advertised};
  const HostSession* const session = sessions_.at(address.place);
  if (session == nullptr) return {};
  EndpointAddress made{.identity = session->identity().host,
                       .number = address.number,
                       .name = name_tag(session->identity().name),
                       .port = 0,
                       .hosts = {}};
  if (const auto at = session->candidates().for_others(); at && at->is_ip()) {
    made.port = at->port();
    made.hosts.push_back(at->host());
  }
  return made;
}

std::vector<std::array<std::string, 2>> Peers::prefixes() const {
  std::vector<std::array<std::string, 2>> all;
  for (const auto& [name, place] : config_.places)
    if (!place.prefix.empty()) all.push_back({name, place.prefix});
  return all;
}

std::vector<std::string> Peers::relays() const {
  std::vector<std::string> names;
  for (const auto& [name, host] : config_.hosts)
    if (host.only_relays) names.push_back(name);
  return names;
}

HostPlace Peers::place_of(const std::string& host) const {
  const auto found = config_.places.find(host.empty() ? config_.name : host);
  return found == config_.places.end() ? HostPlace() : found->second;
}

std::vector<std::string> Peers::known() const {
  const std::vector<std::string> told = directory_.names();
  std::set<std::string> names(told.begin(), told.end());
  for (const auto& [identity, session] : sessions_.all())
    if (!session->only_relays()) names.insert(session->identity().name);
  return {names.begin(), names.end()};
}

std::string Peers::name_of(std::int32_t link) const {
  const HostSession* const session = sessions_.at(link);
  return session != nullptr ? session->identity().name : link == this_host ? config_.name : std::string();
}

std::uint32_t Peers::rtt_us(std::int32_t link) const {
  const HostSession* const session = sessions_.at(link);
  return session != nullptr ? session->lowest_rtt_us() : 0;
}

const PeerLink* Peers::connection_of(std::int32_t link) const {
  const HostSession* const session = sessions_.at(link);
  return session != nullptr ? session->connection() : nullptr;
}

std::string Peers::way_of(std::int32_t link) const {
  const PeerLink* const connection = connection_of(link);
  return connection != nullptr ? std::string(name(connection->way())) : std::string();
}

bool Peers::encrypted(std::int32_t link) const {
  const PeerLink* const connection = connection_of(link);
  return connection != nullptr && connection->encrypted();
}

unsigned Peers::streams_of(std::int32_t link) const {
  const HostSession* const session = sessions_.at(link);
  return session != nullptr && session->connection() != nullptr ? session->streams().count() : 0;
}

std::optional<std::int32_t> Peers::near_link(std::uint64_t identity, const std::string& name) const {
  const KeyUse use = name.empty() ? keys_.use : use_for(name);
  const HostSession* session = sessions_.find(identity);
  if (session == nullptr && use == KeyUse::relay) session = sessions_.find(identity | proved_as_relay);
  if (session == nullptr && !name.empty()) session = sessions_.named(name, use); // started again meanwhile
  if (session == nullptr && !name.empty()) session = sessions_.expected(name, use);
  if (session == nullptr || !session->is_near() || !serves(session->use(), use)) return std::nullopt;
  return static_cast<std::int32_t>(session->link());
}

bool Peers::is_near(std::int32_t link) const {
  const HostSession* const session = sessions_.at(link);
  return session != nullptr && session->is_near();
}

std::vector<std::int32_t> Peers::near_links() const {
  std::vector<const HostSession*> near;
  for (const auto& [identity, session] : sessions_.all())
    if (session->is_near() && serves(session->use(), keys_.use)) near.push_back(session.get());
  const auto distance = [](const HostSession* each) {
    const bool is_up = each->connection() != nullptr && !each->doubted();
    return std::pair(!is_up, each->lowest_rtt_us() - 1); // not known: far
  };
  std::ranges::sort(near, {}, distance);
  if (near.size() > most_asked) near.resize(most_asked);
  std::vector<std::int32_t> links;
  for (const HostSession* session : near) links.push_back(static_cast<std::int32_t>(session->link()));
  return links;
}

std::uint64_t Peers::identity_of(std::int32_t link) const {
  const HostSession* const session = sessions_.at(link);
  return session != nullptr ? session->identity().host : 0;
}

std::string Peers::way_to(const std::string& host) const {
  const HostSession* const session = sessions_.named(host, KeyUse::relay);
  return session == nullptr ? std::string() : way_of(static_cast<std::int32_t>(session->link()));
}

void Peers::learn(std::int32_t from, const std::vector<NamedKernel>& others) {
  const auto note = [this](const std::string& host, const EndpointAddress& told) {
    if (directory_.is_this_host(host) || directory_.is_configured(host)) return;
    if (!directory_.address_of(host).ssh.host.empty()) return; // nobody else knows of a way through ssh
    const HostSession* const session = sessions_.find(drawn_identity(told.identity));
    const EndpointAddress at =
        session != nullptr && session->candidates().known()
            ? describe({static_cast<std::int32_t>(session->link()), protocol::kernel_endpoint})
            : told;
    if (told.identity == self_.identity || at.port == 0 || at.hosts.empty()) return;
    if (directory_.learn(host, HostAddress{at.hosts.front(), at.port}))
      directory_.answered(host, told.identity);
  };
  for (const NamedKernel& other : others) note(other.name, other.address);
  if (const HostSession* const session = sessions_.at(from))
    note(session->identity().name, describe({from, protocol::kernel_endpoint}));
}

std::vector<Peers::NamedKernel> Peers::linked() const {
  auto names = directory_.learned_names();
  std::vector<NamedKernel> all;
  for (const auto& [identity, session] : sessions_.all()) {
    if (session->connection() == nullptr || session->only_relays()) continue;
    const auto link = static_cast<std::int32_t>(session->link());
    auto& called = names[identity];
    if (called.empty()) called.push_back(session->identity().name);
    for (std::string& name : called)
      all.push_back({std::move(name), link, describe({link, protocol::kernel_endpoint})});
  }
  return all;
}

// ---- From connections that are being made

Verdict Peers::judge(const PendingLink& link) {
  const std::uint64_t self = self_.identity;
  const std::uint64_t peer = link.identity();
  if (drawn_identity(peer) == self) return Verdict::Itself;
  if (sessions_.stopping()) return Verdict::Leaving;
  if (link.is_subflow()) return sessions_.judge_subflow(link);
  // Who dials knows whether it needs the connection.
  const bool is_another =
      link.role() == Role::Initiator && link.purpose().improves && peer != link.purpose().session;
  if (is_another) return Verdict::Duplicate; // at an address that two sites have
  const HostSession* const session = sessions_.find(peer);
  const bool carried = session != nullptr && session->connection() != nullptr && !session->doubted() &&
                       !(link.purpose().improves && session->is_makeshift());
  if (link.role() == Role::Initiator && (carried || link.purpose().calls_back)) return Verdict::Duplicate;
  for (const auto& other : pending_) {
    if (other.get() == &link || other->identity() != peer || other->is_subflow()) continue;
    if (other->role() == link.role()) continue; // the same side dialed both: it knows why
    const bool under_way = other->stage() == PendingLink::Stage::shaking && other->accepted_by_us();
    const bool begun_by_smaller = (other->role() == Role::Initiator) == (self < drawn_identity(peer));
    if (under_way && begun_by_smaller) return Verdict::Duplicate;
  }
  const bool too_many = (session == nullptr && sessions_.full()) || !has_room_for(link, session != nullptr);
  return too_many ? Verdict::Full : Verdict::Accepted;
}

// Who has no more than a relay key draws as many identities as it likes, and leaves handshakes half done.
bool Peers::has_room_for(const PendingLink& link, bool known) const {
  if (!sessions_.is_guest(link)) return true;
  std::size_t guests = known ? 0 : sessions_.relaying();
  for (const auto& other : pending_)
    if (sessions_.is_guest(*other) && other->accepted_by_us() &&
        other->stage() == PendingLink::Stage::shaking)
      ++guests;
  return guests < most_guests;
}

bool Peers::adopt(PendingLink& link) {
  if (!still_true(link)) return false; // its key may have gone meanwhile
  if (link.is_subflow()) {
    swept_ = false;
    streams_.resume();
    return sessions_.adopt_subflow(link);
  }
  const auto index = sessions_.adopt(link);
  if (!index) return false;
  swept_ = false;
  streams_.resume();
  if (link.purpose().is_needed()) redialed(link, {});
  dialer_.established(link, static_cast<std::int32_t>(*index));
  return true;
}

void Peers::refused(const PendingLink& link) {
  const Error why = Error(link.handshake().failure()).in(link.address());
  if (link.role() == Role::Acceptor) {
    if (link.handshake().verdict() != Verdict::Accepted) return;
    ++strangers_refused_;
    return refused_.say_of_stranger(
        fmt::format("refused a connection from {}", why.text),
        error(why.code, "refused a connection from {}: {}", link.peer_address().host(), in_short(why.code)));
  }
  if (link.purpose().calls_back) return sessions_.called_back(link);
  if (link.purpose().improves) return;
  if (link.purpose().subflow_of != 0) return sessions_.subflow_failed(link, why);
  if (link.purpose().session != 0) return redialed(link, why);
  dialer_.refused(link, why);
}

// What was refused has been said, and acted on, when it was.
void Peers::failed(const PendingLink& link, bool was_refused, const Error& why) {
  swept_ = false;
  streams_.resume();
  if (!was_refused) {
    if (link.role() == Role::Acceptor)
      dropped_.say_of_stranger(fmt::format("dropped a connection from {}: {}", link.address(), why.text),
                               error(why.code, "dropped a connection: {}", in_short(why.code)));
    else if (link.purpose().subflow_of != 0)
      sessions_.subflow_failed(link, why);
    else if (link.purpose().is_needed())
      redialed(link, why);
    else
      dialer_.failed(link, why);
  }
  if (link.identity() != 0 && !has_hope_of(link.identity())) dialer_.ended(link.identity(), why);
}

// Who is shaking hands at this moment lives, whatever refuses.
void Peers::redialed(const PendingLink& link, const Error& why) {
  sessions_.redialed(link, why, shakes_hands_elsewhere(link.purpose().session));
}

bool Peers::shakes_hands_elsewhere(std::uint64_t identity) const {
  return std::ranges::any_of(pending_, [&](const auto& other) {
    return other->role() == Role::Acceptor && other->stage() == PendingLink::Stage::shaking &&
           other->identity() == identity;
  });
}

bool Peers::has_hope_of(std::uint64_t identity) const {
  return sessions_.carried(identity) || std::ranges::any_of(pending_, [&](const auto& other) {
           return other->stage() != PendingLink::Stage::over && other->identity() == identity &&
                  !other->is_subflow();
         });
}

} // namespace parc::daemon
