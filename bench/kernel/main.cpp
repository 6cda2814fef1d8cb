// SPDX-License-Identifier: BSD-3-Clause
// What a kernel costs that no message shows: its own memory while much is sent, its wakings while nothing is,
// and what programs that sleep cost others. Two kernels on loopback; the bench looks at them through /proc
// while its ranks run.
#include "bench/figures/bench.hpp"
#include "bench/kernel/ranks.hpp"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

namespace parc::bench {
namespace {

using namespace std::chrono_literals;

constexpr double allowed_mib = 64 + 64; // and the pool, of its usual size
constexpr std::size_t both_hosts[] = {0, 1};
constexpr auto look_again = 5ms;
constexpr auto settle = 2s; // until what the last message left to be done is done
constexpr auto idle = 10s;
constexpr auto patience = 300s;

// The number after `field` in a file of /proc; 0 where the process has gone.
double number_in(const std::string& path, std::string_view field) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(field)) return std::stod(line.substr(field.size() + 1));
  return 0;
}

double memory_mib(const Kernels& kernels) { // of the larger kernel
  double most = 0;
  for (const std::size_t host : both_hosts)
    most =
        std::max(most, number_in(fmt::format("/proc/{}/status", kernels.process(host)), "RssAnon:") / 1024);
  return most;
}

double switches(const Kernels& kernels) { // of both, all threads
  double sum = 0;
  for (const std::size_t host : both_hosts)
    for (const auto& thread :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/task", kernels.process(host)))) {
      const std::string status = thread.path() / "status";
      sum += number_in(status, "voluntary_ctxt_switches:") + number_in(status, "nonvoluntary_ctxt_switches:");
    }
  return sum;
}

Result<double> peak_memory(const Hosts& hosts, const Kernels& kernels, const std::string& part, int ranks) {
  PARC_TRY(ran, Child::start(job(hosts, ranks, fmt::format("a:{0},b:{0}", ranks / 2), {"--rank", part})));
  double peak = memory_mib(kernels);
  for (const auto give_up = Clock::now() + patience; ran.running();) {
    if (Clock::now() > give_up) return error(ETIMEDOUT, "\"{}\" did not end", part);
    PARC_TRY(Child::wait_for_any({&ran, 1}, Clock::now() + look_again));
    peak = std::max(peak, memory_mib(kernels));
  }
  if (ran.exit_status() != 0) return error(ECHILD, "the ranks of \"{}\" failed: {}", part, ran.errors());
  return peak;
}

Result<double> idle_switches(const Hosts& hosts, const Kernels& kernels) {
  constexpr std::size_t ranks = 4;
  PARC_TRY(attached, Child::start(job(hosts, ranks, "a:2,b:2", {"--rank", "idle"})));
  const auto look_until = [&attached = attached](Clock::time_point when) -> Result<void> {
    PARC_TRY(Child::wait_for_any({&attached, 1}, when));
    if (attached.running()) return success();
    return error(ECHILD, "the idle ranks ended: {}", attached.errors());
  };
  for (const auto give_up = Clock::now() + patience; attached.output().size() < ranks * ready.size();) {
    if (Clock::now() > give_up) return error(ETIMEDOUT, "the idle ranks do not get ready");
    PARC_TRY(look_until(Clock::now() + 100ms));
  }
  PARC_TRY(look_until(Clock::now() + settle));
  const double before = switches(kernels);
  PARC_TRY(look_until(Clock::now() + idle));
  const double after = switches(kernels);
  attached.terminate();
  return after - before;
}

// One way between the first two of so many ranks of one host, in microseconds.
Result<double> latency_beside(const Hosts& hosts, int ranks) {
  PARC_TRY(ran, Child::start(job(hosts, ranks, fmt::format("a:{}", ranks), {"--rank", "beside"})));
  for (const auto give_up = Clock::now() + patience; ran.running();) {
    if (Clock::now() > give_up) return error(ETIMEDOUT, "{} ranks did not end", ranks);
    PARC_TRY(Child::wait_for_any({&ran, 1}, Clock::now() + look_again));
  }
  if (ran.exit_status() != 0) return error(ECHILD, "{} ranks failed: {}", ranks, ran.errors());
  return std::stod(ran.output());
}

struct Part {
  const char* name;
  const char* text;
  int ranks;
};
constexpr Part parts[] = {{"long", "one message of 1 GiB", 2},
                          {"unexpected", "1,024 unread messages of 1 MiB", 2},
                          {"all-pairs", "all of 4 ranks to all, 32 MiB each", 4}};

Result<std::vector<Row>> measure(const Hosts& hosts, int repeats) {
  std::vector<Row> rows;
  for (const Part& part : parts)
    rows.push_back({part.text, "kernel's own memory, peak", "MiB", "64 MiB and the pool", "<= 1"});
  rows.push_back({.name = "links up, 4 programs attached",
                  .metric = "wakings of both idle kernels in 10 s",
                  .unit = "",
                  .goal = "<= 0"});
  rows.push_back({"2 ranks beside 1,000 that sleep", "8 bytes one way", "us", "2 ranks alone", "<= 1.2"});
  Row& sleeping = rows[std::size(parts)];
  Row& beside = rows[std::size(parts) + 1];
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::cerr << fmt::format("repeat {} of {}\n", repeat + 1, repeats);
    auto kernels = Kernels::start(hosts, {});
    if (!kernels) return std::move(kernels).error();
    for (std::size_t i = 0; i < std::size(parts); ++i) {
      PARC_TRY(peak, peak_memory(hosts, kernels.value(), parts[i].name, parts[i].ranks));
      rows[i].add(peak, allowed_mib);
    }
    PARC_TRY(woken, idle_switches(hosts, kernels.value()));
    sleeping.parc.push_back(woken);
    PARC_TRY(alone, latency_beside(hosts, 2));
    PARC_TRY(crowded, latency_beside(hosts, 1002));
    beside.add(crowded, alone);
  }
  return rows;
}

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench("bench-kernel",
              "Memory of the kernels while much is sent, their wakings while nothing is, and what sleeping "
              "programs cost.");
  Options options;
  std::string part;
  describe(bench, options);
  bench.add_option("--rank", part)->group("");
  bench.begin(argc, argv);
  if (!part.empty()) return bench.end(be_rank(part));
  return bench.measure({.kernels = false}, options,
                       [&](const Hosts& hosts) { return measure(hosts, options.repeats); });
}
