// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/peers.hpp"

#include "daemon/link/interfaces.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t max_strangers = 64;
// A stranger's time when others wait for its place. A handshake takes two round trips.
constexpr auto time_of_stranger = 500ms;
constexpr double first_round_pause_s = 0.02, longest_round_pause_s = 0.5; // between two rounds of an attempt

// Why a stranger was refused, without a word of his.
const char* in_short(int code) {
  switch (code) {
  case EKEYREJECTED: return "it does not hold the key of this host; both need the same key file";
  case EPROTONOSUPPORT: return "it is a parcd of another version";
  case EPROTO: return "it does not speak as a parcd does";
  case ECONNRESET: return "it ended before it said who it is";
  default: return std::strerror(code);
  }
}

// Projections.
const PendingLink& as_link(const std::unique_ptr<PendingLink>& link) {
  return *link;
}

} // namespace

Peers::Peers(Loop& loop, protocol::Engine& engine, StreamMaker& streams, const Config& config, const Key& key,
             LocalHost self, Hooks hooks)
    : loop_(loop), engine_(engine), config_(config), key_(key), self_(std::move(self)),
      hooks_(std::move(hooks)), resolver_(loop), streams_(streams), refused_(loop, "connections refused"),
      dropped_(loop, "connections dropped") {
  streams_.accept_for({.room = [this] { return room(); },
                       .accepted = [this](std::unique_ptr<Stream> stream) { accept(std::move(stream)); }});
}
Peers::~Peers() = default;

void Peers::listen(ListensAt at, std::uint64_t predecessor) {
  listens_ = std::move(at);
  self_.port = listens_.port;
  self_.predecessor = predecessor;
  if (!listens_.advertised.empty()) self_.advertised = listens_.advertised.front();
}

void Peers::stop() {
  stopping_ = true;
}

