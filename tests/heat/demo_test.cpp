// SPDX-License-Identifier: BSD-3-Clause
// The demo's formulae, the rows it makes of measurements, and the form in which it writes them.
#include "bench/heat/hosts.hpp"
#include "bench/heat/process.hpp"
#include "bench/heat/progress.hpp"
#include "bench/heat/samples.hpp"
#include "bench/heat/show.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

using namespace parc::heat::demo;

namespace {

Scene scene_of_one_halo() {
  Scene scene;
  scene.granularities = {{10000, 64, 1, true}, {10000, 64, 4, false}};
  return scene;
}

// Steps of 100 + 80 ms one after the other, and 104 ms when hidden; a repeat that was disturbed in between.
Samples samples() {
  Samples all;
  all[{0, "calc", {}}] = {{100, 100}};
  all[{0, "exchange", {}}] = {{79}, {80}, {500}};
  all[{0, "sequential", {}}] = {{202}};
  all[{0, "ping-pong", {}}] = {{260, 100}};
  all[{0, "I.1", true}] = {{182, 100}, {180, 100}, {190, 100}};
  all[{0, "I.1", false}] = {{186, 100}};
  all[{0, "I.3", true}] = {{104, 102}};
  all[{0, "I.3", false}] = {{124, 104, true, true}, {122, 104, false, false}};
  return all;
}

const Row& find(const std::vector<Row>& rows, const std::string& variant, std::optional<bool> realtime) {
  const auto found = std::ranges::find_if(
      rows, [&](const Row& row) { return row.variant == variant && row.realtime == realtime; });
  BOOST_REQUIRE(found != rows.end());
  return *found;
}

} // namespace

BOOST_AUTO_TEST_SUITE(demo)

