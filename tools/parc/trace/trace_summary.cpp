// SPDX-License-Identifier: BSD-3-Clause
// parc trace: which waits cost what, what early release saved, and whose first touch came too early. All of
// it from the events of the file, so that it also says what a file has lost.
#include "system/read_file.hpp"
#include "tools/parc/screen/table.hpp"
#include "tools/parc/trace/commands.hpp"
#include "tools/parc/trace/first_touches.hpp"
#include "tools/parc/trace/trace.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

namespace parc::tools {
namespace {

using PlainJson = nlohmann::json;

constexpr std::size_t most_rows = 20;      // of what costs most
constexpr std::size_t most_replayed = 500; // reads of one place

struct Span {
  double begin, end; // us
};

// Of spans that may overlap: the time in which there is any.
class Cover {
public:
  explicit Cover(std::vector<Span> spans) {
    std::ranges::sort(spans, {}, &Span::begin);
    for (const Span& each : spans) {
      if (!merged_.empty() && each.begin <= merged_.back().end)
        merged_.back().end = std::max(merged_.back().end, each.end);
      else if (each.end > each.begin)
        merged_.push_back(each);
    }
  }
  [[nodiscard]] double length() const {
    double sum = 0;
    for (const Span& each : merged_) sum += each.end - each.begin;
    return sum;
  }
  [[nodiscard]] double common_with(const Cover& other) const {
    double sum = 0;
    for (std::size_t i = 0, j = 0; i < merged_.size() && j < other.merged_.size();) {
      const Span &a = merged_[i], &b = other.merged_[j];
      sum += std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
      ++(a.end < b.end ? i : j);
    }
    return sum;
  }

private:
  std::vector<Span> merged_;
};

struct Rank {
  std::string name;
  double first = 1e300, last = 0;
  double calculation = 0, faults = 0;
  Machine machine{0, 4096};
  std::uint64_t messages = 0, released = 0;
  std::vector<Span> outstanding; // reads, from their post to their last byte
  std::vector<Span> under_way;   // released reads, from their wait's return to their last byte
  std::vector<Span> blocked;     // in faults and calls
  std::map<std::uint64_t, std::vector<Span>> calls; // of each thread; one may lie in another
};

struct Wait { // of one kind, from one place
  std::uint64_t count = 0;
  double sum = 0, longest = 0;
};

struct Touch { // of the buffers that one place reads into, from one place
  std::uint64_t count = 0;
  double sum = 0, longest = 0, after_release = 0;
  bool upward = true, downward = true;
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> last_offset; // of each read: its rank and its id
};

using RankAndId = std::pair<std::uint64_t, std::uint64_t>; // of an operation
struct TracedRead {                                        // whose pages a trace tells of
  std::string posted_at, first_touched_at;
  bool ended = false;
  double waited = 0; // in faults
  TouchedRead read;
};

std::string milliseconds(double us) {
  return fmt::format("{:.3f}", us / 1e3);
}

class Summary {
public:
  void take(const PlainJson& event) {
    const auto phase = event.at("ph").get<std::string_view>();
    Rank& rank = ranks_[event.at("pid").get<std::uint64_t>()];
    const auto name = event.at("name").get<std::string>();
    if (phase == "M" && name == "process_name") rank.name = event.at("args").at("name");
    if (phase == "X") take_slice(rank, event, name);
    if (phase == "M" && name == "costs")
      rank.machine = {event.at("args").at("wake_us"),
                      std::max(event.at("args").at("page_bytes").get<std::uint64_t>(), std::uint64_t{1})};
    if (phase == "b") take_message(rank, event);
    if (phase == "i" && name == "first touches") take_first_touches(event);
  }

  void print() const {
    print_ranks();
    print_waits();
    print_hiding();
    print_release();
    print_touches();
    print_suggestions();
    print_never();
  }

private:
  void take_slice(Rank& rank, const PlainJson& event, const std::string& name) {
    const double begin = event.at("ts"), length = event.at("dur"), end = begin + length;
    rank.first = std::min(rank.first, begin);
    rank.last = std::max(rank.last, end);
    if (name == "calculation") {
      rank.calculation += length;
      return;
    }
    rank.blocked.push_back({begin, end});
    const PlainJson& args = event.contains("args") ? event.at("args") : PlainJson::object();
    const std::string site = args.value("site", "?");
    if (name == "fault") {
      rank.faults += length;
      take_touch(event.at("pid"), args, site, length);
      return;
    }
    rank.calls[event.at("tid").get<std::uint64_t>()].push_back({begin, end});
    Wait& wait = waits_[{name, site}];
    ++wait.count;
    wait.sum += length;
    wait.longest = std::max(wait.longest, length);
  }

