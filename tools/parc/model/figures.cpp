// SPDX-License-Identifier: BSD-3-Clause
#include "model/gain.hpp"
#include "tools/parc/model/reproduce.hpp"
#include "tools/parc/talk/children.hpp"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>

namespace parc::tools {
namespace {

using namespace model;

struct Curve {
  std::string label;
  std::function<double(double x)> value;
  bool dashed = false; // without hiding
};

struct Panel {
  std::string x, y; // what the axes show
  double least, most;
  bool logarithmic;
  std::vector<Curve> curves;
};

struct PaperFigure {
  std::string name, title;
  std::vector<Panel> panels;
};

constexpr double granularities[] = {1, 2, 5, 10};

// ---- The figures, in the order of the report

Panel speedup_over_gamma(std::vector<double> fractions) {
  Panel panel{"software granularity t_{calc} / t_{com}", "speedup / p", 0.1, 10, true, {}};
  panel.curves.push_back({"S", [](double gamma) { return 1 / blocking_time(1 / gamma); }, true});
  for (const double f : fractions)
    panel.curves.push_back({fmt::format("f = {:g}", f), [f](double gamma) {
                              return 1 / hidden_time(1 / gamma, {f, 0});
                            }});
  return panel;
}

Panel gain_over_gamma(std::vector<double> fractions) {
  Panel panel{"software granularity t_{calc} / t_{com}", "gain", 0.1, 10, true, {}};
  for (const double f : fractions)
    panel.curves.push_back({fmt::format("f = {:g}", f), [f](double gamma) {
                              return gain(1 / gamma, {f, 0});
                            }});
  return panel;
}

PaperFigure gain_over_granularities(const std::string& name, double omega) {
  Panel software{"software granularity {/Symbol g}_s", "gain", 0.1, 100, true, {}};
  Panel hardware{"hardware granularity {/Symbol g}_h", "gain", 0.1, 100, true, {}};
  for (const double gamma : granularities) {
    software.curves.push_back({fmt::format("{{/Symbol g}}_h = {:g}", gamma), [gamma, omega](double gamma_s) {
                                 return gain(gamma / gamma_s, {1, omega});
                               }});
    hardware.curves.push_back({fmt::format("{{/Symbol g}}_s = {:g}", gamma), [gamma, omega](double gamma_h) {
                                 return gain(gamma_h / gamma, {1, omega});
                               }});
  }
  return {name, fmt::format("Gain, {{/Symbol W}} = {:g}", omega), {software, hardware}};
}

PaperFigure gain_over_overhead() {
  constexpr double gamma = 5;
  Panel software{"software granularity {/Symbol g}_s", "gain", 0.1, 100, true, {}};
  Panel hardware{"hardware granularity {/Symbol g}_h", "gain", 0.1, 100, true, {}};
  for (const double omega : {0.0, 0.2, 0.5, 1.0}) {
    const std::string label = fmt::format("{{/Symbol W}} = {:g}", omega);
    software.curves.push_back({label, [omega](double gamma_s) { return gain(gamma / gamma_s, {1, omega}); }});
    hardware.curves.push_back({label, [omega](double gamma_h) { return gain(gamma_h / gamma, {1, omega}); }});
  }
  return {"figure-6", "Gain and overhead, the other granularity 5", {software, hardware}};
}

struct Case {
  std::string label;
  Program program;
  double f;
};

// Speedups without hiding (dashed) and with it, and the gain, over p.
PaperFigure over_processors(const std::string& name, const std::string& title, const std::vector<Case>& cases,
                            double most) {
  Panel speeds{"processors p", "speedup", 1, most, false, {}};
  Panel gains{"processors p", "gain", 1, most, false, {}};
  const Program* drawn = nullptr; // without hiding: once, where only f differs
  for (const Case& each : cases) {
    const Hiding hiding{each.f, 0};
    const Program& program = each.program;
    if (drawn == nullptr || each.label.front() != 'f')
      speeds.curves.push_back({each.label.front() == 'f' ? "f = 0" : each.label + ", blocking",
                               [program](double p) { return speedup(program, p); }, true});
    drawn = &program;
    speeds.curves.push_back({each.label, [=](double p) { return speedup(program, p, hiding); }});
    gains.curves.push_back(
        {each.label, [=](double p) { return speedup(program, p, hiding) / speedup(program, p); }});
  }
  return {name, title, {speeds, gains}};
}

Program with_lambda(double lambda, Messages messages) {
  return {.alone = lambda, .message = 1, .messages = std::move(messages)};
}

double all_to_all(double p) {
  return p;
}
double mesh(double p) {
  return std::sqrt(p);
}

PaperFigure conjugate_gradients() {
  const ConjugateGradients cg{
      .flop = 3e-6, .startup = 5.3e-6, .word = 4.8e-6, .unknowns = 10'000, .nonzeroes = 5};
  Panel speeds{"processors p", "speedup", 1, 1000, false, {}};
  speeds.curves = {{"CG", [cg](double p) { return cg.time(1) / cg.time(p); }, true},
                   {"parCG", [cg](double p) { return cg.hidden_time(1) / cg.hidden_time(p); }}};
  Panel gains{"processors p", "gain", 1, 1000, false, {}};
  gains.curves = {{"T / T_{lh}", [cg](double p) { return cg.time(p) / cg.hidden_time(p); }}};
  return {"figure-24", "Conjugate gradients", {speeds, gains}};
}

std::vector<PaperFigure> all_figures() {
  const std::vector<double> ideal{1}, fractions{1, 0.75, 0.5, 0.25, 0};
  const auto two = [](double) { return 2.0; };
  constexpr double lambda = 10'000, p = 300;
  std::vector<Case> fractions_of_a_mesh;
  for (const double f : {0.25, 0.5, 0.75, 1.0})
    fractions_of_a_mesh.push_back({fmt::format("f = {:g}", f), with_lambda(2000, mesh), f});
  return {{"figure-3", "Ideal hiding", {speedup_over_gamma(ideal), gain_over_gamma(ideal)}},
          {"figure-4", "Partial hiding", {speedup_over_gamma(fractions), gain_over_gamma(fractions)}},
          gain_over_granularities("figure-5", 0),
          gain_over_overhead(),
          gain_over_granularities("figure-7", 0.2),
          gain_over_granularities("figure-8", 1),
          over_processors("figure-9.1", "All to all, q = p",
                          {{"{/Symbol l} = 1000", with_lambda(1000, all_to_all), 1},
                           {"{/Symbol l} = 10000", with_lambda(10'000, all_to_all), 1},
                           {"{/Symbol l} = 40000", with_lambda(40'000, all_to_all), 1}},
                          p),
          over_processors("figure-9.2", "Messages one after the other, {/Symbol l} = 10000",
                          {{"q = 2", with_lambda(lambda, two), 1},
                           {"q = sqrt(p)", with_lambda(lambda, mesh), 1},
                           {"q = p", with_lambda(lambda, all_to_all), 1}},
                          p),
          over_processors("figure-9.3", "Degrees of hiding, q = sqrt(p), {/Symbol l} = 2000",
                          fractions_of_a_mesh, p),
          conjugate_gradients()};
}

// ---- gnuplot

constexpr int points = 400;

std::string data_of(const Panel& panel, const Curve& curve, const std::string& name) {
  std::string text = fmt::format("${} << END\n", name);
  for (int i = 0; i <= points; ++i) {
    const double part = static_cast<double>(i) / points;
    const double x = panel.logarithmic ? panel.least * std::pow(panel.most / panel.least, part)
                                       : panel.least + part * (panel.most - panel.least);
    text += fmt::format("{:.6g} {:.6g}\n", x, curve.value(x));
  }
  return text + "END\n";
}

// Okabe and Ito's, which the colour-blind can tell apart.
constexpr const char* colours[] = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
                                   "#D55E00", "#56B4E9", "#777777"};

std::string script_of(const PaperFigure& figure, const std::string& picture) {
  std::string quoted = picture; // as gnuplot writes a string
  for (std::size_t at = 0; (at = quoted.find('\'', at)) != quoted.npos; at += 2) quoted.insert(at, "'");
  std::string text = fmt::format("set terminal svg size 1080,400 font 'sans,12' background 'white' enhanced\n"
                                 "set output '{}'\n",
                                 quoted);
  std::string panels;
  int number = 0;
  for (const Panel& panel : figure.panels) {
    panels +=
        fmt::format("set xlabel '{}'\nset ylabel '{}'\n{} logscale x\nset xrange [{}:{}]\nset yrange [0:*]\n",
                    panel.x, panel.y, panel.logarithmic ? "set" : "unset", panel.least, panel.most);
    std::string plots;
    int hidden = 0, blocking = 0;
    for (const Curve& curve : panel.curves) {
      const std::string name = fmt::format("curve_{}", number++);
      text += data_of(panel, curve, name);
      int& colour = curve.dashed ? blocking : hidden;
      plots += fmt::format("{}${} with lines lw 2 {} lc rgb '{}' title '{}'", plots.empty() ? "" : ", \\\n",
                           name, curve.dashed ? "dt 2" : "dt 1",
                           colours[static_cast<std::size_t>(colour++) % std::size(colours)], curve.label);
    }
    panels += "plot " + plots + "\n";
  }
  return text +
         fmt::format("set grid\nset key outside right samplen 2\nset multiplot layout 1,{} title '{}'\n",
                     figure.panels.size(), figure.title) +
         panels + "unset multiplot\n";
}

} // namespace

Result<void> draw_figures(const std::string& directory) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) return error(failure.value(), "cannot make {}: {}", directory, failure.message());
  std::vector<Child> children;
  for (const PaperFigure& figure : all_figures()) {
    const std::string script = fmt::format("{}/{}.gnuplot", directory, figure.name);
    std::ofstream file(script);
    file << script_of(figure, fmt::format("{}/{}.svg", directory, figure.name));
    file.close();
    if (!file) return system_error("cannot write {}", script);
    children.push_back({.command = {"gnuplot", script}});
  }
  run_all(children);
  for (const Child& child : children)
    if (child.status != 0)
      return error(EIO, "cannot draw the figures, whose scripts are in {}: {}", directory,
                   child.status == 127 ? "there is no gnuplot here; install it (gnuplot-nox)"
                                       : why_failed(child, "gnuplot"));
  return success();
}

} // namespace parc::tools