LocalHost Peers::self_at(const Address& at) const {
  LocalHost self = self_;
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

void Peers::accept(std::unique_ptr<Stream> stream) {
  pending_.push_back(
      std::make_unique<PendingLink>(*this, loop_, key_, std::move(stream), config_.connect_timeout_s));
}

HostSession* Peers::find(std::uint64_t identity) const {
  const auto found = sessions_.find(identity);
  return found == sessions_.end() ? nullptr : found->second.get();
}

std::optional<std::int32_t> Peers::link_to(std::uint64_t identity) const {
  if (identity == self_.identity) return this_host;
  const HostSession* const session = find(identity);
  if (session == nullptr) return std::nullopt;
  return static_cast<std::int32_t>(session->link());
}

void Peers::connect(const EndpointAddress& address, Connected connected) {
  if (const auto link = link_to(address.identity))
    return loop_.after_step([link = *link, connected = std::move(connected)] { connected(link); });
  const auto named =
      std::ranges::find(config_.hosts, address.name, [](const auto& host) { return name_tag(host.first); });
  if (named == config_.hosts.end()) return attempt(address, std::move(connected));
  const auto check = [this, address, connected = std::move(connected)](Result<std::int32_t> link) {
    const HostSession* const found = find(address.identity);
    if (!link || (found != nullptr && link.value() == static_cast<std::int32_t>(found->link())))
      return connected(std::move(link));
    connected(error(ESTALE, "there is another kernel now in place of {}", in_words(address)));
  };
  attempt(named->first, check, false);
}

void Peers::connect(const std::string& host, Connected connected, bool in_haste) {
  if (host == config_.name || means_this_host(host)) return answer(std::move(connected), this_host);
  if (const HostSession* const session = session_named(host))
    return answer(std::move(connected), static_cast<std::int32_t>(session->link()));
  attempt(host, std::move(connected), in_haste);
}

void Peers::connect(const std::string& host, const std::string& address, Connected connected) {
  const auto known = parse_endpoint_address(address);
  if (!known || config_.hosts.contains(host)) return connect(host, std::move(connected));
  connect(known.value(), [this, host, connected = std::move(connected)](Result<std::int32_t> link) {
    if (link) return connected(std::move(link));
    connect(host, connected); // the other kernel may see it elsewhere than it is for us
  });
}

// None: somebody waits for it already.
Peers::Attempt* Peers::begin_attempt(const std::string& host, Connected connected,
                                     std::optional<Loop::Time> end) {
  auto [place, fresh] = attempts_.try_emplace(host);
  Attempt& made = place->second;
  made.waiting.push_back({std::move(connected), end});
  if (!fresh) return nullptr;
  made.host = host;
  return &made;
}

void Peers::attempt(const std::string& host, Connected connected, bool in_haste) {
  const auto end = in_haste ? std::nullopt : std::optional(end_of_patience());
  if (begin_attempt(host, std::move(connected), end) == nullptr) return;
  const HostAddress where = address_of(host);
  resolver_.resolve(
      where.address, where.port, std::chrono::seconds(config_.connect_timeout_s),
      [this, host](Result<std::vector<Address>> addresses) { resolved(host, std::move(addresses)); });
}

// Nobody has to know its name.
void Peers::attempt(const EndpointAddress& address, Connected connected) {
  Attempt* const made = begin_attempt(in_words(address), std::move(connected), end_of_patience());
  if (made == nullptr) return;
  made->wanted = address.identity;
  std::vector<Address> places;
  for (const std::string& host : address.hosts)
    if (const auto place = numeric_address(host, address.port); place && address.port != 0)
      places.push_back(place.value());
  if (places.empty()) return finish(made->host, error(EHOSTUNREACH, "cannot reach {}", made->host));
  resolved(made->host, std::move(places));
}

void Peers::resolved(const std::string& host, Result<std::vector<Address>> addresses) {
  const auto found = attempts_.find(host);
  if (found == attempts_.end()) return;
  if (!addresses)
    return finish(host, std::move(addresses).error().in(fmt::format("cannot reach host {}", host)));
  Attempt& attempt = found->second;
  attempt.addresses = std::move(addresses).value();
  for (Attempt::Waiting& each : attempt.waiting)
    if (each.end) each.end = end_of_patience();
  attempt.pause_s = first_round_pause_s;
  attempt.again.emplace(loop_, [this, host] {
    loop_.after_step([this, host] { // the attempt may end, and this timer with it
      const auto waiting = attempts_.find(host);
      if (waiting != attempts_.end() && waiting->second.waits) begin_round(waiting->second);
    });
  });
  begin_round(attempt);
}

void Peers::begin_round(Attempt& attempt) {
  attempt.waits = false;
  attempt.next = 0;
  attempt.may_change = false;
  try_next(attempt);
}

void Peers::try_next(Attempt& attempt) {
  while (attempt.next < attempt.addresses.size()) {
    const Address address = attempt.addresses[attempt.next++];
    const Result<void> dialed = dial(address, {.host = attempt.host,
                                               .named = attempt.wanted == 0,
                                               .patience_s = double(config_.connect_timeout_s)});
    if (dialed) return;
    note(attempt, dialed.error());
  }
  const auto pause =
      std::chrono::duration_cast<Loop::Clock::duration>(std::chrono::duration<double>(attempt.pause_s));
  const Error why = error(attempt.may_change ? ECONNREFUSED : EHOSTUNREACH, "cannot reach host {}: {}",
                          attempt.host, attempt.why);
  const auto given_up = std::ranges::stable_partition(attempt.waiting, [&](const Attempt::Waiting& each) {
    return attempt.may_change && each.end && loop_.now() + pause < *each.end;
  });
  if (!given_up.empty()) spdlog::warn("{}", why.text);
  for (Attempt::Waiting& each : given_up) answer(std::move(each.connected), why);
  attempt.waiting.erase(given_up.begin(), given_up.end());
  if (attempt.waiting.empty()) {
    attempts_.erase(std::string(attempt.host));
    return;
  }
  attempt.waits = true;
  attempt.again->set(attempt.pause_s);
  attempt.pause_s = std::min(2 * attempt.pause_s, longest_round_pause_s);
}

Result<void> Peers::dial(const Address& address, PendingLink::Purpose purpose) {
  PARC_TRY(stream, streams_.dial(address));
  pending_.push_back(std::make_unique<PendingLink>(*this, loop_, key_, std::move(purpose), std::move(stream),
                                                   config_.connect_timeout_s));
  return success();
}

// Whoever waited hears it at the step's end: an actor may be in the middle of something.
void Peers::answer(Connected connected, const Result<std::int32_t>& result) {
  loop_.after_step([connected = std::move(connected), result] { connected(result); });
}

void Peers::finish(const std::string& host, const Result<std::int32_t>& result) {
  const auto found = attempts_.find(host);
  if (found == attempts_.end()) return;
  for (Attempt::Waiting& each : found->second.waiting) answer(std::move(each.connected), result);
  attempts_.erase(found);
}

Loop::Time Peers::end_of_patience() const {
  return loop_.now() + std::chrono::seconds(config_.connect_timeout_s);
}

// What may be over soon is tried again: nobody listened yet, or the other side hung up.
void Peers::note(Attempt& attempt, const Error& why) {
  attempt.why = why.text;
  attempt.may_change |= why.code == ECONNREFUSED || why.code == ECONNRESET || why.code == ECONNABORTED;
}

void Peers::fail(Attempt& attempt, const Error& why) {
  if (attempt.waits) return;
  note(attempt, why);
  try_next(attempt);
}

void Peers::established(const PendingLink& link, std::uint32_t at) {
  streams_.resume();
  const auto index = static_cast<std::int32_t>(at);
  if (link.purpose().session != 0 && !link.purpose().calls_back) redialed(link, {});
  if (!link.purpose().host.empty()) reached(link, at);
  std::vector<std::string> waiting;
  for (const auto& [host, attempt] : attempts_)
    if (attempt.identity == link.identity() || attempt.wanted == link.identity()) waiting.push_back(host);
  for (const std::string& host : waiting) {
    if (attempts_.at(host).wanted == 0) identities_[host] = link.identity();
    finish(host, index);
  }
}

// What an attempt has dialed answers.
void Peers::reached(const PendingLink& link, std::uint32_t index) {
  const std::string& host = link.purpose().host;
  const auto found = attempts_.find(host);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  if (attempt.wanted == 0) identities_[host] = link.identity();
  if (attempt.wanted != 0 && attempt.wanted != link.identity())
    return fail(attempt, error(ESTALE, "another kernel answers at {}", link.address()));
  finish(host, static_cast<std::int32_t>(index));
}

void Peers::refused(const PendingLink& link) {
  const Verdict verdict = link.handshake().verdict();
  const Error why = Error(link.handshake().failure()).in(link.address());
  if (link.role() == Role::Acceptor) {
    if (verdict != Verdict::Accepted) return;
    ++links_refused_;
    return refused_.say_of_stranger(
        fmt::format("refused a connection from {}", why.text),
        error(why.code, "refused a connection from {}: {}", link.peer_address().host(), in_short(why.code)));
  }
  if (link.purpose().calls_back) return called_back(link);
  if (link.purpose().session != 0) return redialed(link, why);
  const auto found = attempts_.find(link.purpose().host);
  if (found == attempts_.end()) return;
  const std::uint64_t wanted = found->second.wanted;
  if (wanted != 0 && wanted != link.identity() && link.identity() != 0) {
    fail(found->second, error(ESTALE, "another kernel answers at {}", link.address()));
  } else if (verdict == Verdict::Itself) {
    finish(found->first, this_host);
  } else if (verdict == Verdict::Duplicate) {
    found->second.identity = link.identity();
    (void)finish_with_session(link);
  } else {
    fail(found->second, why);
  }
}

// Another connection to the same kernel is up.
bool Peers::finish_with_session(const PendingLink& link) {
  const HostSession* const session = find(link.identity());
  if (session == nullptr || session->connection() == nullptr) return false;
  const auto waiting = attempts_.find(link.purpose().host);
  if (waiting != attempts_.end() && waiting->second.wanted != 0) return false; // established() would have
  identities_[link.purpose().host] = link.identity();
  finish(link.purpose().host, static_cast<std::int32_t>(session->link()));
  return true;
}

void Peers::failed(const PendingLink& link, bool was_refused, const Error& why) {
  swept_ = false;
  streams_.resume();
  // What was refused has been said, and acted on, when it was.
  if (!was_refused) {
    const auto found = attempts_.find(link.purpose().host);
    if (link.role() == Role::Acceptor)
      dropped_.say_of_stranger(fmt::format("dropped a connection from {}: {}", link.address(), why.text),
                               error(why.code, "dropped a connection: {}", in_short(why.code)));
    else if (link.purpose().session != 0 && !link.purpose().calls_back)
      redialed(link, why);
    else if (found != attempts_.end() && !finish_with_session(link))
      fail(found->second, why);
  }
  fail_waiting_for(link.identity(), why);
}

void Peers::closed(const PeerLink& link, const Error& why) {
  swept_ = false;
  HostSession& session = link.session();
  if (session.connection() != &link || find(session.identity().host) != &session)
    return; // it has another, or has ended
  engine_.detach(session.link());
  session.parted(why, link.last_heard());
}

// Attempts whose own connection was a duplicate wait for the other one: where that died before it was up,
// they need a new one.
void Peers::fail_waiting_for(std::uint64_t identity, const Error& why) {
  const HostSession* const session = find(identity);
  const bool carried = session != nullptr && session->connection() != nullptr;
  const bool hope = carried || std::ranges::any_of(pending_, [&](const auto& other) {
                      return other->stage() != PendingLink::Stage::over && other->identity() == identity;
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
  // By index: what ends or begins here may make others.
  for (std::size_t i = 0; i < pending_.size(); ++i) work += pending_[i]->advance();
  for (std::size_t i = 0; i < links_.size(); ++i) work += links_[i]->read();
  if (!swept_) {
    swept_ = true;
    std::erase_if(pending_, [](const auto& link) { return link->stage() == PendingLink::Stage::over; });
    std::erase_if(links_, [](const auto& link) { return !link->open(); });
  }
  return work;
}

std::uint64_t Peers::write() {
  std::uint64_t work = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) work += links_[i]->write();
  return work;
}

void Peers::publish(Counters& counters) {
  counters.set(Counter::LinksRefused, links_refused_);
  counters.set(Counter::Links, sessions_.size());
  for (const auto& [identity, session] : sessions_) session->publish(counters, engine_.link(session->link()));
}

} // namespace parc::daemon
