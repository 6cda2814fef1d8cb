// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/dialer.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <iterator>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

using namespace std::chrono_literals;
constexpr auto time_without_relay = 1s; // of rounds, where another one may help
constexpr double connections_via = 3;   // to the relay, from there on, and the one that is relayed
constexpr double stagger_s = 0.25;      // as RFC 8305 has it
constexpr double first_round_pause_s = 0.02, longest_round_pause_s = 0.5; // between two rounds of an attempt

// Those that leave, in their order; the others stay.
template <class Waiting, class Leaves>
std::vector<Waiting> take_out(std::vector<Waiting>& of, const Leaves& leaves) {
  const auto first = std::stable_partition(of.begin(), of.end(), std::not_fn(leaves));
  std::vector<Waiting> taken(std::make_move_iterator(first), std::make_move_iterator(of.end()));
  of.erase(first, of.end());
  return taken;
}

} // namespace

Dialer::Attempt* Dialer::find(const std::string& host) {
  const auto found = attempts_.find(host);
  return found == attempts_.end() ? nullptr : &found->second;
}

// None: nobody waits for it any more, or somebody does again.
Dialer::Attempt* Dialer::find(const PendingLink& link) {
  Attempt* const found = find(link.purpose().host);
  return found != nullptr && found->number == link.purpose().attempt ? found : nullptr;
}

// None: somebody waits for it already.
Dialer::Attempt* Dialer::begin(const std::string& host, Attempt::Waiting waiting) {
  auto [place, fresh] = attempts_.try_emplace(host);
  Attempt& made = place->second;
  made.waiting.push_back(std::move(waiting));
  if (!fresh) return nullptr;
  made.host = host;
  made.number = ++numbers_;
  made.stagger.emplace(needs_.loop, [this, host, number = made.number] {
    needs_.loop.after_step([this, host, number] { // the attempt may end, and this timer with it
      Attempt* const attempt = find(host);
      const bool is_of_use = attempt != nullptr && attempt->number == number && !attempt->waits &&
                             !attempt->locating && !needs_.answered(number);
      if (is_of_use) try_next(*attempt);
    });
  });
  return &made;
}

// A name of [hosts] is what that says: others may call another host so.
void Dialer::reach(const std::string& host, Connected connected, Wish wish) {
  const auto end = wish.in_haste ? std::nullopt : std::optional(end_of_patience());
  // Who is not dialed may have been started anew: it comes by its name.
  if (wish.identity == 0 && !is_to_call(host)) wish.identity = needs_.directory.identity_of(host).value_or(0);
  Attempt* const made = begin(host, {std::move(connected), end, wish.identity});
  const bool is_named = is_to_call(host) || !needs_.directory.is_configured(host);
  const bool is_meant = (wish.identity != 0 || is_named) &&
                        needs_.directory.address_of(host).via.relay.empty(); // that one alone relays
  if (Attempt& attempt = attempts_.at(host); wish.relayed && is_meant && attempt.relay_since == Loop::Time())
    attempt.relay = relayed_address(wish.identity, host);
  if (made == nullptr) return;
  made->use = wish.use;
  is_to_call(host) ? await_call(*made) : locate(*made);
}

// Through ssh, and via others, it is reached all the same.
bool Dialer::is_to_call(const std::string& host) const {
  const HostAddress where = needs_.directory.address_of(host);
  return !needs_.directory.may_dial(host) && where.ssh.host.empty() && where.via.relay.empty();
}

void Dialer::await_call(Attempt& attempt) {
  attempt.is_called = true;
  const bool by_name = attempt.wanted == 0;
  Error why = error(EHOSTUNREACH, "[hosts] says that {}, and {} has not dialed this one",
                    needs_.directory.may_dial() ? "nobody can dial it" : "this host dials nobody",
                    by_name ? "a host that calls itself " + attempt.host : "it");
  if (!by_name) why = std::move(why).in("cannot reach " + attempt.host);
  resolved(attempt.host, std::move(why));
}

