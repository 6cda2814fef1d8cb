// SPDX-License-Identifier: BSD-3-Clause
// HostSessions' other half: where a kernel is dialed whose connection has ended, or that has dialed this one.
#include "daemon/link/host_sessions.hpp"

#include <algorithm>
#include <cerrno>

namespace parc::daemon {

// What has dialed this one may listen elsewhere, or nowhere that is reached from here: a refusal at an
// address tells something only where this side has met it.
void HostSessions::call_back(std::uint64_t identity) {
  HostSession* const session = look(identity);
  if (session == nullptr || stopping_) return;
  if (session->is_makeshift()) return session->improve_soon();
  if (!needs_.directory.may_dial(session->identity().name)) return;
  if (!place_of(*session) && !session->candidates().name().empty())
    return look_up(identity, [this, identity](const Result<void>&) { call_back_now(identity); });
  call_back_now(identity);
}

void HostSessions::call_back_now(std::uint64_t identity) {
  const HostSession* const session = find(identity);
  if (session == nullptr || stopping_) return;
  const auto at = place_of(*session);
  if (!at || session->candidates().has_answered_at(*at)) return;
  (void)needs_.dial(*at, {.session = identity,
                          .calls_back = true,
                          .patience_s = double(needs_.config.connect_timeout_s),
                          .use = session->use()});
}

// What was not to be had when a relay was asked may be by now, or is from this side: it can dial, and the
// other one cannot.
void HostSessions::improve(std::uint64_t identity) {
  const HostSession* const session = find(identity);
  if (session == nullptr || stopping_ || !session->is_makeshift()) return;
  if (!needs_.directory.may_dial(session->identity().name)) return;
  const std::string& name = session->candidates().name();
  const HostAddress named = needs_.directory.address_of(name);
  if (!name.empty() && named.ssh.host.empty() && named.via.relay.empty()) // else it leads to no address
    return look_up(identity, [this, identity](const Result<void>&) { improve_now(identity); });
  improve_now(identity);
}

void HostSessions::improve_now(std::uint64_t identity) {
  const HostSession* const session = find(identity);
  if (session == nullptr || stopping_ || !session->is_makeshift()) return;
  constexpr int most_at_once = 8;
  int dialed = 0;
  for (const Address& at :
       session->candidates().places(needs_.directory.is_configured(session->candidates().name()))) {
    if (!at.is_ip()) continue;
    if (dialed++ == most_at_once) return;
    (void)needs_.dial(at, {.session = identity,
                           .improves = true,
                           .patience_s = double(needs_.config.connect_timeout_s),
                           .use = session->use()});
  }
}

// As [hosts] says; else over a relay where the way that there is seems dead, or has failed that was taken in
// place of it; else in turn where it is known to be and where its name was found.
std::optional<Address> HostSessions::place_of(const HostSession& session) const {
  const auto relay = session.candidates().relay();
  if (!needs_.directory.may_dial(session.identity().name)) return relay;
  const bool in_vain = session.doubted() || session.has_left_relay();
  if (relay && in_vain && session.dials() % 2 == 1) return relay;
  return session.candidates().dial(session.dials(),
                                   needs_.directory.is_configured(session.candidates().name()));
}

// Where it is known to be nobody has to be asked. Its name, whose address may have changed, is looked up
// beside.
void HostSessions::redial(std::uint64_t identity) {
  HostSession* const session = look(identity);
  if (session == nullptr || stopping_) return;
  if (const auto near = session->candidates().tunnel())
    return needs_.locator.reopen(*near, [this, identity](const Result<std::vector<Address>>& found) {
      needs_.loop.after_step([this, identity, found] { redial_through(identity, found); });
    });
  const auto at = place_of(*session);
  if (is_looked_up(*session) && (!at || session->dials() % 2 == 0))
    look_up(identity, [this, identity, awaited = !at](const Result<void>& found) {
      if (awaited) redial_now(identity, found);
    });
  if (at) return dial_again(*session, *at);
  if (!is_looked_up(*session)) session->dial_ended(error(EHOSTUNREACH, "nobody can dial it"), false);
}

// It has a name, and is dialed where that leads.
bool HostSessions::is_looked_up(const HostSession& session) const {
  const std::string& name = session.candidates().name();
  return !name.empty() && needs_.directory.may_dial(session.identity().name);
}

// Whatever its name means by now: where the tunnel leads, that kernel was.
void HostSessions::redial_through(std::uint64_t identity, const Result<std::vector<Address>>& tunnel) {
  HostSession* const session = look(identity);
  if (session == nullptr || stopping_) return;
  if (tunnel)
    dial_again(*session, tunnel.value().front());
  else
    session->dial_ended(tunnel.error(), false);
}

void HostSessions::redial_now(std::uint64_t identity, const Result<void>& found) {
  HostSession* const session = look(identity);
  if (session == nullptr || stopping_) return;
  if (const auto at = place_of(*session))
    dial_again(*session, *at);
  else
    session->dial_ended(
        found ? error(ENOENT, "the address of host {} is not known", session->candidates().name())
              : found.error(),
        false);
}

void HostSessions::look_up(std::uint64_t identity, std::function<void(const Result<void>&)> then) {
  const HostAddress where = needs_.directory.address_of(find(identity)->candidates().name());
  needs_.locator.find(where, std::chrono::seconds(needs_.config.connect_timeout_s),
                      [this, identity, then = std::move(then)](Result<std::vector<Address>> addresses) {
                        HostSession* const still = look(identity);
                        if (still == nullptr) return;
                        Result<void> found = addresses ? success() : Result<void>(addresses.error());
                        if (addresses) still->candidates().resolved(addresses.value());
                        needs_.loop.after_step([then, found = std::move(found)] { then(found); });
                      });
}

// Where its connection leads.
void HostSessions::dial_subflow(std::uint64_t identity, std::uint32_t number) {
  HostSession* const session = look(identity);
  if (session == nullptr || session->identity().number != number) return;
  const auto at = session->connection() != nullptr ? session->connection()->peer_address() : std::nullopt;
  if (!at || stopping_ || !session->streams().may_dial())
    return session->streams().dial_ended(error(ENOTCONN, "the link is down"));
  const Result<void> dialed = needs_.dial(*at, {.session = identity,
                                                .patience_s = session->patience_s(),
                                                .use = session->use(),
                                                .subflow_of = number});
  if (!dialed) session->streams().dial_ended(dialed.error());
}

void HostSessions::dial_again(HostSession& session, const Address& at) {
  const double least_s = at.relayed() ? patience_with_relays_s : 0;
  PendingLink::Purpose purpose{.session = session.identity().host,
                               .met = session.candidates().has_answered_at(at),
                               .patience_s = std::max(session.patience_s(), least_s),
                               .use = session.use()};
  if (const Result<void> dialed = needs_.dial(at, std::move(purpose)); !dialed)
    session.dial_ended(dialed.error(), false);
}

} // namespace parc::daemon
