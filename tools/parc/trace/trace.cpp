// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/trace/trace.hpp"

#include "shm/layout.hpp"
#include "tools/parc/trace/matched_messages.hpp"
#include "tools/parc/trace/source_lines.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace parc::tools {
namespace {

using Json = nlohmann::ordered_json;
using trace::Kind;
using trace::Record;

constexpr std::size_t most_records = 4'000'000; // of a rank: 350 MB here

std::string_view category_of(const Record& message) {
  if ((message.flags & trace::flag_atomic) != 0) return "atomic";
  if (is_one_sided(message)) return is_write(message) ? "put" : "get";
  return is_write(message) ? "write" : "read";
}

// Where ranks and their times belong together.
struct Times {
  std::uint64_t to_real = 0; // of a rank's host
  std::uint64_t start = 0;   // of the job, in real time
  std::uint64_t end = 0;     // of the rank

  [[nodiscard]] double operator()(std::uint64_t time) const { // microseconds
    return static_cast<double>(static_cast<std::int64_t>(time + to_real - start)) / 1e3;
  }
};

class Writer {
public:
  Writer(const std::map<std::uint64_t, RankTrace>& ranks, std::ofstream& file, std::uint64_t ended)
      : ranks_(ranks), file_(file) {
    std::uint64_t start = UINT64_MAX;
    for (const auto& [rank, said] : ranks_)
      for (const Record& record : said.records)
        if (record.kind == Kind::opened) {
          times_[rank].to_real = record.end;
          start = std::min(start, record.begin + record.end);
        }
    for (auto& [rank, times] : times_) times.start = start;
    find_ends(ended);
  }

  void write(const std::vector<std::string>& command) {
    Json other{{"schema", trace_schema}, {"parc", PARC_VERSION}, {"command", command}};
    std::uint64_t lost = 0;
    for (const auto& [rank, said] : ranks_) lost += said.lost;
    other["ranks"] = ranks_.size();
    other["lost_records"] = lost;
    file_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    for (const auto& [rank, said] : ranks_)
      if (times_.contains(rank)) write_rank(rank, said);
    write_arrows();
    for (const auto& [object, why] : lines_.missing()) other["no_lines"].push_back(why); // known by now
    file_ << "\n],\"otherData\":" << text(other) << "}\n";
  }

private:
  // One that was killed, or whose kernel has gone, did not say when: with the job.
  void find_ends(std::uint64_t ended) {
    for (auto& [rank, times] : times_)
      for (const Record& record : ranks_.at(rank).records) {
        const std::uint64_t end = record.kind == Kind::opened ? 0 : record.end;
        ended = std::max(ended, times.to_real + std::max(record.begin, end));
        if (record.kind == Kind::message)
          ended = std::max(ended, times.to_real + std::max(record.first, record.released));
        if (record.kind == Kind::closed) times.end = record.begin;
      }
    for (auto& [rank, times] : times_)
      if (times.end == 0) times.end = ended - times.to_real;
  }

