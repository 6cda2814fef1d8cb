// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/candidates.hpp"

#include <algorithm>

namespace parc::daemon {
namespace {

constexpr unsigned turns_of_relay = 4; // a few seconds, where nobody answers

} // namespace

const Candidate* Candidates::find(Source source) const {
  const auto found = std::ranges::find(all_, source, &Candidate::source);
  return found == all_.end() ? nullptr : &*found;
}

void Candidates::drop(Source source) {
  std::erase_if(all_, [source](const Candidate& each) { return each.source == source; });
}

void Candidates::put(Source source, const Address& at) {
  drop(source);
  all_.push_back({.address = at, .source = source, .answered = {}});
}

void Candidates::answered(const Address& at, Loop::Time when) {
  put(Source::dialed, at);
  all_.back().answered = when;
}

void Candidates::answered_back(const Address& at, Loop::Time when) {
  put(Source::called_back, at);
  all_.back().answered = when;
}

const Candidate* Candidates::last_answered() const {
  const Candidate* last = nullptr;
  for (const Candidate& each : all_)
    if (each.answered) last = &each;
  return last;
}

std::optional<Address> Candidates::tunnel() const {
  const Candidate* const last = last_answered();
  return last != nullptr && last->address.family() == AF_UNIX ? std::optional(last->address) : std::nullopt;
}

void Candidates::advertised(std::optional<Address> at) {
  drop(Source::advertised);
  if (at) put(Source::advertised, *at);
}

void Candidates::resolved(const std::vector<Address>& all) {
  drop(Source::resolved);
  for (const Address& each : all)
    all_.push_back({.address = each, .source = Source::resolved, .answered = {}});
}

bool Candidates::has_answered_at(const Address& at) const {
  if (!at.is_ip()) return false; // it is whoever carries the bytes that refuses there
  return std::ranges::any_of(
      all_, [&](const Candidate& each) { return each.answered.has_value() && each.address == at; });
}

// What it says of itself is passed over where this side has reached it, and goes before what its connections
// look like: those may come through a translator of addresses.
std::optional<Address> Candidates::listens_at() const {
  const Candidate* const told = find(Source::advertised);
  const Candidate* const met = find(Source::dialed);
  const Candidate* const seen = told == nullptr ? find(Source::seen) : nullptr;
  const Candidate* const last = seen != nullptr && (met == nullptr || met < seen) ? seen : met;
  if (last != nullptr) return last->address;
  return told != nullptr ? std::optional(told->address) : std::nullopt;
}

std::optional<Address> Candidates::for_others() const {
  const Candidate* const told = find(Source::advertised);
  return told != nullptr ? told->address : listens_at();
}

std::vector<Address> Candidates::places(bool by_name) const {
  std::vector<Address> places;
  for (const Candidate& each : all_)
    if (each.source == Source::resolved) places.push_back(each.address);
  const Candidate* const met = last_answered();
  const auto other = !by_name ? listens_at() : met != nullptr ? std::optional(met->address) : std::nullopt;
  if (other && (!by_name || places.empty()) && std::ranges::find(places, *other) == places.end())
    places.push_back(*other);
  return places;
}

std::optional<Address> Candidates::dial(unsigned turn, bool by_name) const {
  const std::vector<Address> known = places(by_name);
  const auto direct = known.empty() ? std::nullopt : std::optional(known[turn % known.size()]);
  // Not for a moment without a direct way.
  if (const auto by = relay(); by && (!direct || turn % turns_of_relay == turns_of_relay - 1)) return by;
  return direct;
}

std::optional<Address> Candidates::relay() const {
  const Candidate* const by = find(Source::relayed);
  return by != nullptr ? std::optional(by->address) : std::nullopt;
}

} // namespace parc::daemon
