// SPDX-License-Identifier: BSD-3-Clause
// Who exchanges messages with whom. An endpoint names its peers by the rows of its table; the engine matches
// by their addresses. What two hosts know of an endpoint of one of them: the other watches it, or has had an
// envelope of it, and so is told of its departure (departure.cpp).
#include "protocol/engine.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace parc::protocol {
namespace {

// Of endpoints that departed long ago: more than a peer can ask for before it hears of the first.
constexpr std::size_t most_gone = std::size_t{1} << 20;
constexpr std::size_t most_rows = std::size_t{1} << 16; // that may be added to a table
constexpr int most_given_up = 2;                        // for one that is new

std::int32_t members_of(const Endpoint& endpoint) {
  return endpoint.group != nullptr ? static_cast<std::int32_t>(endpoint.group->members.size()) : 0;
}

// What is written to, and waited for from, one that departs ends then: only its messages may name it still.
[[maybe_unused]] bool is_named(const Pair& pair) {
  const auto names = [&pair](const auto& each) { return each.pair == &pair; };
  return std::ranges::any_of(pair.at->writes, names) || std::ranges::any_of(pair.at->reads, names);
}

} // namespace

std::int32_t Group::row_of(const Address& address) const {
  const auto found =
      std::ranges::lower_bound(by_address, address, {}, [&](std::uint32_t row) { return members[row]; });
  return found != by_address.end() && members[*found] == address ? static_cast<std::int32_t>(*found) : -1;
}

Endpoint* Engine::find_endpoint(std::uint64_t number) const {
  const auto found = endpoints_.find(number);
  return found == endpoints_.end() ? nullptr : found->second.get();
}

Group* Engine::find_group(std::uint64_t id) const {
  const auto found = groups_.find(id);
  return found == groups_.end() ? nullptr : found->second.get();
}

Link* Engine::find_link(const Address& address) const {
  return address.place == here ? nullptr : links_[static_cast<std::size_t>(address.place)].get();
}

std::uint64_t Engine::add_endpoint() {
  auto endpoint = std::make_unique<Endpoint>();
  endpoint->number = ++last_endpoint_;
  endpoints_.emplace(last_endpoint_, std::move(endpoint));
  return last_endpoint_;
}

bool Engine::open(std::uint64_t number, std::uint64_t cookie) {
  Endpoint* endpoint = find_endpoint(number);
  if (endpoint == nullptr || endpoint->departed()) return false;
  endpoint->cookie = cookie;
  endpoint->opened = true;
  return true;
}

bool Engine::is_there(std::uint64_t number) const {
  const Endpoint* endpoint = find_endpoint(number);
  return endpoint != nullptr && !endpoint->departed();
}

bool Engine::has_given(std::uint64_t number, std::int64_t row) const {
  const Endpoint* endpoint = find_endpoint(number);
  return endpoint != nullptr && row >= 0 && row - members_of(*endpoint) < endpoint->rows_given;
}

Backlog Engine::backlog(std::uint64_t number) const {
  const Endpoint* endpoint = find_endpoint(number);
  return endpoint == nullptr ? Backlog{} : endpoint->backlog;
}

void Engine::count(Endpoint& of, std::uint64_t Backlog::*what, bool one_more) {
  of.backlog.*what += one_more ? 1 : -1;
  say_changed(of);
}

void Engine::say_changed(const Endpoint& endpoint) {
  if (endpoint.opened) listener_.backlog_changed(endpoint.cookie);
}

void Engine::note_of(Endpoint& endpoint, bool Endpoint::*what) {
  if (!std::exchange(endpoint.*what, true)) say_changed(endpoint);
}

