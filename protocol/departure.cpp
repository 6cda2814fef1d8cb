// SPDX-License-Identifier: BSD-3-Clause
// Endpoints and links come and go. A departure is announced behind the last envelope of its endpoint, so
// that a read fails only when nothing announced or stored can match it any more.
#include "protocol/engine.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace parc::protocol {
namespace {

constexpr std::uint64_t least_window = 16;    // fragments that a link gets while the pool has them
constexpr std::uint64_t share_of_window = 32; // of what no link has yet
constexpr std::size_t most_killed = 4096;

void add_totals(Engine::Totals& all, const Link& link) {
  all.trains_in += link.trains_in;
  all.trains_out += link.trains_out;
  all.fragments_in += link.fragments_in;
  all.fragments_out += link.fragments_out;
  all.bytes_in += link.bytes_in;
  all.bytes_out += link.bytes_out;
  all.messages_in += link.messages_in;
  all.messages_out += link.messages_out;
}

} // namespace

Engine::Engine(const Settings& settings, Listener& listener) : settings_(settings), listener_(listener) {
  endpoints_.emplace(kernel_endpoint, std::make_unique<Endpoint>());
}

Engine::~Engine() = default;

void Engine::leave(std::uint64_t number) {
  Endpoint* endpoint = find_endpoint(number);
  if (endpoint == nullptr || endpoint->departed()) return;
  std::vector<std::uint64_t> gated; // nothing can hold them back any more
  for (const Outgoing& write : endpoint->writes)
    if (write.stage == Outgoing::Stage::gated) gated.push_back(write.id);
  for (const std::uint64_t write : gated) pass(write);
  depart(*endpoint, Departure::left);
}

void Engine::kill(std::uint64_t number) {
  Endpoint* endpoint = find_endpoint(number);
  if (endpoint == nullptr) return;
  if (!endpoint->departed()) return depart(*endpoint, Departure::killed);
  endpoint->killing = true; // it must not go while its writes are taken from it
  while (!endpoint->writes.empty()) fail_write(endpoint->writes.front(), Fault::canceled);
  if (const auto peer = peers_.find({here, number}); peer != peers_.end()) fail_those_behind(*peer->second);
  endpoint->killing = false;
  check_drained(*endpoint);
}

void Engine::depart(Endpoint& endpoint, Departure how) {
  endpoint.how = how;
  listener_.departed(endpoint.number, how);
  if (how == Departure::killed) {
    if (killed_.size() == most_killed) killed_.clear();
    killed_.insert(endpoint.number);
  }
  for (const auto& [index, outflow] : endpoint.outflows) outflow->departs_after = outflow->link->reading;
  const Address self{here, endpoint.number};
  if (const auto peer = peers_.find(self); peer != peers_.end())
    peer->second->how = how; // before anything of it ends
  release_held(endpoint);
  endpoint.killing = true;
  while (how == Departure::killed && !endpoint.writes.empty())
    fail_write(endpoint.writes.front(), Fault::canceled);
  for (auto& [address, pair] : endpoint.pairs)
    while (!pair.behind.empty()) give_up(pair.behind.front());
  give_up_atomics(endpoint);
  while (!endpoint.reads.empty()) {
    Reading& read = endpoint.reads.front();
    Incoming* const message = read.message;
    Outgoing* local = message != nullptr ? message->local : nullptr;
    const bool behind_put = message != nullptr && local == nullptr && message->link == nullptr;
    fail_read(read, Fault::canceled);
    if (local != nullptr)
      fail_write(*local, Fault::peer);
    else if (behind_put)
      drop_incoming(*message);
  }
  while (!endpoint.arrivals.empty() || !endpoint.claimed.empty()) {
    Incoming& message = endpoint.arrivals.empty() ? endpoint.claimed.front() : endpoint.arrivals.front();
    if (how == Departure::left) // one that was killed could not read it
      listener_.unread(
          endpoint.number, message.pair->peer->address,
          {.space = message.space, .tag = message.tag, .data = message.data, .total = message.total});
    if (message.local != nullptr)
      fail_write(*message.local, Fault::peer);
    else
      discard(message);
  }
  if (endpoint.group != nullptr && !std::exchange(endpoint.group->missed_somebody, true))
    for (const Endpoint& other : endpoint.group->local) say_changed(other);
  if (const auto peer = peers_.find(self); peer != peers_.end()) tell_departed(*peer->second);
  for (const auto& [index, outflow] : endpoint.outflows) owe_departure(*outflow);
  endpoint.killing = false;
  check_drained(endpoint);
}

