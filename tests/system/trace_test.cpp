// SPDX-License-Identifier: BSD-3-Clause
// parc run --trace and parc trace: a file in the Trace Event format that says what happened, and its summary.
#include "tests/support/hosts.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace parc::test {
namespace {

using Json = nlohmann::json;

const std::string programs = PARC_TEST_PROGRAMS "/";

// What the Trace Event format asks of an event of each phase that parc writes. Empty: it has it.
std::string wrong_with(const Json& event) {
  static const std::map<std::string, std::vector<std::string>> wanted{{"M", {"args"}},
                                                                      {"X", {"ts", "dur", "cat"}},
                                                                      {"i", {"ts", "cat", "s"}},
                                                                      {"b", {"ts", "cat", "id"}},
                                                                      {"n", {"ts", "cat", "id"}},
                                                                      {"e", {"ts", "cat", "id"}},
                                                                      {"s", {"ts", "cat", "id"}},
                                                                      {"f", {"ts", "cat", "id", "bp"}}};
  for (const char* name : {"name", "ph", "pid", "tid"})
    if (!event.contains(name)) return std::string("no ") + name;
  if (!event["name"].is_string() || !event["pid"].is_number() || !event["tid"].is_number())
    return "name, pid or tid of another type";
  const auto phase = wanted.find(event["ph"].get<std::string>());
  if (phase == wanted.end()) return "an unknown phase";
  for (const std::string& name : phase->second) {
    if (!event.contains(name)) return "no " + name;
    const bool time = name == "ts" || name == "dur";
    if (time && (!event[name].is_number() || event[name].get<double>() < 0)) return "a strange " + name;
  }
  return {};
}

Json read_trace(const std::string& file) {
  std::ifstream in(file);
  Json trace = Json::parse(in, nullptr, false);
  BOOST_REQUIRE(trace.is_object());
  BOOST_TEST(trace.at("otherData").at("lost_records") == 0);
  for (const Json& event : trace.at("traceEvents")) {
    const std::string wrong = wrong_with(event);
    BOOST_TEST(wrong == "", wrong << ": " << event.dump());
  }
  return trace.at("traceEvents");
}

// Spans of messages, and arrows: each end belongs to what has begun and not ended, and nothing stays open.
// The categories of those that ended only with their rank.
std::vector<std::string> check_ends(const Json& events) {
  std::map<std::string, double> open;
  std::vector<std::string> unfinished;
  for (const Json& event : events) {
    const std::string phase = event["ph"];
    const std::string key = event.value("cat", "") + " " + event.value("id", Json()).dump();
    if (phase == "b" || phase == "s") {
      BOOST_TEST(open.emplace(key, event["ts"]).second, "begins twice: " << event.dump());
    } else if (phase == "n" || phase == "e" || phase == "f") {
      const auto begun = open.find(key);
      BOOST_REQUIRE_MESSAGE(begun != open.end(), "has not begun: " + event.dump());
      BOOST_TEST(event["ts"].get<double>() >= begun->second, event.dump());
      if (phase != "n") open.erase(begun);
      if (phase == "e" && event.contains("args") && event["args"].value("unfinished", false))
        unfinished.push_back(event["cat"]);
    }
  }
  for (const auto& [key, begin] : open) BOOST_TEST(false, "has no end: " << key);
  return unfinished;
}

// Bytes that a process has written so far.
std::size_t written_by(pid_t process) {
  std::ifstream io("/proc/" + std::to_string(process) + "/io");
  std::size_t bytes = 0;
  for (std::string name; io >> name && name != "wchar:";) io.ignore(100, '\n');
  return io >> bytes ? bytes : 0;
}

// The process of the rank that waits for reads nobody answers, when it has said for which.
pid_t find_waiting(Hosts& hosts) {
  constexpr std::size_t its_reads = 12 * 88; // bytes of their records
  pid_t found = -1;
  BOOST_TEST_REQUIRE(eventually([&] {
    for (const pid_t rank : hosts.ranks())
      if (written_by(rank) > its_reads) found = rank;
    return found > 0;
  }));
  return found;
}

// Slices of one thread lie in each other, or beside each other.
void check_slices(const Json& events) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
  for (const Json& event : events)
    if (event["ph"] == "X")
      threads[{event["pid"], event["tid"]}].emplace_back(event["ts"], event["dur"].get<double>() +
                                                                          event["ts"].get<double>());
  constexpr double rounding = 0.002; // us
  for (auto& [thread, slices] : threads)
    for (std::size_t i = 0; i < slices.size(); ++i)
      for (std::size_t j = 0; j < slices.size(); ++j) {
        const auto &a = slices[i], &b = slices[j];
        const bool crossing =
            a.first + rounding < b.first && b.first + rounding < a.second && a.second + rounding < b.second;
        BOOST_TEST(!crossing, a.first << " to " << a.second << " and " << b.first << " to " << b.second);
      }
}