  void take_touch(std::uint64_t rank, const PlainJson& args, const std::string& site, double length) {
    Touch& touch = touches_[{args.value("posted_at", "?"), site}];
    ++touch.count;
    touch.sum += length;
    touch.longest = std::max(touch.longest, length);
    touch.after_release += args.value("after_release_us", 0.0);
    const double offset = args.value("offset", 0.0);
    const std::pair read(rank, args.value("operation", std::uint64_t{0}));
    reads_[read].waited += length;
    const auto [last, first] = touch.last_offset.emplace(read, offset);
    if (first) return;
    if (offset > last->second) touch.downward = false;
    if (offset < last->second) touch.upward = false;
    last->second = offset;
  }

  void take_message(Rank& rank, const PlainJson& event) {
    const PlainJson& args = event.at("args");
    ++rank.messages;
    const bool reads = event.at("cat") != "write" && event.at("cat") != "put";
    if (reads && args.contains("last_byte_us"))
      rank.outstanding.push_back({event.at("ts"), args.at("last_byte_us")});
    if (reads && !args.contains("last_byte_us"))
      never_.push_back({fmt::to_string(event.at("pid").get<std::uint64_t>()),
                        event.at("name").get<std::string>(),
                        fmt::to_string(args.value("bytes", std::uint64_t{0})), args.value("site", "?")});
    if (reads) take_read(event, args);
    if (!args.contains("released_us")) return;
    ++rank.released;
    if (args.contains("last_byte_us"))
      rank.under_way.push_back({args.at("released_us"), args.at("last_byte_us")});
  }

  void take_read(const PlainJson& event, const PlainJson& args) {
    TracedRead& known = reads_[{event.at("pid"), args.value("operation", std::uint64_t{0})}];
    known.posted_at = args.value("site", "?");
    known.read.bytes = args.value("bytes", std::uint64_t{0});
    known.ended = args.contains("last_byte_us") && known.read.bytes != 0;
    if (!known.ended) return;
    known.read.last_byte = args.at("last_byte_us");
    known.read.first_byte = args.value("first_byte_us", known.read.last_byte);
    known.read.released = args.value("released_us", 0.0);
  }

  void take_first_touches(const PlainJson& event) {
    const PlainJson& args = event.at("args");
    TracedRead& known = reads_[{event.at("pid"), args.at("operation").get<std::uint64_t>()}];
    const Sweep sweep{event.at("ts"),    args.at("last_us"),     args.at("in_faults_us"),
                      args.at("offset"), args.at("last_offset"), args.at("pages")};
    if (sweep.pages == 0) return;
    auto& sweeps = known.read.sweeps;
    if (sweeps.empty()) known.first_touched_at = args.value("site", "?");
    sweeps.insert(std::ranges::upper_bound(sweeps, sweep.begin, {}, &Sweep::begin), sweep);
  }

  static double in_calls(const Rank& rank) {
    double sum = 0;
    for (const auto& [thread, spans] : rank.calls) sum += Cover(spans).length();
    return sum;
  }

  void print_ranks() const {
    std::vector<Row> rows;
    for (const auto& [number, rank] : ranks_)
      rows.push_back({rank.name, milliseconds(std::max(0.0, rank.last - rank.first)),
                      milliseconds(rank.calculation), milliseconds(in_calls(rank)), milliseconds(rank.faults),
                      fmt::to_string(rank.messages)});
    print_table({{"RANK", false},
                 {"TIME ms", true},
                 {"CALCULATION ms", true},
                 {"IN CALLS ms", true},
                 {"IN FAULTS ms", true},
                 {"MESSAGES", true}},
                rows);
  }

  template <class Map> static auto costliest(const Map& map) {
    std::vector<typename Map::const_iterator> order;
    for (auto each = map.begin(); each != map.end(); ++each) order.push_back(each);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [](const auto& each) { return each->second.sum; });
    if (order.size() > most_rows) order.resize(most_rows);
    return order;
  }

  static void print_section(std::string_view heading, const std::vector<Column>& columns,
                            const std::vector<Row>& rows) {
    if (rows.empty()) return;
    std::cout << '\n' << heading;
    print_table(columns, rows);
  }