void Dialer::locate(Attempt& attempt) {
  const HostAddress where = needs_.directory.address_of(attempt.host);
  attempt.tunnelled = !where.ssh.host.empty();
  attempt.locating = true;
  needs_.locator.find(
      where, std::chrono::seconds(needs_.config.connect_timeout_s),
      [this, host = attempt.host, number = attempt.number](Result<std::vector<Address>> addresses) {
        const Attempt* const still = find(host);
        if (still != nullptr && still->number == number) resolved(host, std::move(addresses));
      });
}

// Nobody has to know its name.
void Dialer::reach(const EndpointAddress& address, Connected connected, bool relayed) {
  Attempt* const made = begin(in_words(address), {std::move(connected), end_of_patience()});
  if (made == nullptr) return;
  made->wanted = address.identity;
  std::vector<Address> places;
  for (const std::string& host : address.hosts)
    if (const auto place = numeric_address(host, address.port); place && address.port != 0)
      places.push_back(place.value());
  if (relayed) made->relay = relayed_address(address.identity, {});
  if (!needs_.directory.may_dial()) return await_call(*made);
  if (places.empty()) return resolved(made->host, error(EHOSTUNREACH, "cannot reach {}", made->host));
  resolved(made->host, std::move(places));
}

void Dialer::resolved(const std::string& host, Result<std::vector<Address>> addresses) {
  const auto found = attempts_.find(host);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  attempt.locating = false;
  attempt.not_found.reset();
  attempt.addresses.clear();
  if (addresses)
    attempt.addresses = std::move(addresses).value();
  else if (attempt.wanted != 0)
    attempt.not_found = std::move(addresses).error();
  else
    attempt.not_found = std::move(addresses).error().in(fmt::format("cannot reach host {}", host));
  if (attempt.again) return begin_round(attempt);
  for (Attempt::Waiting& each : attempt.waiting)
    if (each.end) each.end = end_of_patience();
  attempt.pause_s = first_round_pause_s;
  attempt.relay_from = needs_.loop.now() + time_without_relay;
  attempt.again.emplace(needs_.loop, [this, host] {
    needs_.loop.after_step([this, host] { // the attempt may end, and this timer with it
      const auto waiting = attempts_.find(host);
      if (waiting == attempts_.end() || !waiting->second.waits) return;
      waiting->second.waits = false;
      leads_through_tunnel(waiting->second) ? locate(waiting->second) : begin_round(waiting->second);
    });
  });
  begin_round(attempt);
}

// Now; it may have been told meanwhile.
bool Dialer::leads_through_tunnel(const Attempt& attempt) const {
  return attempt.wanted == 0 && !needs_.directory.address_of(attempt.host).ssh.host.empty();
}

void Dialer::begin_round(Attempt& attempt) {
  attempt.waits = false;
  attempt.next = 0;
  attempt.may_change = attempt.is_called;
  ++attempt.rounds;
  if (std::exchange(attempt.relay_silent, false)) attempt.relay = attempt.relay_asked;
  try_next(attempt);
}

// Last of all, and not while its own addresses may be of use in a moment.
bool Dialer::try_relay(Attempt& attempt) {
  const auto is_patient = [](const Attempt::Waiting& each) { return each.end.has_value(); };
  const bool is_soon = attempt.may_change && needs_.loop.now() < attempt.relay_from &&
                       std::ranges::any_of(attempt.waiting, is_patient);
  if (!attempt.relay || is_soon || !needs_.sessions.any_near()) return false;
  attempt.relay_since = needs_.loop.now();
  attempt.relay_asked = std::exchange(attempt.relay, std::nullopt);
  return dial(attempt, *attempt.relay_asked, patience_with_relays_s);
}

bool Dialer::dial(Attempt& attempt, const Address& address, double patience_s) {
  const Result<void> dialed = needs_.dial(address, {.host = attempt.host,
                                                    .named = attempt.wanted == 0,
                                                    .attempt = attempt.number,
                                                    .patience_s = patience_s,
                                                    .use = attempt.use});
  if (dialed)
    ++attempt.under_way;
  else if (!address.relayed() || !address.relay_target().via.empty())
    note(attempt, dialed.error());
  return dialed.has_value();
}

