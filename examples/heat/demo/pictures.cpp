// SPDX-License-Identifier: BSD-3-Clause
#include "examples/heat/demo/process.hpp"
#include "examples/heat/demo/show.hpp"

#include <algorithm>
#include <fstream>
#include <set>

namespace parc::heat::demo {

namespace {

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

const std::vector<std::string> drawn = {"ping-pong", "I.1", "I.2", "I.2-nocopy", "I.3"};

// The left panel of a halo shows the gain over I.1, the right one the speedup and what the lines mean.
std::string panel(const std::vector<Row>& rows, std::size_t halo, bool gain) {
  const std::size_t ranks = rows.front().ranks;
  std::string text = fmt::format("set title 'halo of {} bytes, {} ranks'\n", halo, ranks);
  text += gain ? "set ylabel 'gain over I.1'\nset yrange [0:2.2]\nunset key\n"
               : fmt::format("set ylabel 'speedup'\nset yrange [0:{}]\nset key top left\n",
                             1.1 * static_cast<double>(ranks));
  text += "plot ";
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (curve(rows, halo, drawn[i]).empty()) continue;
    text += fmt::format("{} using 1:{} with linespoints ls {} title '{}', \\\n", data_name(halo, drawn[i]),
                        gain ? 2 : 3, i + 1, drawn[i]);
  }
  const std::string model =
      gain ? "(x + 1) / (x > 1 ? x : 1)" : fmt::format("{} / (x > 1 ? 1 : 1 / x)", ranks);
  return text + model + " with lines ls 9 title 'model'\n";
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
  script += "set style line 1 lc rgb '#888888' pt 4\nset style line 2 lc rgb '#d95f02' pt 6\n"
            "set style line 3 lc rgb '#7570b3' pt 8\nset style line 4 lc rgb '#66a61e' pt 10\n"
            "set style line 5 lc rgb '#c01060' pt 7 lw 2\nset style line 9 lc rgb 'black' dt 2\n"
            "set xlabel 'software granularity t_{calc} / t_{com}'\nset logscale x\nset grid\n"
            "set xrange [0.08:5]\nset xtics (0.1, 0.25, 0.5, 1, 2, 4)\n";
  for (const std::size_t halo : halos) {
    for (const std::string& variant : drawn) {
      script += data_name(halo, variant) + " << END\n";
      for (const Row& row : curve(rows, halo, variant))
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
