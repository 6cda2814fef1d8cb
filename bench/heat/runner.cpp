// SPDX-License-Identifier: BSD-3-Clause
#include "bench/heat/runner.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace parc::heat::demo {

namespace {

// Variants of the demo that are a variant of the program, started otherwise.
struct Early {
  std::string_view variant, program;
  bool towards;
};
constexpr Early early_variants[] = {{"I.1-early", "I.1", false}, {"I.1-early-towards", "I.1", true}};

const Early* find_early(const std::string& variant) {
  const auto* const found = std::ranges::find(early_variants, variant, &Early::variant);
  return found == std::end(early_variants) ? nullptr : found;
}

} // namespace

bool over_parc(const std::string& variant) {
  return variant.starts_with("I.");
}

std::vector<Command> Runner::commands(const Run& what) const {
  const Early* const early = find_early(what.variant);
  Command heat = {program("heat"), "--json",
                  "--variant",     early ? std::string(early->program) : what.variant,
                  "--ny",          std::to_string(what.points),
                  "--nx",          std::to_string(what.columns),
                  "--work",        std::to_string(what.work),
                  "--steps",       std::to_string(what.steps),
                  "--warm-up",     std::to_string(what.warm_up)};
  if (what.column_ms > 0) heat.insert(heat.end(), {"--column-ms", fmt::format("{:.6f}", what.column_ms)});
  if (what.variant == "ping-pong" || over_parc(what.variant)) heat.push_back("--check");
  if (early && early->towards) heat.push_back("--towards");
  if (!what.field.empty()) heat.insert(heat.end(), {"--field", what.field});
  const std::string ranks = std::to_string(ranks_);
  if (over_parc(what.variant)) {
    Command job = {program("parc"), "run", "-n", ranks, "--hosts", hosts_.slots()};
    if (early) job.push_back("--early-release");
    job.insert(job.end(), heat.begin(), heat.end());
    return {hosts_.on(0, job)};
  }
  if (what.variant == "sequential") {
    heat.insert(heat.end(), {"--ranks", ranks});
    return {hosts_.on(0, heat)};
  }
  std::vector<Command> each;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    Command one = heat;
    one.insert(one.end(), {"--places", hosts_.places(), "--rank", std::to_string(rank), "--socket-buffer",
                           std::to_string(socket_buffer_)});
    each.push_back(hosts_.on(rank, one));
  }
  return each;
}

Result<Sample> Runner::run(const Run& what) {
  const auto started = commands(what);
  PARC_TRY(relay_before, hosts_.relay());
  const auto begun = Clock::now();
  PARC_TRY(ended, run_together(started, std::chrono::seconds(600)));
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  PARC_TRY(relay_after, hosts_.relay());
  PARC_TRY(sample, read_output(what, ended));
  if (relay_before && relay_after) {
    sample.relay_late = RelayCounters::was_late(*relay_before, *relay_after);
    if (over_parc(what.variant)) {
      relay_cpu_seconds_ += relay_after->cpu_seconds - relay_before->cpu_seconds;
      relay_seconds_ += seconds;
    }
  }
  return sample;
}

// A line of JSON from every rank. A wrong result is a figure; a rank that says nothing is an error.
Result<Sample> Runner::read_output(const Run& what, const std::vector<Ended>& ended) const {
  const std::size_t expected = what.variant == "sequential" ? 1 : ranks_;
  std::size_t heard = 0;
  Sample sample;
  std::string complaints;
  for (const Ended& one : ended) {
    complaints += one.errors;
    for (std::size_t at = 0; at < one.output.size();) {
      const std::size_t end = std::min(one.output.find('\n', at), one.output.size());
      const auto line = nlohmann::json::parse(one.output.substr(at, end - at), nullptr, false);
      at = end + 1;
      if (!line.is_object()) continue;
      ++heard;
      sample.step_ms = std::max(sample.step_ms, line.at("step_ms").get<double>());
      sample.calculation_ms = std::max(sample.calculation_ms, line.at("calculation_ms").get<double>());
      sample.correct = sample.correct && line.value("correct", true);
    }
  }
  if (heard == expected) return sample;
  return error(EIO, "variant {}: {} of {} ranks answered: {}", what.variant, heard, expected,
               complaints.empty() ? "the others said nothing" : complaints);
}

} // namespace parc::heat::demo