void Dialer::try_next(Attempt& attempt) {
  if (attempt.identity != 0) return; // ended() follows, or established()
  while (attempt.next < attempt.addresses.size()) {
    const Address address = attempt.addresses[attempt.next++];
    const double patience_s = double(needs_.config.connect_timeout_s);
    if (!dial(attempt, address, address.relayed() ? connections_via * patience_s : patience_s)) continue;
    if (attempt.next < attempt.addresses.size()) attempt.stagger->set(stagger_s);
    return;
  }
  if (attempt.under_way != 0) return; // one of them may answer still
  if (attempt.is_here) return finish(std::string(attempt.host), this_host);
  if (try_relay(attempt)) return;
  if (attempt.not_found && !attempt.may_change)
    return finish(std::string(attempt.host), Error(*attempt.not_found));
  const auto pause =
      std::chrono::duration_cast<Loop::Clock::duration>(std::chrono::duration<double>(attempt.pause_s));
  const Error why = attempt.not_found ? *attempt.not_found
                                      : error(attempt.may_change ? ECONNREFUSED : EHOSTUNREACH,
                                              "cannot reach host {}: {}", attempt.host, attempt.why);
  // One that did not answer may have taken all the time of the first round.
  const auto given_up = take_out(attempt.waiting, [&](const Attempt::Waiting& each) {
    if (!each.end) return true;
    const bool is_late = needs_.loop.now() + pause >= *each.end && attempt.rounds > 1;
    return !attempt.may_change || is_late;
  });
  if (!given_up.empty()) spdlog::warn("{}", why.text);
  for (const Attempt::Waiting& each : given_up) answer(each.connected, why);
  if (attempt.waiting.empty()) {
    attempts_.erase(std::string(attempt.host));
    return;
  }
  attempt.waits = true;
  attempt.again->set(attempt.pause_s);
  attempt.pause_s = std::min(2 * attempt.pause_s, longest_round_pause_s);
}

// Whoever waited hears it at the step's end: an actor may be in the middle of something.
void Dialer::answer(Connected connected, const Result<std::int32_t>& result) {
  needs_.loop.after_step([connected = std::move(connected), result] { connected(result); });
}

void Dialer::finish(const std::string& host, const Result<std::int32_t>& result) {
  const auto found = attempts_.find(host);
  if (found == attempts_.end()) return;
  for (Attempt::Waiting& each : found->second.waiting) answer(std::move(each.connected), result);
  if (found->second.under_way != 0)
    needs_.loop.after_step([this, number = found->second.number] { needs_.drop(number); });
  attempts_.erase(found);
}

Loop::Time Dialer::end_of_patience() const {
  return needs_.loop.now() + std::chrono::seconds(needs_.config.connect_timeout_s);
}

// What may be over soon is tried again: nobody listened yet, or the other side hung up.
void Dialer::note(Attempt& attempt, const Error& why) {
  attempt.why = why.text;
  constexpr std::array passing{ECONNREFUSED, ECONNRESET, ECONNABORTED, EAGAIN,
                               ENOENT}; // the last two of Unix sockets: full, or not there yet
  attempt.may_change |= std::ranges::find(passing, why.code) != passing.end();
}

void Dialer::fail(Attempt& attempt, const Error& why, const PendingLink& link) {
  return link.relayed() && !link.via() ? no_relay(attempt, why) : fail(attempt, why);
}

// Says nothing of the host. Who has not answered may do so in a moment: its links may be being made anew.
void Dialer::no_relay(Attempt& attempt, const Error& why) {
  attempt.under_way -= attempt.under_way != 0 ? 1 : 0;
  if (attempt.waits || attempt.locating) return;
  if (why.code == ETIMEDOUT) {
    attempt.relay_silent = true;
    attempt.may_change = true;
  } else { // costs nobody's patience
    for (Attempt::Waiting& each : attempt.waiting)
      if (each.end) *each.end += needs_.loop.now() - attempt.relay_since;
  }
  try_next(attempt);
}

void Dialer::fail(Attempt& attempt, const Error& why) {
  attempt.under_way -= attempt.under_way != 0 ? 1 : 0;
  go_on(attempt, why);
}

void Dialer::go_on(Attempt& attempt, const Error& why) {
  if (attempt.waits || attempt.locating) return;
  note(attempt, why);
  if (attempt.tunnelled)
    if (auto more = needs_.locator.why_ended(needs_.directory.address_of(attempt.host)); !more.empty())
      attempt.why = std::move(more);
  try_next(attempt);
}

