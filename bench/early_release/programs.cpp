// SPDX-License-Identifier: BSD-3-Clause
#include "bench/early_release/programs.hpp"
#include "bench/early_release/patterns.hpp"
#include "bench/heat/show.hpp"
#include "system/observe/machine.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <numeric>
#include <regex>
#include <thread>
#include <unistd.h>

namespace parc::bench {
namespace {

struct Link {
  double delay, rate; // s, bytes/s
};
constexpr int work_of_uneven = 4; // times, so that half of it is a number
const std::map<std::string_view, Link> links{
    {"metro", {1e-3, 125e6}}, {"wan", {10e-3, 12.5e6}}, {"gigabit", {0, 125e6}}};

// What each rank said, in their order.
struct Step {
  std::vector<double> step_ms, cpu_ms;
  [[nodiscard]] double slowest() const { return *std::ranges::max_element(step_ms); }
  [[nodiscard]] double all_cpu_ms() const { return std::accumulate(cpu_ms.begin(), cpu_ms.end(), 0.0); }
};

// How long the cores of this machine have worked, together.
double busy_ms() {
  return std::chrono::duration<double, std::milli>(core_times().value_or(CoreTimes{}).worked).count();
}

struct Case {
  std::string program, name;
  Command size;   // options of the program
  double bytes;   // of one message
  int uneven = 0; // per cent
};

class Programs {
public:
  Programs(const Hosts& hosts, std::string_view preset)
      : hosts_(hosts), ranks_(static_cast<int>(hosts.count())), link_(links.at(preset)), preset_(preset) {}

  Result<std::vector<Row>> measure(int repeats) {
    std::vector<Row> rows;
    PARC_TRY(cases, make_cases());
    for (const Case& each : cases) {
      PARC_TRY(found, measure_case(each, repeats));
      rows.insert(rows.end(), found.begin(), found.end());
    }
    return rows;
  }

private:
  // Sizes at which a step's messages take about as long on the link as its calculation, half and twice that.
  Result<std::vector<Case>> make_cases() {
    std::vector<Case> cases;
    const double row_bytes = preset_ == "wan" ? 80'000 : 800'000;
    const auto points = static_cast<int>(row_bytes / sizeof(double));
    for (const double gamma : {0.5, 1.0, 2.0}) {
      Command size{"--size", std::to_string(points), "--rows", std::to_string(16 * ranks_), "--work", "1"};
      PARC_TRY(once, run("poisson", size, {"--alone"}));
      const double wanted_ms = gamma * (link_.delay + row_bytes / link_.rate) * 1e3;
      size.back() = std::to_string(std::max(1, static_cast<int>(wanted_ms / once.slowest())));
      cases.push_back({"poisson", name("poisson", gamma), size, row_bytes});
      if (gamma == 1) cases.push_back(uneven_case(cases.back()));
    }
    for (const double gamma : {0.5, 1.0, 2.0}) {
      PARC_TRY(particles, particles_for(gamma, 1));
      cases.push_back(nbody_case(gamma, particles, 1));
    }
    PARC_TRY(particles, particles_for(1, work_of_uneven));
    cases.push_back(uneven_case(nbody_case(1, particles, work_of_uneven)));
    for (const int size : {128, 256, 384, 704}) cases.push_back(m3_case(size, 1));
    cases.push_back(uneven_case(m3_case(128, work_of_uneven)));
    return cases;
  }

  [[nodiscard]] Case nbody_case(double gamma, int particles, int work) const {
    return {"nbody",
            fmt::format("{}, {} particles", name("nbody", gamma), particles),
            {"--particles", std::to_string(particles), "--work", std::to_string(work)},
            static_cast<double>(particles) / ranks_ * 32};
  }

  [[nodiscard]] Case m3_case(int size, int work) const {
    return {"m3",
            fmt::format("{}, m3, {} ranks, size {}", preset_, ranks_, size),
            {"--size", std::to_string(size), "--work", std::to_string(work)},
            static_cast<double>(size) * size * 8 / (ranks_ - 1)};
  }

  // Half as much again in one step, and half in the next: where the paper gains most.
  [[nodiscard]] static Case uneven_case(Case even) {
    even.name += ", uneven";
    even.size.insert(even.size.end(), {"--uneven", "50"});
    even.uneven = 50;
    return even;
  }