std::int32_t Engine::add_row(std::uint64_t number, const Address& address) {
  Endpoint* endpoint = find_endpoint(number);
  if (endpoint == nullptr) return no_such_endpoint;
  const bool member = endpoint->group != nullptr && endpoint->group->row_of(address) >= 0;
  const bool known = member || endpoint->pairs.contains(address); // also one that has departed since
  if (!known && address.place == here && find_endpoint(address.number) == nullptr) return no_such_endpoint;
  if (!known) give_up_rows(*endpoint);
  if (!known && endpoint->more_rows.size() >= most_rows && number != kernel_endpoint) return no_room_for_row;
  Pair& pair = pair_of(*endpoint, address);
  watch(*pair.peer); // who waits for anybody waits for it, too
  return pair.row;
}

std::optional<Address> Engine::address(std::uint64_t number, std::int64_t row) const {
  const Endpoint* endpoint = find_endpoint(number);
  if (endpoint == nullptr || row < 0) return {};
  if (row < members_of(*endpoint)) return endpoint->group->members[static_cast<std::size_t>(row)];
  const auto found = endpoint->more_rows.find(static_cast<std::int32_t>(row));
  return found == endpoint->more_rows.end() ? std::nullopt : std::optional(found->second.address);
}

void Engine::keep_row(std::uint64_t number, std::int32_t row) {
  Endpoint* endpoint = find_endpoint(number);
  if (endpoint == nullptr) return;
  if (const auto found = endpoint->more_rows.find(row); found != endpoint->more_rows.end())
    found->second.kept = true;
}

void Engine::acquaint(std::uint64_t number, std::int32_t row) {
  Endpoint* endpoint = find_endpoint(number);
  if (endpoint == nullptr) return;
  if (const auto found = endpoint->more_rows.find(row); found != endpoint->more_rows.end())
    found->second.acquainted = true;
}

// Of this host: it was made here, and nobody has begun to use it. One that has departed since is no harm.
bool Engine::may_be_member(const Address& address) const {
  if (address.place != here) return true;
  if (address.number == kernel_endpoint || address.number > last_endpoint_) return false;
  const Endpoint* endpoint = find_endpoint(address.number);
  if (endpoint == nullptr || endpoint->departed()) return true;
  return endpoint->group == nullptr && !endpoint->opened && endpoint->reads.empty() &&
         endpoint->writes.empty();
}

// Whoever has written to a member before has got a row already.
std::uint64_t Engine::add_group(std::span<const Address> members) {
  auto made = std::make_unique<Group>();
  Group& group = *made;
  group.members.assign(members.begin(), members.end());
  group.by_address.resize(members.size());
  std::iota(group.by_address.begin(), group.by_address.end(), 0);
  const auto address_of = [&](std::uint32_t row) { return group.members[row]; };
  std::ranges::sort(group.by_address, {}, address_of);
  const bool twice = std::ranges::adjacent_find(group.by_address, {}, address_of) != group.by_address.end();
  if (twice || !std::ranges::all_of(members, [this](const Address& each) { return may_be_member(each); }))
    return no_group;
  group.id = ++last_group_;
  groups_.emplace(group.id, std::move(made));
  const bool far = std::ranges::any_of(members, [](const Address& each) { return each.place != here; });
  for (const Address& address : members) {
    Endpoint* endpoint = address.place == here ? find_endpoint(address.number) : nullptr;
    if (endpoint == nullptr || endpoint->departed()) {
      group.missed_somebody = group.missed_somebody || address.place == here;
      continue;
    }
    endpoint->group = &group;
    group.local.push_back(*endpoint);
    endpoint->more_rows.clear();
    endpoint->through.clear();
    endpoint->rows_given = 0;
    for (auto& [of, pair] : endpoint->pairs) enter_row(pair, make_row(*endpoint, of));
    endpoint->has_far_peers = endpoint->has_far_peers || far;
  }
  return group.id;
}

void Engine::drop_group(std::uint64_t id) {
  Group* group = find_group(id);
  if (group == nullptr) return;
  std::vector<std::uint64_t> local;
  for (const Endpoint& endpoint : group->local)
    if (!endpoint.departed()) local.push_back(endpoint.number);
  group->dropped = true;
  for (const std::uint64_t number : local) kill(number);
  if (group = find_group(id); group != nullptr) forget_if_over(*group);
}

