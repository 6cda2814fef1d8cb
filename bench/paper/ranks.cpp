// SPDX-License-Identifier: BSD-3-Clause
#include "bench/figures/rank.hpp"
#include "bench/paper/roles.hpp"
#include "bench/paper/rounds.hpp"

#include <cstring>

namespace parc::bench {

namespace {

constexpr int tag_message = 0, tag_times = 1;

// Each rank has started its next read before it waits for its write: a message always finds its place (the
// report's step 5 before its step 3).
Result<void> bounce(const Rank& rank, void* out, void* in, std::size_t bytes, int times) {
  const bool first = rank.number() == 0;
  if (!first) {
    PARC_TRY(checked(parc_read(rank.get(), rank.other(), tag_message, in, bytes, nullptr)));
  }
  for (int i = 0; i < times; ++i) {
    parc_op both[] = {PARC_OP_NULL, PARC_OP_NULL};
    if (first || i + 1 < times) both[0] = parc_initread(rank.get(), rank.other(), tag_message, in, bytes);
    both[1] = parc_initwrite(rank.get(), rank.other(), tag_message, out, bytes);
    PARC_TRY(checked(parc_waitall(rank.get(), 2, both, nullptr)));
  }
  return success();
}

Result<void> agree_on(const Rank& rank, std::int64_t& times) {
  PARC_TRY(checked(rank.number() == 0
                       ? parc_write(rank.get(), rank.other(), tag_times, &times, sizeof times)
                       : parc_read(rank.get(), rank.other(), tag_times, &times, sizeof times, nullptr)));
  return checked(parc_barrier(rank.get()));
}

} // namespace

Result<Figures> lathide(const Sizes& sizes) {
  PARC_TRY(rank, Rank::join());
  Figures figures;
  for (const std::size_t bytes : sizes) {
    PARC_TRY(out, Shared::make(rank, bytes));
    PARC_TRY(in, Shared::make(rank, bytes));
    std::memset(out.get(), 1, bytes);
    std::memset(in.get(), 2, bytes);
    const auto rounds = [&rank = rank, out = out.get(), in = in.get(), bytes](int times) {
      return bounce(rank, out, in, bytes, times);
    };
    const auto agree = [&rank = rank](std::int64_t& times) { return agree_on(rank, times); };
    PARC_TRY(round, time_of_round(rounds, agree));
    figures[std::to_string(bytes)] = round / 2;
  }
  const bool first = rank.number() == 0;
  PARC_TRY(rank.leave());
  return first ? figures : Figures();
}

} // namespace parc::bench
