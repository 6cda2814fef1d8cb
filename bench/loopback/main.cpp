// SPDX-License-Identifier: BSD-3-Clause
// Loopback and same host: latency and bandwidth of parc beside plain sockets, a pipe and memcpy, interleaved
// in one run; links that are encrypted beside those that are not; and parc_alloc beside malloc. Started by
// hand it starts two kernels on loopback and itself as
// the ranks of a job; as a rank it measures.
#include "bench/figures/bench.hpp"
#include "bench/loopback/peers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <parc/parc.h>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace parc::bench {
namespace {

struct Size {
  std::size_t bytes;
  int times;
};
constexpr Size long_size = {16 << 20, 64}; // for the processor time of the kernels
constexpr Size sizes[] = {{8, 20000}, {1 << 20, 200}, {16 << 20, 20}};

// What a rank says besides seconds by size.
constexpr std::size_t of_parc_alloc = SIZE_MAX, of_malloc = SIZE_MAX - 1;

// Seconds to take 1,000 pieces of 8 bytes and to give them back: the median of many times.
template <class Take, class Give> double pieces_time(const Take& take, const Give& give) {
  std::vector<double> seconds(501);
  std::vector<void*> pieces(1000);
  for (double& each : seconds) {
    const double begin = seconds_now();
    for (void*& piece : pieces) piece = take(8);
    for (void* const piece : pieces) give(piece);
    each = seconds_now() - begin;
  }
  std::ranges::nth_element(seconds, seconds.begin() + 250);
  return seconds[250];
}

// Half a round trip of blocking calls, in seconds.
double latency(parc_context* p, void* data, std::size_t bytes, int times) {
  const int me = parc_rank(p);
  double begin = 0;
  int error = PARC_OK;
  for (int i = -times / 10; i < times && error == PARC_OK; ++i) {
    if (i == 0) begin = seconds_now();
    if (me == 0) error = parc_write(p, 1, 0, data, bytes);
    if (error == PARC_OK) error = parc_read(p, 1 - me, 0, data, bytes, nullptr);
    if (me == 1 && error == PARC_OK) error = parc_write(p, 0, 0, data, bytes);
  }
  return error == PARC_OK ? (seconds_now() - begin) / times / 2 : -1;
}

// Half a round trip where each rank has started its next read before it waits for its write: no copy.
double transfer(parc_context* p, void* out, void* in, std::size_t bytes, int times) {
  const int me = parc_rank(p);
  double begin = 0;
  int error = me == 1 ? parc_read(p, 0, 0, in, bytes, nullptr) : PARC_OK;
  for (int i = -times / 10; i < times && error == PARC_OK; ++i) {
    if (i == 0) begin = seconds_now();
    parc_op both[] = {parc_initwrite(p, 1 - me, 0, out, bytes), PARC_OP_NULL};
    if (me == 0 || i + 1 < times) both[1] = parc_initread(p, 1 - me, 0, in, bytes);
    error = parc_waitall(p, 2, both, nullptr);
  }
  return error == PARC_OK ? (seconds_now() - begin) / times / 2 : -1;
}

int measure_as_rank(const std::string& what) {
  parc_context* p = nullptr;
  const auto failed = [] {
    std::fprintf(stderr, "bench-loopback: %s\n", parc_error_detail());
    return 1;
  };
  if (parc_open(&p) != PARC_OK) return failed();
  const std::span<const Size> wanted = what == "long" ? std::span(&long_size, 1) : std::span(sizes);
  for (const auto [bytes, times] : wanted) {
    void* out = parc_alloc(p, bytes);
    void* in = parc_alloc(p, bytes);
    if (out == nullptr || in == nullptr) return failed();
    const double seconds = bytes <= 8 ? latency(p, out, bytes, times) : transfer(p, out, in, bytes, times);
    if (seconds < 0) return failed();
    if (parc_rank(p) == 0) std::printf("%zu %.9f\n", bytes, seconds);
    parc_free(p, out);
    parc_free(p, in);
  }
  if (parc_rank(p) == 0 && what != "long") {
    const double shared =
        pieces_time([&](std::size_t n) { return parc_alloc(p, n); }, [&](void* m) { parc_free(p, m); });
    void* (*volatile take)(std::size_t) = std::malloc; // a compiler knows what malloc and free come to
    void (*volatile give)(void*) = std::free;
    const double plain = pieces_time([&](std::size_t n) { return take(n); }, [&](void* m) { give(m); });
    std::printf("%zu %.9f\n%zu %.9f\n", of_parc_alloc, shared, of_malloc, plain);
  }
  return parc_close(p) == PARC_OK ? 0 : 1;
}

// Seconds one way by size.
Result<std::map<std::size_t, double>> run_ranks(const Hosts& hosts, const std::string& slots,
                                                const std::string& what = "all") {
  PARC_TRY(text, output_of(job(hosts, 2, slots, {"--rank", what})));
  std::map<std::size_t, double> seconds;
  std::istringstream lines(text);
  std::size_t bytes = 0;
  double one_way = 0;
  while (lines >> bytes >> one_way) seconds[bytes] = one_way;
  return seconds;
}

// Processor time of a process, in seconds.
double processor_time(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

struct Apart {
  std::map<std::size_t, double> seconds;
  double cpu_of_gib; // of both kernels together, in seconds
};

// Two kernels whose links are encrypted, or not.
Result<Apart> run_apart(const Hosts& hosts, const std::string& encryption) {
  constexpr double gib = double(1 << 30),
                   both_ways = 2 * double(long_size.bytes) * (long_size.times + long_size.times / 10);
  PARC_TRY(kernels, heat::demo::Kernels::start(hosts, {.options = {"--encryption", encryption}}));
  PARC_TRY(seconds, run_ranks(hosts, "a:1,b:1"));
  const auto used = [&] { return processor_time(kernels.process(0)) + processor_time(kernels.process(1)); };
  const double before = used();
  PARC_TRY(run_ranks(hosts, "a:1,b:1", "long"));
  const double cpu = used() - before;
  kernels.stop();
  return Apart{std::move(seconds), cpu / both_ways * gib};
}

std::vector<Row> empty_rows() {
  const std::string apart = "two hosts, not encrypted", together = "same host", encrypted = "two hosts, TLS";
  return {{apart, "8 bytes one way", "us", "plain sockets, polling", "<= 2"},
          {apart, "8 bytes one way", "us", "plain sockets, blocking", "<= 0.5"},
          {apart, "bandwidth, 1 MiB", "GB/s", "plain sockets at their best", ">= 0.9"},
          {apart, "bandwidth, 16 MiB", "GB/s", "plain sockets at their best", ">= 0.9"},
          {together, "8 bytes one way", "us", "pipe between two cores", "<= 0.25"},
          {together, "bandwidth, 1 MiB", "GB/s", "memcpy", ">= 0.8"},
          {together, "bandwidth, 16 MiB", "GB/s", "memcpy", ">= 0.8"},
          {together, "1,000 pieces of 8 bytes", "us", "malloc and free", "<= 1"},
          {encrypted, "8 bytes one way", "us", "not encrypted", "<= 1.3"},
          {encrypted, "bandwidth, 1 MiB", "GB/s", "not encrypted", ""},
          {encrypted, "bandwidth, 16 MiB", "GB/s", "not encrypted", ""},
          {encrypted, "CPU of both kernels, 1 GiB", "s", "not encrypted", ""}};
}

Result<void> measure_once(const Hosts& hosts, std::vector<Row>& rows) {
  const auto bandwidth = [](std::size_t bytes, double seconds) {
    return static_cast<double>(bytes) / seconds / 1e9;
  };
  const auto best = [](std::size_t bytes, int times) {
    return std::min(socket_one_way(bytes, times, true), socket_one_way(bytes, times, false));
  };
  PARC_TRY(plain, run_apart(hosts, "none"));
  PARC_TRY(tls, run_apart(hosts, "tls"));
  auto &apart = plain.seconds, &encrypted = tls.seconds;
  rows[0].add(apart[8] * 1e6, socket_one_way(8, sizes[0].times, true) * 1e6);
  rows[1].add(apart[8] * 1e6, socket_one_way(8, sizes[0].times, false) * 1e6);
  PARC_TRY(kernels, heat::demo::Kernels::start(hosts, {}));
  PARC_TRY(together, run_ranks(hosts, "a:2"));
  kernels.stop();
  rows[4].add(together[8] * 1e6, pipe_one_way(sizes[0].times) * 1e6);
  for (std::size_t i = 1; i < 3; ++i) {
    const auto [bytes, times] = sizes[i];
    rows[1 + i].add(bandwidth(bytes, apart[bytes]), bandwidth(bytes, best(bytes, times)));
    rows[4 + i].add(bandwidth(bytes, together[bytes]), bandwidth(bytes, memcpy_time(bytes, times)));
  }
  rows[8].add(encrypted[8] * 1e6, apart[8] * 1e6);
  for (std::size_t i = 1; i < 3; ++i)
    rows[8 + i].add(bandwidth(sizes[i].bytes, encrypted[sizes[i].bytes]),
                    bandwidth(sizes[i].bytes, apart[sizes[i].bytes]));
  rows[11].add(tls.cpu_of_gib, plain.cpu_of_gib);
  rows[7].add(together[of_parc_alloc] * 1e6, together[of_malloc] * 1e6);
  return success();
}

Result<std::vector<Row>> measure(const Hosts& hosts, int repeats) {
  std::vector<Row> rows = empty_rows();
  for (int i = 0; i < repeats; ++i) {
    PARC_TRY(measure_once(hosts, rows));
    std::fprintf(stderr, "repeat %d of %d\n", i + 1, repeats);
  }
  return rows;
}

} // namespace
} // namespace parc::bench

int main(int argc, char** argv) {
  using namespace parc::bench;
  Bench bench("bench-loopback", "parc on one machine beside plain sockets, a pipe and memcpy");
  Options options{.json = {}, .repeats = 5};
  std::string rank; // what it measures
  describe(bench, options);
  bench.add_option("--rank", rank)->group("");
  bench.begin(argc, argv);
  if (!rank.empty()) return measure_as_rank(rank);
  return bench.measure({.kernels = false}, options,
                       [&](const Hosts& hosts) { return measure(hosts, options.repeats); });
}