void Engine::forget_if_over(Group& group) {
  if (!group.dropped || !group.local.empty()) return;
  const std::unique_ptr<Group> last = std::move(groups_.extract(group.id).mapped());
  if (!group.waited_for) return;
  for (const Address& address : group.members) {
    Peer& peer = *peers_.at(address);
    std::erase(peer.groups, &group);
    forget_if_over(peer);
  }
}

std::int32_t Engine::row_in_group(std::uint64_t id, const Address& address) const {
  const Group* group = find_group(id);
  return group == nullptr ? -1 : group->row_of(address);
}

// Its number is given again only when two thousand million others have been.
std::int32_t Engine::make_row(Endpoint& at, const Address& address) {
  if (at.group != nullptr)
    if (const std::int32_t row = at.group->row_of(address); row >= 0) return row;
  const std::int32_t members = members_of(at);
  std::int32_t row = 0;
  do {
    row = members + static_cast<std::int32_t>(at.rows_given++ % (INT32_MAX - members));
  } while (at.more_rows.contains(row));
  at.more_rows.emplace(row, Row{.address = address});
  return row;
}

void Engine::enter_row(Pair& pair, std::int32_t row) {
  pair.row = row;
  if (const auto found = pair.at->more_rows.find(row); found != pair.at->more_rows.end())
    found->second.pair = &pair;
  note_through(pair);
}

// Its peer has departed, and nothing of it is left to read. (The kernel's rows are its links.)
void Engine::note_through(Pair& pair) {
  if (pair.peer->how == Departure::none || pair.messages != 0 || pair.at->number == kernel_endpoint) return;
  const auto found = pair.at->more_rows.find(pair.row);
  if (found == pair.at->more_rows.end() || std::exchange(found->second.listed, true)) return;
  pair.at->through.push_back(pair.row);
}

void Engine::name_pair(Incoming& message, Pair& pair) {
  message.pair = &pair;
  ++pair.messages;
}

void Engine::forget_pair(Incoming& message) {
  Pair* const pair = std::exchange(message.pair, nullptr);
  if (pair != nullptr && --pair->messages == 0) note_through(*pair);
}

// As many as keep the table from growing with all who ever wrote: called where a row will be made, and by
// nobody who has a pair of `at` in hands.
void Engine::give_up_rows(Endpoint& at) {
  for (int given_up = 0; at.through.size() > settings_.departed_kept &&
                         (given_up < most_given_up || at.more_rows.size() >= most_rows);
       ++given_up) {
    const std::int32_t number = at.through.front();
    at.through.pop_front();
    Row& row = at.more_rows.at(number);
    Peer& peer = *row.pair->peer;
    row.listed = false;
    if (row.kept || peer.how == Departure::none) continue; // or somebody else has its address by now
    assert(row.pair->messages == 0 && !is_named(*row.pair));
    at.pairs.erase(row.address);
    at.more_rows.erase(number);
    forget_if_over(peer);
  }
}

Pair& Engine::pair_of(Endpoint& at, const Address& address) {
  const auto found = at.pairs.find(address);
  if (found != at.pairs.end()) return found->second;
  give_up_rows(at);
  return add_pair(at, address, make_row(at, address));
}

Pair* Engine::pair_of(Endpoint& at, std::int32_t row) {
  Pair* pair = nullptr;
  if (row < members_of(at)) {
    const Address& address = at.group->members[static_cast<std::size_t>(row)];
    const auto found = at.pairs.find(address);
    pair = found != at.pairs.end() ? &found->second : &add_pair(at, address, row);
  } else if (const auto found = at.more_rows.find(row); found != at.more_rows.end()) {
    const Row& known = found->second;
    pair = known.pair != nullptr ? known.pair : &add_pair(at, known.address, row);
  }
  if (pair != nullptr) watch(*pair->peer);
  return pair;
}

