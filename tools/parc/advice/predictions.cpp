// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/advice/predictions.hpp"

#include "tools/parc/advice/usual_step.hpp"

#include <algorithm>
#include <limits>

namespace parc::tools {
namespace {

using model::Waits;
using model::Wire;
using model::Wires;

constexpr double long_path = 2.5e-3; // s, one way: where parcd makes more streams than one
constexpr double releasing = 5e-6;   // s: two calls of mprotect, and the guard
constexpr double payload = 0.955;    // of a rate: headers of packets of 1500 bytes, of TLS and of parc
constexpr std::size_t most_places = 12;
constexpr double steps_apart = 0.001; // of a step: less is no difference

class Predictor {
public:
  explicit Predictor(const TracedRun& traced) : traced_(traced) {
    const auto marks = model::replay(traced.run, traced.wires, {}).marks;
    now_ = usual_step(marks);
    stuck_ = marks.size() < std::max<std::size_t>(traced.steps + 1, 2);
  }

  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] bool stuck() const { return stuck_; }
  // What was measured, times the ratio of two replays.
  [[nodiscard]] double step(const Wires& wires, const Waits& waits) const {
    return now_ <= 0 ? traced_.step : traced_.step * replayed(wires, waits) / now_;
  }
  [[nodiscard]] double only_messages() const {
    const model::Run run = model::only_messages(traced_.run);
    return now_ <= 0 ? 0 : traced_.step * usual_step(model::replay(run, traced_.wires, {}).marks) / now_;
  }

  // Of all wires between two hosts.
  template <class Change> [[nodiscard]] Wires changed(const Change& change) const {
    Wires wires = traced_.wires;
    for (std::size_t from = 0; from < wires.hosts(); ++from)
      for (std::size_t to = 0; to < wires.hosts(); ++to)
        if (from != to) change(wires.between(from, to));
    return wires;
  }

private:
  [[nodiscard]] double replayed(const Wires& wires, const Waits& waits) const {
    return usual_step(model::replay(traced_.run, wires, waits).marks);
  }

  const TracedRun& traced_;
  double now_ = 0;
  bool stuck_ = false; // the replay of what was
};

void find_limit(const Predictor& predictor, const TracedRun& traced, Predictions& predictions) {
  const double no_latency = predictor.step(predictor.changed([](Wire& wire) { wire.latency = 0; }), {});
  const double any_rate = predictor.step(
      predictor.changed([](Wire& wire) { wire.bandwidth = std::numeric_limits<double>::infinity(); }), {});
  predictions.calculation = predictor.step(predictor.changed([](Wire& wire) {
    wire = {0, std::numeric_limits<double>::infinity()};
  }),
                                           {});
  if (predictions.calculation > 0.95 * traced.step) {
    predictions.without_limit = predictions.calculation;
    return;
  }
  predictions.limit = no_latency < any_rate ? Limit::latency : Limit::bandwidth;
  predictions.without_limit = std::min(no_latency, any_rate);
}

} // namespace

Predictions predict(const TracedRun& traced, const std::vector<NamedLink>& links, ReleaseAt at) {
  const Predictor predictor(traced);
  Predictions predictions;
  predictions.replayed = predictor.now();
  predictions.stuck = predictor.stuck();
  predictions.hidden = predictor.step(traced.wires, {.where = Waits::Where::first_touch});
  predictions.released = predictor.step(
      traced.wires, {.where = at == ReleaseAt::once ? Waits::Where::released : Waits::Where::begun,
                     .release = releasing,
                     .wake = traced.wake});
  find_limit(predictor, traced, predictions);
  predictions.messages = predictor.only_messages();
  predictions.best =
      std::min({traced.step, predictions.hidden, std::max(predictions.calculation, predictions.messages)});

  const bool is_long = [&] {
    for (std::size_t from = 0; from < traced.wires.hosts(); ++from)
      for (std::size_t to = 0; to < traced.wires.hosts(); ++to)
        if (from != to && traced.wires.between(from, to).latency >= long_path) return true;
    return false;
  }();
  for (const int streams : {2, 4})
    if (is_long)
      predictions.others.push_back(
          {fmt::format("streams_{}", streams),
           fmt::format("{} times the bandwidth, as by {} streams", streams, streams),
           predictor.step(predictor.changed([&](Wire& wire) { wire.bandwidth *= streams; }), {})});
  for (const NamedLink& each : links) {
    const Wires wires = predictor.changed([&](Wire& wire) {
      wire = {each.link.startup, payload * each.link.bandwidth};
    });
    predictions.others.push_back({each.name, fmt::format("on {}", each.name), predictor.step(wires, {})});
    predictions.others.push_back({each.name + ", hidden", fmt::format("on {}, hidden", each.name),
                                  predictor.step(wires, {.where = Waits::Where::first_touch})});
  }
  std::vector<std::uint32_t> places; // those that have cost the most: each takes a replay
  for (std::uint32_t place = 0; place < traced.places.size(); ++place)
    if (traced.places[place].waits != 0) places.push_back(place);
  std::ranges::sort(places, std::ranges::greater(),
                    [&](std::uint32_t place) { return traced.places[place].waited; });
  if (places.size() > most_places) places.resize(most_places);
  for (const std::uint32_t place : places)
    predictions.lines.push_back(
        {place, predictor.step(traced.wires, {.where = Waits::Where::first_touch, .place = place})});
  std::ranges::stable_sort(predictions.lines, [&](const LinePrediction& a, const LinePrediction& b) {
    if (std::abs(a.step - b.step) > steps_apart * traced.step) return a.step < b.step;
    return traced.places[a.place].waited > traced.places[b.place].waited;
  });
  return predictions;
}

} // namespace parc::tools
