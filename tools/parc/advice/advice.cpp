// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/advice/advice.hpp"

#include "tools/parc/advice/predictions.hpp"
#include "tools/parc/advice/traced_run.hpp"
#include "tools/parc/screen/table.hpp"
#include "tools/parc/trace/source_lines.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

namespace parc::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int advice_schema = 1;
constexpr double worth_it = 0.98;     // of a step: what is not shorter is no gain
constexpr double least_shown = 0.002; // of a step: waits of less are not listed
constexpr std::size_t most_lines = 10;

std::string ms(double s) {
  const double value = s * 1e3;
  return fmt::format("{:.{}f}", value, value < 1 ? 4 : value < 10 ? 3 : value < 100 ? 2 : 1);
}

class Advice {
public:
  Advice(const std::map<std::uint64_t, RankTrace>& ranks, const TracedRun& traced, Predictions predictions,
         bool links_named)
      : ranks_(ranks), traced_(traced), predictions_(std::move(predictions)), links_named_(links_named) {}

  void print() {
    const Display display = display_of(stderr);
    Page page(display);
    page.add(heading());
    page.add(steps());
    page.add_blank();
    page.add(limit());
    page.add(lines());
    page.add_blank();
    for (const std::string& sentence : verdict()) page.add(sentence);
    for (const std::string& sentence : caveats()) page.add(sentence);
    show(page.lines(), stderr);
  }

  Json json() {
    Json all{{"schema", advice_schema},
             {"ranks", ranks_.size()},
             {"steps", traced_.steps},
             {"messages_a_step", traced_.messages_a_step},
             {"step_ms", traced_.step * 1e3},
             {"replayed_ms", predictions_.replayed * 1e3},
             {"hidden_ms", predictions_.hidden * 1e3},
             {"early_release_ms", predictions_.released * 1e3},
             {"at_best_ms", predictions_.best * 1e3},
             {"calculation_ms", predictions_.calculation * 1e3},
             {"messages_ms", predictions_.messages * 1e3},
             {"limit", name_of(predictions_.limit)},
             {"wires", Json::array()},
             {"others", Json::object()},
             {"lines", Json::array()},
             {"sentences", Json::array()},
             {"caveats", Json::array()}};
    for (std::size_t from = 0; from < traced_.hosts.size(); ++from)
      for (std::size_t to = 0; to < traced_.hosts.size(); ++to) {
        const model::Wire& wire = traced_.wires.between(from, to);
        if (from == to) continue;
        all["wires"].push_back(
            {{"from", traced_.hosts[from]},
             {"to", traced_.hosts[to]},
             {"latency_ms", wire.latency * 1e3},
             {"mb_s", std::isfinite(wire.bandwidth) ? Json(wire.bandwidth / 1e6) : Json()}});
      }
    for (const Prediction& each : predictions_.others) all["others"][each.key] = each.step * 1e3;
    for (const LinePrediction& each : predictions_.lines)
      all["lines"].push_back(
          {{"line", line_of(each)}, {"touched_at", touched_at(each)}, {"step_ms", each.step * 1e3}});
    for (const std::string& each : verdict()) all["sentences"].push_back(each);
    for (const std::string& each : caveats()) all["caveats"].push_back(each);
    return all;
  }

private:
  std::string heading() const {
    const std::string what = traced_.steps == 0
                                 ? std::string("nothing that repeats itself: a \"step\" is the whole run")
                                 : fmt::format("{} steps of {} ms", traced_.steps, ms(traced_.step));
    return fmt::format("{} ranks on {} host{}, {} messages, {}. The replay of that takes {} ms a step.",
                       ranks_.size(), traced_.hosts.size(), traced_.hosts.size() == 1 ? "" : "s",
                       traced_.messages, what, ms(predictions_.replayed));
  }