std::vector<Json> all(const Json& events, const std::string& phase, const std::string& name = {}) {
  std::vector<Json> found;
  for (const Json& event : events)
    if (event["ph"] == phase && (name.empty() || event["name"] == name)) found.push_back(event);
  return found;
}

// What a rank of one thread calculates, and waits in calls and faults, is all of its time, once.
void check_times(const std::string& summary) {
  std::istringstream lines(summary);
  std::string line;
  int ranks = 0;
  for (std::getline(lines, line); std::getline(lines, line) && !line.empty(); ++ranks) {
    std::istringstream words(line);
    std::string rank, number, on, host;
    double time = 0, calculation = 0, calls = 0, faults = 0;
    words >> rank >> number >> on >> host >> time >> calculation >> calls >> faults;
    BOOST_TEST(std::abs(time - calculation - calls - faults) < 0.01, line);
  }
  BOOST_TEST(ranks == 2, summary);
}

Process show(Hosts& hosts, const std::string& file) {
  return hosts.start({PARC_TEST_BIN "/parc", "trace", file});
}

} // namespace

BOOST_AUTO_TEST_SUITE(trace)

BOOST_AUTO_TEST_CASE(a_trace_tells_of_calls_faults_and_messages) {
  Hosts hosts(2);
  for (const char* placement : {"a,b", "a:2"}) {
    const std::string file = hosts.directory() + "/trace.json";
    const std::string go = hosts.directory() + "/go-" + std::string(placement).substr(0, 3);
    Process job =
        hosts.run({"--trace", file, "--hosts", placement, programs + "early", "touch", go, "arena"});
    BOOST_TEST(
        eventually([&] { return job.output().find("released") != std::string::npos || !job.running(); }));
    BOOST_TEST(eventually([&] { return hosts.ranks_sleep() || !job.running(); })); // in its touch
    std::ofstream{go};
    BOOST_TEST(job.wait() == 0, job << hosts);

    const Json events = read_trace(file);
    check_slices(events);
    (void)check_ends(events); // what ends with its rank may be among them
    for (const int rank : {0, 1}) {
      const auto of_rank = [&](const Json& event) { return event["pid"] == rank; };
      BOOST_TEST(std::ranges::any_of(all(events, "X", "calculation"), of_rank));
      BOOST_TEST(std::ranges::any_of(all(events, "M", "process_name"), of_rank));
    }
    const auto faults = all(events, "X", "fault");
    BOOST_REQUIRE(!faults.empty());
    for (const Json& fault : faults) {
      BOOST_TEST(fault["pid"] == 1);
      BOOST_TEST(fault["args"]["message"].get<std::string>().starts_with("read from 0"));
      BOOST_TEST(fault["args"]["after_release_us"].get<double>() >= 0);
    }
    // Its wait returned before its first byte, and the touch's wait ended when its bytes were there.
    bool released = false;
    for (const Json& read : all(events, "b")) {
      const Json& args = read["args"];
      if (read["cat"] != "read" || !args.contains("released_us")) continue;
      released = true;
      BOOST_TEST(args["released_us"].get<double>() >= read["ts"].get<double>());
      BOOST_TEST(args["first_byte_us"].get<double>() >= args["released_us"].get<double>());
      BOOST_TEST(args["last_byte_us"].get<double>() >= args["first_byte_us"].get<double>());
      BOOST_TEST(args["bytes"].get<int>() > 0);
      const std::string site = args["site"]; // its line, where it is built with those
      BOOST_TEST((site.find("early.cpp:") != std::string::npos || site.starts_with("early+")), site);
    }
    BOOST_TEST(released);
    const auto starts = all(events, "s"), ends = all(events, "f");
    BOOST_TEST(!starts.empty());
    BOOST_TEST(starts.size() == ends.size());
    for (std::size_t i = 0; i < std::min(starts.size(), ends.size()); ++i) {
      BOOST_TEST(starts[i]["id"] == ends[i]["id"]);
      BOOST_TEST(starts[i]["pid"] != ends[i]["pid"]);
      BOOST_TEST(starts[i]["ts"].get<double>() <= ends[i]["ts"].get<double>());
    }

    Process summary = show(hosts, file);
    BOOST_TEST(summary.wait() == 0, summary);
    for (const char* heading : {"IN FAULTS", "WAITS RELEASED EARLY", "SAVED", "AFTER ITS WAIT"})
      BOOST_TEST(summary.output().find(heading) != std::string::npos, heading << ": " << summary.output());
    check_times(summary.output());
  }
}

