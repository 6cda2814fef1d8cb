// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/show.hpp"

#include "system/columns.hpp"
#include "system/observe/machine.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <string_view>

namespace parc::heat::demo {

namespace {

struct Column {
  const char* title;
  bool number;
  std::string (*text)(const Row&);
};

// What keeps a row from being taken as it stands: a sign behind its variant, and a line below the table.
struct Mark {
  char sign;
  bool (*holds)(const Row&);
  const char* meaning;
};
constexpr Mark all_marks[] = {
    {'!', [](const Row& r) { return !r.correct; }, "WRONG: not the temperatures of the sequential solver."},
    {'*', [](const Row& r) { return r.relay_late.value_or(false); },
     "The machine was busy: one packet in a hundred, or more, was over 1 ms late on the emulated link."},
    {'n', [](const Row& r) { return !r.realtime.value_or(true); },
     "With kernels of the normal scheduling class, without real-time priority."},
};

std::string marks(const Row& row) {
  std::string text;
  for (const Mark& mark : all_marks)
    if (mark.holds(row)) text += std::string(" ") + mark.sign;
  return text;
}

std::string ms(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : 1);
}
std::string ratio(double value) {
  return fmt::format("{:.2f}", value);
}
std::string step_and_factor(double step_ms, double factor) {
  return fmt::format("{} ({})", ms(step_ms), ratio(factor));
}

// How far what the model says of I.3's gain is from what was measured, over all cases.
std::string model_beside_measurement(const std::vector<Row>& rows) {
  double sum = 0, worst = 0, spread_there = 0;
  std::size_t cases = 0;
  for (const Row& row : rows) {
    if (row.variant != "I.3" || row.gain_model <= 0) continue;
    const double off = std::abs(row.gain_model / row.gain - 1);
    ++cases;
    sum += off;
    if (off <= worst) continue;
    worst = off;
    spread_there = (row.gain_most - row.gain_least) / row.gain;
  }
  if (cases == 0) return "";
  return fmt::format(
      "The model's gain of I.3 over I.1 is off by {:.1f} % in the mean of {} cases, {:.1f} % at "
      "worst (there repeats\nspread over {:.1f} %).\n",
      100 * sum / static_cast<double>(cases), cases, 100 * worst, 100 * spread_there);
}

std::string why_shorter(const std::vector<Row>& rows) {
  if (std::ranges::none_of(rows, [](const Row& row) { return row.step_ms < row.t_calc_ms; })) return "";
  return "A step can be shorter than the calculation alone: a rank that waits leaves more of\n"
         "the cache and of the memory to the others, and alone none waits.\n";
}

double ideal_step(const Row& row) {
  return std::max(row.t_calc_ms, row.t_com_ms);
}

const Column columns[] = {
    {"HALO", true, [](const Row& r) { return std::to_string(r.halo_bytes); }},
    {"T_CALC", true, [](const Row& r) { return ms(r.t_calc_ms); }},
    {"T_COM", true, [](const Row& r) { return ms(r.t_com_ms); }},
    {"VARIANT", false, [](const Row& r) { return r.variant + marks(r); }},
    {"STEP", true, [](const Row& r) { return ms(r.step_ms); }},
    {"IDEAL", true, [](const Row& r) { return ms(ideal_step(r)); }},
    {"GAIN", true, [](const Row& r) { return ratio(r.gain); }},
    {"OVER-PP", true, [](const Row& r) { return ratio(r.gain_pingpong); }},
};

std::string table(const std::vector<Row>& rows) {
  std::vector<Texts> lines(1);
  std::vector<bool> numbers;
  for (const Column& column : columns) {
    lines[0].push_back(column.title);
    numbers.push_back(column.number);
  }
  for (const Row& row : rows) {
    auto& line = lines.emplace_back();
    for (const Column& column : columns) line.push_back(column.text(row));
  }
  return in_columns(lines, numbers);
}

std::string meaning_of_marks(const std::vector<Row>& rows) {
  std::string text;
  for (const Mark& mark : all_marks)
    if (std::ranges::any_of(rows, mark.holds)) text += fmt::format("{}  {}\n", mark.sign, mark.meaning);
  return text;
}

double balance(const Row& row) { // 1: calculation and exchange take the same time
  return std::min(row.t_calc_ms, row.t_com_ms) / ideal_step(row);
}

bool same_case(const Row& one, const Row& other) {
  return one.halo_bytes == other.halo_bytes && one.t_calc_ms == other.t_calc_ms;
}

// A row of each: of every halo that where there is most to gain, and the extremes of the largest halo.
std::vector<Row> chosen_cases(const std::vector<Row>& rows) {
  constexpr std::size_t most = 4; // that 80 columns have room for
  const auto order = [](const Row& row) { return std::pair(row.halo_bytes, row.t_calc_ms); };
  std::vector<Row> all = rows, chosen;
  std::ranges::stable_sort(all, {}, order);
  all.erase(std::unique(all.begin(), all.end(), same_case), all.end());
  const auto choose = [&](const Row& row) {
    if (chosen.size() < most &&
        std::ranges::none_of(chosen, [&](const Row& each) { return same_case(each, row); }))
      chosen.push_back(row);
  };
  for (auto end = all.rbegin(); end != all.rend();) {
    const auto begin = end;
    while (end != all.rend() && end->halo_bytes == begin->halo_bytes) ++end;
    choose(*std::max_element(begin, end, [](const Row& a, const Row& b) { return balance(a) < balance(b); }));
  }
  if (!all.empty()) choose(all.back());
  for (const Row& row : all)
    if (row.halo_bytes == all.back().halo_bytes) choose(row);
  for (const Row& row : all) choose(row);
  std::ranges::sort(chosen, {}, order);
  return chosen;
}

// Of kernels in both classes those with real-time priority.
const Row* find_row(const std::vector<Row>& rows, const Row& its_case, std::string_view variant) {
  const Row* found = nullptr;
  for (const Row& row : rows)
    if (same_case(row, its_case) && row.variant == variant && (found == nullptr || row.realtime == true))
      found = &row;
  return found;
}

// Of the case in which there is most to gain, where calculation and exchange take about the same time.
std::string in_short(const std::vector<Row>& rows) {
  const auto best = std::ranges::max_element(rows, {}, balance);
  if (best == rows.end()) return "";
  const Row* hidden = nullptr;
  const Row* blocking = nullptr;
  for (const Row& row : rows) {
    if (!row.correct || row.halo_bytes != best->halo_bytes || row.t_calc_ms != best->t_calc_ms) continue;
    if (row.variant == "ping-pong") blocking = &row;
    if ((row.variant == "I.2" || row.variant == "I.3") &&
        (hidden == nullptr || row.step_ms < hidden->step_ms))
      hidden = &row;
  }
  if (hidden == nullptr || blocking == nullptr) return "";
  return fmt::format("\nHidden: {} ms a step ({}), ideal {}; blocking: {}.\n", ms(hidden->step_ms),
                     hidden->variant, ms(ideal_step(*best)), ms(blocking->step_ms));
}

} // namespace

