// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/view/unfinished_table.hpp"

#include "include/parc/parc.h"
#include "shm/layout.hpp"
#include "tools/parc/screen/units.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace parc::tools {

constexpr std::uint64_t long_wait_ms = 10'000; // after which libparc tells of what stands, too

std::string operation_text(const Unfinished& operation) {
  const std::string peer = operation.peer < 0 ? "anybody" : fmt::to_string(operation.peer);
  if (operation.one_sided)
    return fmt::format("{} {}, window",
                       operation.atomic   ? "atomic on"
                       : operation.writes ? "put to"
                                          : "get from",
                       peer);
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

bool waits_long(const RankState& rank) {
  return rank.resting && !rank.operations.empty() && rank.operations.front().age_ms >= long_wait_ms;
}

namespace {

Style style_of(const RankState& rank, const Unfinished& operation) {
  return rank.resting && operation.age_ms >= long_wait_ms ? Style::warning : Style::plain;
}

// With columns for the job, where more than one is shown, and the rank.
class OfRanks {
public:
  OfRanks(const std::vector<ShownRank>& ranks, std::vector<Column> columns)
      : of_jobs_(std::ranges::any_of(ranks, [](const ShownRank& each) { return !each.job.empty(); })),
        table_{std::move(columns), {}} {
    table_.columns.insert(table_.columns.begin(), {"RANK", true});
    if (of_jobs_) table_.columns.insert(table_.columns.begin(), {.title = "JOB", .name = true});
  }
  void add(const ShownRank& shown, std::vector<std::string> texts, Style style = Style::plain) {
    texts.insert(texts.begin(), fmt::to_string(shown.rank.rank));
    if (of_jobs_) texts.insert(texts.begin(), shown.job);
    table_.rows.emplace_back(std::move(texts), style);
  }
  [[nodiscard]] Table take() { return std::move(table_); }

private:
  bool of_jobs_;
  Table table_;
};

} // namespace

Table unfinished_table(const std::vector<ShownRank>& ranks) {
  OfRanks table(
      ranks, {{"NOT FINISHED", false}, {"TAG", true}, {"BYTES", true}, {"IN PLACE", true}, {"SINCE", true}});
  for (const ShownRank& shown : ranks) {
    for (const Unfinished& each : shown.rank.operations) {
      const bool own = each.context >= PARC_CONTEXT_RESERVED; // whose tags mean nothing
      table.add(shown,
                {operation_text(each),
                 each.one_sided ? fmt::to_string(shm::tag_of(each.context, each.tag))
                 : own          ? ""
                 : each.tag < 0 ? "any"
                                : fmt::to_string(each.tag),
                 bytes_text(each.bytes), bytes_text(each.in_place), age_text(each.age_ms)},
                style_of(shown.rank, each));
    }
    if (shown.rank.more != 0) table.add(shown, {fmt::format("and {} more", shown.rank.more), "", "", "", ""});
  }
  return table.take();
}

Table backlog_table(const std::vector<ShownRank>& ranks) {
  OfRanks table(ranks, {{"STANDS", false}, {"COUNT", true}, {"MEMORY", true}});
  for (const ShownRank& shown : ranks) {
    const RankState::Backlog& backlog = shown.rank.backlog;
    const auto add = [&](const char* what, std::uint64_t count, std::string memory) {
      if (count != 0) table.add(shown, {what, count_text(count), std::move(memory)});
    };
    add("messages to neighbours that do not take them", backlog.to_neighbours,
        bytes_text(backlog.to_neighbours_bytes));
    add("messages of neighbours that no read has taken", backlog.from_neighbours,
        bytes_text(backlog.from_neighbours_bytes));
    add("operations that have no memory yet", backlog.put_off, {});
    add("writes in the kernel without a place at receivers", backlog.kernel_held, {});
    add("messages in the kernel that no read has taken", backlog.kernel_unread, {});
  }
  return table.take();
}

} // namespace parc::tools