Pair& Engine::add_pair(Endpoint& at, const Address& address, std::int32_t row) {
  Pair& pair = at.pairs[address];
  pair.at = &at;
  pair.peer = &peer_of(address);
  pair.peer->pairs.push_back(pair);
  enter_row(pair, row);
  if (address.place != here) note_of(at, &Endpoint::has_far_peers);
  if (pair.peer->how != Departure::none) note_of(at, &Endpoint::missed_somebody);
  return pair;
}

Peer& Engine::peer_of(const Address& address) {
  std::unique_ptr<Peer>& peer = peers_[address];
  if (peer != nullptr) return *peer;
  peer = std::make_unique<Peer>(address);
  if (address.place != here) {
    if (find_link(address) == nullptr) peer->how = Departure::lost;
  } else if (const Endpoint* endpoint = find_endpoint(address.number)) {
    peer->how = endpoint->how;
  } else {
    peer->how = killed_.contains(address.number) ? Departure::killed : Departure::left;
  }
  return *peer;
}

// Kernels are lost with their links, and of whoever has written to us we are told.
void Engine::watch(Peer& peer) {
  Link* link = find_link(peer.address);
  if (link == nullptr || peer.watched || peer.envelopes != 0 || peer.address.number == kernel_endpoint)
    return;
  peer.watched = peer.watch_owed = true;
  owe(*link, peer);
}

Refusal Engine::take_watch(Link& link, const Descriptor& d) {
  if (d.message == kernel_endpoint) return Refusal::request;
  if (link.kernels_only) return Refusal::destination;
  if (Endpoint* endpoint = find_endpoint(d.message)) {
    const bool tells = endpoint->outflows.contains(link.index);
    Outflow& outflow = outflow_of(*endpoint, link);
    if (!tells) owe_departure(outflow); // where it has departed and is not through
    const bool told = tells && endpoint->departed() && outflow.fresh == 0 && !outflow.owed();
    if (!told) return Refusal::none;
  }
  if (link.gone.size() == most_gone) return Refusal::request;
  // A program over there may have made the number up.
  const std::uint8_t flags = d.message > last_endpoint_    ? flag_unknown
                             : killed_.contains(d.message) ? flag_killed
                                                           : std::uint8_t{0};
  link.gone.push_back({d.message, flags});
  return Refusal::none;
}

// From now on it is known how many members are there.
void Engine::wait_for_anybody(Group& group) {
  if (group.waited_for || group.members.size() == 1) return;
  group.waited_for = true;
  for (const Address& address : group.members) {
    Peer& peer = peer_of(address);
    peer.groups.push_back(&group);
    watch(peer);
    if (peer.how == Departure::none) ++group.living;
  }
}

// Nobody names it any more, and it will not be heard of again.
void Engine::forget_if_over(Peer& peer) {
  if (!peer.pairs.empty() || !peer.groups.empty()) return;
  if (peer.address.place != here && peer.how == Departure::none) return;
  peers_.erase(Address(peer.address));
}

Outflow& Engine::outflow_of(Endpoint& from, Link& link) {
  std::unique_ptr<Outflow>& outflow = from.outflows[link.index];
  if (outflow == nullptr) outflow = std::make_unique<Outflow>(&from, &link);
  return *outflow;
}

void Engine::forget_endpoint(Endpoint& endpoint) {
  const std::unique_ptr<Endpoint> last = std::move(endpoints_.extract(endpoint.number).mapped());
  std::vector<Peer*> peers;
  for (auto& [address, pair] : endpoint.pairs) peers.push_back(pair.peer);
  endpoint.pairs.clear();
  for (Peer* peer : peers) forget_if_over(*peer);
  if (Group* group = endpoint.group) {
    endpoint.hook::Hook<hook::OfGroup>::unlink();
    forget_if_over(*group);
  }
  if (endpoint.opened) listener_.drained(endpoint.cookie);
}

} // namespace parc::protocol
