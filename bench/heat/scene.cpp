// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/scene.hpp"

namespace parc::heat::demo {

namespace {

nlohmann::json or_null(const std::optional<bool>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

std::optional<bool> optional(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional<bool>(value.get<bool>());
}

// Every number of a row and its name; both directions walk this list.
template <class AnyRow, class Visit> void visit_numbers(AnyRow& row, const Visit& visit) {
  visit("ranks", row.ranks);
  visit("halo_bytes", row.halo_bytes);
  visit("gamma", row.gamma);
  visit("t_calc_ms", row.t_calc_ms);
  visit("t_calc_beside_ms", row.t_calc_beside_ms);
  visit("t_com_ms", row.t_com_ms);
  visit("t_com_parc_ms", row.t_com_parc_ms);
  visit("step_ms", row.step_ms);
  visit("speedup", row.speedup);
  visit("gain", row.gain);
  visit("gain_least", row.gain_least);
  visit("gain_most", row.gain_most);
  visit("f", row.f);
  visit("omega", row.omega);
  visit("gain_model", row.gain_model);
  visit("gain_ideal", row.gain_ideal);
  visit("gain_pingpong", row.gain_pingpong);
  visit("gain_pingpong_model", row.gain_pingpong_model);
  visit("gain_pingpong_ideal", row.gain_pingpong_ideal);
  visit("work", row.work);
}

} // namespace

void to_json(nlohmann::json& json, const Row& row) {
  json = {{"variant", row.variant},
          {"realtime", or_null(row.realtime)},
          {"correct", row.correct},
          {"relay_late", or_null(row.relay_late)}};
  visit_numbers(row, [&](const char* name, const auto& value) { json[name] = value; });
}

void from_json(const nlohmann::json& json, Row& row) {
  json.at("variant").get_to(row.variant);
  json.at("correct").get_to(row.correct);
  row.realtime = optional(json.at("realtime"));
  row.relay_late = optional(json.at("relay_late"));
  visit_numbers(row, [&](const char* name, auto& value) { json.at(name).get_to(value); });
}

} // namespace parc::heat::demo
