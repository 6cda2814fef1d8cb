// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/relay/relays.hpp"

#include "daemon/link/handshake.hpp"
#include "daemon/relay/relayed_stream.hpp"
#include "daemon/settings/config.hpp"
#include "system/quote.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>

namespace parc::daemon {
namespace {

constexpr std::size_t most_legs = 2048; // at a relay, two of each connection
// Of what lies here, but for the least window of each; who comes gets a share of what is left.
constexpr std::uint64_t memory_of_relay = 512 << 20, share_of_window = 16;
constexpr std::size_t most_unanswered = 1024; // over a link
constexpr std::size_t most_reaching = 128;    // that one kernel asks for at once

} // namespace

void Relays::begin(Links links) {
  links_ = std::move(links);
  post_.on<kernel::RelayOpen>([this](std::int32_t from, kernel::RelayOpen message) { asked(from, message); });
  post_.on<kernel::RelayOpened>(
      [this](std::int32_t from, kernel::RelayOpened message) { opened(from, message); });
  post_.on<kernel::RelayBytes>(
      [this](std::int32_t from, kernel::RelayBytes message) { came(from, std::move(message)); });
  post_.on<kernel::RelayTaken>(
      [this](std::int32_t from, kernel::RelayTaken message) { taken(from, message); });
  post_.on<kernel::RelayClose>(
      [this](std::int32_t from, kernel::RelayClose message) { closed(from, message); });
}

Result<std::unique_ptr<Stream>> Relays::dial(const Address& to, KeyUse use) {
  if (!to.relayed()) return under_.dial(to, use);
  const Address::RelayTarget target = to.relay_target();
  if (target.via.empty()) {
    std::vector<std::int32_t> links = links_.all();
    std::erase_if(links, [&](std::int32_t link) { // it has a link to itself that may be dead
      return target.identity != 0 ? links_.identity(link) == drawn_identity(target.identity)
                                  : links_.name(link) == target.name;
    });
    return std::unique_ptr<Stream>(std::make_unique<RelayedStream>(*this, to, std::move(links)));
  }
  auto stream = std::make_unique<RelayedStream>(*this, to, std::vector<std::int32_t>());
  reach(*stream);
  return std::unique_ptr<Stream>(std::move(stream));
}

void Relays::accept_for(Acceptance owner) {
  owner_ = owner;
  under_.accept_for(std::move(owner));
}

Relays::Leg* Relays::find(const Key& key) {
  const auto found = legs_.find(key);
  return found == legs_.end() ? nullptr : &found->second;
}

// Its own patience is that of who waits for the stream.
void Relays::reach(RelayedStream& end) {
  const std::uint64_t number = ++numbers_;
  ends_.emplace(number, &end);
  links_.connect(end.peer().relay_target().via, 0, [this, number](const Result<std::int32_t>& link) {
    const auto waits = ends_.extract(number);
    if (!waits.empty()) waits.mapped()->relay_reached(link);
  });
}

void Relays::stop_reaching(const RelayedStream& end) {
  std::erase_if(ends_, [&end](const auto& each) { return each.second == &end; });
}

// ---- What ends say. They may be in the middle of the turn's steps: it leaves at the end of the step.

std::optional<Relays::Key> Relays::ask(std::int32_t link, const Address& to, RelayedStream& end) {
  if (!post_.reaches(link)) return std::nullopt;
  const Key key{link, true, ++numbers_};
  legs_[key].end = &end;
  const auto [identity, name, via] = to.relay_target();
  loop_.after_step(
      [this, key,
       message = kernel::RelayOpen{.stream = key.number,
                                   .to = drawn_identity(identity),
                                   .name = name,
                                   .reach = via.empty() ? 0u : 1u}] { post_.send(key.link, message); });
  return key;
}

void Relays::send_bytes(const Key& from, std::string bytes) {
  loop_.after_step([this, from, bytes = std::move(bytes)]() mutable {
    outboxes_.send(
        from.link,
        kernel::RelayBytes{.stream = from.number, .begun = from.begun_here, .payload = std::move(bytes)});
  });
}

void Relays::send_taken(const Key& from, std::uint64_t bytes) {
  if (Leg* const leg = find(from); leg != nullptr && leg->end != nullptr)
    leg->unread -= std::min(leg->unread, bytes);
  loop_.after_step([this, from, bytes] {
    post_.send(from.link,
               kernel::RelayTaken{.stream = from.number, .begun = from.begun_here, .bytes = bytes});
  });
}

void Relays::forget(const Key& key, const char* why) {
  legs_.erase(key);
  loop_.after_step([this, key, why] { close(key, why); });
}

void Relays::close(const Key& key, const std::string& why) {
  outboxes_.send(key.link, kernel::RelayClose{.stream = key.number,
                                              .begun = key.begun_here,
                                              .text = harmless(why).substr(0, kernel::longest_reason)});
}

// ---- What comes.

void Relays::asked(std::int32_t from, const kernel::RelayOpen& message) {
  const Key key{from, false, message.stream};
  if (from == this_host || !post_.reaches(from)) return;
  if (find(key) != nullptr || reaching_.erase(key) != 0) {
    close(key, "it has been asked for before");
    return drop(key, "it was asked for again");
  }
  if (message.from != 0) return accept(key, message);
  relay(key, message);
}

void Relays::relay(const Key& from, const kernel::RelayOpen& message) {
  if (!links_.may_ask(from.link)) return close(from, "it relays for nobody who has only a relay key");
  if (legs_.size() + 2 * connecting_ + 2 > most_legs || outboxes_.kept() > memory_of_relay)
    return close(from, "too many connections are relayed there");
  if (message.reach == 0 && !links_.is_near(from.link)) return close(from, "no link leads there");
  if (message.reach == 0 || links_.to(message.to, message.name))
    return relay_to(from, message, "no link leads there");
  if (!parse_host_name(message.name)) return close(from, "that is no name of a host");
  if (is_waited_for(from.link, message.name))
    return close(from,
                 fmt::format("[hosts] there says via host {}: it leads in circles", links_.name(from.link)));
  const auto is_its = [&from](const Key& key) { return key.link == from.link; };
  if (static_cast<std::size_t>(std::ranges::count_if(reaching_, is_its)) >= most_reaching)
    return close(from, "it asks for too many hosts at once");
  reaching_.insert(from);
  ++connecting_;
  links_.connect(message.name, message.to, [this, from, message](const Result<std::int32_t>& link) {
    --connecting_;
    if (reaching_.erase(from) == 0) return; // nobody wants it any more
    relay_to(from, message, link ? "it has no link of its own to that host" : link.error().text);
  });
}

// What leads in circles over more than two is over when somebody's patience is.
bool Relays::is_waited_for(std::int32_t link, const std::string& host) const {
  return std::ranges::any_of(legs_, [&](const auto& each) {
    const auto& [key, leg] = each;
    if (key.link != link || !key.begun_here || leg.end == nullptr || leg.opened) return false;
    const Address::RelayTarget target = leg.end->peer().relay_target();
    return !target.via.empty() && target.name == host;
  });
}

std::uint64_t Relays::window_for(const kernel::RelayOpen& message) const {
  std::uint64_t given = 0;
  for (const auto& [key, leg] : legs_)
    if (leg.end == nullptr) given += leg.window;
  const std::uint64_t share = (memory_of_relay - std::min(given, memory_of_relay)) / share_of_window;
  return std::min(message.window, std::max(share, kernel::least_relay_window));
}

void Relays::relay_to(const Key& from, const kernel::RelayOpen& message, const std::string& why_not) {
  const auto link = links_.to(message.to, message.name);
  if (!link || *link == from.link) return close(from, why_not);
  std::set<std::uint64_t>& unanswered = unanswered_[*link];
  if (unanswered.size() >= most_unanswered) return close(from, "the host there does not answer");
  const Key to{*link, true, ++numbers_};
  const std::uint64_t window = window_for(message);
  unanswered.insert(to.number);
  legs_[from] = {.other = to, .window = window};
  legs_[to] = {.other = from, .window = window};
  post_.send(to.link, kernel::RelayOpen{.stream = to.number,
                                        .to = links_.identity(to.link),
                                        .from = links_.identity(from.link),
                                        .name = links_.name(from.link),
                                        .reach = message.reach,
                                        .window = window});
  spdlog::debug("relays a link between hosts {} and {}", links_.name(from.link), links_.name(to.link));
}

void Relays::accept(const Key& from, const kernel::RelayOpen& message) {
  if (!owner_.room || !owner_.room()) return close(from, "too many have not said who they are");
  auto stream = std::make_unique<RelayedStream>(*this, relayed_address(message.from, message.name), from,
                                                message.window, message.reach != 0);
  legs_[from] = {.end = stream.get(), .window = message.window};
  post_.send(from.link, kernel::RelayOpened{.stream = from.number, .window = message.window});
  owner_.accepted(std::move(stream));
}

void Relays::opened(std::int32_t from, const kernel::RelayOpened& message) {
  if (const auto asked = unanswered_.find(from); asked != unanswered_.end())
    asked->second.erase(message.stream);
  Leg* const leg = find({from, true, message.stream});
  if (leg == nullptr || std::exchange(leg->opened, true)) return;
  leg->window = std::min(leg->window, message.window);
  if (leg->end != nullptr) return leg->end->is_open(leg->window);
  Leg* const other = find(leg->other);
  if (other == nullptr || leg->other.begun_here) return;
  other->window = leg->window;
  post_.send(leg->other.link, kernel::RelayOpened{.stream = leg->other.number, .window = leg->window});
}

void Relays::came(std::int32_t from, kernel::RelayBytes message) {
  const Key key{from, message.begun == 0, message.stream};
  Leg* const leg = find(key);
  if (leg == nullptr) return; // it has ended meanwhile
  if (!message.payload.empty()) leg->unread += kernel::cost_of_relayed(message.payload.size());
  const bool goes_on = !leg->ended;
  leg->ended = message.payload.empty();
  if (leg->unread > leg->window || !goes_on) {
    close(key, "it sends more than it may");
    return drop(key, "it was sent more than it may be");
  }
  if (leg->end != nullptr) return leg->end->came(std::move(message.payload));
  outboxes_.send(leg->other.link, kernel::RelayBytes{.stream = leg->other.number,
                                                     .begun = leg->other.begun_here,
                                                     .payload = std::move(message.payload)});
}

// Of what went from here: at a relay, from the other leg on.
void Relays::taken(std::int32_t from, const kernel::RelayTaken& message) {
  Leg* const leg = find({from, message.begun == 0, message.stream});
  if (leg == nullptr) return;
  if (leg->end != nullptr) return leg->end->may_send(message.bytes);
  Leg* const other = find(leg->other);
  const std::uint64_t bytes = other != nullptr ? std::min(other->unread, message.bytes) : 0;
  if (bytes == 0) return;
  other->unread -= bytes;
  other->untold += bytes;
  if (other->untold >= kernel::least_told(other->window))
    send_taken(leg->other, std::exchange(other->untold, 0));
}

void Relays::closed(std::int32_t from, const kernel::RelayClose& message) {
  const Key key{from, message.begun == 0, message.stream};
  if (const auto asked = unanswered_.find(from); key.begun_here && asked != unanswered_.end())
    asked->second.erase(key.number);
  if (reaching_.erase(key) == 0) drop(key, message.text);
}

void Relays::drop(const Key& key, const std::string& why) {
  const auto leg = legs_.extract(key);
  if (leg.empty()) return;
  outboxes_.drop(key.link, key.number, key.begun_here);
  if (leg.mapped().end != nullptr) return leg.mapped().end->is_closed(why);
  legs_.erase(leg.mapped().other);
  close(leg.mapped().other, why);
}

bool Relays::none() const {
  return reaching_.empty() &&
         std::ranges::all_of(legs_, [](const auto& each) { return each.second.end != nullptr; });
}

void Relays::link_lost(std::int32_t link) {
  outboxes_.link_lost(link);
  unanswered_.erase(link);
  std::erase_if(reaching_, [link](const Key& key) { return key.link == link; });
  std::vector<Key> gone;
  for (const auto& [key, leg] : legs_)
    if (key.link == link) gone.push_back(key);
  for (const Key& key : gone) drop(key, "the link to its other end is lost");
}

} // namespace parc::daemon
