// SPDX-License-Identifier: BSD-3-Clause
// What one direction of an emulated link does to packets, the presets, and how people write them.
// Invariant: parsing is total: every text gives a value or a sentence that names the text.
#pragma once

#include "system/error.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parc::wanlink {

struct Settings {
  std::int64_t delay_ns = 0;         // one way
  std::int64_t jitter_ns = 0;        // delay is uniform in delay +- jitter; packets keep their order
  std::uint64_t rate = 0;            // bit/s of IP packets, headers included; 0: unlimited
  std::uint64_t queue = 1024 * 1024; // bytes that may wait for the wire before new ones are dropped
  double loss = 0;                   // probability that a packet is lost, each on its own
  std::uint64_t connection_rate = 0; // bit/s of each connection: what is more, and the queue, is dropped
  std::uint64_t largest_packet = 0;  // bytes: larger ones are lost, and nobody is told; 0: none is too large
};

struct Preset {
  std::string_view name;
  std::string_view meaning;
  Settings settings;
};

[[nodiscard]] std::span<const Preset> presets();
[[nodiscard]] Result<Settings> preset(std::string_view name);

// Some of the settings of one direction; what is empty stays as it is.
struct Change {
  std::optional<std::int64_t> delay_ns = {};
  std::optional<std::int64_t> jitter_ns = {};
  std::optional<std::uint64_t> rate = {};
  std::optional<std::uint64_t> queue = {};
  std::optional<double> loss = {};
  std::optional<std::uint64_t> connection_rate = {};
  std::optional<std::uint64_t> largest_packet = {};

  void apply_to(Settings& settings) const;
};

// A change of a link between two hosts: from the first-named to the second, and back.
struct TwoWayChange {
  Change forth;
  Change back;
};

struct Direction {
  std::string from, to;                  // hosts
  std::vector<std::uint16_t> ports = {}; // at which it is open all the same
};
// FROM:TO, or FROM:TO/PORT/..., separated by commas.
[[nodiscard]] Result<std::vector<Direction>> parse_directions(const std::string& text);

// The options as they were written: VALUE for both directions, or FORTH:BACK, where either may be empty.
struct ChangeText {
  std::string delay = {};
  std::string rtt = {}; // half of it each way
  std::string jitter = {};
  std::string rate = {};
  std::string queue = {};
  std::string loss = {};
  std::string connection_rate = {};
  std::string largest_packet = {};
};

[[nodiscard]] Result<TwoWayChange> parse(const ChangeText& text);

void to_json(nlohmann::json& json, const Change& change);
void from_json(const nlohmann::json& json, Change& change);

} // namespace parc::wanlink
