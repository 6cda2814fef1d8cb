// SPDX-License-Identifier: BSD-3-Clause
// One of the two ranks of bench/streams/streams. Rank 0 asks for messages of BYTES, AHEAD of them before they
// come, for SECONDS; then it says how many MB/s came in all, and in the second half.
// Usage: bench-streams BYTES SECONDS AHEAD
#include <parc/parc.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int tag_order = 1, tag_data = 2;

struct Flow {
  parc::Context p;
  std::size_t bytes, ahead;
  parc::Buffer<std::byte> memory;
  std::vector<parc::Operation> operations;

  Flow(std::size_t length, std::size_t count)
      : bytes(length), ahead(count), memory(p.buffer<std::byte>(length * count)), operations(count) {}

  [[nodiscard]] std::span<std::byte> place(std::size_t number) {
    return memory.span().subspan(number % ahead * bytes, bytes);
  }
  void order(std::uint64_t more) { p.write(1, tag_order, std::span(&more, 1)); }

  void ask(double seconds) {
    const auto begin = Clock::now();
    std::vector<double> came;
    std::size_t asked = 0;
    const auto ask_for_one = [&] {
      operations[asked % ahead] = p.initread(1, tag_data, place(asked));
      ++asked;
      order(1);
    };
    while (asked < ahead) ask_for_one();
    while (came.size() < asked) {
      operations[came.size() % ahead].wait();
      came.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
      if (came.back() < seconds) ask_for_one();
    }
    order(0);
    std::size_t half = 0;
    while (half + 2 < came.size() && came[half] < seconds / 2) ++half;
    const auto rate = [&](std::size_t messages, double in_s) {
      return static_cast<double>(messages * bytes) / in_s / 1e6;
    };
    std::printf("%.2f %.2f\n", rate(came.size(), came.back()),
                rate(came.size() - 1 - half, came.back() - came[half]));
  }

  void answer() {
    for (std::size_t number = 0;; ++number) {
      std::uint64_t more = 0;
      p.read(0, tag_order, std::span(&more, 1));
      if (more == 0) break;
      if (parc::Operation& last = operations[number % ahead]) last.wait();
      operations[number % ahead] = p.initwrite(0, tag_data, place(number));
    }
    p.wait_all(operations);
  }
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  Flow flow(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
  if (flow.p.rank() == 0)
    flow.ask(std::strtod(argv[2], nullptr));
  else
    flow.answer();
}
