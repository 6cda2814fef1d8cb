// SPDX-License-Identifier: BSD-3-Clause
#include "bench/exchange/tables.hpp"
#include "bench/exchange/patterns.hpp"

#include <fmt/ranges.h>
#include <iostream>

namespace parc::bench {

namespace {

// What one run of a pattern is started with, on both hosts.
struct Run {
  const char* pattern;
  Sizes sizes;
  std::size_t volume;
  int buffer = 0;
};

Command words(const Run& run) {
  return {"--pattern", run.pattern,
          "--sizes",   fmt::format("{}", fmt::join(run.sizes, ",")),
          "--volume",  std::to_string(run.volume),
          "--buffer",  std::to_string(run.buffer)};
}

// Both sides print what they measured; they agree.
Result<Json> first_line(const Result<std::string>& printed) {
  PARC_TRY(text, printed);
  const Json line = Json::parse(text.substr(0, text.find('\n')), nullptr, false);
  if (line.is_discarded()) return error(EIO, "what a side printed is not understood: {}", text);
  return line;
}

template <class Figures> Result<Figures> over_parc(const Hosts& hosts, const Run& run) {
  PARC_TRY(line, first_line(output_of(job(hosts, 2, "a:1,b:1", words(run)))));
  return line.get<Figures>();
}

template <class Figures> Result<Figures> over_sockets(const Hosts& hosts, const Run& run) {
  Command one = {self_path()};
  for (const std::string& word : words(run)) one.push_back(word);
  Command other = one;
  other.insert(other.end(), {"--peer", "a"});
  const Command both[] = {hosts.on(0, one), hosts.on(1, other)};
  PARC_TRY(line, first_line(output_of_all(both)));
  return line.get<Figures>();
}

// Bytes of both directions.
double megabytes_per_second(std::size_t bytes, double seconds) {
  return 2 * static_cast<double>(bytes) / seconds / 1e6;
}

void say(const std::string& what) {
  std::cerr << what << '\n';
}

constexpr char taking_turns[] = "ping-pong over plain sockets";

} // namespace

Result<std::vector<Row>> measure_exchange(const Hosts& hosts, int repeats) {
  const Sizes sizes = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
  constexpr std::size_t volume = 64 << 20;
  std::vector<Row> rows;
  for (const std::size_t bytes : sizes) {
    const std::string name = fmt::format("gigabit, {} both ways at once", size_text(bytes));
    rows.push_back({name, "bandwidth", "MB/s", taking_turns, ">= 1.8"});
    rows.push_back({name, "bandwidth", "MB/s", "full-duplex plain sockets", ">= 0.97"});
  }
  auto kernels = Kernels::start(hosts, {});
  if (!kernels) return std::move(kernels).error();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    say(fmt::format("exchange, repeat {} of {}", repeat + 1, repeats));
    PARC_TRY(turns, over_sockets<Seconds>(hosts, {"ping-pong", sizes, volume}));
    PARC_TRY(ours, over_parc<Seconds>(hosts, {"exchange", sizes, volume}));
    PARC_TRY(duplex, over_sockets<Seconds>(hosts, {"full-duplex", sizes, volume}));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto speed = [bytes = sizes[i]](const Seconds& seconds) {
        return megabytes_per_second(bytes, seconds.at(bytes));
      };
      rows[2 * i].add(speed(ours), speed(turns));
      rows[2 * i + 1].add(speed(ours), speed(duplex));
    }
  }
  return rows;
}

