// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/measure.hpp"
#include "bench/heat/runner.hpp"

#include <algorithm>
#include <cmath>

namespace parc::heat::demo {

namespace {

constexpr double start_seconds = 0.5; // about what starting a run, and checking it, takes

class Measurement {
public:
  Measurement(const Scene& scene, const Hosts& hosts, Progress& progress)
      : scene_(scene), hosts_(hosts), progress_(progress), runner_(hosts, scene.ranks, scene.socket_buffer),
        work_(scene.granularities.size(), 1), column_ms_(scene.granularities.size(), 0) {}

  Result<Results> all() {
    PARC_TRY(find_classes());
    PARC_TRY(calibrate());
    const double expected = expected_seconds(), left = scene_.seconds - seconds_used();
    progress_.expect(scene_.seconds > 0 ? std::min(expected, left) : expected, cases());
    for (int repeat = 0; repeat < scene_.repeats; ++repeat) {
      PARC_TRY(measure_once(repeat));
    }
    if (!scene_.field.empty()) {
      PARC_TRY(draw_field());
    }
    results_.rows = make_rows(scene_, work_, samples_, hosts_.emulated());
    results_.relay_cpu = runner_.relay_cpu();
    if (scene_.asleep) results_.note += "Ranks slept for as long as they would have calculated (--asleep).\n";
    if (left_out_ > 0) results_.note += fmt::format("{} runs were left out: the time was up.\n", left_out_);
    return std::move(results_);
  }

private:
  // Whether kernels may have real-time priority here, in words of parcd where not.
  Result<void> find_classes() {
    auto kernels = Kernels::start(hosts_, {true, scene_.socket_buffer});
    if (kernels) {
      const bool both = std::ranges::any_of(scene_.granularities, &Granularity::both_classes);
      classes_ = both ? std::vector{true, false} : std::vector{true};
      return success();
    }
    classes_ = {false};
    results_.note = fmt::format("Kernels run without real-time priority: {}", kernels.error().text);
    return success();
  }

  // How often columns have to be calculated for each granularity: from t_com, and the time that a point takes
  // when all ranks calculate.
  Result<void> calibrate() {
    std::map<std::size_t, double> t_com, point_ms;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const Granularity& g = scene_.granularities[i];
      const double all_points = static_cast<double>(g.points * g.columns);
      if (!t_com.contains(g.points)) {
        progress_.begin(0, fmt::format("calibrating {} bytes", g.points * sizeof(double)));
        PARC_TRY(exchange, runner_.run({"exchange", g.points, g.columns, 1, 5}));
        t_com[g.points] = exchange.step_ms;
      }
      if (scene_.asleep) {
        column_ms_[i] = g.gamma * t_com[g.points] / static_cast<double>(g.columns);
        estimates_.push_back({g.gamma * t_com[g.points] / 1e3, t_com[g.points] / 1e3});
        continue;
      }
      if (!point_ms.contains(g.points)) {
        constexpr double guess_ms = 0.7e-6, long_enough_ms = 20;
        const int work = std::max(1, static_cast<int>(long_enough_ms / (guess_ms * all_points)));
        PARC_TRY(calc, runner_.run({"calc", g.points, g.columns, work, 5}));
        point_ms[g.points] = calc.calculation_ms / work / all_points;
      }
      work_[i] = std::max(
          1, static_cast<int>(std::lround(g.gamma * t_com[g.points] / (point_ms[g.points] * all_points))));
      estimates_.push_back({point_ms[g.points] * all_points * work_[i] / 1e3, t_com[g.points] / 1e3});
    }
    return success();
  }

  // One after the other is the longest that any variant should take.
  [[nodiscard]] double step_seconds(std::size_t granularity, const std::string& variant) const {
    const auto [calc, com] = estimates_[granularity];
    if (variant == "sequential") return calc * static_cast<double>(scene_.ranks);
    if (variant == "calc") return calc;
    if (variant == "exchange") return com;
    return variant == "I.3" ? std::max(calc, com) : variant == "ping-pong" ? calc + 2 * com : calc + com;
  }

  [[nodiscard]] int steps(std::size_t granularity, const std::string& variant) const {
    if (variant == "sequential") return 3;
    if (scene_.steps > 0 && variant != "calc") return scene_.steps;
    const double moment = scene_.seconds > 0 ? 0.6 : 1.0;
    return std::clamp(static_cast<int>(moment / step_seconds(granularity, variant)),
                      variant == "calc" ? 5 : 8, 50);
  }

  [[nodiscard]] double run_seconds(std::size_t granularity, const std::string& variant) const {
    return start_seconds + step_seconds(granularity, variant) * (usual_warm_up + steps(granularity, variant));
  }