  void print_waits() const {
    std::vector<Row> rows;
    for (const auto& each : costliest(waits_)) {
      const auto& [what, wait] = *each;
      rows.push_back({what.first, fmt::to_string(wait.count), milliseconds(wait.sum),
                      milliseconds(wait.sum / static_cast<double>(wait.count)), milliseconds(wait.longest),
                      what.second});
    }
    print_section("",
                  {{"CALL", false},
                   {"NUMBER", true},
                   {"ALL ms", true},
                   {"MEAN ms", true},
                   {"LONGEST ms", true},
                   {"FROM", false}},
                  rows);
  }

  // Of the time in which there was a read to wait for: what was waited for, and what was not.
  void print_hiding() const {
    std::vector<Row> rows;
    for (const auto& [number, rank] : ranks_) {
      if (rank.outstanding.empty()) continue;
      const Cover outstanding(rank.outstanding);
      const double exposed = outstanding.common_with(Cover(rank.blocked));
      rows.push_back({rank.name, milliseconds(outstanding.length()),
                      milliseconds(outstanding.length() - exposed), milliseconds(exposed)});
    }
    print_section(
        "", {{"RANK", false}, {"READS OUTSTANDING ms", true}, {"HIDDEN ms", true}, {"EXPOSED ms", true}},
        rows);
  }

  // What the waits would have waited for, but for what was waited for in the end all the same.
  void print_release() const {
    std::vector<Row> rows;
    for (const auto& [number, rank] : ranks_) {
      if (rank.released == 0) continue;
      const Cover under_way(rank.under_way);
      const double waited = under_way.common_with(Cover(rank.blocked));
      rows.push_back({rank.name, fmt::to_string(rank.released), milliseconds(under_way.length()),
                      milliseconds(waited), milliseconds(under_way.length() - waited)});
    }
    print_section("",
                  {{"RANK", false},
                   {"WAITS RELEASED EARLY", true},
                   {"THEIR MESSAGES TOOK ms", true},
                   {"WAITED ALL THE SAME ms", true},
                   {"SAVED ms", true}},
                  rows);
  }

  void print_touches() const {
    std::vector<Row> rows;
    for (const auto& each : costliest(touches_)) {
      const auto& [where, touch] = *each;
      const auto count = static_cast<double>(touch.count);
      rows.push_back({where.first, where.second, fmt::to_string(touch.count), milliseconds(touch.sum),
                      milliseconds(touch.longest), milliseconds(touch.after_release / count),
                      order_of(touch)});
    }
    print_section("touches that came before their page (the later after the wait, the better):\n",
                  {{"BUFFER OF THE READ AT", false},
                   {"TOUCHED AT", false},
                   {"NUMBER", true},
                   {"WAITED ms", true},
                   {"LONGEST ms", true},
                   {"AFTER ITS WAIT ms", true},
                   {"ORDER", false}},
                  rows);
  }

  // Of the reads that one place has posted.
  struct Place {
    std::string touched_at;
    double sum = 0; // of waits
    std::uint64_t longest = 0, pages = 0;
    Machine machine;
    std::vector<TouchedRead> reads;
  };

  // Where there are many, every so many. What was there before its wait returned was waited for by nobody:
  // its time begins with its first touch.
  [[nodiscard]] std::map<std::string, Place> places() const {
    std::map<std::string, std::vector<const std::pair<const RankAndId, TracedRead>*>> all;
    for (const auto& each : reads_)
      if (each.second.ended && !each.second.read.sweeps.empty()) all[each.second.posted_at].push_back(&each);
    std::map<std::string, Place> found;
    for (const auto& [posted_at, reads] : all) {
      Place& place = found[posted_at];
      place.touched_at = reads.front()->second.first_touched_at;
      place.machine = ranks_.at(reads.front()->first.first).machine;
      const std::size_t step = (reads.size() - 1) / most_replayed + 1;
      for (std::size_t i = 0; i < reads.size(); i += step) {
        const TracedRead& each = reads[i]->second;
        place.sum += each.waited;
        place.longest = std::max(place.longest, each.read.bytes);
        for (const Sweep& sweep : each.read.sweeps) place.pages += sweep.pages;
        place.reads.push_back(each.read);
        if (each.read.released == 0) place.reads.back().released = each.read.sweeps.front().begin;
      }
    }
    return found;
  }

