// SPDX-License-Identifier: BSD-3-Clause
// Figures 12, 13 and 15 of the first paper as traces: a few steps of the heat equation on an emulated link in
// the variants I.1, I.2 and I.3, and I.1 with early release, each run with parc run --trace and drawn from
// that file: what each rank calculates, the calls and the touches that it waits in, and its reads from when
// they are posted to when their last byte is there.
#include "bench/figures/bench.hpp"
#include "bench/heat/show.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace parc::bench {
namespace {

struct Picture {
  std::string title, variant, release;
};
const std::vector<Picture> pictures{
    {"I.1, blocking calls (figure 12)", "I.1", "off"},
    {"I.2, borders first (figure 13)", "I.2", "off"},
    {"I.3, hidden (figure 15)", "I.3", "off"},
    {"I.1 with early release, the same program", "I.1", "full"},
};
constexpr int steps = 12, shown_steps = 3;
// Of Okabe and Ito, which the colour-blind can tell apart.
constexpr int green = 0x009E73, orange = 0xE69F00, black = 0x000000, light_blue = 0x56B4E9, blue = 0x0072B2;

struct Bar { // ms, and where it is drawn
  double begin, end, low, high;
  int color;
};

// Rank 0 above, each with its program above its messages.
double row_of(const Json& event) {
  return event.at("pid").get<int>() == 0 ? 2 : 0;
}

void add_slice(std::vector<Bar>& bars, const Json& event) {
  const double begin = event.at("ts").get<double>() / 1e3, end = begin + event.at("dur").get<double>() / 1e3;
  const std::string name = event.at("name");
  const double low = row_of(event) + 0.55;
  bars.push_back({begin, end, low, low + 0.7,
                  name == "calculation" ? green
                  : name == "fault"     ? black
                                        : orange});
}

// Its place is where no other is drawn at that time: reads of two neighbours may overlap.
void add_read(std::vector<Bar>& bars, const Json& event) {
  const Json& args = event.at("args");
  if (event.at("cat") != "read" || !args.contains("last_byte_us") || args.at("bytes") == 0) return;
  const double posted = event.at("ts").get<double>() / 1e3,
               last = args.at("last_byte_us").get<double>() / 1e3;
  const double first = args.value("first_byte_us", event.at("ts").get<double>()) / 1e3;
  const double low = row_of(event) + 0.1;
  bars.push_back({posted, first, low, low + 0.3, light_blue});
  bars.push_back({first, last, low, low + 0.3, blue});
}

Result<std::vector<Bar>> bars_of(const std::string& file) {
  std::ifstream in(file);
  const Json trace = Json::parse(in, nullptr, false);
  if (!trace.is_object()) return error(EIO, "{} is no trace", file);
  std::vector<Bar> bars;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") add_slice(bars, event);
    if (event.at("ph") == "b") add_read(bars, event);
  }
  return bars;
}

std::string data_of(const std::vector<Bar>& bars, double begin, double end) {
  std::string text;
  for (const Bar& bar : bars)
    if (bar.end > begin && bar.begin < end)
      text += fmt::format("{:.4f} {:.4f} {:.4f} {:.4f} {:.4f} {:.4f} {}\n", bar.begin - begin,
                          (bar.low + bar.high) / 2, std::max(bar.begin - begin, 0.0),
                          std::min(bar.end, end) - begin, bar.low, bar.high, bar.color);
  return text;
}

std::string legend() {
  const std::vector<std::pair<const char*, int>> meanings = {{"calculation", green},
                                                             {"a call that waits", orange},
                                                             {"a touch that waits", black},
                                                             {"read posted", light_blue},
                                                             {"its bytes arrive", blue}};
  std::string text;
  for (const auto& [meaning, color] : meanings)
    text += fmt::format(", keyentry with boxes lc rgb '#{:06x}' title '{}'", color, meaning);
  return text;
}

class Timeline {
public:
  Timeline(const Hosts& hosts, std::string directory) : hosts_(hosts), directory_(std::move(directory)) {}

  Result<void> draw() {
    std::vector<std::vector<Bar>> bars;
    double longest = 0;
    for (const Picture& each : pictures) {
      PARC_TRY(step, run(each));
      longest = std::max(longest, step);
      PARC_TRY(of_trace, bars_of(trace_of(each)));
      bars.push_back(std::move(of_trace));
    }
    const double width = longest * shown_steps;
    std::string script = fmt::format("set terminal svg size 960,{} font 'sans,12' background 'white'\n"
                                     "set output '{}/timeline.svg'\nset multiplot layout {},1 "
                                     "margins 0.08,0.96,0.04,0.91 spacing 0,0.07\n"
                                     "set xrange [0:{}]\nset yrange [0:4]\nset style fill solid noborder\n"
                                     "set ytics ('rank 0' 2.9, 'reads' 2.25, 'rank 1' 0.9, 'reads' 0.25)\n"
                                     "set tics scale 0\nset xtics format '%g ms'\n"
                                     "set key at screen 0.5,0.99 center top horizontal samplen 1\n",
                                     200 * pictures.size() + 80, directory_, pictures.size(), width);
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      double last = 0;
      for (const Bar& bar : bars[i]) last = std::max(last, bar.end);
      const double begin = std::max(0.0, last / 2 - width / 2); // in the middle nothing begins or ends
      script += fmt::format("$bars{} << END\n{}END\nset title '{}'\n"
                            "plot $bars{} using 1:2:3:4:5:6:7 with boxxyerror lc rgb variable notitle{}\n",
                            i, data_of(bars[i], begin, begin + width), pictures[i].title, i,
                            i == 0 ? legend() : "");
    }
    script += "unset multiplot\n";
    return heat::demo::draw(directory_ + "/timeline.gnuplot", script);
  }

private:
  [[nodiscard]] std::string trace_of(const Picture& picture) const {
    return fmt::format("{}/{}{}.json", directory_, picture.variant, picture.release == "off" ? "" : "-early");
  }

  // Returns milliseconds of a step.
  Result<double> run(const Picture& picture) {
    const Command command{program("parc"),
                          "run",
                          "--early-release=" + picture.release,
                          "--trace",
                          trace_of(picture),
                          "--hosts",
                          hosts_.slots(),
                          program("heat"),
                          "--variant",
                          picture.variant,
                          "--ny",
                          "10000",
                          "--nx",
                          "64",
                          "--work",
                          "24",
                          "--steps",
                          std::to_string(steps),
                          "--json"};
    PARC_TRY(printed, output_of(hosts_.on(0, command)));
    const Json line = Json::parse(printed.substr(0, printed.find('\n')), nullptr, false);
    if (!line.is_object()) return error(EIO, "heat said nothing about its steps");
    return line.at("step_ms").get<double>();
  }

  const Hosts& hosts_;
  const std::string directory_;
};

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench("bench-timeline",
              "Draws a few steps of the heat equation on an emulated link from their traces.");
  std::string directory = "demo-out";
  bench.add_option("--output", directory, "Where timeline.svg and the traces go")->capture_default_str();
  bench.begin(argc, argv);
  directory = std::filesystem::absolute(directory).string();
  std::filesystem::create_directories(directory);
  return bench.run({.preset = "wan"}, [&](const Hosts& hosts) { return Timeline(hosts, directory).draw(); });
}
