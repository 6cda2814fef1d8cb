// SPDX-License-Identifier: BSD-3-Clause
#include "bench/one_sided/pictures.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <fstream>
#include <string_view>
#include <utility>

namespace parc::bench {
namespace {

double ms(const std::vector<double>& seconds) {
  return median(seconds) * 1e3;
}

// "64 KiB, ..." in KiB; 0: it does not begin with a size.
double kib_of(const std::string& name) {
  const double number = std::strtod(name.c_str(), nullptr);
  return name.find(" MiB") != std::string::npos   ? number * 1024
         : name.find(" KiB") != std::string::npos ? number
                                                  : number / 1024;
}

struct Picture {
  std::string title, what, axes, data, plot;
};

// Costs by size (figures 6 and 7).
Picture costs(const std::vector<Found>& found) {
  std::string gets, protects;
  double fault = 0;
  for (const Found& each : found) {
    const auto& [name, seconds, work, samples] = each.measured;
    if (each.part != "machine") continue;
    if (name.starts_with("a get of ")) gets += fmt::format("{} {}\n", kib_of(name.substr(9)), seconds * 1e6);
    if (name.starts_with("mprotect of "))
      protects += fmt::format("{} {}\n", kib_of(name.substr(12)), seconds * 1e6);
    if (name == "I") fault = seconds * 1e6;
  }
  return {
      .title = "Costs (figures 6 and 7)",
      .what = "costs",
      .axes = "set logscale xy\nset xlabel 'KiB'\nset ylabel 'us'\n",
      .data =
          gets.empty() ? "" : fmt::format("$gets << EOD\n{}EOD\n$protects << EOD\n{}EOD\n", gets, protects),
      .plot = fmt::format("plot $gets w lp t 'a get', $protects w lp t 'mprotect', {} t 'a fault'\n", fault)};
}

// Against blocking, by size (figures 8 and 9).
Picture gains(const std::vector<Found>& found, std::string_view work, std::string_view title) {
  std::string data;
  for (const Found& each : found) {
    const Measured& one = each.measured;
    if (each.part != "overlap" || each.order != PARC_ORDER_ANY || !one.name.ends_with(work)) continue;
    double by_hand = 0;
    for (const auto& [name, samples] : one.samples)
      if (name.starts_with("strips") || name == "non-blocking")
        by_hand = std::max(by_hand, ms(one.samples.at("blocking")) / ms(samples));
    data += fmt::format("{} {} {} {}\n", kib_of(one.name),
                        ms(one.samples.at("blocking")) / ms(one.samples.at("early")), by_hand,
                        1 + std::min(one.get, one.work) / std::max(one.get, one.work));
  }
  std::string name = "overlap_";
  for (const char c : work) name += c == ' ' ? '_' : c;
  return {.title = std::string(title),
          .what = name,
          .axes =
              "unset logscale\nset logscale x\nset xlabel 'KiB'\nset ylabel 'times as fast as blocking'\n",
          .data = data.empty() ? "" : fmt::format("${} << EOD\n{}EOD\n", name, data),
          .plot = fmt::format(
              "plot ${0} u 1:2 w lp t 'released early', ${0} u 1:3 w lp t 'by hand', ${0} u 1:4 w l dt 2 "
              "t 'possible'\n",
              name)};
}

// As short as it can be read.
std::string label_of(std::string name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> shorter{
      {{", work ", ", "},
       {" gets of ", " x "},
       {"a face of ", ""},
       {"counts, and 4 times", "4 x"},
       {" of keys", ""},
       {"gather of ", "gather "},
       {"scatter of ", "scatter "}}};
  for (const auto& [text, by] : shorter)
    if (const std::size_t at = name.find(text); at != std::string::npos) name.replace(at, text.size(), by);
  return name.substr(0, name.find(" in ")); // so many rows
}

// Programs, each against its blocking self (figures 10 and 11).
Picture bars(const std::vector<Found>& found, std::string_view part, std::string_view title) {
  std::vector<std::string> ways;
  std::string data;
  for (const Found& each : found) {
    if (each.part != part || each.order != PARC_ORDER_ANY) continue;
    if (ways.empty())
      for (const auto& [name, samples] : each.measured.samples)
        if (name != "blocking") ways.push_back(name);
    data += '"' + label_of(each.measured.name) + '"';
    for (const std::string& way : ways)
      data +=
          fmt::format(" {}", ms(each.measured.samples.at(way)) / ms(each.measured.samples.at("blocking")));
    data += '\n';
  }
  std::string plot = "plot";
  for (std::size_t i = 0; i < ways.size(); ++i)
    plot += fmt::format("{} ${} u {}:xtic(1) t '{}'", i == 0 ? "" : ",", part, i + 2, ways[i]);
  return {.title = std::string(title),
          .what = std::string(part),
          .axes = "unset logscale\nset style data histograms\nset style fill solid 0.6\nset xlabel ''\n"
                  "set ylabel 'time, blocking = 1'\nset yrange [0:*]\nset xtics rotate by -15\n"
                  "set key outside right top\n",
          .data = data.empty() ? "" : fmt::format("${} << EOD\n{}EOD\n", part, data),
          .plot = plot + "\n"};
}

} // namespace

Result<void> write_pictures(const std::string& file, const std::string& link,
                            const std::vector<Found>& found) {
  std::vector<Picture> pictures{costs(found),
                                gains(found, "half", "Automatic strip mining, work half (figure 8)"),
                                gains(found, "equal", "Automatic strip mining, work equal (figure 9)"),
                                gains(found, "elsewhere", "Independent overlap (figures 8 and 9)"),
                                bars(found, "ft", "FT (figure 10)"),
                                bars(found, "is", "IS (figure 11)"),
                                bars(found, "mg", "MG (section 6.2)"),
                                bars(found, "many", "One and many"),
                                bars(found, "puts", "Puts")};
  std::erase_if(pictures, [](const Picture& picture) { return picture.data.empty(); });
  std::ofstream out(file);
  for (const Picture& picture : pictures) out << picture.data;
  out << fmt::format("set terminal svg size 1200,{} background 'white'\nset output '{}.svg'\n",
                     320 * ((pictures.size() + 1) / 2), file)
      << fmt::format("set multiplot layout {},2 title 'One-sided transfers over {}'\n",
                     (pictures.size() + 1) / 2, link)
      << "set key top left\n";
  for (const Picture& picture : pictures)
    out << fmt::format("set title '{}'\n", picture.title) << picture.axes << picture.plot << "reset\n";
  out << "unset multiplot\n";
  out.flush();
  if (!out) return error(errno, "cannot write the pictures to {}", file);
  return success();
}

} // namespace parc::bench