  void print_suggestions() const {
    const auto found = places();
    std::vector<Row> rows;
    for (const auto& each : costliest(found)) {
      const auto& [posted_at, place] = *each;
      const Suggestion suggestion = suggest(place.reads, place.machine);
      rows.push_back({posted_at, place.touched_at, fmt::to_string(place.reads.size()),
                      fmt::to_string(place.longest), fmt::to_string(place.pages),
                      name_of(tools::order_of(place.reads)), milliseconds(place.sum),
                      fmt::format("PARC_ORDER_{}", upper_name_of(suggestion.order)),
                      suggestion.strip == measured_strips ? "0"
                      : suggestion.strip == whole_strip   ? "SIZE_MAX"
                                                          : fmt::to_string(suggestion.strip),
                      milliseconds(suggestion.waits)});
    }
    print_section(
        "first touches of pages, and the order and strips that would have had them wait the least:\n",
        {{"READ AT", false},
         {"FIRST TOUCHED AT", false},
         {"READS", true},
         {"BYTES", true},
         {"PAGES", true},
         {"TOUCHED", false},
         {"WAITED ms", true},
         {"parc_set_order", false},
         {"parc_set_strip", true},
         {"THEN ms", true}},
        rows);
  }

  static const char* name_of(TouchOrder order) {
    return order == TouchOrder::up ? "up" : order == TouchOrder::down ? "down" : "any";
  }
  static const char* upper_name_of(TouchOrder order) {
    return order == TouchOrder::up ? "UP" : order == TouchOrder::down ? "DOWN" : "ANY";
  }

  // Of a job that was killed, or that left them: what it may have waited for.
  void print_never() const {
    auto rows = never_;
    if (rows.size() > most_rows) {
      rows.resize(most_rows);
      rows.push_back({"", fmt::format("and {} more", never_.size() - most_rows), "", ""});
    }
    print_section("reads that never came:\n",
                  {{"RANK", true}, {"READ", false}, {"BYTES", true}, {"POSTED AT", false}}, rows);
  }

  // As parc_set_order wants it.
  static std::string order_of(const Touch& touch) {
    if (touch.count <= touch.last_offset.size()) return "-"; // one page of each
    return touch.upward ? "up" : touch.downward ? "down" : "any";
  }

  std::vector<Row> never_; // rows
  std::map<std::uint64_t, Rank> ranks_;
  std::map<std::pair<std::string, std::string>, Wait> waits_;
  std::map<std::pair<std::string, std::string>, Touch> touches_;
  std::map<RankAndId, TracedRead> reads_;
};

Result<PlainJson> read_trace(const std::string& file) {
  PARC_TRY(text, read_file(file, "the trace "));
  PlainJson trace = PlainJson::parse(text, nullptr, false);
  const PlainJson::json_pointer schema("/otherData/schema");
  if (trace.is_discarded() || !trace.contains(schema) || !trace.at(schema).is_number_integer() ||
      !trace.contains("traceEvents"))
    return error(EINVAL, "{} is no trace that parc run --trace has written", file);
  if (trace.at(schema) != trace_schema)
    return error(EINVAL,
                 "{} was written by another version of parc (schema {}, not {}); use that one's parc trace",
                 file, trace.at(schema).dump(), trace_schema);
  return trace;
}

Result<void> summarize(const std::string& file) {
  PARC_TRY(trace, read_trace(file));
  try {
    Summary summary;
    for (const PlainJson& event : trace.at("traceEvents")) summary.take(event);
    const auto lost = trace.at("otherData").value("lost_records", std::uint64_t{0});
    summary.print();
    for (const PlainJson& why : trace.at("otherData").value("no_lines", PlainJson::array()))
      std::cout << '\n' << why.get<std::string>() << '\n';
    if (lost != 0)
      std::cout << fmt::format("\n{} records had no room and are missing: the sums above are too small\n",
                               lost);
  } catch (const PlainJson::exception& problem) {
    return error(EINVAL, "an event in {} makes no sense: {}", file, problem.what());
  }
  return success();
}

int show_trace(const std::string& file) {
  auto shown = gather_trace({}, file);
  if (shown) shown = summarize(file);
  if (shown) return 0;
  std::cerr << "parc: " << shown.error().text << '\n';
  return status_failure;
}

} // namespace

Command trace_command() {
  const auto file = std::make_shared<std::string>();
  return {.name = "trace",
          .help = "Say what the waits of a traced job cost",
          .options =
              [file](CLI::App& app) {
                app.add_option("FILE", *file, "What parc run --trace has written")->required();
              },
          .run = [file] { return show_trace(*file); }};
}

} // namespace parc::tools