// Endpoints of this host learn that nothing comes from, or goes to, this one any more. What that ends may be
// the end of others, which is why they are looked up again.
void Engine::tell_departed(Peer& peer) {
  const Address address = peer.address;
  std::vector<std::uint64_t> here_too;
  for (Pair& pair : peer.pairs) {
    note_through(pair);
    if (!pair.at->killing) here_too.push_back(pair.at->number);
  }
  std::vector<std::uint64_t> groups;
  for (const Group* group : peer.groups) groups.push_back(group->id);
  for (const std::uint64_t number : here_too) {
    Endpoint* endpoint = find_endpoint(number);
    if (endpoint == nullptr) continue;
    note_of(*endpoint, &Endpoint::missed_somebody);
    endpoint->killing = true;
    fail_hopeless(*endpoint, &address);
    for (auto it = endpoint->writes.begin(); it != endpoint->writes.end();) {
      Outgoing& write = *it++;
      if (write.pair->peer->address == address) fail_write(write, Fault::peer);
    }
    endpoint->killing = false;
    check_drained(*endpoint); // one that had left may have waited for these writes
  }
  for (const std::uint64_t id : groups) {
    Group* group = find_group(id);
    if (group == nullptr || --group->living > 1) continue;
    for (Endpoint& endpoint : group->local)
      if (!endpoint.killing) fail_hopeless(endpoint, nullptr);
  }
  if (const auto still = peers_.find(address); still != peers_.end()) forget_if_over(*still->second);
}

// Reads that waited for what a peer that departed long ago had sent behind a put.
void Engine::fail_those_behind(const Peer& peer) {
  const Address address = peer.address;
  std::vector<std::uint64_t> here_too;
  for (const Pair& pair : peer.pairs) here_too.push_back(pair.at->number);
  for (const std::uint64_t number : here_too)
    if (Endpoint* const endpoint = find_endpoint(number)) fail_hopeless(*endpoint, &address);
}

// Reads and probes that wait for `departed`, or for anybody when nobody is left.
void Engine::fail_hopeless(Endpoint& endpoint, const Address* departed) {
  for (auto it = endpoint.reads.begin(); it != endpoint.reads.end();) {
    Reading& read = *it++;
    const bool waits = read.message == nullptr && read.hook::Hook<hook::Queue>::is_linked();
    const bool of_it = read.pair == nullptr || (departed != nullptr && read.pair->peer->address == *departed);
    if (waits && of_it && hopeless(read)) fail_read(read, Fault::peer);
  }
}

// An endpoint goes when it has departed, nothing of it is under way and everybody has been told.
void Engine::check_drained(Endpoint& endpoint) {
  if (!endpoint.departed() || endpoint.killing || !endpoint.writes.empty()) return;
  for (const auto& [index, outflow] : endpoint.outflows)
    if (outflow->owed() || outflow->fresh != 0) return;
  forget_endpoint(endpoint);
}

