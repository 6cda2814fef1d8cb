// SPDX-License-Identifier: BSD-3-Clause
#include "bench/early_release/programs.hpp"
#include "shm/segment.hpp"

#include <csignal>
#include <sys/mman.h>
#include <unistd.h>

namespace parc::bench {
namespace {

// Of the segment that the handler opens; as in the library, it opens all that a message brought with one
// call.
std::byte* guarded = nullptr;
std::size_t guarded_bytes = 0;

void open_guarded(int, siginfo_t*, void*) {
  if (mprotect(guarded, guarded_bytes, PROT_READ | PROT_WRITE) != 0) _exit(1);
}

class Handler {
public:
  Handler() {
    struct sigaction action {};
    action.sa_sigaction = open_guarded;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
  }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  ~Handler() { sigaction(SIGSEGV, &before_, nullptr); }

private:
  struct sigaction before_ {};
};

double transfer_us(std::size_t bytes) { // at 1 Gbit/s
  return static_cast<double>(bytes) * 8 / 1e9 * 1e6;
}

// Microseconds of each, over many.
template <class Once> Result<double> time_of(int times, const Once& once) {
  const double begin = seconds_now();
  for (int i = 0; i < times; ++i)
    if (!once()) return system_error("cannot protect pages");
  return (seconds_now() - begin) / times * 1e6;
}

} // namespace

Result<std::vector<Row>> measure_guards(int repeats) {
  constexpr std::size_t sizes[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10}, whole = 4 << 20;
  constexpr std::size_t segment_bytes = 16 << 20, at = 1 << 20;
  // As parc_alloc's: the guarded part is one of three mappings.
  PARC_TRY(segment, shm::Segment::create(segment_bytes));
  guarded = segment.data() + at;
  std::fill_n(segment.data(), segment_bytes, std::byte{1});
  std::vector<Row> rows;
  for (const std::size_t bytes : sizes) {
    Row row{size_text(bytes), "protect and unprotect", "us", "its transfer at 1 Gbit/s",
            bytes >= (64 << 10) ? "<= 0.01" : ""};
    for (int repeat = 0; repeat < repeats; ++repeat) {
      PARC_TRY(us, time_of(2000, [&] {
                 return mprotect(guarded, bytes, PROT_NONE) == 0 &&
                        mprotect(guarded, bytes, PROT_READ | PROT_WRITE) == 0;
               }));
      row.add(us, transfer_us(bytes));
    }
    rows.push_back(row);
  }
  Row row{size_text(whole), "guard, a fault and opening", "us", "its transfer at 1 Gbit/s", "<= 0.01"};
  const Handler handler;
  guarded_bytes = whole;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    PARC_TRY(us, time_of(200, [&] {
               if (mprotect(guarded, whole, PROT_NONE) != 0) return false;
               *static_cast<volatile std::byte*>(guarded) = std::byte{2};
               return true;
             }));
    row.add(us, transfer_us(whole));
  }
  rows.push_back(row);
  return rows;
}

} // namespace parc::bench
