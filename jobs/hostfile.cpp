// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/hostfile.hpp"

#include "system/quote.hpp"
#include "system/read_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <sstream>

namespace parc {
namespace {

// The words of a line, without its comment. "slots = 4" is "slots=4".
std::vector<std::string> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string> words;
  std::istringstream rest{std::string(line)};
  for (std::string word; rest >> word;) {
    const bool is_key = !words.empty() && words.back().find('=') == words.back().size() - 1;
    const bool continues = is_key || (!words.empty() && word.front() == '=');
    if (continues)
      words.back() += word;
    else
      words.push_back(std::move(word));
  }
  return words;
}

std::optional<std::uint32_t> slots_in(std::string_view text) {
  std::uint32_t slots = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (failure != std::errc{} || end != text.data() + text.size() || slots > max_slots) return {};
  return slots;
}

// What may stand behind a host. How many more ranks it could take is no matter here, nor how MPICH would bind
// them and by which interface it would reach them.
Result<void> take_word(HostSlots& host, std::string_view word) {
  constexpr std::array<std::string_view, 9> ignored{
      "max_slots", "max-slots", "slots_max", "slots-max", "cpu_max", "count_max", "binding", "ifname", "map"};
  const std::string_view key = word.substr(0, word.find('='));
  const std::string_view value = word.substr(std::min(key.size() + 1, word.size()));
  if (key == "slots" || key == "cpu" || key == "count") {
    const auto slots = slots_in(value);
    if (!slots)
      return error(EINVAL, "{} gives host {} no number of slots from 0 to {}", quote(word), host.name,
                   max_slots);
    host.slots = *slots;
    return success();
  }
  if (key == "user")
    return error(EINVAL,
                 "parc runs all ranks as the user who calls it, not as {}; name users of other "
                 "hosts in ~/.ssh/config",
                 quote(value));
  PARC_TRY(taken, set(host.place, key, value));
  if (taken) return success();
  if (std::ranges::find(ignored, key) != ignored.end() && key.size() != word.size()) return success();
  return error(EINVAL, "{} behind host {} means nothing; write slots=4", quote(word), host.name);
}

Result<HostSlots> host_of_line(const std::vector<std::string>& words) {
  if (words[0].front() == '^' || words[0].front() == '+')
    return error(EINVAL, "{} chooses among other hosts; write the hosts that are to be used",
                 quote(words[0]));
  PARC_TRY(host, parse_host(words[0]));
  for (std::size_t i = 1; i < words.size(); ++i) {
    PARC_TRY(take_word(host, words[i]));
  }
  return host;
}

Result<HostSlots> host_of_grid_engine(const std::vector<std::string>& words) {
  PARC_TRY(host, parse_host(words[0]));
  const auto slots = words.size() > 1 ? slots_in(words[1]) : std::nullopt;
  if (!slots) return error(EINVAL, "host {} has no number of slots", host.name);
  host.slots = *slots;
  return host;
}

using Line = Result<HostSlots> (*)(const std::vector<std::string>& words);

Result<std::vector<HostSlots>> parse(std::string_view text, std::string_view name, Line host_of) {
  HostList hosts;
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf"; // of editors on other systems
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const auto words = words_of(line);
    if (words.empty()) continue;
    auto host = host_of(words);
    if (!host) return std::move(host).error().in(fmt::format("{}:{}", name, number));
    if (host.value().slots != 0) hosts.add(std::move(host).value()); // 0: not to be used
  }
  if (hosts.empty()) return error(EINVAL, "{} names no host; write one in each line, as a slots=4", name);
  return std::move(hosts).take();
}

Result<std::vector<HostSlots>> read(const std::string& path, Line host_of) {
  const auto text = read_file(path, "hosts from ");
  if (!text)
    return error(text.error().code, "{}; name a file that has a host a line, or hosts with --hosts",
                 text.error().text);
  return parse(text.value(), path, host_of);
}

} // namespace

Result<std::vector<HostSlots>> parse_hostfile(std::string_view text, std::string_view name) {
  return parse(text, name, host_of_line);
}

Result<std::vector<HostSlots>> read_hostfile(const std::string& path) {
  return read(path, host_of_line);
}

std::string to_line(const HostSlots& host) {
  std::string line = fmt::format("{} slots={}", host.name, std::min(host.slots, max_slots));
  if (!host.place.prefix.empty()) line += " prefix=" + host.place.prefix;
  if (!host.place.wdir.empty()) line += " wdir=" + host.place.wdir;
  for (const std::string& variable : host.place.env) line += " env=" + variable;
  return line + "\n";
}

Result<std::vector<HostSlots>> read_grid_engine_hostfile(const std::string& path) {
  return read(path, host_of_grid_engine);
}

} // namespace parc
