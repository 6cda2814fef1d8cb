// SPDX-License-Identifier: BSD-3-Clause
#include "bench/exchange/patterns.hpp"
#include "bench/exchange/stamps.hpp"
#include "bench/figures/rank.hpp"

#include <cstring>

namespace parc::bench {

namespace {

constexpr int tag_data = 0, tag_bulk = 1, tag_small = 2;

struct Buffers {
  void* out;
  void* in;
};

// Both ranks do `once` as often as both know.
template <class Once>
Result<Seconds> measure(const Rank& rank, const Sizes& sizes, Times times, const Once& once) {
  Seconds seconds;
  for (const std::size_t bytes : sizes) {
    PARC_TRY(out, Shared::make(rank, bytes));
    PARC_TRY(in, Shared::make(rank, bytes));
    std::memset(out.get(), 1, bytes);
    std::memset(in.get(), 2, bytes);
    double begin = 0;
    for (int i = -times.uncounted(bytes); i < times.of(bytes); ++i) {
      if (i == 0) begin = seconds_now();
      PARC_TRY(once(Buffers{out.get(), in.get()}, bytes));
    }
    seconds[bytes] = (seconds_now() - begin) / times.of(bytes);
  }
  return seconds;
}

Result<void> send_both(const Rank& rank, std::size_t bulk) {
  PARC_TRY(data, Shared::make(rank, bulk));
  std::memset(data.get(), 1, bulk);
  const auto write = [&rank](double stamp) {
    return checked(parc_write(rank.get(), rank.other(), tag_small, &stamp, sizeof stamp));
  };
  PARC_TRY(write_stamps(write, Countdown()));
  PARC_TRY(checked(parc_barrier(rank.get())));
  const parc_op moving = parc_initwrite(rank.get(), rank.other(), tag_bulk, data.get(), bulk);
  PARC_TRY(checked(moving));
  return write_stamps(write, [&rank, moving]() -> Result<bool> {
    const int finished = parc_test(rank.get(), moving, nullptr);
    PARC_TRY(checked(finished));
    return finished == 0;
  });
}

Result<Delays> receive_both(const Rank& rank, std::size_t bulk) {
  PARC_TRY(data, Shared::make(rank, bulk));
  std::memset(data.get(), 2, bulk);
  const auto read = [&rank]() -> Result<double> {
    double stamp = 0;
    PARC_TRY(checked(parc_read(rank.get(), rank.other(), tag_small, &stamp, sizeof stamp, nullptr)));
    return stamp;
  };
  const parc_op moving = parc_initread(rank.get(), rank.other(), tag_bulk, data.get(), bulk);
  PARC_TRY(checked(moving));
  PARC_TRY(alone, read_stamps(read));
  PARC_TRY(checked(parc_barrier(rank.get())));
  PARC_TRY(beside, read_stamps(read));
  PARC_TRY(checked(parc_wait(rank.get(), moving, nullptr)));
  return Delays{std::move(alone), std::move(beside)};
}

} // namespace

Result<Seconds> exchange(const Sizes& sizes, Times times) {
  PARC_TRY(rank, Rank::join());
  PARC_TRY(seconds,
           measure(rank, sizes, times, [&rank = rank](Buffers buffers, std::size_t bytes) -> Result<void> {
             parc_op started[2] = {
                 parc_initread(rank.get(), rank.other(), tag_data, buffers.in, bytes),
                 parc_initwrite(rank.get(), rank.other(), tag_data, buffers.out, bytes),
             };
             return checked(parc_waitall(rank.get(), 2, started, nullptr));
           }));
  PARC_TRY(rank.leave());
  return seconds;
}

Result<Seconds> one_way(const Sizes& sizes, Times times) {
  PARC_TRY(rank, Rank::join());
  PARC_TRY(seconds,
           measure(rank, sizes, times, [&rank = rank](Buffers buffers, std::size_t bytes) -> Result<void> {
             const bool first = rank.number() == 0;
             if (first) {
               PARC_TRY(checked(parc_write(rank.get(), rank.other(), tag_data, buffers.out, bytes)));
             }
             PARC_TRY(checked(parc_read(rank.get(), rank.other(), tag_data, buffers.in, bytes, nullptr)));
             return first ? success()
                          : checked(parc_write(rank.get(), rank.other(), tag_data, buffers.out, bytes));
           }));
  PARC_TRY(rank.leave());
  for (auto& [bytes, time] : seconds) time /= 2;
  return seconds;
}

Result<Delays> small_beside_bulk(std::size_t bulk) {
  PARC_TRY(rank, Rank::join());
  Delays delays;
  if (rank.number() == 0) {
    PARC_TRY(send_both(rank, bulk));
  } else {
    PARC_TRY(received, receive_both(rank, bulk));
    delays = std::move(received);
  }
  PARC_TRY(rank.leave());
  return delays;
}

} // namespace parc::bench
