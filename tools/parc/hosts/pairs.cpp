// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/hosts/pairs.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace parc::tools {
namespace {

const control::HostTried* find_tried(const OneOfPairs& from, const OneOfPairs& to) {
  const auto found = std::ranges::find(from.tried, to.host, &control::HostTried::name);
  return found == from.tried.end() ? nullptr : &*found;
}

std::string why_not(const OneOfPairs& from, const OneOfPairs& to) {
  const control::HostTried* const tried = find_tried(from, to);
  if (tried != nullptr) return fmt::format("{} says: {}", from.host, tried->text);
  return from.not_tried.empty() ? std::string() : fmt::format("{}: {}", from.host, from.not_tried);
}

// What both have found out, which is one thing: there is one link.
std::string way_between(const OneOfPairs& one, const OneOfPairs& other) {
  for (const control::HostTried* const tried : {find_tried(one, other), find_tried(other, one)})
    if (tried != nullptr && !tried->way.empty()) return tried->way;
  return {};
}

} // namespace

Pairs pairs_of(const std::vector<OneOfPairs>& up) {
  std::vector<const OneOfPairs*> asked;
  for (const OneOfPairs& host : up)
    if (!host.tried.empty() || !host.not_tried.empty()) asked.push_back(&host);
  if (constexpr auto most = control::HostQuestion::most_reached; asked.empty() && up.size() > most)
    return {.summary =
                fmt::format("whether they reach each other is looked at only of up to {} hosts", most)};
  Pairs pairs;
  std::size_t direct = 0, relayed = 0;
  for (std::size_t i = 0; i < asked.size(); ++i)
    for (std::size_t k = i + 1; k < asked.size(); ++k) {
      const OneOfPairs& one = *asked[i];
      const OneOfPairs& other = *asked[k];
      if (const std::string way = way_between(one, other); !way.empty()) {
        ++(way == "relay" ? relayed : direct);
        continue;
      }
      std::string why = why_not(one, other);
      if (const std::string more = why_not(other, one); !more.empty())
        why += (why.empty() ? "" : "; ") + more;
      pairs.problems.push_back(
          fmt::format("hosts {} and {} do not reach each other: {}", one.host, other.host, why));
    }
  const std::size_t reached = direct + relayed, all = reached + pairs.problems.size();
  if (all == 1 && reached == 1)
    pairs.summary = fmt::format("{} and {} reach each other{}", asked[0]->host, asked[1]->host,
                                relayed != 0 ? ", relayed" : "");
  else if (all != 0)
    pairs.summary = fmt::format("{} {} pairs of these hosts reach each other{}",
                                reached == all ? "all" : fmt::format("{} of the", reached), all,
                                relayed != 0 ? fmt::format(", {} of them relayed", relayed) : "");
  return pairs;
}

} // namespace parc::tools
