// SPDX-License-Identifier: BSD-3-Clause
// One of the four ranks of bench/streams/ways, two a host: ranks 0 and 2 exchange 8 bytes, alone and then
// while 1 and 3 move messages of 4 MiB for SECONDS, one way or (`both`) both ways. Rank 0 says the median and
// the 90th percentile of what 8 bytes took one way, alone and beside, in ms; rank 1 how many MB/s came to 3,
// and to 1. Usage: bench-beside SECONDS one|both
#include <parc/parc.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int tag_ball = 1, tag_bulk = 2, tag_ready = 3;
constexpr std::size_t message_bytes = 4 << 20, ahead = 4;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Of one way.
void print_times(std::vector<double>& both_ways) {
  std::ranges::sort(both_ways);
  const auto at = [&](std::size_t tenths) { return both_ways[both_ways.size() * tenths / 10] / 2 * 1e3; };
  std::printf("%.3f %.3f ", at(5), at(9));
}

void bounce(parc::Context& p, double seconds) {
  std::uint64_t ball = 1;
  std::vector<double> took;
  for (const auto begin = Clock::now(); took.size() < 5 || seconds_since(begin) < seconds;) {
    const auto sent = Clock::now();
    p.write(2, tag_ball, std::span(&ball, 1));
    p.read(2, tag_ball, std::span(&ball, 1));
    took.push_back(seconds_since(sent));
  }
  print_times(took);
}

void bounce_back(parc::Context& p) {
  for (std::uint64_t ball = 1; ball != 0;) {
    p.read(0, tag_ball, std::span(&ball, 1));
    if (ball != 0) p.write(0, tag_ball, std::span(&ball, 1));
  }
}

// A message of one byte less is the last one.
double move(parc::Context& p, int peer, bool sends, bool receives, double seconds) {
  auto out = p.buffer<std::byte>(message_bytes * ahead), in = p.buffer<std::byte>(message_bytes * ahead);
  std::vector<parc::Operation> writes(ahead), reads(ahead);
  const auto place = [](auto& memory, std::size_t i) {
    return memory.span().subspan(i % ahead * message_bytes, message_bytes);
  };
  const auto begin = Clock::now();
  std::size_t sent = 0, asked = 0, came = 0;
  bool more_in = receives, more_out = sends;
  for (; more_in && asked < ahead; ++asked) reads[asked] = p.initread(peer, tag_bulk, place(in, asked));
  while (more_in || more_out) {
    if (more_out) {
      if (writes[sent % ahead]) writes[sent % ahead].wait();
      more_out = seconds_since(begin) < seconds;
      const auto memory = place(out, sent);
      const iovec piece{memory.data(), more_out ? message_bytes : message_bytes - 1};
      writes[sent % ahead] = p.initwrite(parc_envelope_of(peer, 0, tag_bulk), {&piece, 1}, PARC_SYNCHRONOUS);
      ++sent;
    }
    if (!more_in) continue;
    more_in = reads[came % ahead].wait().length == message_bytes;
    ++came;
    if (more_in) {
      reads[asked % ahead] = p.initread(peer, tag_bulk, place(in, asked));
      ++asked;
    }
  }
  const double rate = static_cast<double>(came * message_bytes) / seconds_since(begin) / 1e6;
  for (auto& each : writes)
    if (each) each.wait();
  return rate;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const double seconds = std::strtod(argv[1], nullptr);
  const bool both = std::string_view(argv[2]) == "both";
  parc::Context p;
  std::uint64_t word = 0;
  if (p.rank() == 0) {
    bounce(p, seconds / 4);
    p.write(1, tag_ready, std::span(&word, 1));
    p.write(3, tag_ready, std::span(&word, 1));
    bounce(p, seconds);
    p.write(2, tag_ball, std::span(&word, 1));
    double there = 0, back = 0;
    p.read(3, tag_ready, std::span(&there, 1));
    p.read(1, tag_ready, std::span(&back, 1));
    std::printf("%.2f %.2f\n", there, back);
  } else if (p.rank() == 2) {
    bounce_back(p);
  } else {
    p.read(0, tag_ready, std::span(&word, 1));
    const bool first = p.rank() == 1;
    double rate = move(p, first ? 3 : 1, first || both, !first || both, seconds);
    p.write(0, tag_ready, std::span(&rate, 1));
  }
}