  Table steps() const {
    Table table{{{"A STEP", false}, {"ms", true}, {"OF NOW", true}}, {}};
    const auto add = [&](const std::string& what, double step) {
      table.rows.push_back({what, ms(step), fmt::format("{:.2f}", step / traced_.step)});
    };
    add("now, as it was measured", traced_.step);
    add("waits where what they wait for is first touched", predictions_.hidden);
    add("released early (--early-release)", predictions_.released);
    add("at best: calculation in another order", predictions_.best);
    for (const Prediction& each : predictions_.others) add(each.what, each.step);
    return table;
  }

  static const char* name_of(Limit limit) {
    switch (limit) {
    case Limit::latency: return "latency";
    case Limit::bandwidth: return "bandwidth";
    case Limit::calculation: break;
    }
    return "calculation";
  }

  std::string limit() const {
    if (predictions_.limit == Limit::calculation)
      return fmt::format(
          "What limits it is calculation, and ranks that wait for each other: {} ms a step without any "
          "way between hosts.",
          ms(predictions_.calculation));
    return fmt::format(
        "What limits it is {} between hosts: {} ms a step without it, {} ms without any way between "
        "hosts, and {} ms without calculation.",
        predictions_.limit == Limit::latency ? "the latency" : "the bandwidth",
        ms(predictions_.without_limit), ms(predictions_.calculation), ms(predictions_.messages));
  }

  std::string place_of(const RankSite& site) { return lines_.place(ranks_.at(site.rank), site.site); }
  std::string line_of(const LinePrediction& line) { return place_of(traced_.places[line.place].at); }
  std::string touched_at(const LinePrediction& line) {
    const RankSite& site = traced_.places[line.place].touched_at;
    if (traced_.places[line.place].untouched) return "not before its buffer is used again";
    return site.site == 0 ? "-" : place_of(site);
  }

  Table lines() {
    Table table{{{"WAITS AT", false},
                 {"CALL", false},
                 {"MEAN WAIT ms", true},
                 {"FIRST TOUCHED AT", false},
                 {"STEP THEN ms", true}},
                {}};
    const double shares = static_cast<double>(std::max<std::uint64_t>(traced_.steps, 1) * ranks_.size());
    for (const LinePrediction& each : predictions_.lines) {
      const WaitPlace& place = traced_.places[each.place];
      if (place.waited / shares < least_shown * traced_.step) continue;
      table.rows.push_back(
          {line_of(each), std::string(trace::call_names[static_cast<std::size_t>(place.call)]),
           ms(place.waited / static_cast<double>(place.waits)), touched_at(each), ms(each.step)});
      if (table.rows.size() == most_lines) break;
    }
    return table;
  }

  // The best line of which it is known where to wait; empty: there is none.
  std::string change() {
    for (const LinePrediction& each : predictions_.lines) {
      const WaitPlace& place = traced_.places[each.place];
      if (each.step >= worth_it * traced_.step) break;
      const std::string then =
          fmt::format("A step takes {} ms then, not {}.", ms(each.step), ms(traced_.step));
      if (place.untouched)
        return fmt::format(
            "Change {}: nobody touches what it waits for before its buffer is used again; wait "
            "there. {}",
            line_of(each), then);
      if (place.touched_at.site != 0)
        return fmt::format("Change {}: wait at {}, where what it waits for is first touched. {}",
                           line_of(each), touched_at(each), then);
    }
    return {};
  }