  [[nodiscard]] std::string name(const char* program, double gamma) const {
    return fmt::format("{}, {}, {} ranks, gamma {}", preset_, program, ranks_, gamma);
  }

  // Calculation grows with the square, messages with the number.
  Result<int> particles_for(double gamma, int work) {
    int particles = 512;
    for (int attempt = 0; attempt < 12; ++attempt, particles = particles * 5 / 4) {
      PARC_TRY(alone, run("nbody", nbody_case(gamma, particles, work).size, {"--alone"}));
      const double bytes = static_cast<double>(particles) / ranks_ * 32;
      if (alone.slowest() >= gamma * (link_.delay + bytes / link_.rate) * 1e3) break;
    }
    return particles;
  }

  Result<std::vector<Row>> measure_case(const Case& what, int repeats) {
    Row step{what.name, "step, released early", "ms", "the same program, blocking", "<= 1.02"};
    Row gain{what.name, "gain over blocking", "ms", "the best possible gain", ""};
    double share = 0;
    PARC_TRY(steps, steps_of(what));
    PARC_TRY(moving, moving_ms(what, steps));
    for (int repeat = 0; repeat < repeats; ++repeat) {
      PARC_TRY(alone, run(what.program, what.size, {"--alone"}, {}, steps / 2));
      PARC_TRY(silent, run(what.program, what.size, {"--only-messages"}, {}, steps));
      PARC_TRY(blocking, run(what.program, what.size, {}, {}, steps));
      PARC_TRY(early, run(what.program, what.size, {}, "--early-release", steps));
      const Pattern pattern = pattern_of(what, alone.cpu_ms);
      Machine machine = fit(what, silent.slowest());
      machine.moving = moving / 1e3 / bytes_of(pattern);
      const double best = simulate(pattern, machine, false) * 1e3;
      const double model_blocking = simulate(pattern, machine, true) * 1e3;
      step.add(early.slowest(), blocking.slowest());
      gain.add(blocking.slowest() - early.slowest(), std::max(blocking.slowest() - best, 1e-3));
      share = 1 - alone.slowest() / blocking.slowest();
      std::cerr << fmt::format(
          "{}: alone {:.1f}, messages {:.1f}, blocking {:.1f} (model {:.1f}), early {:.1f} "
          "(best {:.1f}) ms, moving its messages {:.1f} ms of a core\n",
          what.name, alone.slowest(), silent.slowest(), blocking.slowest(), model_blocking, early.slowest(),
          best, moving);
    }
    if (share >= 0.2 && share <= 0.8) gain.goal = ">= 0.9";
    return std::vector<Row>{step, gain};
  }

  // About a second of them, in pairs: uneven ones differ in two.
  Result<int> steps_of(const Case& what) {
    PARC_TRY(glance, run(what.program, what.size, {}));
    return std::clamp(static_cast<int>(500 / glance.slowest()), 10, 250) * 2;
  }

  // Work of kernels and of the emulated network in a step: what the cores do while the program does nothing
  // but its messages, less what the program itself does then, and less what starting it takes.
  Result<double> moving_ms(const Case& what, int steps) {
    const double before = busy_ms();
    PARC_TRY(first, run(what.program, what.size, {"--only-messages"}, {}, 1));
    const double between = busy_ms();
    PARC_TRY(all, run(what.program, what.size, {"--only-messages"}, {}, 1 + steps));
    const double busy = (busy_ms() - between) - (between - before);
    return std::max(0.0, (busy - all.all_cpu_ms() * (1 + steps) + first.all_cpu_ms()) / steps);
  }

  [[nodiscard]] Pattern pattern_of(const Case& what, const std::vector<double>& cpu_ms) const {
    return uneven(even_pattern_of(what, cpu_ms), what.uneven / 100.0, what.program == "m3" ? 1 : 0);
  }

  [[nodiscard]] Pattern even_pattern_of(const Case& what, const std::vector<double>& cpu_ms) const {
    const double largest = *std::ranges::max_element(cpu_ms) / 1e3;
    if (what.program == "poisson") return poisson_pattern(ranks_, largest, what.bytes);
    if (what.program == "nbody") return nbody_pattern(ranks_, largest, what.bytes);
    return m3_pattern(ranks_, cpu_ms[0] / 1e3, *std::max_element(cpu_ms.begin() + 1, cpu_ms.end()) / 1e3,
                      what.bytes);
  }