// What an attempt has dialed answers.
void Dialer::reached(const PendingLink& link, std::int32_t index) {
  const std::string& host = link.purpose().host;
  Attempt* const found = find(link);
  if (found == nullptr) return;
  Attempt& attempt = *found;
  if (attempt.wanted == 0) needs_.directory.answered(host, link.identity());
  if (attempt.wanted != 0 && attempt.wanted != link.identity())
    return fail(attempt, error(ESTALE, "another kernel answers at {}", link.address()));
  finish(host, index);
}

// Another connection to the same kernel is up.
bool Dialer::finish_with_session(const PendingLink& link) {
  const std::optional<std::int32_t> index = needs_.sessions.carried(link.identity());
  const std::string& host = link.purpose().host;
  const Attempt* const waiting = find(link);
  if (index && waiting != nullptr && !serves(needs_.sessions.find(link.identity())->use(), waiting->use))
    return false;
  if (!index || (waiting != nullptr && waiting->wanted != 0)) return false; // established() would have
  needs_.directory.answered(host, link.identity());
  finish(host, *index);
  return true;
}

// The other side has dialed: who wants that very kernel has it. What a name of [hosts] means that says
// nothing of, unless nobody dials that host; nor does a relay's key.
void Dialer::called(const PendingLink& link, std::int32_t index) {
  const std::uint64_t identity = link.identity();
  std::vector<std::string> over;
  for (auto& [host, attempt] : attempts_) {
    if (!serves(link.use(), attempt.use)) continue;
    const bool is_its_name = attempt.is_called && host == link.handshake().peer().name;
    const auto have_it = take_out(attempt.waiting, [&](const Attempt::Waiting& each) {
      return each.meant == identity || (is_its_name && each.meant == 0);
    });
    if (have_it.empty()) continue;
    if (is_its_name || !needs_.directory.is_configured(host)) needs_.directory.answered(host, identity);
    for (const Attempt::Waiting& each : have_it) answer(each.connected, index);
    if (attempt.waiting.empty()) over.push_back(host);
  }
  for (const std::string& host : over) finish(host, index);
}

void Dialer::established(const PendingLink& link, std::int32_t index) {
  if (!link.purpose().host.empty()) reached(link, index);
  std::vector<std::string> waiting;
  for (const auto& [host, attempt] : attempts_)
    if ((attempt.identity == link.identity() || attempt.wanted == link.identity()) &&
        serves(link.use(), attempt.use))
      waiting.push_back(host);
  for (const std::string& host : waiting) {
    if (attempts_.at(host).wanted == 0) needs_.directory.answered(host, link.identity());
    finish(host, index);
  }
  called(link, index);
}

void Dialer::refused(const PendingLink& link, const Error& why) {
  Attempt* const found = find(link);
  if (found == nullptr) return;
  const Verdict verdict = link.handshake().verdict();
  if (found->wanted != 0 && found->wanted != link.identity() && link.identity() != 0) {
    fail(*found, error(ESTALE, "another kernel answers at {}", link.address()));
  } else if (verdict == Verdict::Itself) {
    --found->under_way;
    found->is_here = true; // unless another one answers
    if (found->under_way == 0) finish(link.purpose().host, this_host);
  } else if (verdict == Verdict::Duplicate) {
    --found->under_way;
    found->identity = link.identity();
    found->stagger->cancel();
    (void)finish_with_session(link);
  } else {
    fail(*found, why, link);
  }
}

void Dialer::failed(const PendingLink& link, const Error& why) {
  Attempt* const found = find(link);
  if (found != nullptr && !finish_with_session(link)) fail(*found, why, link);
}

// Attempts whose own connection was a duplicate wait for the other one: where that died before it was up,
// they need a new one, unless one is being made.
void Dialer::ended(std::uint64_t identity, const Error& why) {
  std::vector<std::string> waiting;
  for (const auto& [host, attempt] : attempts_)
    if (attempt.identity == identity) waiting.push_back(host);
  for (const std::string& host : waiting) {
    Attempt& attempt = attempts_.at(host);
    attempt.identity = 0;
    if (attempt.under_way == 0) go_on(attempt, Error{ECONNRESET, why.text});
  }
}

} // namespace parc::daemon