BOOST_AUTO_TEST_CASE(rows_compare_medians) {
  const auto rows = make_rows(scene_of_one_halo(), {7, 28}, samples(), true);
  BOOST_TEST(rows.size() == 5U);
  const Row& hidden = find(rows, "I.3", true);
  BOOST_TEST(hidden.halo_bytes == 80000U);
  BOOST_TEST(hidden.ranks == 2U);
  BOOST_TEST(hidden.work == 7);
  BOOST_TEST(hidden.t_com_ms == 80.0);
  BOOST_TEST(hidden.gamma == 1.25);
  BOOST_TEST(hidden.t_calc_ms == 100.0);
  BOOST_TEST(hidden.t_calc_beside_ms == 102.0);
  BOOST_TEST(hidden.speedup == 202.0 / 104);
  BOOST_TEST(hidden.gain == 182.0 / 104);
  BOOST_TEST(hidden.gain_least == 182.0 / 104); // the other repeats of I.1 have no I.3 beside them
  BOOST_TEST(hidden.gain_most == 182.0 / 104);
  BOOST_TEST(hidden.t_com_parc_ms == 82.0);
  BOOST_TEST(hidden.f == 63.0 / 64);
  BOOST_TEST(hidden.omega == 0.02, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(hidden.gain_model == 1.82 / 1.02, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(hidden.gain_pingpong_model == 1.8);
  BOOST_TEST(hidden.gain_ideal == 1.82);
  BOOST_TEST(hidden.gain_pingpong == 2.5);
  BOOST_TEST(hidden.gain_pingpong_ideal == 260.0 / 160);
  BOOST_TEST(hidden.correct);
  BOOST_TEST((hidden.relay_late == false));

  const Row& normal = find(rows, "I.3", false);
  BOOST_TEST(normal.gain == 186.0 / 123); // with I.1 of its own class
  BOOST_TEST(normal.gain_model == 1.86 / 1.04, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(!normal.correct); // one repeat was wrong
  BOOST_TEST((normal.relay_late == true));
  BOOST_TEST(find(rows, "I.1", true).gain == 1.0);
  BOOST_TEST(find(rows, "ping-pong", {}).gain == 182.0 / 260);
}

BOOST_AUTO_TEST_CASE(a_row_without_its_references_is_not_made) {
  for (const char* missing : {"calc", "exchange", "sequential", "ping-pong"}) {
    Samples some = samples();
    some.erase({0, missing, {}});
    BOOST_TEST(make_rows(scene_of_one_halo(), {7, 28}, some, true).empty());
  }
  Samples some = samples();
  some.erase({0, "I.1", false});
  BOOST_TEST(make_rows(scene_of_one_halo(), {7, 28}, some, true).size() == 3U + 0U);
}

BOOST_AUTO_TEST_CASE(halo_of_several_granularities_has_one_exchange) {
  Scene scene = scene_of_one_halo();
  scene.granularities.push_back({1000, 64, 1, false});
  BOOST_TEST(first_with_halo(scene, 0) == 0U);
  BOOST_TEST(first_with_halo(scene, 1) == 0U);
  BOOST_TEST(first_with_halo(scene, 2) == 2U);
}

BOOST_AUTO_TEST_CASE(the_table_has_what_people_ask_for) {
  const std::string text = full_table(make_rows(scene_of_one_halo(), {7, 28}, samples(), true));
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  std::istringstream header(line);
  const std::vector<std::string> columns{std::istream_iterator<std::string>(header), {}};
  const std::vector<std::string> expected = {"HALO", "T_CALC", "T_COM", "VARIANT",
                                             "STEP", "IDEAL",  "GAIN",  "OVER-PP"};
  BOOST_TEST(columns == expected, boost::test_tools::per_element());
  for (int row = 0; row < 5; ++row) {
    BOOST_TEST(line.size() <= 80U);
    std::getline(lines, line);
    BOOST_TEST(line.starts_with("80000"));
    const bool late_and_wrong = line.find("I.3 ! * n ") != std::string::npos;
    BOOST_TEST(late_and_wrong == (line.find(" 123.0 ") != std::string::npos), line);
    BOOST_TEST((line.find(" 100.0 ") != std::string::npos), line); // t_calc, which is the ideal, too
  }
  for (const char* note : {"\nBytes and milliseconds", "\nThe model's gain of I.3", "\n!  WRONG",
                           "\n*  The machine was busy", "\nn  With kernels"})
    BOOST_TEST((text.find(note) != std::string::npos), note);
  while (std::getline(lines, line)) BOOST_TEST(line.size() <= 110U, line);
}

// Of three halos at six granularities: eight rows in 80 columns, where there is most to gain among them.
BOOST_AUTO_TEST_CASE(the_short_table_has_the_variants_side_by_side) {
  std::vector<Row> rows;
  for (const std::size_t halo : {8000, 80000, 800000})
    for (const double gamma : {0.1, 0.25, 0.5, 1.0, 1.6, 4.0})
      for (const char* variant :
           {"ping-pong", "I.1", "I.2", "I.2-nocopy", "I.1-early", "I.1-early-towards", "I.3"}) {
        Row& row = rows.emplace_back();
        row.variant = variant;
        row.halo_bytes = halo;
        row.gamma = gamma;
        row.t_com_ms = static_cast<double>(halo) / 1000;
        row.t_calc_ms = gamma * row.t_com_ms;
        row.step_ms = row.variant == "ping-pong" ? 2 * row.t_com_ms + row.t_calc_ms : row.t_com_ms * 4;
        row.gain_pingpong = (2 * row.t_com_ms + row.t_calc_ms) / row.step_ms;
        row.correct = true;
      }
  rows.back().correct = false; // I.3 of the last case
  std::istringstream lines(short_table(rows));
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) {
    BOOST_TEST(line.size() <= 80U, line);
    all.push_back(line);
  }
  BOOST_REQUIRE(all.size() > 9U);
  BOOST_TEST(all[0].find("8000 BYTES") != std::string::npos, all[0]);
  BOOST_TEST(all[1].starts_with("calculation + exchange"), all[1]);
  BOOST_TEST(all[1].find(" 80.0 + 80.0 ") != std::string::npos, all[1]); // balanced
  BOOST_TEST(all[2].starts_with("ideal"), all[2]);
  BOOST_TEST(all[2].find(" 80.0 (3.00) ") != std::string::npos, all[2]);
  BOOST_TEST(all[3].find(" 240.0 (1.00) ") != std::string::npos, all[3]);
  BOOST_TEST(all[8].starts_with("I.3 ! "), all[8]);
  BOOST_TEST(all[9].starts_with("In brackets"), all[9]);
}

BOOST_AUTO_TEST_CASE(the_short_table_ends_in_a_sentence) {
  const std::string text = short_table(make_rows(scene_of_one_halo(), {7, 28}, samples(), true));
  BOOST_TEST(text.ends_with("\nHidden: 104.0 ms a step (I.3), ideal 100.0; blocking: 260.0.\n"), text);
  BOOST_TEST(text.find("\nI.3") != std::string::npos, text);
  BOOST_TEST(text.find("104.0 (2.50)") != std::string::npos, text); // real-time
  BOOST_TEST(text.find("I.2") == std::string::npos, text);          // was not measured
}

BOOST_AUTO_TEST_CASE(the_time_left_follows_the_pace) {
  BOOST_TEST(time_left(60, 0, 0) == "60 s left");
  BOOST_TEST(time_left(60, 20, 40) == "80 s left");
  BOOST_TEST(time_left(3600, 0, 5) == "60 min left");
  BOOST_TEST(time_left(60, 70, 60) == "0 s left");
}

// What nothing in the table carries is not explained; a step below t_calc is.
BOOST_AUTO_TEST_CASE(the_table_explains_what_is_in_it) {
  Samples some = samples();
  some[{0, "I.3", true}] = {{98, 96}};
  const std::string shorter = full_table(make_rows(scene_of_one_halo(), {7, 28}, some, true));
  BOOST_TEST((shorter.find("shorter than the calculation") != std::string::npos));
  some = samples();
  for (const char* variant : {"I.1", "I.3"}) some.erase({0, variant, false});
  const std::string plain = full_table(make_rows(scene_of_one_halo(), {7, 28}, some, true));
  for (const char* absent : {"shorter than the calculation", "WRONG", "busy", "normal"})
    BOOST_TEST((plain.find(absent) == std::string::npos), absent);
}

BOOST_AUTO_TEST_CASE(json_has_the_keys_that_readers_rely_on) {
  const auto rows = make_rows(scene_of_one_halo(), {7, 28}, samples(), false);
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("parc-heat-{}.json", getpid());
  BOOST_REQUIRE(bool(write_json(path, rows, {{"preset", "wan"}})));
  const auto json = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  BOOST_TEST(json.at("schema") == 1);
  BOOST_REQUIRE_EQUAL(json.at("cases").size(), rows.size());
  const std::set<std::string> expected = {"variant",
                                          "ranks",
                                          "halo_bytes",
                                          "gamma",
                                          "realtime",
                                          "t_calc_ms",
                                          "t_com_ms",
                                          "t_com_parc_ms",
                                          "step_ms",
                                          "speedup",
                                          "t_calc_beside_ms",
                                          "gain",
                                          "gain_least",
                                          "gain_most",
                                          "f",
                                          "omega",
                                          "gain_model",
                                          "gain_ideal",
                                          "work",
                                          "gain_pingpong",
                                          "gain_pingpong_model",
                                          "gain_pingpong_ideal",
                                          "correct",
                                          "relay_late"};
  for (const auto& row : json.at("cases")) {
    std::set<std::string> keys;
    for (const auto& [key, value] : row.items()) keys.insert(key);
    BOOST_TEST(keys == expected, boost::test_tools::per_element());
    BOOST_TEST(row.at("relay_late").is_null()); // no link was emulated
    BOOST_TEST(row.at("realtime").is_null() == (row.at("variant") == "ping-pong"));
    const auto again = nlohmann::json(row.get<Row>());
    BOOST_TEST(again == row);
  }
}

BOOST_AUTO_TEST_CASE(unwritable_json_is_an_error) {
  const auto written = write_json("/nonexistent/heat.json", {}, {});
  BOOST_REQUIRE(!written);
  BOOST_TEST(written.error().text.find("/nonexistent/heat.json") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(relay_is_late_when_one_packet_in_a_hundred_is) {
  const RelayCounters before{1000, 50, 0};
  BOOST_TEST(!RelayCounters::was_late(before, before));
  BOOST_TEST(!RelayCounters::was_late(before, {2000, 60, 0}));
  BOOST_TEST(RelayCounters::was_late(before, {2000, 61, 0}));
}

BOOST_AUTO_TEST_CASE(programs_are_heard_and_none_is_left) {
  const std::vector<Command> good = {{"sh", "-c", "echo said; echo loudly >&2"}, {"sh", "-c", "exit 0"}};
  const auto ended = run_together(good, std::chrono::seconds(60));
  BOOST_REQUIRE(bool(ended));
  BOOST_TEST(ended.value()[0].output == "said\n");
  BOOST_TEST(ended.value()[0].errors == "loudly\n");
  BOOST_TEST(ended.value()[1].exit_status == 0);

  // One fails: the other, which would go on for ever, is ended, by SIGTERM because it obeys.
  const std::vector<Command> bad = {{"sleep", "infinity"}, {"sh", "-c", "exit 3"}};
  const auto failed = run_together(bad, std::chrono::seconds(60));
  BOOST_REQUIRE(bool(failed));
  BOOST_TEST(failed.value()[0].exit_status == 128 + SIGTERM);
  BOOST_TEST(failed.value()[1].exit_status == 3);

  const std::vector<Command> absent = {{"/nonexistent/program"}};
  const auto missing = run_together(absent, std::chrono::seconds(60));
  BOOST_REQUIRE(bool(missing));
  BOOST_TEST(missing.value()[0].exit_status == 127);
  BOOST_TEST(missing.value()[0].errors.find("/nonexistent/program") != std::string::npos);

  const std::vector<Command> endless = {{"sleep", "infinity"}};
  const auto late = run_together(endless, std::chrono::seconds(0));
  BOOST_REQUIRE(!late);
  BOOST_TEST(late.error().code == ETIMEDOUT);
}

BOOST_AUTO_TEST_CASE(pictures_are_drawn_wherever_they_go) {
  const std::string directory =
      std::filesystem::temp_directory_path() / ("parc demo's pictures " + std::to_string(getpid()));
  std::filesystem::create_directory(directory);
  const std::string field = directory + "/field.bin";
  const std::vector<double> points(6, 0.5);
  std::ofstream(field, std::ios::binary)
      .write(reinterpret_cast<const char*>(points.data()), static_cast<std::streamsize>(6 * sizeof(double)));
  const auto rows = make_rows(scene_of_one_halo(), {1, 1}, samples(), false);
  const auto gain = draw_gain(directory, "gain", rows);
  BOOST_REQUIRE(bool(gain));
  BOOST_TEST(std::filesystem::file_size(gain.value()) > 1000u);
  const auto temperature = draw_field(directory, "field", field, 2, 3);
  BOOST_REQUIRE(bool(temperature));
  BOOST_TEST(std::filesystem::file_size(temperature.value()) > 1000u);
  std::filesystem::remove_all(directory);
}

BOOST_AUTO_TEST_SUITE_END()