  [[nodiscard]] static double bytes_of(const Pattern& pattern) {
    double bytes = 0;
    for (const auto& rank : pattern)
      for (const Action& action : rank) bytes += action.bytes;
    return bytes;
  }

  // The rate at which the pattern without its calculations takes as long as it was measured to.
  [[nodiscard]] Machine fit(const Case& what, double messages_ms) const {
    Machine machine{std::thread::hardware_concurrency(), link_.delay, link_.rate};
    const Pattern pattern = pattern_of(what, std::vector<double>(static_cast<std::size_t>(ranks_), 0));
    double low = link_.rate / 20, high = link_.rate * 2;
    for (int i = 0; i < 40; ++i) {
      machine.rate = (low + high) / 2;
      (simulate(pattern, machine, true) * 1e3 > messages_ms ? low : high) = machine.rate;
    }
    return machine;
  }

  Result<Step> run(const std::string& name, const Command& size, const Command& mode,
                   const std::string& release = {}, int steps = 6) {
    Command command{program("parc"), "run", "--hosts", hosts_.slots()};
    if (!release.empty()) command.push_back(release);
    command.insert(command.end(),
                   {program(name), "--json", "--warm-up", "5", "--steps", std::to_string(steps)});
    command.insert(command.end(), size.begin(), size.end());
    command.insert(command.end(), mode.begin(), mode.end());
    PARC_TRY(printed, output_of(hosts_.on(0, command)));
    Step step{std::vector<double>(static_cast<std::size_t>(ranks_)),
              std::vector<double>(static_cast<std::size_t>(ranks_))};
    int heard = 0;
    for (std::size_t at = 0; at < printed.size();) {
      const std::size_t end = std::min(printed.find('\n', at), printed.size());
      const Json line = Json::parse(printed.substr(at, end - at), nullptr, false);
      at = end + 1;
      if (!line.is_object()) continue;
      const auto rank = line.at("rank").get<std::size_t>();
      step.step_ms.at(rank) = line.at("step_ms");
      step.cpu_ms.at(rank) = line.at("cpu_ms");
      ++heard;
    }
    if (heard != ranks_) return error(EIO, "{} of {} ranks of {} answered", heard, ranks_, name);
    return step;
  }

  const Hosts& hosts_;
  const int ranks_;
  const Link link_;
  const std::string preset_;
};

} // namespace

Result<std::vector<Row>> measure_programs(const Hosts& hosts, std::string_view preset, int repeats) {
  return Programs(hosts, preset).measure(repeats);
}

Result<void> draw_programs(const std::vector<Row>& rows, const std::string& file) {
  std::string data;
  for (std::size_t i = 0; i + 1 < rows.size(); i += 2) { // a step and a gain of each case
    const double blocking = median(rows[i].peer), early = median(rows[i].parc);
    const double best = blocking - median(rows[i + 1].peer);
    const std::string label = std::regex_replace(rows[i].name, std::regex("^[^,]*, |, [0-9]* ranks"), "");
    data += fmt::format("\"{}\" {:.1f} {:.1f}\n", label, early / blocking * 100, best / blocking * 100);
  }
  const std::string script = fmt::format(
      "set terminal svg size 900,420 font 'sans,11' background 'white'\nset output '{}'\n"
      "set style data histograms\nset style histogram clustered gap 1\nset style fill solid 0.8 noborder\n"
      "set yrange [0:110]\nset ylabel 'per cent of the blocking step'\nset grid y\nset key top left "
      "horizontal\n"
      "set xtics rotate by -40 noenhanced scale 0\nset bmargin 12\nset rmargin 12\n$steps << END\n{}END\n"
      "plot $steps using 2:xtic(1) title 'released early' lc rgb '#009E73', "
      "$steps using 3 title 'the best possible' lc rgb '#56B4E9', 100 title 'blocking' lc rgb '#D55E00' lw "
      "2\n",
      file, data);
  return heat::demo::draw(file + ".gnuplot", script);
}

} // namespace parc::bench