// The kernel that answers is stopped until the get is released and touched.
void run_until_touched(Hosts& hosts, Process& job, const std::string& go) {
  const auto said = [&](const char* word) { return job.output().find(word) != std::string::npos; };
  BOOST_TEST(eventually([&] { return said("ready") || !job.running(); }));
  hosts[1].kernel().signal(SIGSTOP);
  std::ofstream{go};
  BOOST_TEST(eventually([&] { return said("released") || !job.running(); }));
  BOOST_TEST(eventually([&] { return hosts.ranks_sleep() || !job.running(); })); // in its touch
  hosts[1].kernel().signal(SIGCONT);
  BOOST_TEST(job.wait() == 0, job << hosts);
}

// A get is no message: it has no arrow.
BOOST_AUTO_TEST_CASE(a_trace_tells_of_gets) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/trace.json", go = hosts.directory() + "/go";
  Process job = hosts.run({"--trace", file, "--hosts", "a,b", programs + "early_gets", "touched", go});
  run_until_touched(hosts, job, go);

  const Json events = read_trace(file);
  (void)check_ends(events);
  int gets = 0;
  for (const Json& span : all(events, "b")) {
    if (span["cat"] != "get") continue;
    ++gets;
    const Json& args = span["args"];
    BOOST_TEST(span["name"] == "get from 1, window 7");
    BOOST_TEST(args["bytes"] == 4 << 20);
    BOOST_TEST(args["released_us"].get<double>() <= args["last_byte_us"].get<double>());
  }
  BOOST_TEST(gets == 1);
  const auto faults = all(events, "X", "fault");
  BOOST_REQUIRE(!faults.empty());
  for (const Json& fault : faults) BOOST_TEST(fault["args"]["message"] == "get from 1, window 7");
}

// Of the one row of first touches.
std::string word_of_suggestion(const std::string& summary, int number) {
  const auto heading = summary.find("first touches of pages");
  if (heading == std::string::npos) return {};
  std::istringstream lines(summary.substr(heading));
  std::string row, word;
  for (int line = 0; line < 3; ++line) std::getline(lines, row);
  std::istringstream words(row);
  for (int i = 0; i <= number; ++i) words >> word;
  return word;
}

