// SPDX-License-Identifier: BSD-3-Clause
// Random reads and writes over sub-ranges of one block, all released early, with random touches in between;
// every byte is compared. All ranks draw the same plan from SEED: in each round every rank sends MESSAGES to
// the next one, whose buffers lie side by side with gaps of a few bytes, so that neighbours share pages.
// Usage: early_random SEED ROUNDS [arena|chunk|bss]
#include "tests/support/programs/rank.hpp"

#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t area = 2 << 20;
// Other variables share its first and last page. Those of a sanitizer would be touched in the fault's
// handler.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t margin = 4096;
#else
constexpr std::size_t margin = 16;
#endif
unsigned char in_bss[area + 2 * margin];

struct Piece {
  std::size_t at, length;
  std::uint64_t message;
};

class Plan {
public:
  explicit Plan(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

  std::vector<Piece> pieces(std::uint64_t round) {
    std::vector<Piece> drawn;
    std::size_t at = below(5000);
    for (std::uint64_t i = 0; i < 12; ++i) {
      const std::size_t length = below(3) == 0 ? below(600) + 1 : below(120'000) + 1;
      if (at + length > area) break;
      drawn.push_back({at, length, round * 100 + i});
      at += length + below(300);
    }
    return drawn;
  }

private:
  std::mt19937_64 random_;
};

void check(const unsigned char* block, const Piece& piece, std::size_t from, std::size_t length) {
  rank::expect(rank::filled(block + piece.at + from, length, piece.message, from),
               "wrong bytes in message %llu, from %zu on", static_cast<unsigned long long>(piece.message),
               from);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10),
                      rounds = std::strtoull(argv[2], nullptr, 10);
  parc_context* const parc = rank::open();
  rank::expect_code(parc_set_release(parc, PARC_RELEASE_FULL), PARC_OK, "set_release");
  const int size = parc_size(parc);
  const int next = (rank::number + 1) % size, before = (rank::number + size - 1) % size;
  const std::string kind = argc == 4 ? argv[3] : "arena";
  auto* const in = kind == "bss"     ? in_bss + margin
                   : kind == "chunk" ? static_cast<unsigned char*>(std::malloc(area))
                                     : static_cast<unsigned char*>(parc_alloc(parc, area));
  auto* const out = static_cast<unsigned char*>(parc_alloc(parc, area));
  rank::expect(in != nullptr && out != nullptr, "no memory");
  std::memset(in, 1, area);
  Plan plan(seed), own(seed * 1000 + static_cast<std::uint64_t>(rank::number));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::vector<Piece> pieces = plan.pieces(round);
    std::vector<parc_op> reads, writes;
    for (const Piece& piece : pieces)
      reads.push_back(
          parc_initread(parc, before, static_cast<int>(piece.message), in + piece.at, piece.length));
    for (const Piece& piece : pieces) {
      rank::fill(out + piece.at, piece.length, piece.message);
      writes.push_back(
          parc_initwrite(parc, next, static_cast<int>(piece.message), out + piece.at, piece.length));
    }
    const bool one_by_one = own.below(2) == 0;
    if (one_by_one) {
      for (std::size_t i = 0; i < reads.size(); ++i) {
        rank::expect_code(parc_wait(parc, reads[i], nullptr), PARC_OK, "wait");
        if (own.below(3) == 0) check(in, pieces[i], own.below(pieces[i].length), 1);
      }
    } else {
      rank::expect_code(parc_waitall(parc, static_cast<int>(reads.size()), reads.data(), nullptr), PARC_OK,
                        "waitall");
    }
    // A gap between two buffers belongs to the program.
    const Piece& some = pieces[own.below(pieces.size())];
    if (some.at > 0 && (&some == pieces.data() || (&some)[-1].at + (&some)[-1].length < some.at))
      in[some.at - 1] = static_cast<unsigned char>(round);
    for (std::size_t touches = own.below(20); touches > 0; --touches) {
      const Piece& piece = pieces[own.below(pieces.size())];
      const std::size_t from = own.below(piece.length);
      check(in, piece, from, std::min<std::size_t>(piece.length - from, own.below(5000) + 1));
    }
    // Sometimes the next round's reads come over buffers that nobody has touched.
    if (own.below(3) != 0)
      for (const Piece& piece : pieces) check(in, piece, 0, piece.length);
    rank::expect_code(parc_waitall(parc, static_cast<int>(writes.size()), writes.data(), nullptr), PARC_OK,
                      "waitall of writes");
  }
  parc_release_counts counts;
  rank::expect_code(parc_get_release_counts(parc, &counts), PARC_OK, "counts");
  std::printf("%llu\n", static_cast<unsigned long long>(counts.released)); // chance decides how many
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