Result<std::vector<Row>> measure_sweep(const Hosts& hosts, int repeats) {
  const std::vector<int> buffers = {0, 4 << 10, 16 << 10, 32 << 10}; // 0: the system's
  const std::vector<int> fragments = {1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10};
  const std::vector<int> few_fragments = {1 << 10, 4 << 10, 16 << 10};
  const Sizes one_way_sizes = {16 << 10, 64 << 10, 256 << 10}, exchange_sizes = {64 << 10, 1 << 20};
  constexpr std::size_t volume = 8 << 20;

  std::vector<Row> rows;
  std::map<std::string, std::size_t> places; // of rows, which begin at the first repeat
  const auto add = [&](const std::string& metric, const char* unit, int buffer, int fragment, double ours,
                       double theirs) {
    const std::string name = fmt::format(
        "gigabit, fragments of {}, socket buffers {}", size_text(static_cast<std::size_t>(fragment)),
        buffer ? "of " + size_text(static_cast<std::size_t>(buffer)) : "of the system");
    const auto [place, begins] = places.try_emplace(name + metric, rows.size());
    if (begins) rows.push_back({name, metric, unit, taking_turns});
    rows[place->second].add(ours, theirs);
  };
  for (int repeat = 0; repeat < repeats; ++repeat)
    for (const int buffer : buffers) {
      say(fmt::format("sweep, socket buffers of {} bytes (0: the system's), repeat {} of {}", buffer,
                      repeat + 1, repeats));
      PARC_TRY(turns, over_sockets<Seconds>(
                          hosts, {"ping-pong", {16 << 10, 64 << 10, 256 << 10, 1 << 20}, volume, buffer}));
      for (const int fragment : buffer ? few_fragments : fragments) {
        auto kernels = Kernels::start(
            hosts, {.socket_buffer = buffer, .options = {"--fragment-size", std::to_string(fragment)}});
        if (!kernels) return std::move(kernels).error();
        if (!buffer) {
          PARC_TRY(ours, over_parc<Seconds>(hosts, {"one-way", one_way_sizes, volume}));
          for (const std::size_t bytes : one_way_sizes)
            add("one way, " + size_text(bytes), "ms", buffer, fragment, ours.at(bytes) * 1e3,
                turns.at(bytes) / 2 * 1e3);
        }
        if (std::ranges::find(few_fragments, fragment) == few_fragments.end()) continue;
        PARC_TRY(ours, over_parc<Seconds>(hosts, {"exchange", exchange_sizes, volume}));
        for (const std::size_t bytes : exchange_sizes)
          add("both ways at once, " + size_text(bytes), "MB/s", buffer, fragment,
              megabytes_per_second(bytes, ours.at(bytes)), megabytes_per_second(bytes, turns.at(bytes)));
      }
    }
  return rows;
}

Result<std::vector<Row>> measure_interference(const Hosts& hosts, int repeats) {
  constexpr std::size_t bulk = 256 << 20;
  const std::string name = fmt::format("gigabit, 8 bytes beside {}", size_text(bulk));
  std::vector<Row> rows = {{name, "one way, median: more than alone", "ms", "allowed", "<= 1"},
                           {name, "one way, median", "ms", "alone"},
                           {name, "one way, 99th percentile", "ms", "alone"},
                           {name, "one way, median", "ms", "two plain connections"},
                           {name, "one way, 99th percentile", "ms", "two plain connections"}};
  auto kernels = Kernels::start(hosts, {});
  if (!kernels) return std::move(kernels).error();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    say(fmt::format("interference, repeat {} of {}", repeat + 1, repeats));
    PARC_TRY(ours, over_parc<Delays>(hosts, {"small-beside-bulk", {bulk}, 0}));
    PARC_TRY(plain, over_sockets<Delays>(hosts, {"small-beside-bulk-plain", {bulk}, 0}));
    for (const Delays& each : {ours, plain})
      if (each.alone.empty() || each.beside.empty())
        return error(EIO, "no small message was measured beside the large one");
    rows[0].add(median(ours.beside) - median(ours.alone), 3);
    rows[1].add(median(ours.beside), median(ours.alone));
    rows[2].add(quantile(ours.beside, 0.99), quantile(ours.alone, 0.99));
    rows[3].add(median(ours.beside), median(plain.beside));
    rows[4].add(quantile(ours.beside, 0.99), quantile(plain.beside, 0.99));
  }
  return rows;
}

} // namespace parc::bench
