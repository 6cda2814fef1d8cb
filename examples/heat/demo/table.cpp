// SPDX-License-Identifier: BSD-3-Clause
#include "examples/heat/demo/show.hpp"

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
  std::string (*text)(const Row&);
};

std::string ms(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : 1);
}
std::string ratio(double value) {
  return fmt::format("{:.2f}", value);
}

const Column columns[] = {
    {"HALO", [](const Row& r) { return std::to_string(r.halo_bytes); }},
    {"WORK", [](const Row& r) { return std::to_string(r.work); }},
    {"GAMMA", [](const Row& r) { return ratio(r.gamma); }},
    {"VARIANT", [](const Row& r) { return r.variant; }},
    {"KERNEL",
     [](const Row& r) -> std::string { return !r.realtime   ? "-"
                                              : *r.realtime ? "real-time"
                                                            : "normal"; }},
    {"T_CALC", [](const Row& r) { return ms(r.t_calc_ms); }},
    {"BESIDE", [](const Row& r) { return ms(r.t_calc_beside_ms); }},
    {"T_COM", [](const Row& r) { return ms(r.t_com_ms); }},
    {"STEP", [](const Row& r) { return ms(r.step_ms); }},
    {"SPEEDUP", [](const Row& r) { return ratio(r.speedup); }},
    {"GAIN", [](const Row& r) { return ratio(r.gain); }},
    {"MODEL", [](const Row& r) { return ratio(r.gain_model); }},
    {"IDEAL", [](const Row& r) { return ratio(r.gain_ideal); }},
    {"OVER-PP", [](const Row& r) { return ratio(r.gain_pingpong); }},
    {"MODEL", [](const Row& r) { return ratio(r.gain_pingpong_model); }},
    {"IDEAL", [](const Row& r) { return ratio(r.gain_pingpong_ideal); }},
    {"EQUAL", [](const Row& r) -> std::string { return r.correct ? "yes" : "NO"; }},
    {"RELAY",
     [](const Row& r) -> std::string { return !r.relay_late   ? "-"
                                              : *r.relay_late ? "late"
                                                              : "in time"; }},
};

} // namespace

void print_table(const std::vector<Row>& rows) {
  const std::unique_ptr<libscols_table, Unref> table(scols_new_table());
  for (const Column& column : columns) {
    const bool words =
        std::string_view(column.title) == "VARIANT" || std::string_view(column.title) == "KERNEL";
    scols_table_new_column(table.get(), column.title, 0, words ? 0 : SCOLS_FL_RIGHT);
  }
  for (const Row& row : rows) {
    libscols_line* line = scols_table_new_line(table.get(), nullptr);
    std::size_t place = 0;
    for (const Column& column : columns) scols_line_set_data(line, place++, column.text(row).c_str());
  }
  scols_table_set_termforce(table.get(), SCOLS_TERMFORCE_NEVER); // wide: never cut to the terminal
  scols_print_table(table.get());
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
