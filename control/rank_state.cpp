// SPDX-License-Identifier: BSD-3-Clause
#include "control/rank_state.hpp"

namespace parc::control {

template <> struct Codec<Unfinished> {
  static constexpr std::array fields{
      field<&Unfinished::peer>("peer"),           field<&Unfinished::tag>("tag"),
      field<&Unfinished::context>("context"),     field<&Unfinished::bytes>("bytes"),
      field<&Unfinished::in_place>("in_place"),   field<&Unfinished::age_ms>("age_ms"),
      field<&Unfinished::writes>("writes"),       field<&Unfinished::probes>("probes"),
      field<&Unfinished::one_sided>("one_sided"), field<&Unfinished::atomic>("atomic"),
      field<&Unfinished::begun>("begun")};
  static void put(nlohmann::json& to, const Unfinished& value) { to = put_fields(fields, &value); }
  static bool take(const nlohmann::json& from, Unfinished& value, std::uint64_t) {
    return take_fields(fields, &value, from, {}).has_value();
  }
};

// Only what stands: a dump has many ranks in which nothing does.
template <> struct Codec<RankState::Backlog> {
  using Backlog = RankState::Backlog;
  static constexpr std::array fields{field<&Backlog::to_neighbours>("to_neighbours"),
                                     field<&Backlog::to_neighbours_bytes>("to_neighbours_bytes"),
                                     field<&Backlog::from_neighbours>("from_neighbours"),
                                     field<&Backlog::from_neighbours_bytes>("from_neighbours_bytes"),
                                     field<&Backlog::put_off>("put_off"),
                                     field<&Backlog::kernel_held>("kernel_held"),
                                     field<&Backlog::kernel_unread>("kernel_unread")};
  static void put(nlohmann::json& to, const Backlog& value) {
    to = put_fields(fields, &value);
    for (auto each = to.begin(); each != to.end();) each = *each == 0 ? to.erase(each) : std::next(each);
  }
  static bool take(const nlohmann::json& from, Backlog& value, std::uint64_t) {
    if (!from.is_object()) return false;
    nlohmann::json all = put_fields(fields, &value);
    for (auto& [name, number] : all.items()) number = 0;
    for (const auto& [name, number] : from.items()) all[name] = number;
    return take_fields(fields, &value, all, {}).has_value();
  }
};

namespace {

constexpr std::array fields{field<&RankState::rank>("rank", UINT32_MAX),
                            field<&RankState::process>("pid", INT32_MAX),
                            field<&RankState::host>("host"),
                            field<&RankState::program>("program"),
                            field<&RankState::joined>("joined"),
                            field<&RankState::resting>("resting"),
                            field<&RankState::more>("more"),
                            field<&RankState::operations>("unfinished", most_unfinished),
                            field<&RankState::backlog>("backlog")};

} // namespace

void Codec<RankState>::put(nlohmann::json& to, const RankState& value) {
  to = put_fields(fields, &value);
}

bool Codec<RankState>::take(const nlohmann::json& from, RankState& value, std::uint64_t) {
  return take_fields(fields, &value, from, {}).has_value();
}

} // namespace parc::control
