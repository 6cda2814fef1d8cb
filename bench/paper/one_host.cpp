// SPDX-License-Identifier: BSD-3-Clause
// Table 1 and figure 16: processes of one host.
#include "bench/paper/paper_figures.hpp"
#include "bench/paper/table.hpp"

#include <fmt/ranges.h>

namespace parc::bench {

namespace {

constexpr char beside_semaphore[] = "System V semaphore";
constexpr std::string_view one_core = ", one core", two_cores = ", two cores";

Result<Figures> synchronizations_of(const Setting& setting, const Sizes& sizes) {
  return by_one(setting, {"--role", "synchronizations", "--sizes", fmt::format("{}", fmt::join(sizes, ","))});
}

double figure(const Figures& figures, std::string_view what, std::string_view where) {
  const auto found = figures.find(std::string(what) + std::string(where));
  return found == figures.end() ? -1 : found->second * 1e6;
}

void add_paper_machines(double semaphore_us, double pipe_us, Table& table) {
  for (const PaperSynchronization& paper : paper_synchronizations) {
    const std::string peer = fmt::format("{}, 1994", paper.machine);
    table.add({"table 1: System V semaphore, one core", "synchronization", "us", peer}, semaphore_us,
              paper.semaphore_ms * 1e3);
    table.add({"table 1: pipe message of 8 bytes, one core", "synchronization", "us", peer}, pipe_us,
              paper.pipe_ms * 1e3);
  }
}

// The length from which on a pipe message costs more than a semaphore: 0 where it does at any length, the
// longest length where it does at none.
double crossing(const Figures& figures, double semaphore_us, std::string_view where) {
  const auto pipe = [&](std::size_t i) {
    return figure(figures, fmt::format("pipe {}", pipe_sizes[i]), where);
  };
  std::size_t above = pipe_sizes.size(); // the shortest of those above that cost more
  while (above > 0 && pipe(above - 1) > semaphore_us) --above;
  if (above == 0) return 0;
  const double below = static_cast<double>(pipe_sizes[above - 1]);
  if (above == pipe_sizes.size()) return below;
  const double part = (semaphore_us - pipe(above - 1)) / (pipe(above) - pipe(above - 1));
  return below + part * (static_cast<double>(pipe_sizes[above]) - below);
}

} // namespace

Result<void> measure_table_1(const Setting& setting, Table& table) {
  PARC_TRY(figures, synchronizations_of(setting, {8}));
  for (const std::string_view where : {one_core, two_cores}) {
    const double of_semaphore = figure(figures, "semaphore", where);
    if (of_semaphore < 0) continue;
    const auto add = [&](const std::string& name, double ours) {
      table.add({fmt::format("table 1: {}{}", name, where), "synchronization", "us", beside_semaphore}, ours,
                of_semaphore);
    };
    add("pipe message of 8 bytes", figure(figures, "pipe 8", where));
    add("futex", figure(figures, "futex", where));
    add("eventfd", figure(figures, "eventfd", where));
  }
  add_paper_machines(figure(figures, "semaphore", one_core), figure(figures, "pipe 8", one_core), table);
  return success();
}

Result<void> measure_figure_16(const Setting& setting, Table& table) {
  PARC_TRY(figures, synchronizations_of(setting, pipe_sizes));
  for (const std::string_view where : {one_core, two_cores}) {
    const double of_semaphore = figure(figures, "semaphore", where);
    if (of_semaphore < 0) continue;
    for (const std::size_t bytes : pipe_sizes)
      table.add({fmt::format("figure 16: pipe message of {}{}", size_text(bytes), where), "one way", "us",
                 beside_semaphore},
                figure(figures, fmt::format("pipe {}", bytes), where), of_semaphore);
    table.add({fmt::format("figure 16: pipe message that costs a semaphore{}", where),
               "length; 0: costs more at any", "bytes", "Sun SPARCstation1+, 1994"},
              crossing(figures, of_semaphore, where), paper_crossing_bytes);
  }
  return success();
}

} // namespace parc::bench
