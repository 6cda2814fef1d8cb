// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/unfinished_table.hpp"

#include "include/parc/parc.h"
#include "tools/parc/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iostream>

namespace parc::tools {

std::string age_text(std::uint64_t ms) {
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (ms < 120'000) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1e3);
  return fmt::format("{} min", ms / 60'000);
}

std::string operation_text(const Unfinished& operation) {
  const std::string peer = operation.peer < 0 ? "anybody" : fmt::to_string(operation.peer);
  if (operation.context >= PARC_CONTEXT_RESERVED)
    return fmt::format("barrier, {} {}", operation.writes ? "to" : "from", peer);
  return fmt::format("{} {}",
                     operation.writes   ? "write to"
                     : operation.probes ? "probe of"
                                        : "read from",
                     peer);
}

std::string_view doing(const RankState& rank) {
  return !rank.joined ? "not joined" : rank.resting ? "waits" : "runs";
}

namespace {

// With columns for the job, where more than one is shown, and the rank.
class OfRanks {
public:
  OfRanks(const std::vector<ShownRank>& ranks, std::vector<Column> columns)
      : of_jobs_(std::ranges::any_of(ranks, [](const ShownRank& each) { return !each.job.empty(); })),
        columns_(std::move(columns)) {
    columns_.insert(columns_.begin(), {"RANK", true});
    if (of_jobs_) columns_.insert(columns_.begin(), {"JOB", false});
  }
  void add(const ShownRank& shown, std::vector<std::string> texts) {
    texts.insert(texts.begin(), fmt::to_string(shown.rank.rank));
    if (of_jobs_) texts.insert(texts.begin(), shown.job);
    rows_.push_back(std::move(texts));
  }
  void print() const {
    if (rows_.empty()) return;
    std::cout << '\n';
    print_table(columns_, rows_);
  }

private:
  bool of_jobs_;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

} // namespace

void print_unfinished(const std::vector<ShownRank>& ranks) {
  OfRanks table(
      ranks, {{"NOT FINISHED", false}, {"TAG", true}, {"BYTES", true}, {"IN PLACE", true}, {"SINCE", true}});
  for (const ShownRank& shown : ranks) {
    for (const Unfinished& each : shown.rank.operations) {
      const bool own = each.context >= PARC_CONTEXT_RESERVED; // whose tags mean nothing
      table.add(shown, {operation_text(each),
                        own            ? ""
                        : each.tag < 0 ? "any"
                                       : fmt::to_string(each.tag),
                        bytes_text(each.bytes), bytes_text(each.in_place), age_text(each.age_ms)});
    }
    if (shown.rank.more != 0) table.add(shown, {fmt::format("and {} more", shown.rank.more), "", "", "", ""});
  }
  table.print();
}

void print_backlog(const std::vector<ShownRank>& ranks) {
  OfRanks table(ranks, {{"STANDS", false}, {"COUNT", true}, {"MEMORY", true}});
  for (const ShownRank& shown : ranks) {
    const RankState::Backlog& backlog = shown.rank.backlog;
    const auto add = [&](const char* what, std::uint64_t count, std::string memory) {
      if (count != 0) table.add(shown, {what, fmt::to_string(count), std::move(memory)});
    };
    add("messages to neighbours that do not take them", backlog.to_neighbours,
        bytes_text(backlog.to_neighbours_bytes));
    add("messages of neighbours that no read has taken", backlog.from_neighbours,
        bytes_text(backlog.from_neighbours_bytes));
    add("operations that have no memory yet", backlog.put_off, {});
    add("writes in the kernel that their receivers have no place for", backlog.kernel_held, {});
    add("messages in the kernel that no read has taken", backlog.kernel_unread, {});
  }
  table.print();
}

std::string bytes_text(std::uint64_t number) {
  constexpr std::string_view units = "KMGTPE";
  if (number < 1024) return fmt::format("{} B", number);
  auto value = static_cast<double>(number);
  std::size_t unit = 0;
  for (value /= 1024; value >= 1024 && unit + 1 < units.size(); value /= 1024) ++unit;
  return fmt::format("{:.1f} {}iB", value, units[unit]);
}

} // namespace parc::tools
