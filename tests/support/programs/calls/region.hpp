// SPDX-License-Identifier: BSD-3-Clause
// The memory that early_calls plays with, and what it must hold: every region has a shadow beside it, which
// no message ever comes into. Whatever a step does to a region it does to the shadow by plain stores, and
// what anybody sees of the region must be the shadow's bytes. Regions begin in the middle of a page, always
// the same far from its beginning, so that the pages which a range covers do not depend on where malloc put
// it.
#pragma once

#include "tests/support/programs/rank.hpp"
#include "tests/support/programs/stress/plan.hpp"

#include <cinttypes>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace calls {

using stress::Random;

inline constexpr std::size_t page = 4096;
inline constexpr std::size_t chunk_threshold = 128 << 10; // from which on malloc maps: said to it

enum class Kind : std::uint8_t { arena, bss, data, stack, heap, chunk, anonymous, file };
inline constexpr const char* kind_names[] = {"arena", "bss",   "data",      "stack",
                                             "heap",  "chunk", "anonymous", "file"};

// Where a thread is, for whoever finds something wrong.
struct Here {
  std::uint64_t seed = 0, step = 0;
  int thread = 0;
  const char* call = "none";
};
inline thread_local Here here;

// Without exit handlers: other threads are in calls.
[[noreturn, gnu::format(printf, 1, 2)]] inline void wrong(const char* format, ...) {
  char text[300];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  std::fprintf(stderr, "rank %d: seed %" PRIu64 ", thread %d, step %" PRIu64 ", %s: %s\n", rank::number,
               here.seed, here.thread, here.step, here.call, text);
  _exit(rank::status_wrong);
}

// Of all that was seen. Async-signal-safe.
class Digest {
public:
  void add(std::uint64_t value) {
    value_ = (value_ ^ value) * 0x9e3779b97f4a7c15;
    value_ ^= value_ >> 29;
  }
  void add(const unsigned char* memory, std::size_t bytes) {
    for (; bytes >= sizeof(std::uint64_t); memory += sizeof(std::uint64_t), bytes -= sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, memory, sizeof word);
      add(word);
    }
    for (; bytes > 0; ++memory, --bytes) add(*memory);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

private:
  std::uint64_t value_ = 1;
};

inline unsigned char* map(std::size_t bytes) {
  void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) wrong("no memory");
  return static_cast<unsigned char*>(made);
}

struct Region {
  static constexpr std::size_t most = 6 << 20; // bytes

  Kind kind;
  void* block; // what was asked for: the region and two pages, for its alignment
  std::size_t size, skew;
  int file = -1;
  unsigned char* base = nullptr;
  unsigned char* shadow = nullptr;
  bool locked = false; // some of its pages may be

  [[nodiscard]] std::size_t span() const { return size + 2 * page; }
  [[nodiscard]] bool from_malloc() const { return kind == Kind::heap || kind == Kind::chunk; }
  [[nodiscard]] bool shared() const { return kind == Kind::arena || kind == Kind::file; }
  [[nodiscard]] bool can_be_replaced() const { return kind != Kind::arena && kind != Kind::stack; }
  // Made zero by being discarded. (A page of the executable's file would come back from there.)
  [[nodiscard]] bool can_be_discarded() const { return kind != Kind::data; }

  void place() {
    const auto begin = (reinterpret_cast<std::uintptr_t>(block) + page - 1) & ~(page - 1);
    base = reinterpret_cast<unsigned char*>(begin + skew);
  }
  void fill(unsigned char value, std::size_t from = 0) {
    std::memset(base + from, value, size - from);
    std::memset(shadow + from, value, size - from);
  }
};

struct Range {
  Region* region;
  std::size_t at, bytes;

  [[nodiscard]] unsigned char* memory() const { return region->base + at; }
  [[nodiscard]] unsigned char* expected() const { return region->shadow + at; }
  [[nodiscard]] std::size_t end() const { return at + bytes; }
  [[nodiscard]] bool meets(const Range& other) const {
    return region == other.region && at < other.end() && other.at < end();
  }
  [[nodiscard]] Range no_more_than(std::size_t most) const { return {region, at, std::min(bytes, most)}; }
  [[nodiscard]] Range part(Random& random) const {
    const std::size_t from = random.below(bytes);
    return {region, at + from, random.between(1, bytes - from)};
  }
  // Its whole pages; perhaps none.
  [[nodiscard]] Range pages() const {
    const std::size_t low = (region->skew + at + page - 1) / page * page - region->skew;
    const std::size_t high = (region->skew + end()) / page * page;
    if (high < low + region->skew + page) return {region, at, 0};
    return {region, low, high - region->skew - low};
  }
  void become(unsigned char value) const { std::memset(expected(), value, bytes); }
};

// What was seen of a range, there or in a copy.
inline void compare(const Range& range, const unsigned char* seen, const char* where) {
  if (std::memcmp(seen, range.expected(), range.bytes) == 0) return;
  for (std::size_t i = 0; i < range.bytes; ++i)
    if (seen[i] != range.expected()[i])
      wrong("%s: byte %zu of [%zu, %zu) of %s is %02x and should be %02x", where, i, range.at, range.end(),
            kind_names[static_cast<int>(range.region->kind)], static_cast<unsigned>(seen[i]),
            static_cast<unsigned>(range.expected()[i]));
  wrong("%s: wrong bytes in [%zu, %zu) of %s, and right when looked at again", where, range.at, range.end(),
        kind_names[static_cast<int>(range.region->kind)]);
}

} // namespace calls
