// SPDX-License-Identifier: BSD-3-Clause
// What parc run --advise says of programs, beside what is then measured: released early, with the line
// changed that it names (the patches beside this file), and on another link, which the emulation becomes. The
// bench starts itself over inside an emulation of two hosts, a rank on each.
#include "bench/figures/bench.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>

namespace parc::bench {
namespace {

struct Link {
  const char *name, *round_trip, *rate;
};
constexpr Link links[] = {{"metro", "2ms", "1gbit"}, {"wan", "20ms", "100mbit"}};

struct Case {
  std::string program;
  Command options;
  bool changed; // there is one with its line changed
};
// Steps of 20 to 70 ms on metro: on this machine shorter ones are mostly what waking an idle core costs.
const Case cases[] = {{"poisson", {"--size", "4096"}, true},
                      {"nbody", {"--particles", "3072"}, true},
                      {"m3", {"--size", "384"}, true},
                      {"cg", {"--size", "1024"}, false}}; // written after the advice

class Measurement {
public:
  Measurement(const Hosts& hosts, int steps) : hosts_(hosts), steps_(std::to_string(steps)) {}

  Result<void> repeat() {
    for (std::size_t i = 0; i < std::size(links); ++i) {
      PARC_TRY(become(links[i]));
      for (const Case& each : cases) {
        PARC_TRY(measure(each, links[i], links[1 - i]));
      }
    }
    return success();
  }

  // Said on one link, measured there or on the other one.
  [[nodiscard]] std::vector<Row> rows() const {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < std::size(links); ++i)
      for (const Case& each : cases) {
        const std::string here = links[i].name, there = links[1 - i].name;
        const auto add = [&](const std::string& metric, const std::string& said,
                             const std::string& measured) {
          const auto found = figures_.find(said), beside = figures_.find(measured);
          if (found == figures_.end() || beside == figures_.end()) return;
          rows.push_back({.name = fmt::format("{}, traced on {}", each.program, here),
                          .metric = metric,
                          .unit = "ms",
                          .peer_name = "measured",
                          .goal = ">= 0.95 and <= 1.05",
                          .parc = found->second,
                          .peer = beside->second});
        };
        const std::string of = each.program + " " + here + " ";
        add("step, replayed", of + "replayed", of + "now");
        add("step, released early", of + "said early", of + "early");
        add("step, its line changed", of + "said changed", of + "changed");
        add(fmt::format("step on {}", there), of + "said elsewhere", each.program + " " + there + " now");
      }
    return rows;
  }

private:
  Result<void> become(const Link& link) {
    const Command set[] = {
        {program("wanlink"), "set", "a", "b", "--rtt", link.round_trip, "--rate", link.rate}};
    PARC_TRY(ended, run_together(set, std::chrono::seconds(30)));
    if (ended[0].exit_status != 0) return error(EIO, "{}", ended[0].errors);
    return success();
  }

  [[nodiscard]] Command job_of(const std::string& name, const Case& what, const Command& options) const {
    Command command = {program("parc"), "run", "--hosts", hosts_.slots()};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {program(name), "--json", "--warm-up", "5", "--steps", steps_});
    command.insert(command.end(), what.options.begin(), what.options.end());
    return hosts_.on(0, command);
  }

  // Of the slowest rank.
  Result<double> step_of(const std::string& name, const Case& what, const Command& options = {}) {
    PARC_TRY(text, output_of(job_of(name, what, options)));
    double slowest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      slowest = std::max(slowest, Json::parse(line).at("step_ms").get<double>());
    return slowest;
  }

  void note(const Case& what, const Link& link, const std::string& figure, double value) {
    figures_[fmt::format("{} {} {}", what.program, link.name, figure)].push_back(value);
  }

  Result<void> measure(const Case& what, const Link& link, const Link& other) {
    PARC_TRY(now, step_of(what.program, what));
    PARC_TRY(early, step_of(what.program, what, {"--early-release"}));
    note(what, link, "now", now);
    note(what, link, "early", early);
    const Command advised[] = {job_of(
        what.program, what,
        {"--advise=json", "--link", fmt::format("{}={},{}", other.name, other.round_trip, other.rate)})};
    PARC_TRY(ended, run_together(advised, std::chrono::seconds(300)));
    const Json said = Json::parse(ended[0].errors, nullptr, false);
    if (ended[0].exit_status != 0 || !said.is_object()) return error(EIO, "{}", ended[0].errors);
    note(what, link, "replayed", said.at("replayed_ms"));
    note(what, link, "said early", said.at("early_release_ms"));
    note(what, link, "said elsewhere", said.at("others").at(other.name));
    std::cerr << fmt::format("{} on {}: now {:.1f} (replayed {:.1f}), early {:.1f} (said {:.1f})",
                             what.program, link.name, now, said.at("replayed_ms").get<double>(), early,
                             said.at("early_release_ms").get<double>());
    if (what.changed && !said.at("lines").empty()) {
      PARC_TRY(changed, step_of(what.program + "-changed", what));
      note(what, link, "said changed", said.at("lines").at(0).at("step_ms"));
      note(what, link, "changed", changed);
      std::cerr << fmt::format(", {} changed {:.1f} (said {:.1f})",
                               said.at("lines").at(0).at("line").get<std::string>(), changed,
                               said.at("lines").at(0).at("step_ms").get<double>());
    }
    std::cerr << '\n';
    return success();
  }

  const Hosts& hosts_;
  const std::string steps_;
  std::map<std::string, std::vector<double>> figures_;
};

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench("bench-advice", "What parc run --advise says, beside what is then measured.");
  Options options;
  int steps = 30;
  describe(bench, options);
  bench.add_option("--steps", steps, "Steps of each run")
      ->check(CLI::Range(5, 10'000))
      ->capture_default_str();
  bench.begin(argc, argv);
  return bench.measure({.preset = links[0].name}, options,
                       [&](const Hosts& hosts) -> parc::Result<std::vector<Row>> {
                         Measurement measurement(hosts, steps);
                         for (int i = 0; i < options.repeats; ++i) {
                           PARC_TRY(measurement.repeat());
                         }
                         return measurement.rows();
                       });
}
