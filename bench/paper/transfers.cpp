// SPDX-License-Identifier: BSD-3-Clause
// Messages between two hosts: table 2, figures 10, 11, 18 and 19, and the delays of section 3.1.1.
#include "bench/paper/paper_figures.hpp"
#include "bench/paper/table.hpp"

#include <fmt/ranges.h>

namespace parc::bench {

namespace {

constexpr char over_sockets[] = "direct stream sockets", transfer[] = "one way";

Command with_sizes(const char* role, const Sizes& sizes) {
  return {"--role", role, "--sizes", fmt::format("{}", fmt::join(sizes, ","))};
}

double us(double seconds) {
  return seconds * 1e6;
}

std::string case_of(const Setting& setting, std::string_view place, const std::string& what) {
  return fmt::format("{}, {}: {}", place, setting.network, what);
}

} // namespace

Result<void> measure_figure_10(const Setting& setting, Table& table) {
  PARC_TRY(figures, by_streams(setting, {"--role", "buffering"}));
  for (const std::size_t bytes : buffered_sizes)
    for (std::size_t i = 0; i + 1 < copyings.size(); ++i)
      table.add({case_of(setting, "figure 10", fmt::format("{}, copied {}", size_text(bytes), copyings[i])),
                 transfer, "us", "without a copy"},
                us(figures.at(keyed(bytes, copyings[i]))), us(figures.at(keyed(bytes, copyings.back()))));
  return success();
}

Result<void> measure_figure_11(const Setting& setting, Table& table) {
  PARC_TRY(figures, by_streams(setting, {"--role", "fragmentation"}));
  for (const std::size_t bytes : fragmented_sizes)
    for (const std::size_t fragment : fragments)
      if (fragment < bytes)
        table.add({case_of(setting, "figure 11",
                           fmt::format("{} in fragments of {}", size_text(bytes), size_text(fragment))),
                   transfer, "us", "whole"},
                  us(figures.at(keyed(bytes, std::to_string(fragment)))),
                  us(figures.at(keyed(bytes, std::to_string(bytes)))));
  return success();
}

Result<void> measure_stalls(const Setting& setting, Table& table) {
  PARC_TRY(delayed, by_streams(setting, {"--role", "delayed-writes"}));
  for (const std::size_t bytes : stalling_sizes) {
    const std::string name =
        case_of(setting, "section 3.1.1", fmt::format("{} bytes in writes of 4 KiB", bytes));
    const double ours = delayed.at(keyed(bytes, "delayed")) * 1e3;
    table.add({name, "and an answer", "ms", "with TCP_NODELAY"}, ours,
              delayed.at(keyed(bytes, "at once")) * 1e3);
    if (bytes > 4096 && bytes <= 5552) // the range that the report names
      table.add({name, "and an answer", "ms", "SPARCstations, Ethernet, 1994"}, ours, paper_stall_ms);
  }
  PARC_TRY(window, by_streams(setting, {"--role", "zero-window"}));
  const std::string name =
      case_of(setting, "section 3.1.1", "256 KiB into buffers of 16 KiB, read 250 ms late");
  table.add({name, "beyond the 250 ms", "ms", "read at once"}, window.at("late") * 1e3,
            window.at("at once") * 1e3);
  table.add({name, "the call that sends", "ms", "read at once"}, window.at("send late") * 1e3,
            window.at("send at once") * 1e3);
  return success();
}

Result<void> measure_figure_18(const Setting& setting, Table& table) {
  PARC_TRY(figures, by_streams(setting, with_sizes("direct", network_sizes)));
  for (const std::size_t bytes : network_sizes) {
    const std::string name = case_of(setting, "figure 18", size_text(bytes));
    const double ours = us(figures.at(std::to_string(bytes)));
    if (bytes == network_sizes.front())
      table.add({name, transfer, "us", "Internet, 1994"}, ours, paper_internet_startup_ms * 1e3);
    else
      table.add({name, transfer, "us"}, ours);
  }
  return success();
}

Result<void> measure_table_2(const Setting& setting, Table& table) {
  PARC_TRY(kernels, start_kernels(setting));
  PARC_TRY(ours, by_ranks(setting, with_sizes("lathide", {8})));
  kernels.stop();
  PARC_TRY(theirs, by_streams(setting, with_sizes("direct", {8})));
  PARC_TRY(switched, by_one(setting, {"--role", "context-switch"}));
  const double lathide = us(ours.at("8")), direct = us(theirs.at("8")),
               pipes = 4 * us(switched.at("pipe message"));
  const std::string name = case_of(setting, "table 2", "8 bytes");
  const std::string overhead = "four pipe messages, one core", hidden = "lathide: over parc";
  table.add({name, hidden, "us", over_sockets}, lathide, direct);
  table.add({name, hidden, "us", "direct and four pipe messages"}, lathide, direct + pipes);
  for (const PaperTransfer& paper : paper_transfers) {
    const std::string peer = fmt::format("{}, 1994", paper.machines);
    table.add({name, overhead, "us", peer}, pipes, paper.pipes_ms * 1e3);
    table.add({name, over_sockets, "us", peer}, direct, paper.direct_ms * 1e3);
    table.add({name, hidden, "us", peer}, lathide, paper.lathide_ms * 1e3);
    table.add({name, "penalty factor", "", peer}, lathide / direct, paper.lathide_ms / paper.direct_ms);
  }
  return success();
}

Result<void> measure_figure_19(const Setting& setting, Table& table) {
  PARC_TRY(kernels, start_kernels(setting));
  PARC_TRY(ours, by_ranks(setting, with_sizes("lathide", network_sizes)));
  kernels.stop();
  PARC_TRY(theirs, by_streams(setting, with_sizes("direct", network_sizes)));
  for (const std::size_t bytes : network_sizes)
    table.add({case_of(setting, "figure 19", size_text(bytes)), "one way; the ratio is the penalty factor",
               "us", over_sockets},
              us(ours.at(std::to_string(bytes))), us(theirs.at(std::to_string(bytes))));
  return success();
}

} // namespace parc::bench