std::uint32_t Engine::add_link(const LinkSettings& settings) {
  const auto index = static_cast<std::uint32_t>(links_.size());
  Link& link = *links_.emplace_back(std::make_unique<Link>());
  link.index = index;
  link.open = true;
  link.fragment = settings.fragment;
  link.self = settings.self;
  link.peer = settings.peer;
  link.kernels_only = settings.kernels_only;
  link.train_bytes = max_entries * link.fragment;
  const std::uint64_t room =
      settings_.pool > pool_reserved_ ? (settings_.pool - pool_reserved_) / link.fragment : 0;
  link.reserved =
      std::min({settings_.link_window / link.fragment, std::max(room / share_of_window, least_window), room});
  pool_reserved_ += link.reserved * link.fragment;
  open_links_.push_back(&link);
  [[maybe_unused]] const std::int32_t row =
      add_row(kernel_endpoint, {static_cast<std::int32_t>(index), kernel_endpoint});
  assert(row == static_cast<std::int32_t>(index));
  attach(index);
  return index;
}

void Engine::break_link(std::uint32_t index) {
  if (links_[index] == nullptr) return;
  Link& link = *links_[index];
  link.open = false;
  std::vector<Address> lost, departed_before;
  for (const auto& [address, peer] : peers_) {
    if (address.place != static_cast<std::int32_t>(index)) continue;
    (peer->how == Departure::none ? lost : departed_before).push_back(address);
    if (peer->how == Departure::none) peer->how = Departure::lost; // before anything ends with it
  }
  incoming_.each([&](Incoming& message) {
    if (message.link == &link) message.counted = false;
  });
  outgoing_.each([&](Outgoing& message) {
    if (message.link != &link) return;
    if (message.abandoned())
      outgoing_.drop(message);
    else
      finish_write(message, Fault::peer);
  });
  incoming_.each([&](Incoming& message) {
    if (message.link != &link) return;
    if (message.unread() && message.whole() && message.arrived == message.promised) {
      message.link = nullptr; // it is all here and may still be read
      for (const Block& block : message.blocks) pool_reserved_ += block.length();
      return;
    }
    if (message.matched()) fail_read(*message.read, Fault::peer);
    drop_incoming(message);
  });
  link.answers.clear();
  link.departing.clear();
  for (auto& [number, endpoint] : endpoints_) endpoint->outflows.erase(index);
  for (const Address& address : lost)
    if (const auto peer = peers_.find(address); peer != peers_.end()) tell_departed(*peer->second);
  for (const Address& address : departed_before)
    if (const auto peer = peers_.find(address); peer != peers_.end()) {
      fail_those_behind(*peer->second);
      forget_if_over(*peer->second);
    }
  pool_reserved_ -= link.reserved * link.fragment;
  add_totals(totals_, link);
  std::erase(open_links_, &link);
  links_[index].reset();
  std::vector<Endpoint*> leaving;
  for (auto& [number, endpoint] : endpoints_)
    if (endpoint->departed()) leaving.push_back(endpoint.get());
  for (Endpoint* endpoint : leaving) check_drained(*endpoint);
  forget_kernel(index);
}

// A link's number is not used again, and neither is the row of the kernel at its other end. What that has
// said may still be read.
void Engine::forget_kernel(std::uint32_t index) {
  assert(links_[index] == nullptr);
  const Address address{static_cast<std::int32_t>(index), kernel_endpoint};
  Endpoint& kernel = *find_endpoint(kernel_endpoint);
  const auto of_it = [&](const Incoming& message) { return message.pair->peer->address == address; };
  if (std::ranges::none_of(kernel.arrivals, of_it) && std::ranges::none_of(kernel.claimed, of_it)) {
    kernel.pairs.erase(address);
    kernel.more_rows.erase(address.place);
  }
  if (const auto peer = peers_.find(address); peer != peers_.end()) forget_if_over(*peer->second);
}

const Link& Engine::link(std::uint32_t index) const {
  static const Link broken;
  return links_[index] != nullptr ? *links_[index] : broken;
}

Engine::Totals Engine::totals() const {
  Totals all = totals_;
  for (const Link* link : open_links_) add_totals(all, *link);
  return all;
}

} // namespace parc::protocol
