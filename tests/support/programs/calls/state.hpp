// SPDX-License-Identifier: BSD-3-Clause
// What one thread of early_calls has: its regions, its random numbers, its digest, and the files that its
// calls go through. Nothing of it is another thread's, though regions of two may lie on one page.
#pragma once

#include "tests/support/programs/calls/region.hpp"

#include <cerrno>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <sys/socket.h>

namespace calls {

struct State {
  parc_context* parc;
  Random random;
  int self_tag;         // of messages to oneself
  unsigned early_flags; // PARC_EARLY where waits may be released at once
  bool threads;         // there are others
  std::deque<Region> regions{};
  std::vector<Range> last{}; // that messages have come into, or left from, and nobody need have touched since
  Digest digest{};
  int pipe[2]{}, second_pipe[2]{}, sockets[2]{};
  int file = -1;
  std::FILE* stream = nullptr; // of another file: what it has in its buffer would be old
  unsigned char* scratch = nullptr;

  State(parc_context* of, std::uint64_t seed, int tag, unsigned flags, bool with_threads)
      : parc(of), random(seed), self_tag(tag), early_flags(flags), threads(with_threads) {
    if (::pipe(pipe) != 0 || ::pipe(second_pipe) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0 ||
        (stream = std::tmpfile()) == nullptr || (file = memfd_create("early_calls", MFD_CLOEXEC)) < 0)
      wrong("no pipes, sockets or files");
    scratch = map(Region::most);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void add_region(Kind kind, void* block, std::size_t size, int of_file = -1) {
    if (block == nullptr) wrong("no memory");
    Region& made = regions.emplace_back(Region{kind, block, size, random.below(page), of_file});
    made.place();
    made.shadow = map(Region::most);
    made.fill(static_cast<unsigned char>(random.below(256)));
  }

  // What a call gave: the same at every level.
  long result(long value) {
    digest.add(static_cast<std::uint64_t>(value));
    if (value < 0) digest.add(static_cast<std::uint64_t>(errno));
    return value;
  }
  // Where it can only have succeeded.
  void whole(long value, std::size_t bytes) {
    const int error = errno;
    if (value != static_cast<long>(bytes))
      wrong("%ld and not %zu: %s", value, bytes, value < 0 ? std::strerror(error) : "short");
    digest.add(bytes);
  }

  void check(const Range& range, const char* where = "looked at") {
    compare(range, range.memory(), where);
    digest.add(range.memory(), range.bytes);
  }
  void check_copy(const Range& range, const unsigned char* copy, const char* where) {
    compare(range, copy, where);
    digest.add(copy, range.bytes);
  }
  // Into the scratch, and compared.
  void read_back(const Range& range, int from, const char* where) {
    for (std::size_t got = 0; got < range.bytes;) {
      const ssize_t more = read(from, scratch + got, range.bytes - got);
      if (more <= 0) wrong("%s: cannot be read back: %s", where, std::strerror(errno));
      got += static_cast<std::size_t>(more);
    }
    check_copy(range, scratch, where);
  }
  void check_all() {
    for (Region& each : regions) check({&each, 0, each.size}, "all of it");
  }

  // A new content for a range, in the scratch and in the shadow.
  void draw_bytes(const Range& range) {
    rank::fill(scratch, range.bytes, random.below(UINT64_MAX));
    std::memcpy(range.expected(), scratch, range.bytes);
  }

  Range place_for(std::size_t bytes, const Region* but = nullptr) {
    for (;;) {
      Region& region = regions[random.below(regions.size())];
      if (region.size >= bytes && &region != but)
        return {&region, random.below(region.size - bytes + 1), bytes};
    }
  }

  // Buffers in it may not be there any more.
  void changed(const Region& region) {
    std::erase_if(last,
                  [&](const Range& each) { return each.region == &region && each.end() > region.size; });
  }

  // Of a buffer: a part, all, across an edge, or what lies close beside it. Or anything.
  Range target() {
    const std::uint64_t where = random.below(100);
    if (last.empty() || where < 10) return place_for(random.between(1, 60'000));
    const Range buffer = last[random.below(last.size())];
    if (where < 35) return buffer;
    if (where < 70) return buffer.part(random);
    const std::size_t edge = random.chance(50) ? buffer.at : buffer.end();
    const std::size_t before = std::min(edge, random.below(6000)),
                      behind = std::min(buffer.region->size - edge, random.below(6000));
    if (where < 85 && before + behind > 0) return {buffer.region, edge - before, before + behind};
    if (edge == buffer.at && before > 0) return {buffer.region, edge - before, before};
    if (edge != buffer.at && behind > 0) return {buffer.region, edge, behind};
    return buffer;
  }

  static constexpr std::size_t most_last = 6;
  void note(const Range& range) {
    last.push_back(range);
    if (last.size() > most_last) last.erase(last.begin());
  }
};

struct Call {
  const char* name;
  unsigned weight;
  void (*make)(State&, Range);
};

} // namespace calls
