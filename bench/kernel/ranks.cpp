// SPDX-License-Identifier: BSD-3-Clause
#include "bench/kernel/ranks.hpp"
#include "bench/figures/rank.hpp"

#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace parc::bench {

namespace {

constexpr int tag_data = 0, tag_last = 1;

Result<Shared> touched(const Rank& rank, std::size_t bytes) {
  PARC_TRY(memory, Shared::make(rank, bytes));
  std::memset(memory.get(), 1, bytes);
  return std::move(memory);
}

Result<void> send_long(const Rank& rank) {
  constexpr std::size_t bytes = 1 << 30;
  PARC_TRY(data, touched(rank, bytes));
  if (rank.number() == 0) return checked(parc_write(rank.get(), 1, tag_data, data.get(), bytes));
  return checked(parc_read(rank.get(), 0, tag_data, data.get(), bytes, nullptr));
}

// The first two exchange 8 bytes, all others sleep; rank 0 says how long one way took, in microseconds.
Result<void> exchange_beside(const Rank& rank) {
  constexpr int rounds = 20'000, settling = 2'000; // kernels forget who sleeps
  PARC_TRY(checked(parc_barrier(rank.get())));
  PARC_TRY(word, Shared::make(rank, 8));
  double begin = 0;
  for (int i = -settling; rank.number() < 2 && i < rounds; ++i) {
    if (i == 0) begin = parc_clock();
    const int peer = 1 - rank.number();
    if (rank.number() == 0) {
      PARC_TRY(checked(parc_write(rank.get(), peer, tag_data, word.get(), 8)));
    }
    PARC_TRY(checked(parc_read(rank.get(), peer, tag_data, word.get(), 8, nullptr)));
    if (rank.number() == 1) {
      PARC_TRY(checked(parc_write(rank.get(), peer, tag_data, word.get(), 8)));
    }
  }
  if (rank.number() == 0) std::printf("%.3f\n", (parc_clock() - begin) / rounds / 2 * 1e6);
  return checked(parc_barrier(rank.get()));
}

// Envelopes arrive in order: with the last message all of them have.
Result<void> send_unexpected(const Rank& rank) {
  constexpr int count = 1024;
  constexpr std::size_t bytes = 1 << 20;
  PARC_TRY(data, touched(rank, bytes));
  if (rank.number() == 1) {
    PARC_TRY(checked(parc_read(rank.get(), 0, tag_last, data.get(), bytes, nullptr)));
    for (int i = 1; i < count; ++i) {
      PARC_TRY(checked(parc_read(rank.get(), 0, tag_data, data.get(), bytes, nullptr)));
    }
    return success();
  }
  std::vector<parc_op> writes;
  for (int i = 1; i <= count; ++i) {
    writes.push_back(parc_initwrite(rank.get(), 1, i == count ? tag_last : tag_data, data.get(), bytes));
    PARC_TRY(checked(writes.back()));
  }
  return checked(parc_waitall(rank.get(), count, writes.data(), nullptr));
}

Result<void> exchange_all(const Rank& rank) {
  constexpr std::size_t bytes = 32 << 20;
  const int size = parc_size(rank.get());
  PARC_TRY(out, touched(rank, bytes));
  PARC_TRY(in, touched(rank, bytes * static_cast<std::size_t>(size)));
  std::vector<parc_op> operations;
  for (int peer = 0; peer < size; ++peer)
    if (peer != rank.number())
      operations.push_back(parc_initwrite(rank.get(), peer, tag_data, out.get(), bytes));
  for (int peer = 0; peer < size; ++peer) {
    std::byte* place = static_cast<std::byte*>(in.get()) + bytes * static_cast<std::size_t>(peer);
    if (peer != rank.number()) operations.push_back(parc_initread(rank.get(), peer, tag_data, place, bytes));
  }
  for (const parc_op operation : operations) {
    PARC_TRY(checked(operation));
  }
  return checked(parc_waitall(rank.get(), static_cast<int>(operations.size()), operations.data(), nullptr));
}

Result<void> stay_idle(const Rank& rank) {
  PARC_TRY(exchange_all(rank));
  PARC_TRY(checked(parc_barrier(rank.get())));
  if (write(STDOUT_FILENO, ready.data(), ready.size()) < 0) return system_error("cannot say ready");
  for (;;) pause(); // until the job is ended
}

} // namespace

Result<void> be_rank(std::string_view part) {
  PARC_TRY(rank, Rank::join());
  PARC_TRY(part == "long"         ? send_long(rank)
           : part == "unexpected" ? send_unexpected(rank)
           : part == "all-pairs"  ? exchange_all(rank)
           : part == "beside"     ? exchange_beside(rank)
                                  : stay_idle(rank));
  return rank.leave();
}

} // namespace parc::bench
