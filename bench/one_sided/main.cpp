// SPDX-License-Identifier: BSD-3-Clause
// One-sided transfers (HUNT 2005) on an emulated link: a program that blocks, the same released early, and
// what a programmer does by hand (table 2, figures 8 and 9, the exchange of FT). The bench starts itself over
// inside an emulation of two hosts.
#include "bench/figures/bench.hpp"
#include "bench/one_sided/asker.hpp"

#include <algorithm>
#include <parc/parc.h>
#include <sstream>

namespace parc::bench {
namespace {

const std::vector<std::string> all_parts{"short", "overlap", "several", "computing", "flag"};

struct Roles : Options {
  std::vector<std::string> parts = all_parts;
  std::string preset = "metro";
  std::string rank;
  int order = PARC_ORDER_ANY;
};

Row pair_of(const Measured& found, const std::string& name, const char* metric, const std::string& ours,
            const std::string& theirs, std::string goal = {}) {
  Row row{name + ", " + found.name, metric, "ms", theirs, std::move(goal)};
  for (std::size_t i = 0; i < found.samples.at(ours).size(); ++i)
    row.add(found.samples.at(ours)[i] * 1e3, found.samples.at(theirs)[i] * 1e3);
  return row;
}

// The way of which the median is best; none of those that begin so: the name.
std::string best_of(const Measured& found, std::string_view begins) {
  std::string best;
  for (const auto& [name, seconds] : found.samples)
    if (name.starts_with(begins) && (best.empty() || median(seconds) < median(found.samples.at(best))))
      best = name;
  return best;
}

void add_short(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  const bool two = found.samples.contains("non-blocking");
  const char* const alone = where == "gigabit" ? "<= 1.10" : "<= 1.01";
  rows.push_back(pair_of(found, where, "released early", "early", "blocking", two ? "<= 0.6" : alone));
  if (two) rows.push_back(pair_of(found, where, "released early", "early", "non-blocking"));
}

// What is possible: every page is used when it is there, and nothing else delays it.
void add_overlap(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  const double r = found.work / found.get;
  const double possible = std::min(1 + r, 1 + 1 / r);
  const bool half = found.name.ends_with("half");
  const bool counts = found.name.find("KiB") == std::string::npos || found.name.starts_with("256 KiB");
  rows.push_back(pair_of(found, where, "released early", "early", "blocking", "<= 1.05"));
  Row share{where + ", " + found.name, "gain", "x", "possible", !counts ? "" : half ? ">= 0.95" : ">= 0.8"};
  for (std::size_t i = 0; i < found.samples.at("early").size(); ++i)
    share.add(found.samples.at("blocking")[i] / found.samples.at("early")[i], possible);
  rows.push_back(share);
  const std::string by_hand = best_of(found, "strips");
  if (!by_hand.empty()) rows.push_back(pair_of(found, where, "released early", "early", by_hand, "<= 1"));
}

void add_several(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  const double best = std::max(found.get, found.work) + std::min(found.get, found.work) / (8 * 64);
  const bool gigabit = where.starts_with("gigabit"), half = found.name.ends_with("half");
  const std::string goal = !gigabit ? "" : half ? "<= 0.741" : "<= 0.606";
  rows.push_back(pair_of(found, where, "released early", "early", "blocking", goal));
  rows.push_back(pair_of(found, where, "released early", "early", "non-blocking", "<= 1"));
  Row row{where + ", " + found.name, "released early", "ms", "the best possible", "<= 1.11"};
  for (const double seconds : found.samples.at("early")) row.add(seconds * 1e3, best * 1e3);
  rows.push_back(row);
}

// Each order in a process of its own: where releases do not pay in one of them, they stop in the whole
// process.
Result<void> measure_part(const Hosts& hosts, const Roles& roles, const std::string& part, int order,
                          std::vector<Row>& rows) {
  PARC_TRY(printed, output_of(job(hosts, 2, hosts.slots(),
                                  {"--rank", part, "--order", std::to_string(order), "--repeats",
                                   std::to_string(roles.repeats)}),
                              std::chrono::seconds(1800)));
  const std::string where = roles.preset + (order == PARC_ORDER_UP ? ", upwards" : "");
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    const auto found = Json::parse(line).get<Measured>();
    if (part == "short") add_short(found, where, rows);
    if (part == "overlap") add_overlap(found, where, rows);
    if (part == "several") add_several(found, where, rows);
    if (part == "computing")
      rows.push_back(pair_of(found, where, "the target computes", "computing", "idle", "<= 1.2"));
    if (part == "flag")
      rows.push_back(pair_of(found, where, "until it is heard of", "message", "quiet, message",
                             where == "wan" ? "<= 0.6" : ""));
  }
  return success();
}

Result<std::vector<Row>> measure(const Hosts& hosts, const Roles& roles) {
  std::vector<Row> rows;
  for (const std::string& part : roles.parts)
    for (const int order : {PARC_ORDER_ANY, PARC_ORDER_UP}) {
      if (order == PARC_ORDER_UP && part != "overlap" && part != "several") continue;
      PARC_TRY(measure_part(hosts, roles, part, order, rows));
    }
  return rows;
}

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench(
      "bench-one-sided",
      "One-sided transfers on an emulated link: blocking, by hand, and released early; puts and flags.");
  Roles roles;
  describe(bench, roles);
  bench.add_option("--preset", roles.preset, "The link, as in wanlink(1)")
      ->check(CLI::IsMember({"metro", "wan", "gigabit"}))
      ->capture_default_str();
  bench
      .add_option("--part", roles.parts,
                  "Only this part: short, overlap, several, computing or flag; may be repeated")
      ->check(CLI::IsMember(all_parts));
  bench.add_option("--rank", roles.rank)->group("");
  bench.add_option("--order", roles.order)->group("");
  bench.begin(argc, argv);
  if (!roles.rank.empty()) return bench.end(be_rank(roles.rank, roles.order, roles.repeats));
  return bench.measure({.preset = roles.preset}, roles,
                       [&](const Hosts& hosts) { return measure(hosts, roles); });
}
