// SPDX-License-Identifier: BSD-3-Clause
#include "model/gain.hpp"
#include "tools/parc/model/reproduce.hpp"
#include "tools/parc/screen/table.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <iostream>

namespace parc::tools {
namespace {

using namespace model;

constexpr std::uint64_t tried_processors = 1000;

// What is not within the last digit that the report prints is marked, and makes the whole fail.
class Comparison {
public:
  std::string against(double ours, double report, int decimals) {
    const bool same = std::abs(ours - report) < 0.5001 * std::pow(10, -decimals);
    differs_ = differs_ || !same;
    return fmt::format("{:.{}f}{}", report, decimals, same ? "" : " DIFFERS");
  }
  [[nodiscard]] bool differs() const { return differs_; }

private:
  bool differs_ = false;
};

struct Architecture {
  const char* name;
  double gamma_h, omega;
};

void print_example_1(Comparison& comparison) {
  constexpr double gamma_s = 5;
  struct Reported {
    Architecture architecture;
    double gain;
  };
  constexpr std::array<Reported, 3> known{
      {{{"H1", 1, 1}, 3.0 / 5}, {{"H2", 5, 0.2}, 5.0 / 3}, {{"H3", 10, 0}, 3.0 / 2}}};
  std::cout << "2.3.1, example 1: a program of software granularity 5 gains the most on H2.\n\n";
  std::vector<Row> rows;
  for (const auto& [each, reported] : known) {
    const double gained = gain(each.gamma_h / gamma_s, {1, each.omega});
    rows.push_back({each.name, fmt::format("{:g}", each.gamma_h), fmt::format("{:g}", each.omega),
                    fmt::format("{:.4f}", gained), comparison.against(gained, reported, 4)});
  }
  print_table({{"MACHINE", false}, {"GAMMA_H", true}, {"OMEGA", true}, {"GAIN", true}, {"REPORT", true}},
              rows);
}

void print_example_2() {
  constexpr double least = 2, most = 10;
  constexpr std::array<Architecture, 3> known{{{"H1", 5, 0}, {"H2", 1, 0.2}, {"H3", 10, 1}}};
  std::cout << "\n2.3.1, example 2: which machine gains for all software granularities from 2 to 10?\n\n";
  std::vector<Row> rows;
  for (const Architecture& each : known) {
    const double at_least = gain(each.gamma_h / least, {1, each.omega}),
                 at_most = gain(each.gamma_h / most, {1, each.omega});
    const double lowest = std::min(at_least, at_most); // it rises to one granularity, and falls behind it
    rows.push_back({each.name, fmt::format("{:g}", each.gamma_h), fmt::format("{:g}", each.omega),
                    fmt::format("{:.4f}", at_least), fmt::format("{:.4f}", at_most),
                    lowest > 1    ? "yes"
                    : lowest == 1 ? "but at one end"
                                  : "no"});
  }
  print_table({{"MACHINE", false},
               {"GAMMA_H", true},
               {"OMEGA", true},
               {"GAIN AT 2", true},
               {"GAIN AT 10", true},
               {"GAINS", false}},
              rows);
  std::cout
      << "The report has H1 and H3 \"for the entire range\": at 10 H3 gains exactly 1, which is nothing.\n";
}

void print_conjugate_gradients(Comparison& comparison) {
  // The report has no figures of the machine; these are those of de Sturler and van der Vorst.
  const ConjugateGradients cg{
      .flop = 3e-6, .startup = 5.3e-6, .word = 4.8e-6, .unknowns = 10'000, .nonzeroes = 5};
  const auto s = [&](double p) { return cg.time(1) / cg.time(p); };
  const auto s_lh = [&](double p) { return cg.hidden_time(1) / cg.hidden_time(p); };
  const Best gain = largest(tried_processors, [&](double p) { return cg.time(p) / cg.hidden_time(p); });
  const Best blocking = largest(tried_processors, s), hidden = largest(tried_processors, s_lh);
  std::uint64_t loses = 1;
  while (cg.time(static_cast<double>(loses)) < cg.hidden_time(static_cast<double>(loses)) * (1 - 1e-12))
    ++loses;
  const auto p = static_cast<double>(gain.p);
  std::cout << fmt::format(
      "\n4.3: conjugate gradients with {} unknowns on a mesh: t_fl = 3.0 us, t_s = 5.3 us, "
      "t_w = 4.8 us, n_z = 5.\n\n",
      cg.unknowns);
  const auto processors = [](std::uint64_t number) { return fmt::to_string(number); };
  const auto value = [](double number) { return fmt::format("{:.4f}", number); };
  const auto same_p = [&](std::uint64_t ours, double report) {
    return comparison.against(static_cast<double>(ours), report, 0);
  };
  print_table({{"WHAT", false}, {"HERE", true}, {"REPORT", true}},
              {{"p with the largest gain", processors(gain.p), same_p(gain.p, 229)},
               {"S there", value(s(p)), comparison.against(s(p), 155.7, 1)},
               {"S_lh there", value(s_lh(p)), comparison.against(s_lh(p), 203.5, 1)},
               {"S_lh / S there", value(s_lh(p) / s(p)), comparison.against(s_lh(p) / s(p), 1.307, 3)},
               {"T / T_lh there", value(gain.value), "-"},
               {"p with the largest S", processors(blocking.p), same_p(blocking.p, 601)},
               {"S there", value(blocking.value), comparison.against(blocking.value, 200.2, 1)},
               {"p with the largest S_lh", processors(hidden.p), same_p(hidden.p, 453)},
               {"S_lh there", value(hidden.value), comparison.against(hidden.value, 230.6, 1)},
               {"first p where hiding does not lose", processors(loses), "-"}});
  std::cout << "The report's 1.307 is the quotient of its two speedups: with hiding, one processor is "
               "slower, too.\n";
}

} // namespace

int print_examples() {
  Comparison comparison;
  print_example_1(comparison);
  print_example_2();
  print_conjugate_gradients(comparison);
  return comparison.differs() ? 1 : 0;
}

} // namespace parc::tools
