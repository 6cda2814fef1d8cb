// SPDX-License-Identifier: BSD-3-Clause
// What the parts of bench-paper have in common: where they measure, how a role of this program is asked for
// its figures, and the rows, which begin with the first repeat.
#pragma once

#include "bench/figures/bench.hpp"
#include "bench/paper/roles.hpp"

namespace parc::bench {

struct Setting {
  const Hosts& hosts;
  std::string network; // "loopback", or the preset
};

class Table {
public:
  // Where there is a row of this case, metric and peer, it gets these samples too.
  void add(const Row& row, double ours);
  void add(const Row& row, double ours, double theirs);
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

private:
  Row& find(const Row& row);
  std::vector<Row> rows_;
};

// A process of this program on host 0.
[[nodiscard]] Result<Figures> by_one(const Setting& setting, const Command& role);
// The two sides of a plain TCP connection, one on each host.
[[nodiscard]] Result<Figures> by_streams(const Setting& setting, const Command& role);
// Two ranks, one on each host, where kernels are running.
[[nodiscard]] Result<Figures> by_ranks(const Setting& setting, const Command& role);
// Kernels that encrypt nothing, as those of 1994 and the plain connections beside them; each, and its ranks,
// on its host's core.
[[nodiscard]] Result<Kernels> start_kernels(const Setting& setting);

// Each measures once.
[[nodiscard]] Result<void> measure_table_1(const Setting& setting, Table& table);
[[nodiscard]] Result<void> measure_figure_16(const Setting& setting, Table& table);
[[nodiscard]] Result<void> measure_figure_10(const Setting& setting, Table& table);
[[nodiscard]] Result<void> measure_figure_11(const Setting& setting, Table& table);
[[nodiscard]] Result<void> measure_stalls(const Setting& setting, Table& table);
[[nodiscard]] Result<void> measure_figure_18(const Setting& setting, Table& table);
[[nodiscard]] Result<void> measure_table_2(const Setting& setting, Table& table);
[[nodiscard]] Result<void> measure_figure_19(const Setting& setting, Table& table);
[[nodiscard]] Result<void> measure_overhead(const Setting& setting, Table& table);

} // namespace parc::bench