  static std::string text(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void emit(const Json& event) { file_ << (std::exchange(first_, false) ? "\n" : ",\n") << text(event); }

  void write_rank(std::uint64_t rank, const RankTrace& said) {
    const std::string where = said.host.empty() ? "" : " on " + said.host;
    emit({{"name", "process_name"},
          {"ph", "M"},
          {"pid", rank},
          {"tid", 0},
          {"args", {{"name", fmt::format("rank {}{}", rank, where)}}}});
    emit({{"name", "process_sort_index"},
          {"ph", "M"},
          {"pid", rank},
          {"tid", 0},
          {"args", {{"sort_index", rank}}}});
    std::map<std::uint64_t, const Record*> messages;
    std::map<std::uint32_t, std::vector<const Record*>> threads;
    for (const Record& record : said.records) {
      if (record.kind == Kind::message)
        messages[record.id] = &record;
      else if (record.kind == Kind::cost)
        emit({{"name", "costs"},
              {"ph", "M"},
              {"pid", rank},
              {"tid", 0},
              {"args",
               {{"wake_us", static_cast<double>(record.released) / 1e3}, {"page_bytes", record.bytes}}}});
      else if (record.kind != Kind::touches)
        threads[record.thread].push_back(&record);
    }
    for (auto& [thread, records] : threads) write_thread(rank, said, thread, records, messages);
    for (const auto& [id, message] : messages) write_message(rank, said, *message);
    for (const Record& record : said.records)
      if (record.kind == Kind::touches && record.context != 0) write_touches(rank, said, record);
  }

  // They go on in between what else their thread does.
  void write_touches(std::uint64_t rank, const RankTrace& said, const Record& record) {
    const Times& times = times_.at(rank);
    emit({{"name", "first touches"},
          {"cat", "program"},
          {"ph", "i"},
          {"s", "t"},
          {"pid", rank},
          {"tid", record.thread},
          {"ts", times(record.begin)},
          {"args",
           {{"operation", record.id},
            {"site", site_of(said, record)},
            {"offset", record.bytes},
            {"last_offset", record.first},
            {"pages", record.context},
            {"last_us", times(record.end)},
            {"in_faults_us", static_cast<double>(record.released) / 1e3}}}});
  }

  // Calculation is what lies between: from when the thread was first heard of to when it last was.
  void write_thread(std::uint64_t rank, const RankTrace& said, std::uint32_t thread,
                    std::vector<const Record*>& records,
                    const std::map<std::uint64_t, const Record*>& messages) {
    std::ranges::stable_sort(records, {}, [](const Record* each) { return each->begin; });
    std::uint64_t free_from = records.front()->begin;
    for (const Record* record : records) {
      if (record->begin > free_from)
        write_slice(rank, thread, "calculation", free_from, record->begin, Json::object());
      if (record->kind == Kind::call || record->kind == Kind::fault) {
        write_blocked(rank, said, thread, *record, messages);
        free_from = std::max(free_from, record->end);
      }
      free_from = std::max(free_from, record->begin);
    }
  }

  void write_slice(std::uint64_t rank, std::uint32_t thread, std::string_view name, std::uint64_t begin,
                   std::uint64_t end, Json args) {
    const Times& times = times_.at(rank);
    Json event{{"name", name},
               {"cat", "program"},
               {"ph", "X"},
               {"pid", rank},
               {"tid", thread},
               {"ts", times(begin)},
               {"dur", static_cast<double>(end - begin) / 1e3}};
    if (!args.empty()) event["args"] = std::move(args);
    emit(event);
  }

  void write_blocked(std::uint64_t rank, const RankTrace& said, std::uint32_t thread, const Record& record,
                     const std::map<std::uint64_t, const Record*>& messages) {
    Json args = Json::object();
    if (record.site != 0) args["site"] = site_of(said, record);
    if (record.id != 0) args["operation"] = record.id;
    if (const auto message = messages.find(record.id); message != messages.end()) {
      args["message"] = name_of(*message->second);
      if (record.kind == Kind::fault) {
        args["address"] = fmt::format("{:#x}", record.address);
        args["buffer"] = fmt::format("{:#x}", message->second->address);
        args["offset"] = record.bytes;
        args["posted_at"] = site_of(said, *message->second);
        if (const auto released = message->second->released; released != 0 && released <= record.begin)
          args["after_release_us"] = static_cast<double>(record.begin - released) / 1e3;
      }
    }
    const std::string_view name =
        record.kind == Kind::fault
            ? std::string_view("fault")
            : trace::call_names[std::min<std::size_t>(static_cast<std::size_t>(record.call),
                                                      trace::call_names.size() - 1)];
    write_slice(rank, thread, name, record.begin, record.end, std::move(args));
  }

  std::string site_of(const RankTrace& said, const Record& record) { return lines_.place(said, record.site); }

  static std::string name_of(const Record& message) {
    if (is_one_sided(message)) {
      const std::string_view category = category_of(message);
      return fmt::format("{} {} {}, window {}", category,
                         category == "get"   ? "from"
                         : category == "put" ? "to"
                                             : "on",
                         message.peer, shm::tag_of(message.context, message.tag));
    }
    return is_write(message) ? fmt::format("write to {}, tag {}", message.peer, message.tag)
                             : fmt::format("read from {}, tag {}", message.peer, message.tag);
  }

  // A span from when it was posted to when its last byte was in place (a write: acknowledged), or to the end
  // of the rank.
  void write_message(std::uint64_t rank, const RankTrace& said, const Record& message) {
    const Times& times = times_.at(rank);
    Json common{{"name", name_of(message)},
                {"cat", category_of(message)},
                {"id", fmt::format("{}.{:x}", rank, message.id)},
                {"pid", rank},
                {"tid", message.thread}};
    const auto at = [&](const char* phase, std::uint64_t time, Json args) {
      Json event = common;
      event["ph"] = phase;
      event["ts"] = times(time);
      if (!args.empty()) event["args"] = std::move(args);
      emit(event);
    };
    Json args{{"operation", message.id},
              {"bytes", message.bytes},
              {"peer", message.peer},
              {"tag", message.tag},
              {"context", message.context},
              {"buffer", fmt::format("{:#x}", message.address)},
              {"site", site_of(said, message)},
              {"in_place", (message.flags & trace::flag_bounced) == 0},
              {"adopted", (message.flags & trace::flag_adopted) != 0},
              {"error", message.error}};
    if (message.released != 0) args["released_us"] = times(message.released);
    if (message.first != 0) args["first_byte_us"] = times(message.first);
    if (message.end != 0) args["last_byte_us"] = times(message.end);
    at("b", message.begin, args);
    const auto step = [&](std::uint64_t time, const char* what) {
      if (time != 0) at("n", time, Json{{"step", what}});
    };
    step(message.first, "first byte");
    step(message.released, "its wait returned");
    if (message.end != 0)
      at("e", message.end, Json::object());
    else
      at("e", std::max({times.end, message.begin, message.first, message.released}),
         Json{{"unfinished", true}});
  }

  void write_arrows() {
    std::uint64_t number = 0;
    for (const MatchedPair& each : matched_messages(ranks_)) {
      if (!times_.contains(each.from) || !times_.contains(each.to)) continue;
      arrow_end("s", number, each.from, *each.write, each.write->begin);
      arrow_end("f", number++, each.to, *each.read, each.read->end);
    }
  }

  void arrow_end(const char* phase, std::uint64_t number, std::uint64_t rank, const Record& message,
                 std::uint64_t time) {
    Json event{
        {"name", "message"},     {"cat", "message"},           {"ph", phase}, {"id", number}, {"pid", rank},
        {"tid", message.thread}, {"ts", times_.at(rank)(time)}};
    if (*phase == 'f') event["bp"] = "e";
    emit(event);
  }

  const std::map<std::uint64_t, RankTrace>& ranks_;
  std::ofstream& file_;
  std::map<std::uint64_t, Times> times_;
  SourceLines lines_;
  bool first_ = true;
};

// A program that does not know of the pipe may write to it, too.
bool makes_sense(const Record& record) {
  const bool timed = record.kind == Kind::call || record.kind == Kind::fault || record.kind == Kind::touches;
  if (record.kind == Kind::call && static_cast<std::size_t>(record.call) >= trace::call_names.size())
    return false;
  return record.kind >= Kind::opened && record.kind <= Kind::object && (!timed || record.begin <= record.end);
}

void take(RankTrace& said, const char* bytes) {
  Record record;
  std::memcpy(&record, bytes, sizeof record);
  if (!makes_sense(record)) {
    ++said.lost;
  } else if (record.kind == Kind::lost) {
    said.lost += record.bytes;
  } else if (record.kind == Kind::peer) {
    said.peers[record.peer] = record.address;
  } else if (record.kind == Kind::site || record.kind == Kind::object) {
    trace::Site site;
    std::memcpy(&site, bytes, sizeof site);
    site.text.back() = '\0';
    if (record.kind == Kind::object)
      said.objects[site.address] += site.text.data();
    else
      (site.address == 0 ? said.host : said.sites[site.address]) = site.text.data();
  } else if (const auto earlier = said.under_way.find(record.id);
             record.kind == Kind::message && earlier != said.under_way.end()) {
    said.records[earlier->second] = record;
    if ((record.flags & trace::flag_under_way) == 0) said.under_way.erase(earlier);
  } else if (said.records.size() == most_records) {
    ++said.lost;
  } else {
    if (record.kind == Kind::message && (record.flags & trace::flag_under_way) != 0)
      said.under_way.emplace(record.id, said.records.size());
    said.records.push_back(record);
  }
}

} // namespace

std::uint64_t real_time() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

void TraceCollector::add(std::uint64_t rank, std::string_view bytes) {
  RankTrace& said = ranks_[rank];
  said.rest += bytes;
  std::size_t at = 0;
  for (; said.rest.size() - at >= sizeof(Record); at += sizeof(Record)) take(said, said.rest.data() + at);
  said.rest.erase(0, at);
}

Result<void> write_trace(const std::map<std::uint64_t, RankTrace>& ranks,
                         const std::vector<std::string>& command, const std::string& file,
                         std::uint64_t ended) {
  std::ofstream out(file, std::ios::trunc);
  const bool opened = out.is_open();
  if (out) Writer(ranks, out, ended).write(command);
  out.close();
  if (out) return success();
  auto failure = system_error("cannot write the trace to {}", file);
  std::error_code gone; // half a trace is none
  if (opened && std::filesystem::is_regular_file(file, gone)) std::filesystem::remove(file, gone);
  return failure;
}

} // namespace parc::tools
