// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/process.hpp"
#include "bench/heat/show.hpp"

#include <algorithm>
#include <fstream>
#include <set>

namespace parc::heat::demo {

namespace {

// What all panels show at least of software granularity.
constexpr double least_gamma = 0.08, largest_gamma = 5;

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

struct Point {
  double gamma, gain, speedup;
};

// A step takes at best as long as the longer of calculation and exchange, or as the shortest that was
// measured: a rank that waits leaves more of the cache to the others, which those two alone do not show.
std::vector<Point> best_possible(const std::vector<Row>& rows, std::size_t halo) {
  std::vector<Point> points;
  for (const Row& blocking : curve(rows, halo, "I.1")) {
    double step = std::max(blocking.t_calc_ms, blocking.t_com_ms);
    for (const Style& style : drawn)
      for (const Row& row : curve(rows, halo, style.variant))
        if (row.gamma == blocking.gamma) step = std::min(step, row.step_ms);
    points.push_back({blocking.gamma, blocking.step_ms / step, blocking.speedup * blocking.step_ms / step});
  }
  return points;
}

std::vector<Point> points_of(const std::vector<Row>& rows, std::size_t halo, const std::string& variant) {
  std::vector<Point> points;
  for (const Row& row : curve(rows, halo, variant)) points.push_back({row.gamma, row.gain, row.speedup});
  return points;
}

std::string data_block(const std::string& name, const std::vector<Point>& points) {
  std::string text = name + " << END\n";
  for (const Point& each : points)
    text += fmt::format("{:.4f} {:.4f} {:.4f}\n", each.gamma, each.gain, each.speedup);
  return text + "END\n";
}

// What a line means stands at its end; where several end together, one below the other around that place.
struct Label {
  std::string text, sign; // the sign as gnuplot's options of a point
  double height;
};

std::string place_labels(std::vector<Label> labels, double top) {
  const double room = top / 12;
  struct Group {
    double middle, size;
    [[nodiscard]] double above(double one) const { return middle + size * one / 2; }
  };
  std::vector<Group> groups;
  std::ranges::sort(labels, {}, &Label::height);
  for (const Label& label : labels) {
    Group last{std::max(label.height, room / 2), 1}; // none below the panel
    while (!groups.empty() && groups.back().above(room) > last.above(-room)) {
      const double size = groups.back().size + last.size;
      const double middle = (groups.back().middle * groups.back().size + last.middle * last.size) / size;
      last = {std::max(middle, size * room / 2), size};
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
  const auto height = [gain](const Point& point) { return gain ? point.gain : point.speedup; };
  const auto ranks = static_cast<double>(rows.front().ranks);
  double top = gain ? 2.2 : 1.1 * ranks;
  std::vector<Label> labels;
  std::string plots;
  const auto add = [&](const std::string& name, const std::string& data, const std::vector<Point>& points,
                       const std::string& sign, const std::string& line) {
    if (points.empty()) return;
    for (const Point& each : points) top = std::max(top, 1.1 * height(each));
    labels.push_back({name, "point " + sign, height(points.back())});
    plots += fmt::format("{}{} using 1:{} with linespoints {} {}", plots.empty() ? "" : ", \\\n", data,
                         gain ? 2 : 3, sign, line);
  };
  for (const Style& style : drawn)
    add(style.variant, data_name(halo, style.variant), points_of(rows, halo, style.variant),
        fmt::format("lc rgb '{}' pt {}", style.color, style.point), "lw 1.5");
  add("best possible", data_name(halo, "best"), best_possible(rows, halo), "lc black pt 2", "dt 2");
  return fmt::format("set title 'halo of {} bytes, {} ranks'\nset ylabel '{}'\nset yrange [0:{}]\n", halo,
                     ranks, gain ? "gain over I.1" : "speedup", top) +
         place_labels(std::move(labels), top) + "plot " + plots + "\n";
}

// The same for all panels of a picture.
std::string range_of_gamma(const std::vector<Row>& rows) {
  double least = least_gamma, largest = largest_gamma;
  for (const Row& row : rows) {
    least = std::min(least, row.gamma / 1.2);
    largest = std::max(largest, row.gamma * 1.2);
  }
  return fmt::format("set xrange [{:.4f}:{:.4f}]\n", least, largest);
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
  std::string script = fmt::format("set terminal svg size 1120,{} font 'sans,12' background 'white'\n"
                                   "set output {}\n",
                                   340 * halos.size(), quoted(picture));
  script += "unset key\nset xlabel 'software granularity t_{calc} / t_{com}'\nset logscale x\n"
            "set grid\nset rmargin 20\nset xtics (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8)\n" +
            range_of_gamma(rows);
  for (const std::size_t halo : halos) {
    for (const Style& style : drawn)
      script += data_block(data_name(halo, style.variant), points_of(rows, halo, style.variant));
    script += data_block(data_name(halo, "best"), best_possible(rows, halo));
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
