// SPDX-License-Identifier: BSD-3-Clause
// What must hold in the world of whole kernels.
#include "daemon/job/jobs.hpp"
#include "tests/sim/kernels.hpp"
#include "tests/sim/violation.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <fmt/ranges.h>

namespace parc::sim {

void Kernels::excuse(std::size_t a, std::size_t b) {
  excused_[std::minmax(a, b)] = network_.time;
  trouble(a, b);
}

// Jobs that have both of them may be told so.
void Kernels::trouble(std::size_t a, std::size_t b) {
  for (const auto& tool : tools_)
    if (!tool->judged && tool->hosts.contains(a) && tool->hosts.contains(b)) tool->troubled = true;
}

bool Kernels::linked(std::size_t from, std::size_t to) const {
  return std::ranges::any_of(hosts_[from].links, [&](const auto& each) { return each.second.host == to; });
}

// Otherwise one of them will hear from the other that what it takes for their session is none.
bool Kernels::of_one_mind(std::size_t a, std::size_t b) const {
  const auto runs = [&](std::size_t host) {
    return hosts_[host].kernel != nullptr && !hosts_[host].stopping;
  };
  if (!runs(a) || !runs(b) || apart_for_long_.contains(std::minmax(a, b))) return false;
  const auto stale = [&](std::size_t from, std::size_t to) {
    return std::ranges::any_of(hosts_[from].links, [&](const auto& each) {
      return each.second.host == to &&
             each.second.identity != static_cast<std::uint32_t>(hosts_[to].identity);
    });
  };
  return !stale(a, b) && !stale(b, a) && linked(a, b) == linked(b, a);
}

std::set<int> Kernels::failures(const PlayedTool& tool) const {
  std::set<int> all;
  for (const auto& [number, place] : tool.ranks) {
    const PlayedRank& rank = *ranks_[place];
    if (rank.aborted()) all.insert(rank.part().status);
    if (rank.alive() || rank.signaled()) continue;
    if (rank.part().start == Part::Start::no_program)
      all.insert(127);
    else if (rank.exit().signal != 0)
      all.insert(128 + static_cast<int>(rank.exit().signal));
    else if (rank.exit().status != 0)
      all.insert(static_cast<int>(rank.exit().status));
  }
  return all;
}

void Kernels::judge(const PlayedTool& tool) {
  if (!tool.status()) {
    say("a tool has gone, or has been left");
    if (!tool.origin_ended && !tool.gone()) throw Violation("a tool was left by a kernel that runs");
    return;
  }
  const int status = *tool.status();
  say(fmt::format("a job of {} ranks ends with {}: {}", tool.parts.size(), status, tool.text()));
  const std::set<int> failed = failures(tool);
  std::set<int> allowed = failed;
  allowed.insert(tool.acted.begin(), tool.acted.end());
  if (tool.troubled) allowed.insert(125);
  if (failed.empty()) allowed.insert(0);
  const std::string what =
      fmt::format("a job of {} ranks ended with {} ({})", tool.parts.size(), status, tool.text());
  if (!allowed.contains(status))
    throw Violation(fmt::format("{}, which may be {}", what, fmt::join(allowed, ", ")));
  if (status == 0 && tool.ranks.size() != tool.parts.size())
    throw Violation(what + " without all of its ranks");
  if (tool.nice && !tool.troubled && status != 0) throw Violation(what + " for no reason");
  if (tool.nice && !tool.troubled && tool.warnings() != 0) throw Violation(what + " with warnings");
  tally_.troubled += tool.troubled;
  ++(status == 0 ? tally_.good : tally_.failed);
  judge_output(tool);
}

// All that its ranks have written, or the beginning of it where their host was lost.
void Kernels::judge_output(const PlayedTool& tool) {
  for (const auto& [number, place] : tool.ranks) {
    const std::string& written = ranks_[place]->written();
    const std::string heard = tool.output(number);
    tally_.output += heard.size();
    tally_.messages += ranks_[place]->rounds_done();
    if (!written.starts_with(heard))
      throw Violation(PlayedRank::name(ranks_[place]->place()) +
                      " has written something else than was heard");
    if (!tool.troubled && heard.size() != written.size())
      throw Violation(fmt::format("{} has written {} bytes, of which {} were heard",
                                  PlayedRank::name(ranks_[place]->place()), written.size(), heard.size()));
    if (!tool.troubled && ranks_[place]->alive())
      throw Violation(PlayedRank::name(ranks_[place]->place()) + " outlives its job");
  }
}

// The first thing; empty: nothing.
std::string Kernels::what_is_left() {
  for (const auto& rank : ranks_)
    if (rank->alive()) return rank->state();
  for (const auto& tool : tools_)
    if (!tool->over())
      return fmt::format("a job of {} ranks asked for on {}", tool->parts.size(), hosts_[tool->origin].name);
  for (const auto& rank : ranks_) {
    if (rank->attached_by_kernel()) return "the memory of " + PlayedRank::name(rank->place());
  }
  for (const Host& host : hosts_) {
    if (host.kernel == nullptr) return fmt::format("no kernel on {}", host.name);
    const protocol::Engine& engine = host.kernel->engine();
    if (!host.kernel->jobs().none()) return fmt::format("a job in the kernel of {}", host.name);
    if (engine.endpoints() != 1) return fmt::format("{} endpoints on {}", engine.endpoints() - 1, host.name);
    if (engine.pool_in_use() != 0)
      return fmt::format("{} bytes of pool on {}", engine.pool_in_use(), host.name);
  }
  return {};
}

} // namespace parc::sim
