// SPDX-License-Identifier: BSD-3-Clause
// What the demo measures: scenes, each one link with the cases that are measured on it, and what came out.
// Both travel as JSON between the demo and the part of it that runs inside an emulation.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace parc::heat::demo {

// The part of a plate that one rank has, and the ratio t_calc / t_com at which it is calculated: `gamma` is
// aimed at by choosing how often each column is calculated.
struct Granularity {
  std::size_t points = 1000;
  std::size_t columns = 64;
  double gamma = 1;
  bool both_classes = false; // with kernels in the normal class besides those with real-time priority
};

struct Scene {
  std::string preset = "wan"; // of wanlink
  std::string rtt, rate;      // in place of the preset's
  std::size_t ranks = 2;
  int socket_buffer = 0;             // bytes; 0: the system's
  std::vector<std::string> variants; // over parc: I.1 among them, which the others are compared with
  std::vector<Granularity> granularities;
  int steps = 0; // of a run; 0: as many as fill a moment
  int repeats = 3;
  double seconds = 0;  // no run begins that would end later; 0: no limit
  std::string field;   // file for the temperatures of a plate made for looking at; empty: none
  bool asleep = false; // ranks sleep for as long as they would calculate
};

// One row of the table: medians over all repeats.
struct Row {
  std::string variant;
  std::size_t ranks = 0;
  std::size_t halo_bytes = 0;
  double gamma = 0;
  std::optional<bool> realtime; // empty: no kernel takes part
  double t_calc_ms = 0;
  double t_calc_beside_ms = 0;
  double t_com_ms = 0;      // over plain sockets
  double t_com_parc_ms = 0; // of I.1, whose calls block
  double step_ms = 0;
  double speedup = 0;
  double gain = 0, gain_ideal = 0;
  double gain_least = 0, gain_most = 0;    // of single repeats, each with I.1 of the same repeat
  double f = 0, omega = 0, gain_model = 0; // the model's, of I.3 over I.1: the same in all rows of a case
  double gain_pingpong = 0, gain_pingpong_model = 0, gain_pingpong_ideal = 0;
  int work = 0;
  std::vector<double> steps_ms, calculations_ms; // of each repeat; for callers of measure(), not in JSON
  bool correct = false;
  std::optional<bool> relay_late; // empty: no link is emulated
};

struct Results {
  std::vector<Row> rows;
  double relay_cpu = 0; // cores that the relay used while variants ran
  std::string note;     // what could not be measured, and why
};

void to_json(nlohmann::json& json, const Row& row);
void from_json(const nlohmann::json& json, Row& row);
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Granularity, points, columns, gamma, both_classes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Scene, preset, rtt, rate, ranks, socket_buffer, variants, granularities,
                                   steps, repeats, seconds, field, asleep)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Results, rows, relay_cpu, note)

} // namespace parc::heat::demo
