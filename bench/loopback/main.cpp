// SPDX-License-Identifier: BSD-3-Clause
// Loopback and same host: latency and bandwidth of parc beside plain sockets, a pipe and memcpy, interleaved
// in one run. Started by hand it starts two kernels on loopback and itself as the ranks of a job; as a rank
// it measures.
#include "bench/loopback/peers.hpp"
#include "client/include/parc/parc.h"
#include "tests/support/hosts.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>

namespace parc::bench {
namespace {

using Json = nlohmann::json;

struct Size {
  std::size_t bytes;
  int times;
};
constexpr Size sizes[] = {{8, 20000}, {1 << 20, 200}, {16 << 20, 20}};

// One way, by a ping-pong of blocking calls.
int measure_as_rank() {
  parc_context* p = nullptr;
  if (parc_open(&p) != PARC_OK) {
    std::fprintf(stderr, "bench-loopback: %s\n", parc_error_detail());
    return 1;
  }
  const int me = parc_rank(p);
  for (const auto [bytes, times] : sizes) {
    void* data = parc_alloc(p, bytes);
    if (data == nullptr) return 1;
    double begin = 0;
    for (int i = -times / 10; i < times; ++i) {
      if (i == 0) begin = now();
      int error = PARC_OK;
      if (me == 0) error = parc_write(p, 1, 0, data, bytes);
      if (error == PARC_OK) error = parc_read(p, 1 - me, 0, data, bytes, nullptr);
      if (me == 1 && error == PARC_OK) error = parc_write(p, 0, 0, data, bytes);
      if (error != PARC_OK) return 1;
    }
    if (me == 0) std::printf("%zu %.9f\n", bytes, (now() - begin) / times / 2);
    parc_free(p, data);
  }
  return parc_close(p) == PARC_OK ? 0 : 1;
}

struct Row {
  std::string name;
  std::string metric;
  std::string unit;
  std::string peer_name;
  std::string goal; // "<= 2" or ">= 0.9", of parc's value over the peer's
  std::vector<double> parc;
  std::vector<double> peer;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Json to_json(const Row& row) {
  const double ratio = median(row.parc) / median(row.peer);
  const double bound = std::atof(row.goal.c_str() + 3);
  const bool met = row.goal[0] == '<' ? ratio <= bound : ratio >= bound;
  return {{"case", row.name},
          {"metric", row.metric},
          {"unit", row.unit},
          {"parc", median(row.parc)},
          {"peer", median(row.peer)},
          {"peer_name", row.peer_name},
          {"ratio", ratio},
          {"min", *std::min_element(row.parc.begin(), row.parc.end())},
          {"max", *std::max_element(row.parc.begin(), row.parc.end())},
          {"repeats", row.parc.size()},
          {"goal", row.goal},
          {"met", met}};
}

// Seconds one way by size.
std::map<std::size_t, double> run_ranks(test::Hosts& hosts, const std::string& where,
                                        const std::string& self) {
  test::Process job = hosts.run({"-n", "2", "--hosts", where, self, "--rank"});
  if (job.wait() != 0) throw std::runtime_error("the ranks failed: " + job.errors());
  std::map<std::size_t, double> seconds;
  std::istringstream lines(job.output());
  std::size_t bytes = 0;
  double one_way = 0;
  while (lines >> bytes >> one_way) seconds[bytes] = one_way;
  return seconds;
}

std::vector<Row> rows() {
  std::vector<Row> all = {
      {"two hosts on loopback", "8 bytes one way", "us", "plain sockets, polling", "<= 2", {}, {}},
      {"two hosts on loopback", "8 bytes one way", "us", "plain sockets, blocking", "<= 0.5", {}, {}},
      {"two hosts on loopback", "bandwidth, 1 MiB", "GB/s", "plain sockets", ">= 0.9", {}, {}},
      {"two hosts on loopback", "bandwidth, 16 MiB", "GB/s", "plain sockets", ">= 0.9", {}, {}},
      {"same host", "8 bytes one way", "us", "pipe between two cores", "<= 0.25", {}, {}},
      {"same host", "bandwidth, 1 MiB", "GB/s", "memcpy", ">= 0.8", {}, {}},
      {"same host", "bandwidth, 16 MiB", "GB/s", "memcpy", ">= 0.8", {}, {}},
  };
  return all;
}

void measure_once(test::Hosts& hosts, const std::string& self, std::vector<Row>& all) {
  const auto bandwidth = [](std::size_t bytes, double seconds) {
    return static_cast<double>(bytes) / seconds / 1e9;
  };
  const auto add = [&](std::size_t row, double parc, double peer) {
    all[row].parc.push_back(parc);
    all[row].peer.push_back(peer);
  };
  const auto best = [&](std::size_t bytes, int times) {
    return std::min(socket_one_way(bytes, times, true), socket_one_way(bytes, times, false));
  };
  auto apart = run_ranks(hosts, "a:1,b:1", self);
  add(0, apart[8] * 1e6, socket_one_way(8, sizes[0].times, true) * 1e6);
  add(1, apart[8] * 1e6, socket_one_way(8, sizes[0].times, false) * 1e6);
  auto together = run_ranks(hosts, "a:2", self);
  add(4, together[8] * 1e6, pipe_one_way(sizes[0].times) * 1e6);
  for (std::size_t i = 1; i < 3; ++i) {
    const auto [bytes, times] = sizes[i];
    add(1 + i, bandwidth(bytes, apart[bytes]), bandwidth(bytes, best(bytes, times)));
    add(4 + i, bandwidth(bytes, together[bytes]), bandwidth(bytes, memcpy_time(bytes, times)));
  }
}

int drive(const std::string& json, int repeats) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  test::Hosts hosts(2);
  std::vector<Row> all = rows();
  for (int i = 0; i < repeats; ++i) {
    measure_once(hosts, self, all);
    std::fprintf(stderr, "repeat %d of %d\n", i + 1, repeats);
  }
  Json lines = Json::array();
  for (const Row& row : all) {
    const Json& line = lines.emplace_back(to_json(row));
    std::fputs(fmt::format("{:22} {:18} {:8.3g} {:5} {:24} {:8.3g}  ratio {:5.2f}  goal {:8} {}\n", row.name,
                           row.metric, line["parc"].get<double>(), row.unit, row.peer_name,
                           line["peer"].get<double>(), line["ratio"].get<double>(), row.goal,
                           line["met"].get<bool>() ? "met" : "NOT MET")
                   .c_str(),
               stdout);
  }
  if (json.empty()) return 0;
  utsname system{};
  uname(&system);
  std::string cc;
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> cc;
  int idle = 0;
  std::ifstream("/proc/sys/net/ipv4/tcp_slow_start_after_idle") >> idle;
  const Json machine = {{"cores", std::thread::hardware_concurrency()},
                        {"kernel", system.release},
                        {"congestion_control", cc},
                        {"slow_start_after_idle", idle == 1}};
  std::ofstream file(json);
  file << Json{{"bench", "loopback"}, {"machine", machine}, {"rows", lines}}.dump(2) << '\n';
  return file ? 0 : 1;
}

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  CLI::App app("parc on one machine beside plain sockets, a pipe and memcpy");
  std::string json;
  int repeats = 5;
  bool rank = false;
  app.add_option("--json", json, "write the figures to this file")->option_text("FILE");
  app.add_option("--repeats", repeats, "interleaved repeats; medians are shown")->check(CLI::PositiveNumber);
  app.add_flag("--rank", rank, "measure as a rank of a job")->group("");
  CLI11_PARSE(app, argc, argv);
  try {
    return rank ? parc::bench::measure_as_rank() : parc::bench::drive(json, repeats);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "bench-loopback: %s\n", failed.what());
    return 1;
  }
}