// Every page that lies whole in the buffer is touched once for the first time, in the program's order,
// whether it came before that or not.
BOOST_AUTO_TEST_CASE(a_trace_of_pages_tells_of_first_touches) {
  Hosts hosts(2);
  constexpr std::int64_t page = 4096, pages = 256;
  const std::string file = hosts.directory() + "/pages.json";
  for (const std::string kind : {"arena", "heap", "bss"})
    for (const std::string how : {"up", "down", "middle"}) {
#ifdef __SANITIZE_ADDRESS__
      if (kind == "heap") continue; // a sanitizer's is not adopted
#endif
      if (kind != "arena" && how == "middle") continue;
      Process job = hosts.run(
          {"--trace", file, "--trace-pages", "--hosts", "a,b", programs + "first_touches", how, kind});
      BOOST_TEST(job.wait() == 0, job << hosts);
      std::vector<std::int64_t> touched;
      for (const Json& event : all(read_trace(file), "i", "first touches")) {
        const Json& args = event["args"];
        const std::int64_t first = args["offset"], last = args["last_offset"], count = args["pages"];
        BOOST_TEST(std::abs(last - first) == (count - 1) * page);
        for (std::int64_t i = 0; i < count; ++i) touched.push_back(first + (last < first ? -i : i) * page);
      }
      BOOST_TEST(touched.size() >= std::size_t{pages - 1}, kind << ", " << how);
      BOOST_TEST(touched.size() == std::set(touched.begin(), touched.end()).size());
      if (how == "up") BOOST_TEST(std::ranges::is_sorted(touched));
      if (how == "down") BOOST_TEST(std::ranges::is_sorted(touched, std::greater()));
      Process summary = show(hosts, file);
      BOOST_TEST(summary.wait() == 0, summary);
      // The middle is one step down among hundreds up.
      BOOST_TEST(word_of_suggestion(summary.output(), 5) == (how == "down" ? how : "up"), summary);
    }
}

// What a program may do with a buffer that has come it may do with one whose pages are closed.
BOOST_AUTO_TEST_CASE(closed_pages_are_in_nobodys_way) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/pages.json";
  for (const char* placement : {"a,b", "a:2"})
    for (const std::string level : {"gets", "full"})
      for (const char* how : {"calls", "short", "given-back", "handler"}) {
#ifdef __SANITIZE_ADDRESS__
        if (how == std::string("calls")) continue; // its system calls are told of by libparc-early.so
#endif
        Process job = hosts.run({"--trace", file, "--trace-pages", "--early-release=" + level, "--hosts",
                                 placement, programs + "first_touches", how});
        const int status = job.wait();
        BOOST_TEST((status == 0 && job.errors() == ""), how << " on " << placement << ", " << level
                                                            << ": status " << status << ": " << job << hosts);
        Process summary = show(hosts, file);
        BOOST_TEST(summary.wait() == 0, summary);
      }
}

BOOST_AUTO_TEST_CASE(a_trace_tells_of_puts_and_atomics) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/trace.json";
  Process job = hosts.run({"--trace", file, "--hosts", "a,b", programs + "puts", "all"});
  BOOST_TEST(job.wait() == 0, job << hosts);
  const Json events = read_trace(file);
  // A barrier's own message is delivered behind the end of its rank.
  for (const std::string& category : check_ends(events)) BOOST_TEST(category == "write");
  std::set<std::string> spans;
  for (const Json& span : all(events, "b")) {
    spans.insert(span["name"]);
    if (span["name"] == "atomic on 1, window 7") {
      const std::uint64_t bytes = span["args"]["bytes"];
      BOOST_TEST((bytes == 4 || bytes == 8));
    }
  }
  for (const char* name : {"put to 0, window 7", "put to 1, window 7", "atomic on 1, window 7"})
    BOOST_TEST(spans.contains(name), name);
  for (const char* call : {"put", "get", "atomic", "quiet"})
    BOOST_TEST(!all(events, "X", call).empty(), call);
}

// More records than the pipe, the memory for them and the credit of the output hold at once.
BOOST_AUTO_TEST_CASE(a_long_trace_is_whole) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/trace.json";
  const int messages = rounds_of(5000, 1000);
  Process job =
      hosts.run({"--trace", file, "--hosts", "a,b", programs + "ring", "64", std::to_string(messages)});
  BOOST_TEST(job.wait() == 0, job << hosts);
  const Json events = read_trace(file);
  BOOST_TEST(all(events, "s").size() >= 2 * static_cast<std::size_t>(messages));
}

BOOST_AUTO_TEST_CASE(what_a_killed_rank_waited_for_ends_with_the_job) {
  Hosts hosts(2);
  const std::string file = hosts.directory() + "/trace.json";
  Process job = hosts.run({"--trace", file, "--hosts", "b,a", programs + "hang", "absent"});
  kill(find_waiting(hosts), SIGKILL);
  BOOST_TEST(job.wait() == 128 + SIGKILL, job);
  const Json events = read_trace(file);
  check_slices(events);
  BOOST_TEST(check_ends(events).size() == 12U);
  Process summary = show(hosts, file);
  BOOST_TEST(summary.wait() == 0, summary);
  BOOST_TEST(summary.output().find("reads that never came") != std::string::npos, summary.output());
}

