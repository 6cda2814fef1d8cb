// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/samples.hpp"

#include "model/gain.hpp"

#include <algorithm>

namespace parc::heat::demo {

namespace {

double median(const std::vector<Sample>& samples, double Sample::*member) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.*member);
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

const std::vector<Sample>* find(const Samples& samples, const Measured& what) {
  const auto found = samples.find(what);
  return found == samples.end() || found->second.empty() ? nullptr : &found->second;
}

// Of one granularity, what all its rows are compared with.
struct Reference {
  double t_calc, t_com, t_seq, ping_pong;
};

std::optional<Reference> find_reference(const Scene& scene, const Samples& samples, std::size_t granularity) {
  const auto* calc = find(samples, {granularity, "calc", {}});
  const auto* exchange = find(samples, {first_with_halo(scene, granularity), "exchange", {}});
  const auto* sequential = find(samples, {granularity, "sequential", {}});
  const auto* ping_pong = find(samples, {granularity, "ping-pong", {}});
  if (!calc || !exchange || !sequential || !ping_pong) return std::nullopt;
  return Reference{median(*calc, &Sample::calculation_ms), median(*exchange, &Sample::step_ms),
                   median(*sequential, &Sample::step_ms), median(*ping_pong, &Sample::step_ms)};
}

// With kernels of the same class; plain sockets are compared with the best class there is.
const std::vector<Sample>* find_over_parc(const Samples& samples, std::size_t granularity,
                                          const std::string& variant, std::optional<bool> realtime) {
  if (realtime) return find(samples, {granularity, variant, realtime});
  const auto* best = find(samples, {granularity, variant, true});
  return best ? best : find(samples, {granularity, variant, false});
}

// What the model says of I.3 from what I.1 takes, with kernels of the same class: it hides behind all columns
// but those that neighbours need, and its calculation takes longer beside messages by Omega.
void apply_model(Row& row, const Scene& scene, const Samples& samples, const Measured& what) {
  const auto* blocking = find_over_parc(samples, what.granularity, "I.1", what.realtime);
  const auto* hidden = find_over_parc(samples, what.granularity, "I.3", what.realtime);
  if (!blocking || !hidden) return;
  const double needed_first = scene.ranks > 2 ? 2 : 1;
  const double t_calc = median(*blocking, &Sample::calculation_ms);
  row.t_com_parc_ms = std::max(median(*blocking, &Sample::step_ms) - t_calc, 0.0);
  row.f =
      std::max(0.0, 1 - needed_first / static_cast<double>(scene.granularities[what.granularity].columns));
  row.omega = std::max(0.0, median(*hidden, &Sample::calculation_ms) / t_calc - 1);
  row.gain_model = model::gain(row.t_com_parc_ms / t_calc, {row.f, row.omega});
}

// Of repeats that both have.
void add_spread(Row& row, const std::vector<Sample>& blocking, const std::vector<Sample>& runs) {
  for (std::size_t i = 0; i < std::min(blocking.size(), runs.size()); ++i) {
    const double gain = blocking[i].step_ms / runs[i].step_ms;
    row.gain_least = i == 0 ? gain : std::min(row.gain_least, gain);
    row.gain_most = std::max(row.gain_most, gain);
  }
}

// Where t_com is what a step of the reference took besides its calculation: the gain of a program that hides
// all it can of that.
double ideal_gain(double t_calc, double reference_step) {
  return model::gain_of_times(t_calc, std::max(reference_step - t_calc, 0.0));
}

} // namespace

std::size_t first_with_halo(const Scene& scene, std::size_t granularity) {
  std::size_t first = 0;
  while (scene.granularities[first].points != scene.granularities[granularity].points) ++first;
  return first;
}

std::vector<Row> make_rows(const Scene& scene, const std::vector<int>& work, const Samples& samples,
                           bool emulated) {
  std::vector<Row> rows;
  for (const auto& [what, runs] : samples) {
    if (what.variant == "calc" || what.variant == "exchange" || what.variant == "sequential") continue;
    const auto reference = find_reference(scene, samples, what.granularity);
    const auto* blocking = find_over_parc(samples, what.granularity, "I.1", what.realtime);
    if (!reference || !blocking || runs.empty()) continue;
    const double blocking_step = median(*blocking, &Sample::step_ms);
    Row row;
    row.variant = what.variant;
    row.ranks = scene.ranks;
    row.halo_bytes = scene.granularities[what.granularity].points * sizeof(double);
    row.realtime = what.realtime;
    row.work = work[what.granularity];
    row.t_calc_ms = reference->t_calc;
    row.t_com_ms = reference->t_com;
    row.gamma = reference->t_calc / reference->t_com;
    row.t_calc_beside_ms = median(runs, &Sample::calculation_ms);
    row.step_ms = median(runs, &Sample::step_ms);
    for (const Sample& sample : runs) {
      row.steps_ms.push_back(sample.step_ms);
      row.calculations_ms.push_back(sample.calculation_ms);
    }
    row.speedup = reference->t_seq / row.step_ms;
    row.gain = blocking_step / row.step_ms;
    add_spread(row, *blocking, runs);
    apply_model(row, scene, samples, what);
    row.gain_ideal = ideal_gain(reference->t_calc, blocking_step);
    row.gain_pingpong = reference->ping_pong / row.step_ms;
    row.gain_pingpong_model = model::gain_of_times(reference->t_calc, reference->t_com);
    row.gain_pingpong_ideal = ideal_gain(reference->t_calc, reference->ping_pong);
    row.correct = std::ranges::all_of(runs, &Sample::correct);
    if (emulated) row.relay_late = std::ranges::any_of(runs, &Sample::relay_late);
    rows.push_back(row);
  }
  return rows;
}

} // namespace parc::heat::demo
