// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/process.hpp"
#include "bench/heat/show.hpp"

#include <algorithm>
#include <fstream>
#include <set>

namespace parc::heat::demo {

namespace {

constexpr double largest_gamma = 5; // where the pictures end

// As gnuplot writes a string.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "\'\'" : std::string(1, c);
  return result + "'";
}

// The rows of one curve by granularity. Of kernels in both classes the one with real-time priority is drawn.
std::vector<Row> curve(const std::vector<Row>& rows, std::size_t halo, const std::string& variant) {
  const bool realtime = std::ranges::any_of(rows, [](const Row& row) { return row.realtime == true; });
  std::vector<Row> chosen;
  for (const Row& row : rows)
    if (row.halo_bytes == halo && row.variant == variant && (!row.realtime || *row.realtime == realtime))
      chosen.push_back(row);
  std::ranges::sort(chosen, {}, &Row::gamma);
  return chosen;
}

std::string data_name(std::size_t halo, const std::string& variant) {
  std::string name = fmt::format("$halo_{}_{}", halo, variant);
  std::ranges::replace(name, '.', '_');
  std::ranges::replace(name, '-', '_');
  return name;
}

// Colours of Okabe and Ito, which the colour-blind can tell apart, and points of different shapes.
struct Style {
  const char* variant;
  const char* color;
  int point;
};
constexpr Style drawn[] = {
    {"ping-pong", "#777777", 4}, {"I.1", "#E69F00", 6},         {"I.1-early", "#D55E00", 7},
    {"I.2", "#56B4E9", 8},       {"I.2-nocopy", "#009E73", 10}, {"I.1-early-towards", "#CC79A7", 9},
    {"I.3", "#0072B2", 5},
};

// What a line means stands at its end; where several end together, one below the other around that place.
struct Label {
  std::string text, sign; // the sign as gnuplot's options of a point
  double height;
};

std::string place_labels(std::vector<Label> labels, double top) {
  const double room = top / 15;
  struct Group {
    double middle, size;
    [[nodiscard]] double above(double one) const { return middle + size * one / 2; }
  };
  std::vector<Group> groups;
  std::ranges::sort(labels, {}, &Label::height);
  for (const Label& label : labels) {
    Group last{label.height, 1};
    while (!groups.empty() && groups.back().above(room) > last.above(-room)) {
      const double size = groups.back().size + last.size;
      last = {(groups.back().middle * groups.back().size + last.middle * last.size) / size, size};
      groups.pop_back();
    }
    groups.push_back(last);
  }
  std::string text = "unset label\n";
  auto label = labels.begin();
  for (const Group& group : groups)
    for (double i = 0.5; i < group.size; ++i, ++label)
      text += fmt::format("set label '{}' at graph 1.03, first {:.4f} offset 1,0 noenhanced {}\n",
                          label->text, group.above(-room) + i * room, label->sign);
  return text;
}

// The left panel of a halo shows the gain over I.1, the right one the speedup.
std::string panel(const std::vector<Row>& rows, std::size_t halo, bool gain) {
  const auto ranks = static_cast<double>(rows.front().ranks);
  const double top = gain ? 2.2 : 1.1 * ranks;
  std::vector<Label> labels = {{"model", "", gain ? 1 + 1 / largest_gamma : ranks}};
  std::string plots;
  for (const Style& style : drawn) {
    const auto points = curve(rows, halo, style.variant);
    if (points.empty()) continue;
    const std::string sign = fmt::format("lc rgb '{}' pt {}", style.color, style.point);
    labels.push_back({style.variant, "point " + sign, gain ? points.back().gain : points.back().speedup});
    plots += fmt::format("{} using 1:{} with linespoints {} lw 1.5, \\\n", data_name(halo, style.variant),
                         gain ? 2 : 3, sign);
  }
  const std::string model =
      gain ? "(x + 1) / (x > 1 ? x : 1)" : fmt::format("{} / (x > 1 ? 1 : 1 / x)", ranks);
  return fmt::format("set title 'halo of {} bytes, {} ranks'\nset ylabel '{}'\nset yrange [0:{}]\n", halo,
                     ranks, gain ? "gain over I.1" : "speedup", top) +
         place_labels(std::move(labels), top) + "plot " + plots + model + " with lines lc black dt 2\n";
}

} // namespace

Result<void> draw(const std::string& script_path, const std::string& script) {
  std::ofstream file(script_path);
  file << script;
  file.close();
  if (!file) return system_error("cannot write {}", script_path);
  const std::vector<Command> gnuplot = {{"gnuplot", script_path}};
  PARC_TRY(ended, run_together(gnuplot, std::chrono::seconds(60)));
  if (ended[0].exit_status != 0)
    return error(EIO, "gnuplot cannot draw {}: {}", script_path, ended[0].errors);
  return success();
}

Result<std::string> draw_gain(const std::string& directory, const std::string& name,
                              const std::vector<Row>& rows) {
  std::set<std::size_t> halos;
  for (const Row& row : rows) halos.insert(row.halo_bytes);
  const std::string picture = fmt::format("{}/{}.svg", directory, name);
  std::string script = fmt::format("set terminal svg size 960,{} font 'sans,12' background 'white'\n"
                                   "set output {}\n",
                                   340 * halos.size(), quoted(picture));
  script +=
      fmt::format("unset key\nset xlabel 'software granularity t_{{calc}} / t_{{com}}'\nset logscale x\n"
                  "set grid\nset rmargin 20\nset xrange [0.08:{}]\nset xtics (0.1, 0.25, 0.5, 1, 2, 4)\n",
                  largest_gamma);
  for (const std::size_t halo : halos) {
    for (const Style& style : drawn) {
      script += data_name(halo, style.variant) + " << END\n";
      for (const Row& row : curve(rows, halo, style.variant))
        script += fmt::format("{:.4f} {:.4f} {:.4f}\n", row.gamma, row.gain, row.speedup);
      script += "END\n";
    }
  }
  script += fmt::format("set multiplot layout {},2\n", halos.size());
  for (const std::size_t halo : halos) script += panel(rows, halo, true) + panel(rows, halo, false);
  script += "unset multiplot\n";
  PARC_TRY(draw(fmt::format("{}/{}.gnuplot", directory, name), script));
  return picture;
}

Result<std::string> draw_field(const std::string& directory, const std::string& name,
                               const std::string& field, std::size_t columns, std::size_t points) {
  const std::string picture = fmt::format("{}/{}.png", directory, name);
  const std::string script = fmt::format(
      "set terminal pngcairo size 640,560 font 'sans,11'\nset output {}\n"
      "set title 'Temperature of the plate after the last step'\n"
      "set xlabel 'x'\nset ylabel 'y'\nset size ratio -1\nset cblabel 'temperature'\n"
      "set palette defined (0 '#06123a', 0.25 '#5b1a7a', 0.5 '#c4374f', 0.75 '#f98e09', 1 '#fcffa4')\n"
      "set xrange [-0.5:{}]\nset yrange [-0.5:{}]\n"
      "plot {} binary array=({},{}) transpose format='%double' with image notitle\n",
      quoted(picture), static_cast<double>(columns) - 0.5, static_cast<double>(points) - 0.5, quoted(field),
      points, columns);
  PARC_TRY(draw(fmt::format("{}/{}.gnuplot", directory, name), script));
  return picture;
}

} // namespace parc::heat::demo