  // What is run at one granularity with kernels of one class; what needs no kernel is run with the first.
  [[nodiscard]] std::vector<std::string> variants(std::size_t granularity, bool first_class) const {
    std::vector<std::string> all;
    if (first_class && first_with_halo(scene_, granularity) == granularity) all.push_back("exchange");
    if (first_class) all.insert(all.end(), {"calc", "sequential", "ping-pong"});
    if (first_class || scene_.granularities[granularity].both_classes)
      all.insert(all.end(), scene_.variants.begin(), scene_.variants.end());
    return all;
  }

  [[nodiscard]] double expected_seconds() const {
    double seconds = 0;
    for (std::size_t i = 0; i < work_.size(); ++i)
      for (const bool realtime : classes_)
        for (const std::string& variant : variants(i, realtime == classes_.front()))
          seconds += run_seconds(i, variant);
    return seconds * scene_.repeats;
  }

  // Those that measure_once() begins, in all repeats.
  [[nodiscard]] int cases() const {
    int each = 0;
    for (std::size_t i = 0; i < work_.size(); ++i)
      for (const bool realtime : classes_) each += variants(i, realtime == classes_.front()).empty() ? 0 : 1;
    return each * scene_.repeats;
  }

  Result<void> measure_once(int repeat) {
    for (const bool realtime : classes_) {
      auto kernels = Kernels::start(hosts_, {realtime, scene_.socket_buffer});
      if (!kernels) return std::move(kernels).error();
      for (std::size_t i = 0; i < work_.size(); ++i) {
        std::string line;
        const std::vector<std::string> runs = variants(i, realtime == classes_.front());
        if (!runs.empty()) progress_.begin_case();
        for (const std::string& variant : runs) {
          if (out_of_time(run_seconds(i, variant))) continue;
          progress_.begin(run_seconds(i, variant), in_short(i, realtime) + variant);
          PARC_TRY(sample, runner_.run(planned(i, variant)));
          line += fmt::format("{}{} {:.1f}", line.empty() ? "" : ", ", variant, sample.step_ms);
          const auto its_class = over_parc(variant) ? std::optional(realtime) : std::nullopt;
          samples_[{i, variant, its_class}].push_back(sample);
        }
        if (!line.empty())
          progress_.line(fmt::format("{}: ms per step: {}", describe(repeat, i, realtime), line));
      }
    }
    return success();
  }

  [[nodiscard]] Run planned(std::size_t granularity, const std::string& variant) const {
    const Granularity& g = scene_.granularities[granularity];
    return {variant,
            g.points,
            g.columns,
            work_[granularity],
            steps(granularity, variant),
            variant == "sequential" ? 1 : usual_warm_up,
            column_ms_[granularity]};
  }

  [[nodiscard]] std::string describe(int repeat, std::size_t granularity, bool realtime) const {
    const Granularity& g = scene_.granularities[granularity];
    return fmt::format("{}, {} bytes, {} columns, gamma {:.2g}, {} kernels, {} of {}",
                       hosts_.emulated() ? scene_.preset : "loopback", g.points * sizeof(double), g.columns,
                       g.gamma, realtime ? "real-time" : "normal", repeat + 1, scene_.repeats);
  }

  [[nodiscard]] std::string in_short(std::size_t granularity, bool realtime) const {
    const Granularity& g = scene_.granularities[granularity];
    return fmt::format("{} bytes, {}", g.points * sizeof(double),
                       realtime || classes_.size() == 1 ? "" : "normal kernels, ");
  }

  [[nodiscard]] double seconds_used() const {
    return std::chrono::duration<double>(Clock::now() - started_).count();
  }

  bool out_of_time(double seconds) {
    if (scene_.seconds <= 0 || seconds_used() + seconds <= scene_.seconds) return false;
    ++left_out_;
    return true;
  }

  // A plate with as many points in each direction, long enough for the heat to be seen moving.
  Result<void> draw_field() {
    auto kernels = Kernels::start(hosts_, {classes_.front(), scene_.socket_buffer});
    if (!kernels) return std::move(kernels).error();
    Run picture{"I.3", field_points, field_columns(scene_.ranks) / scene_.ranks};
    picture.steps = 200;
    picture.field = scene_.field;
    progress_.expect(0, 0);
    progress_.begin(0, "the temperature field");
    PARC_TRY(sample, runner_.run(picture));
    if (!sample.correct) return error(EDOM, "the temperature field is not that of the sequential solver");
    return success();
  }

  const Scene& scene_;
  const Hosts& hosts_;
  Progress& progress_;
  Runner runner_;
  std::vector<bool> classes_;                        // real-time or not, in this order
  std::vector<int> work_;                            // of each granularity
  std::vector<double> column_ms_;                    // likewise, where ranks sleep
  std::vector<std::pair<double, double>> estimates_; // seconds: t_calc, t_com
  Samples samples_;
  Results results_;
  Clock::time_point started_ = Clock::now();
  int left_out_ = 0;
};

} // namespace

Result<Results> measure(const Scene& scene, const Hosts& hosts, Progress& progress) {
  return Measurement(scene, hosts, progress).all();
}

} // namespace parc::heat::demo
