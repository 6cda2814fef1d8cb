// SPDX-License-Identifier: BSD-3-Clause
#include "control/words/door.hpp"

#include "control/words/texts.hpp"
#include "system/job_name.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

namespace parc::control::door {

static_assert(longest_job_name + longest_host_name + 2 * 10 + 4 <= most_wanted); // what libparc wants
static_assert(most_wanted <= UINT16_MAX);

std::string joiner_says(const Wish& wish) {
  std::string texts;
  for (const std::string& each : {wish.name, wish.host, wish.rank, wish.size}) add_text(texts, each);
  const auto length = static_cast<std::uint16_t>(texts.size());
  std::string all(1, joiner);
  return all.append(reinterpret_cast<const char*>(&length), sizeof length).append(texts);
}

std::size_t length_of_wish(std::string_view said) {
  std::uint16_t length = 0;
  std::memcpy(&length, said.data() + 1, sizeof length);
  return length;
}

std::optional<Wish> wish_in(std::string_view texts) {
  auto all = texts_in(texts);
  if (!all || all->size() != 4) return {};
  return Wish{std::move((*all)[0]), std::move((*all)[1]), std::move((*all)[2]), std::move((*all)[3])};
}

std::string refusal_says(int code, std::string_view text) {
  return fmt::format("{}{} {}", refused, code, text);
}

std::optional<Refusal> refusal_in(std::string_view behind) {
  const auto space = behind.find(' ');
  if (space == behind.npos) return {};
  Refusal refusal{.text = std::string(behind.substr(space + 1))};
  std::from_chars(behind.data(), behind.data() + space, refusal.code);
  return refusal;
}

} // namespace parc::control::door
