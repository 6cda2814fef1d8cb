// SPDX-License-Identifier: BSD-3-Clause
#include "control/words/host_words.hpp"

#include "jobs/placement.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace parc::control {
namespace {

// After how many ranks their hosts come round again, as place_all() makes them.
std::size_t period_of(std::span<const std::uint32_t> hosts) {
  // Knuth, Morris and Pratt: border[i] is how much of the beginning the first i + 1 end with.
  std::vector<std::size_t> border(hosts.size());
  for (std::size_t i = 1; i < hosts.size(); ++i) {
    std::size_t length = border[i - 1];
    while (length != 0 && hosts[i] != hosts[length]) length = border[length - 1];
    border[i] = hosts[i] == hosts[length] ? length + 1 : 0;
  }
  return hosts.size() - border.back();
}

std::vector<Run> runs_of(std::span<const std::uint32_t> hosts) {
  std::vector<Run> runs;
  for (const std::uint32_t host : hosts) {
    if (runs.empty() || runs.back().host != host) runs.push_back({host, 0});
    ++runs.back().ranks;
  }
  return runs;
}

std::optional<std::size_t> number_in(std::string_view digits) {
  std::size_t number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc() || end != digits.data() + digits.size()) return {};
  return number;
}

} // namespace

std::string host_words(std::span<const std::uint32_t> host_of_rank, std::span<const std::string> names) {
  const auto all = runs_of(host_of_rank), round = runs_of(host_of_rank.first(period_of(host_of_rank)));
  std::string text;
  for (const Run& run : round.size() < all.size() ? round : all)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", names[run.host], run.ranks);
  return text;
}

std::optional<std::vector<std::string>> hosts_in(std::string_view words, std::size_t ranks) {
  std::vector<std::string> names;
  while (!words.empty()) {
    const auto run = words.substr(0, words.find(','));
    words.remove_prefix(std::min(run.size() + 1, words.size()));
    const auto colon = run.rfind(':');
    const auto count = colon == run.npos ? std::nullopt : number_in(run.substr(colon + 1));
    if (!count || *count > ranks - names.size()) return {};
    names.insert(names.end(), *count, std::string(run.substr(0, colon)));
  }
  const std::size_t round = names.size();
  if (round == 0) return {};
  names.reserve(ranks);
  while (names.size() < ranks) names.push_back(names[names.size() - round]);
  return names;
}

std::string too_many_host_words(std::size_t bytes) {
  return fmt::format(
      "the names of the hosts of its ranks, in their order, take {} bytes, of at most {}: place "
      "neighbouring ranks on one host, or give hosts shorter names",
      bytes, most_host_words);
}

} // namespace parc::control