// Of a rank that ends and has not finished: it says so itself.
BOOST_AUTO_TEST_CASE(what_a_rank_leaves_unfinished_ends_with_it) {
  Hosts hosts(1);
  const std::string file = hosts.directory() + "/trace.json";
  Process job = hosts.run({"--trace", file, "-n", "2", programs + "hang", "peer"});
  BOOST_TEST(job.wait() == 0, job);
  (void)check_ends(read_trace(file));
}

BOOST_AUTO_TEST_CASE(a_trace_is_whole_when_a_kernel_ends) {
  for (const std::size_t killed : {0, 1}) {
    Hosts hosts(2);
    const std::string file = hosts.directory() + "/trace.json";
    Process job = hosts.run({"--trace", file, "--hosts", "b,a", programs + "hang", "absent"});
    (void)find_waiting(hosts);
    hosts[killed].kernel().signal(SIGKILL);
    BOOST_TEST(job.wait() > 0, job);
    const Json events = read_trace(file);
    check_slices(events);
    (void)check_ends(events);
  }
}

// Two ranks whose reads have the same id and which touch upwards, now the one and now the other.
BOOST_AUTO_TEST_CASE(the_order_of_touches_is_that_of_each_rank) {
  Hosts hosts(0);
  const auto order_of = [&](const std::vector<std::pair<int, int>>& touches) {
    Json events = Json::array();
    for (std::size_t i = 0; i < touches.size(); ++i)
      events.push_back(
          {{"name", "fault"},
           {"ph", "X"},
           {"pid", touches[i].first},
           {"tid", 1},
           {"ts", 10 * i},
           {"dur", 1},
           {"args",
            {{"site", "there"}, {"posted_at", "here"}, {"operation", 4096}, {"offset", touches[i].second}}}});
    const std::string file = hosts.directory() + "/order.json";
    std::ofstream(file) << Json{{"otherData", {{"schema", 1}}}, {"traceEvents", events}};
    Process summary = show(hosts, file);
    BOOST_TEST(summary.wait() == 0, summary);
    std::istringstream lines(summary.output());
    std::string found;
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("here")) found = line.substr(line.rfind(' ') + 1);
    return found;
  };
  BOOST_TEST(order_of({{0, 0}, {0, 4096}, {0, 8192}}) == "up");
  BOOST_TEST(order_of({{0, 0}, {0, 4096}, {1, 0}, {1, 4096}}) == "up");
  BOOST_TEST(order_of({{0, 8192}, {1, 8192}, {0, 4096}, {1, 0}}) == "down");
  BOOST_TEST(order_of({{0, 0}, {1, 8192}, {0, 4096}, {1, 4096}}) == "any");
  BOOST_TEST(order_of({{0, 0}, {1, 4096}}) == "-");
}

BOOST_AUTO_TEST_CASE(wrong_traces_are_explained) {
  Hosts hosts(1);
  Process missing = show(hosts, "/nonexistent");
  BOOST_TEST(missing.wait() == 1);
  BOOST_TEST(missing.errors().find("cannot read the trace /nonexistent") != std::string::npos,
             missing.errors());
  const std::string file = hosts.directory() + "/not-a-trace";
  for (const char* content : {"", "{}", R"({"otherData":{"schema":1},"traceEvents":[{"ph":"X"}]})",
                              R"({"otherData":{"schema":[[[1]]]},"traceEvents":[]})",
                              R"({"otherData":{"schema":1,"lost_records":"x"},"traceEvents":[]})"}) {
    std::ofstream(file) << content;
    Process strange = show(hosts, file);
    BOOST_TEST(strange.wait() == 1, content);
    BOOST_TEST(strange.errors().starts_with("parc: "), strange.errors());
  }
  Process unwritable = hosts.run({"--trace", "/nonexistent/trace", "true"});
  BOOST_TEST(unwritable.wait() == 125);
  BOOST_TEST(unwritable.errors().find("cannot write the trace") != std::string::npos, unwritable.errors());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::test
