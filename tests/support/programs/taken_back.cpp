// SPDX-License-Identifier: BSD-3-Clause
// Usage: taken_back ROUNDS [killed]: rank 0 exposes a window again and again, and takes it back: nobody
// gets from it then, or puts there. The others do that all the time, and hear of it; with "killed" rank 1 is
// killed in the middle. Each says how often the window was there.
#include "tests/support/programs/rank.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::uint64_t window = 7;
constexpr std::size_t bytes = 1 << 20;
constexpr unsigned char taken_back = 0xa5;
constexpr int tag_over = 1;
parc_context* parc = nullptr;

void own(unsigned long rounds) {
  auto* const memory = static_cast<unsigned char*>(parc_alloc(parc, bytes));
  std::mt19937 random(1);
  std::size_t changed = 0;
  for (unsigned long round = 0; round < rounds; ++round) {
    std::memset(memory, 0, bytes);
    rank::expect_code(parc_expose(parc, window, memory, bytes, PARC_MAY_GET | PARC_MAY_PUT), PARC_OK,
                      "parc_expose");
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 4000);
         std::chrono::steady_clock::now() < end;)
      continue;
    rank::expect_code(parc_unexpose(parc, window), PARC_OK, "parc_unexpose");
    changed += std::any_of(memory, memory + bytes, [](unsigned char byte) { return byte != 0; });
    std::memset(memory, taken_back, bytes);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
    rank::expect(std::all_of(memory, memory + bytes, [](unsigned char byte) { return byte == taken_back; }),
                 "somebody has put into a window that was taken back, in round %lu", round);
  }
  rank::expect(changed != 0, "nobody has put anything");
}

int transfer(bool puts, bool blocks, const parc_place& at, void* buffer, std::size_t length) {
  if (blocks) return puts ? parc_put(parc, &at, buffer, length) : parc_get(parc, &at, buffer, length);
  const parc_op operation = puts ? parc_initput(parc, &at, buffer, length, PARC_SYNCHRONOUS)
                                 : parc_initget(parc, &at, buffer, length, 0);
  rank::expect(operation > 0, "a start gave %d", static_cast<int>(operation));
  return parc_wait(parc, operation, nullptr);
}

// Until rank 0 says that it is over, and then says so, too.
void use() {
  std::mt19937 random(static_cast<unsigned>(rank::number) + 100);
  std::vector<unsigned char> mine(65'536, static_cast<unsigned char>(rank::number)), got(mine.size());
  const parc_op over = parc_initread(parc, 0, tag_over, nullptr, 0);
  unsigned long there = 0;
  for (int done = 0; done == 0;) {
    for (int i = 0; i < 20; ++i) {
      const std::size_t length = random() % 3 == 0 ? 1 + random() % got.size() : 1 + random() % 100;
      const parc_place at{0, window, random() % (bytes - length)};
      const bool puts = random() % 2 == 0;
      const int code = transfer(puts, random() % 2 == 0, at, puts ? mine.data() : got.data(), length);
      rank::expect(code == PARC_OK || code == PARC_EPLACE, "a transfer gave %d", code);
      there += code == PARC_OK;
      rank::expect(puts || code != PARC_OK ||
                       std::none_of(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(length),
                                    [](unsigned char byte) { return byte == taken_back; }),
                   "a get has found what was there when it was taken back");
    }
    if (const int code = parc_quiet(parc); code != PARC_OK)
      rank::expect(code == PARC_EPLACE, "parc_quiet gave %d", code);
    done = parc_test(parc, over, nullptr);
  }
  rank::expect(there != 0, "it was never there");
  rank::expect_code(parc_write(parc, 0, tag_over, nullptr, 0), PARC_OK, "parc_write");
  std::printf("%lu\n", there);
}

} // namespace

int main(int argc, char** argv) {
  parc = rank::open();
  rank::expect(argc > 1, "usage: taken_back ROUNDS [killed]");
  const bool killed = argc > 2 && std::string_view(argv[2]) == "killed";
  if (rank::number != 0) {
    std::thread death;
    if (killed && rank::number == 1)
      death = std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        (void)raise(SIGKILL);
      });
    use();
    if (death.joinable()) death.join();
  } else {
    own(std::strtoul(argv[1], nullptr, 10));
    for (int other = 1; other < parc_size(parc); ++other) {
      (void)parc_write(parc, other, tag_over, nullptr, 0); // the killed one hears nothing
      const int code = parc_read(parc, other, tag_over, nullptr, 0, nullptr);
      rank::expect(code == PARC_OK || (killed && other == 1 && code == PARC_EPEER), "parc_read gave %d",
                   code);
    }
  }
  rank::expect_code(parc_close(parc), PARC_OK, "parc_close");
}
