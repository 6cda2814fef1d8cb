// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/show.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <libsmartcols.h>
#include <memory>
#include <sys/utsname.h>
#include <thread>

namespace parc::heat::demo {

namespace {

struct Unref {
  void operator()(libscols_table* table) const { scols_unref_table(table); }
};

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

const Column columns[] = {
    {"HALO", true, [](const Row& r) { return std::to_string(r.halo_bytes); }},
    {"T_CALC", true, [](const Row& r) { return ms(r.t_calc_ms); }},
    {"T_COM", true, [](const Row& r) { return ms(r.t_com_ms); }},
    {"VARIANT", false, [](const Row& r) { return r.variant + marks(r); }},
    {"STEP", true, [](const Row& r) { return ms(r.step_ms); }},
    {"IDEAL", true, [](const Row& r) { return ms(std::max(r.t_calc_ms, r.t_com_ms)); }},
    {"GAIN", true, [](const Row& r) { return ratio(r.gain); }},
    {"OVER-PP", true, [](const Row& r) { return ratio(r.gain_pingpong); }},
};

std::string table(const std::vector<Row>& rows) {
  const std::unique_ptr<libscols_table, Unref> table(scols_new_table());
  for (const Column& column : columns)
    scols_table_new_column(table.get(), column.title, 0, column.number ? SCOLS_FL_RIGHT : 0);
  for (const Row& row : rows) {
    libscols_line* line = scols_table_new_line(table.get(), nullptr);
    std::size_t place = 0;
    for (const Column& column : columns) scols_line_set_data(line, place++, column.text(row).c_str());
  }
  scols_table_set_termforce(table.get(), SCOLS_TERMFORCE_NEVER); // never cut to the terminal
  char* text = nullptr;
  if (scols_print_table_to_string(table.get(), &text) != 0) return "";
  const std::unique_ptr<char, decltype(&std::free)> owner(text, std::free);
  return std::string(text) + '\n';
}

// Of the case in which there is most to gain, where calculation and exchange take about the same time.
std::string in_short(const std::vector<Row>& rows) {
  const auto balance = [](const Row& row) {
    return std::min(row.t_calc_ms, row.t_com_ms) / std::max(row.t_calc_ms, row.t_com_ms);
  };
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
                     hidden->variant, ms(std::max(best->t_calc_ms, best->t_com_ms)), ms(blocking->step_ms));
}

} // namespace

std::string report(const std::vector<Row>& rows) {
  std::string text = table(rows);
  text +=
      "Bytes and milliseconds. T_CALC: the calculation alone. T_COM: the exchange alone, over plain "
      "sockets.\n"
      "IDEAL: the longer of the two, where all of the other is hidden. GAIN: over I.1, the calls of parc\n"
      "that block. OVER-PP: over ping-pong, plain sockets that block.\n";
  if (std::ranges::any_of(rows, [](const Row& row) { return row.step_ms < row.t_calc_ms; }))
    text += "A STEP can be shorter than T_CALC: a rank that waits leaves more of the cache and of the memory "
            "to the\n"
            "others, and T_CALC is measured where none waits.\n";
  for (const Mark& mark : all_marks)
    if (std::ranges::any_of(rows, mark.holds)) text += fmt::format("{}  {}\n", mark.sign, mark.meaning);
  return text + in_short(rows);
}

Result<void> write_json(const std::string& path, const std::vector<Row>& rows,
                        const nlohmann::json& settings) {
  utsname system{};
  uname(&system);
  const nlohmann::json all = {
      {"schema", 1},
      {"demo", "heat"},
      {"machine", {{"cores", std::thread::hardware_concurrency()}, {"kernel", system.release}}},
      {"settings", settings},
      {"cases", rows}};
  std::ofstream file(path);
  file << all.dump(2) << '\n';
  file.close();
  if (!file) return system_error("cannot write {}", path);
  return success();
}

} // namespace parc::heat::demo