std::string full_table(const std::vector<Row>& rows) {
  std::string text = table(rows);
  text +=
      "Bytes and milliseconds. T_CALC: the calculation alone. T_COM: the exchange alone, over plain "
      "sockets.\n"
      "IDEAL: the longer of the two, where all of the other is hidden. GAIN: over I.1, the calls of parc\n"
      "that block. OVER-PP: over ping-pong, plain sockets that block.\n";
  text += model_beside_measurement(rows) + why_shorter(rows);
  return text + meaning_of_marks(rows);
}

std::string short_table(const std::vector<Row>& rows) {
  const std::vector<Row> cases = chosen_cases(rows);
  std::vector<Texts> lines = {{"MS A STEP"}, {"calculation + exchange"}, {"ideal"}};
  std::vector<bool> numbers = {false};
  for (const Row& each : cases) {
    lines[0].push_back(fmt::format("{} BYTES", each.halo_bytes));
    numbers.push_back(true);
    lines[1].push_back(fmt::format("{} + {}", ms(each.t_calc_ms), ms(each.t_com_ms)));
    const Row* const blocking = find_row(rows, each, "ping-pong");
    lines[2].push_back(blocking == nullptr
                           ? ms(ideal_step(each))
                           : step_and_factor(ideal_step(each), blocking->step_ms / ideal_step(each)));
  }
  std::vector<Row> shown;
  for (const char* variant : {"ping-pong", "I.1", "I.1-early", "I.1-early-towards", "I.2", "I.3"}) {
    std::vector<std::string> texts;
    std::set<char> signs; // of any of its cases
    for (const Row& each : cases) {
      const Row* const row = find_row(rows, each, variant);
      texts.push_back(row == nullptr ? "-" : step_and_factor(row->step_ms, row->gain_pingpong));
      if (row == nullptr) continue;
      shown.push_back(*row);
      for (const Mark& mark : all_marks)
        if (mark.holds(*row)) signs.insert(mark.sign);
    }
    if (std::ranges::all_of(texts, [](const std::string& text) { return text == "-"; })) continue;
    texts.insert(texts.begin(),
                 std::string(variant) + (signs.empty() ? "" : " ") + std::string(signs.begin(), signs.end()));
    lines.push_back(std::move(texts));
  }
  const bool wrong_elsewhere =
      std::ranges::all_of(shown, &Row::correct) && !std::ranges::all_of(rows, &Row::correct);
  return in_columns(lines, numbers) +
         "In brackets how many times as fast as ping-pong, plain sockets that block.\n"
         "ideal: the longer of calculation and exchange, where all of the other is hidden.\n" +
         why_shorter(shown) + meaning_of_marks(shown) +
         (wrong_elsewhere ? "Rows that are not shown here are WRONG.\n" : "") + in_short(rows);
}

Result<void> write_json(const std::string& path, const std::vector<Row>& rows,
                        const nlohmann::json& settings) {
  const Machine machine = this_machine();
  const nlohmann::json all = {{"schema", 1},
                              {"demo", "heat"},
                              {"machine",
                               {{"cores", machine.cores},
                                {"processor", machine.processor},
                                {"memory", machine.memory},
                                {"system", machine.system}}},
                              {"settings", settings},
                              {"cases", rows}};
  std::ofstream file(path);
  file << all.dump(2) << '\n';
  file.close();
  if (!file) return system_error("cannot write {}", path);
  return success();
}

} // namespace parc::heat::demo