  std::vector<std::string> verdict() {
    std::vector<std::string> sentences;
    if (std::string line = change(); !line.empty()) sentences.push_back(std::move(line));
    if (sentences.empty() && predictions_.hidden < worth_it * traced_.step)
      sentences.push_back(
          fmt::format("Change all of these lines: each wait stands where what it waits for is first "
                      "touched, and a step takes {} ms, not {}.",
                      ms(predictions_.hidden), ms(traced_.step)));
    if (predictions_.released < worth_it * traced_.step)
      sentences.push_back(fmt::format("{} nothing, and run it with --early-release: {} ms.",
                                      sentences.empty() ? "Change" : "Or change", ms(predictions_.released)));
    if (predictions_.best < worth_it * std::min(predictions_.hidden, predictions_.released))
      sentences.push_back(
          fmt::format("{}calculate first what others wait for, send it, and then calculate what needs "
                      "nothing of theirs: {} ms at best, the longer of calculation and messages.",
                      sentences.empty() ? "To gain, " : "To gain more, ", ms(predictions_.best)));
    if (sentences.empty())
      sentences.push_back(predictions_.messages < (1 - worth_it) * traced_.step
                              ? "It cannot gain by hiding: its messages take next to nothing of a step."
                              : "It cannot gain by hiding: there is too little calculation behind which "
                                "messages could hide.");
    return sentences;
  }

  std::vector<std::string> caveats() {
    std::vector<std::string> sentences;
    std::uint64_t lost = 0;
    for (const auto& [rank, said] : ranks_) lost += said.lost;
    if (lost != 0)
      sentences.push_back(
          fmt::format("{} records had no room and are missing; what is said stands on less.", lost));
    if (traced_.touched * 10 < traced_.long_enough * 9) // those of the last step need not be touched
      sentences.push_back(
          fmt::format("Of {} reads of two pages or more the first touches of {} are known; the others "
                      "are waited for where they are.",
                      traced_.long_enough, traced_.touched));
    if (traced_.unmatched != 0)
      sentences.push_back(
          fmt::format("{} operations belong to no message that both ends have told of.", traced_.unmatched));
    if (traced_.hosts.size() == 1 && links_named_)
      sentences.push_back("All ranks were on one host: no message of theirs takes a link.");
    if (predictions_.stuck)
      sentences.push_back(
          "The replay of the run did not come to its end: records are missing, or the program waits "
          "in a way that a trace does not tell of. What is said stands on its beginning.");
    for (const auto& [object, why] : lines_.missing()) sentences.push_back(why + ".");
    return sentences;
  }

  const std::map<std::uint64_t, RankTrace>& ranks_;
  const TracedRun& traced_;
  const Predictions predictions_;
  const bool links_named_;
  SourceLines lines_;
};

Result<std::vector<NamedLink>> links_of(const AdviceOptions& options) {
  std::vector<NamedLink> links;
  for (const std::string& text : options.links) {
    PARC_TRY(link, parse_link(text));
    links.push_back(std::move(link));
  }
  return links;
}

} // namespace

Result<void> check(const AdviceOptions& options) {
  const auto links = links_of(options);
  return links ? success() : Result<void>(links.error());
}

void add_advice(CLI::App& app, AdviceOptions& options) {
  auto* const advise =
      app.add_flag("--advise{text}", options.form,
                   "Say what a step takes, what it would take with messages hidden, and which line to "
                   "change: =json for programs");
  advise->check(one_of({"text", "json"}))->excludes("--trace-pages", "--early-release");
  app.add_option("--link", options.links,
                 "And on this link between hosts: NAME=ROUND-TRIP,RATE, as wan=20ms,100mbit; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->needs(advise);
}

Result<void> advise(const std::map<std::uint64_t, RankTrace>& ranks, const AdviceOptions& options,
                    ReleaseAt at) {
  PARC_TRY(links, links_of(options));
  const TracedRun traced = make_run(ranks);
  if (traced.messages == 0)
    return error(ENOMSG, "there is no advice: {}",
                 ranks.empty() ? "no rank has left a trace; none is a program of parc's"
                               : "no rank has sent a message to another");
  if (traced.step <= 0)
    return error(
        ENOMSG,
        "there is no advice: no rank has sent more than one message, so there is no step to speak of");
  Advice advice(ranks, traced, predict(traced, links, at), !links.empty());
  if (options.form == "json")
    std::cerr << advice.json().dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  else
    advice.print();
  return success();
}

} // namespace parc::tools
