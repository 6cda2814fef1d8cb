// SPDX-License-Identifier: BSD-3-Clause
// One-sided transfers (HUNT 2005) on an emulated link: a program that blocks, the same released early, and
// what a programmer does by hand (tables 1 and 2, figures 6 to 11, and section 6.2). The bench starts itself
// over inside an emulation of its hosts.
#include "bench/figures/bench.hpp"
#include "bench/one_sided/asker.hpp"
#include "bench/one_sided/pictures.hpp"

#include <algorithm>
#include <parc/parc.h>
#include <sstream>

namespace parc::bench {
namespace {

const std::vector<std::string> all_parts{"machine", "short", "overlap", "computing", "flag",
                                         "ft",      "is",    "mg",      "many",      "puts"};
constexpr std::size_t hosts_of_many = 4;

struct Roles : Options {
  std::vector<std::string> parts = all_parts;
  std::string preset = "metro";
  std::string pictures;
  std::string rank;
  int order = PARC_ORDER_ANY;
};

// Of HUNT's table 1: microseconds, and G in those a KiB.
struct Machine {
  const char* name;
  double o, G, RTT, I, mprotect;
};
constexpr Machine machines[] = {
    {"Opteron, Infiniband", 1.8, 1.23, 11.6, 2, 1},
    {"Itanium, Myrinet", 3, 4.7, 25.5, 3, 1},
    {"PowerPC, Infiniband", 5.2, 1.26, 20.2, 37, 1},
    {"AlphaServer, Quadrics", 2, 3.96, 8, 5, 1},
};

Row pair_of(const Measured& found, const std::string& name, const char* metric, const std::string& ours,
            const std::string& theirs, std::string goal = {}) {
  Row row{name + ", " + found.name, metric, "ms", theirs, std::move(goal)};
  for (std::size_t i = 0; i < found.samples.at(ours).size(); ++i)
    row.add(found.samples.at(ours)[i] * 1e3, found.samples.at(theirs)[i] * 1e3);
  return row;
}

// What would be if the shorter of both, transfer and work, but for its first part in so many, cost nothing.
Row beside_possible(const Measured& found, const std::string& name, const char* metric,
                    const std::string& ours, double parts, std::string goal) {
  const double best = std::max(found.get, found.work) + std::min(found.get, found.work) / parts;
  Row row{name + ", " + found.name, metric, "ms", "the best possible", std::move(goal)};
  for (const double seconds : found.samples.at(ours)) row.add(seconds * 1e3, best * 1e3);
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

void add_machine(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  const auto beside = [&](double Machine::*term, const char* unit) {
    for (const Machine& machine : machines) {
      Row row{where + ", " + found.name, "cost", unit, machine.name};
      row.add(found.get * 1e6, machine.*term);
      rows.push_back(row);
    }
  };
  if (found.name == "o") return beside(&Machine::o, "us");
  if (found.name == "G") return beside(&Machine::G, "us/KiB");
  if (found.name == "RTT") return beside(&Machine::RTT, "us");
  if (found.name == "I") return beside(&Machine::I, "us");
  if (found.name == "mprotect") return beside(&Machine::mprotect, "us");
  Row row{where + ", " + found.name, "cost", "us"};
  row.parc.push_back(found.get * 1e6);
  rows.push_back(row);
}

void add_short(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  const bool two = found.samples.contains("non-blocking"), gigabit = where.starts_with("gigabit");
  const char* const alone = gigabit ? "<= 1.10" : "<= 1.01";
  rows.push_back(pair_of(found, where, "released early", "early", "blocking", two ? "<= 0.6" : alone));
  if (two) rows.push_back(pair_of(found, where, "released early", "early", "non-blocking"));
}

// What is possible: every page is used when it is there, and nothing else delays it.
void add_overlap(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  rows.push_back(pair_of(found, where, "released early", "early", "blocking", "<= 1.05"));
  if (found.samples.contains("non-blocking")) { // work elsewhere
    rows.push_back(pair_of(found, where, "released early", "early", "non-blocking", "<= 1.05"));
    return;
  }
  const double r = found.work / found.get;
  const double possible = std::min(1 + r, 1 + 1 / r);
  const bool half = found.name.ends_with("half");
  const bool counts = found.name.find("KiB") == std::string::npos || found.name.starts_with("256 KiB");
  Row share{where + ", " + found.name, "gain", "x", "possible", !counts ? "" : half ? ">= 0.95" : ">= 0.8"};
  for (std::size_t i = 0; i < found.samples.at("early").size(); ++i)
    share.add(found.samples.at("blocking")[i] / found.samples.at("early")[i], possible);
  rows.push_back(share);
  const std::string by_hand = best_of(found, "strips");
  if (!by_hand.empty()) rows.push_back(pair_of(found, where, "released early", "early", by_hand, "<= 1"));
}

void add_ft(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  const bool gigabit = where.starts_with("gigabit"), half = found.name.ends_with("half");
  const bool eight = found.name.starts_with("8 ");
  const std::string goal = !gigabit || !eight ? "<= 1.05" : half ? "<= 0.741" : "<= 0.606";
  rows.push_back(pair_of(found, where, "released early", "early", "blocking", goal));
  rows.push_back(pair_of(found, where, "released early", "early", "non-blocking", eight ? "<= 1" : ""));
  rows.push_back(pair_of(found, where, "scheduled", "scheduled", "decomposed", "<= 1"));
  if (eight) rows.push_back(beside_possible(found, where, "released early", "early", 8 * 64, "<= 1.11"));
}

void add_is(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  rows.push_back(pair_of(found, where, "released early", "early", "blocking", "<= 1.05"));
  rows.push_back(pair_of(found, where, "released early", "decomposed", "blocking", "<= 1.05"));
  rows.push_back(
      pair_of(found, where, "does not block, released early", "non-blocking, early", "non-blocking", "<= 1"));
}

void add_mg(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  const bool all = found.name == "six faces", large = found.name.starts_with("a face of 256 KiB");
  const char* const goal = all ? "<= 1" : large ? "<= 0.952" : "<= 1.05";
  rows.push_back(pair_of(found, where, "released early", "early", "blocking", goal));
}

void add_puts(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  rows.push_back(pair_of(found, where, "source guarded", "guarded", "blocking", "<= 1.05"));
  rows.push_back(pair_of(found, where, "source copied", "copied", "blocking", "<= 1.05"));
  const bool one = found.name.starts_with("put");
  rows.push_back(beside_possible(found, where, "source guarded", "guarded", 64, one ? "<= 1.11" : ""));
}

void add_many(const Measured& found, const std::string& where, std::vector<Row>& rows) {
  if (found.samples.contains("guarded")) return add_puts(found, where, rows);
  rows.push_back(pair_of(found, where, "released early", "early", "blocking", "<= 1.05"));
  rows.push_back(pair_of(found, where, "released early", "early", "non-blocking"));
  rows.push_back(pair_of(found, where, "scheduled", "scheduled", "early"));
}

void add(const std::string& part, const Measured& found, const std::string& where, std::vector<Row>& rows) {
  if (part == "machine") add_machine(found, where, rows);
  if (part == "short") add_short(found, where, rows);
  if (part == "overlap") add_overlap(found, where, rows);
  if (part == "computing")
    rows.push_back(pair_of(found, where, "the target computes", "computing", "idle", "<= 1.2"));
  if (part == "flag")
    rows.push_back(pair_of(found, where, "until it is heard of", "message", "quiet, message",
                           where.starts_with("wan") ? "<= 0.6" : ""));
  if (part == "ft") add_ft(found, where, rows);
  if (part == "is") add_is(found, where, rows);
  if (part == "mg") add_mg(found, where, rows);
  if (part == "many") add_many(found, where, rows);
  if (part == "puts") add_puts(found, where, rows);
}

// Each order in a process of its own: where releases do not pay in one of them, they stop in the whole
// process.
Result<void> measure_part(const Hosts& hosts, const Roles& roles, const std::string& part, int order,
                          std::vector<Found>& found, std::vector<Row>& rows) {
  const int ranks = part == "many" ? static_cast<int>(hosts_of_many) : 2;
  PARC_TRY(printed, output_of(job(hosts, ranks, hosts.slots(),
                                  {"--rank", part, "--order", std::to_string(order), "--repeats",
                                   std::to_string(roles.repeats)}),
                              std::chrono::seconds(1800)));
  const std::string where = roles.preset + (order == PARC_ORDER_UP ? ", upwards" : "");
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    found.push_back({part, order, Json::parse(line).get<Measured>()});
    add(part, found.back().measured, where, rows);
  }
  return success();
}

Result<std::vector<Row>> measure(const Hosts& hosts, const Roles& roles) {
  std::vector<Found> found;
  std::vector<Row> rows;
  for (const std::string& part : roles.parts)
    for (const int order : {PARC_ORDER_ANY, PARC_ORDER_UP}) {
      if (order == PARC_ORDER_UP && part != "overlap") continue;
      PARC_TRY(measure_part(hosts, roles, part, order, found, rows));
    }
  if (!roles.pictures.empty()) {
    PARC_TRY(write_pictures(roles.pictures, roles.preset, found));
  }
  return rows;
}

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench("bench-one-sided", "One-sided transfers on an emulated link: blocking, by hand, and released "
                                 "early; puts, flags, and the exchanges of FT, IS and MG.");
  Roles roles;
  describe(bench, roles);
  bench.add_option("--preset", roles.preset, "The link, as in wanlink(1)")
      ->check(CLI::IsMember({"metro", "wan", "gigabit"}))
      ->capture_default_str();
  bench
      .add_option(
          "--part", roles.parts,
          "Only this part: machine, short, overlap, computing, flag, ft, is, mg, many or puts; may be "
          "repeated")
      ->check(CLI::IsMember(all_parts));
  bench.add_option("--gnuplot", roles.pictures, "Also write HUNT's figures here, for gnuplot")
      ->type_name("FILE");
  bench.add_option("--rank", roles.rank)->group("");
  bench.add_option("--order", roles.order)->group("");
  bench.begin(argc, argv);
  if (!roles.rank.empty()) return bench.end(be_rank(roles.rank, roles.order, roles.repeats));
  const bool many = std::ranges::find(roles.parts, "many") != roles.parts.end();
  return bench.measure({.preset = roles.preset, .hosts = many ? hosts_of_many : 2}, roles,
                       [&](const Hosts& hosts) { return measure(hosts, roles); });
}
