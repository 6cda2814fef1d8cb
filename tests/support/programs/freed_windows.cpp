// SPDX-License-Identifier: BSD-3-Clause
// Two ranks. Rank 0 exposes memory of every kind and takes it away while it is exposed, all of it or a part,
// or closes it: rank 1 hears that there is no such place, and rank 0 goes on.
#include "tests/support/programs/rank.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::uint64_t window = 7;
constexpr std::size_t bytes = 1 << 20, half = bytes / 2;
constexpr int tag = 1;
parc_context* parc = nullptr;

// What of the window may be reached.
enum class Part { all, first_half, readable, none, unknown };

using Taken = std::function<void(void*)>;
struct Kind {
  const char* name;
  Part left;
  std::function<void*()> make;
  Taken take;
};

void* map() {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  rank::expect(memory != MAP_FAILED, "mmap: %s", std::strerror(errno));
  return memory;
}

int file = -1;
void* map_file() {
  file = memfd_create("window", 0);
  rank::expect(file >= 0 && ftruncate(file, bytes) == 0, "memfd_create: %s", std::strerror(errno));
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  rank::expect(memory != MAP_FAILED, "mmap: %s", std::strerror(errno));
  return memory;
}

void protect(void* memory, int protection) {
  rank::expect(mprotect(memory, bytes, protection) == 0, "mprotect: %s", std::strerror(errno));
}

const Kind kinds[] = {
    {"unmapped", Part::none, map, [](void* memory) { munmap(memory, bytes); }},
    {"half unmapped", Part::first_half, map,
     [](void* memory) { munmap(static_cast<char*>(memory) + half, half); }},
    {"closed", Part::none, map, [](void* memory) { protect(memory, PROT_NONE); }},
    {"only readable", Part::readable, map, [](void* memory) { protect(memory, PROT_READ); }},
    {"cut off", Part::none, map_file,
     [](void*) { rank::expect(ftruncate(file, 0) == 0 && close(file) == 0, "ftruncate"); }},
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // whose malloc keeps it
    {"freed", Part::none, [] { return std::malloc(bytes); }, [](void* memory) { std::free(memory); }},
#endif
    {"parc_free", Part::unknown, [] { return parc_alloc(parc, bytes); },
     [](void* memory) { parc_free(parc, memory); }},
};

void tell() {
  rank::expect_code(parc_write(parc, 1 - rank::number, tag, nullptr, 0), PARC_OK, "parc_write");
}
void hear() {
  rank::expect_code(parc_read(parc, 1 - rank::number, tag, nullptr, 0, nullptr), PARC_OK, "parc_read");
}

void expect_place(const Kind& kind, int code, bool there, const std::string& what) {
  if (kind.left == Part::unknown && code == PARC_OK) return;
  if (there && kind.left != Part::unknown) return rank::expect_code(code, PARC_OK, what.c_str());
  rank::expect(code == PARC_EPLACE, "%s, %s: %d", kind.name, what.c_str(), code);
  const std::string detail = parc_error_detail(), place = " of window 7 of peer 0";
  rank::expect(detail.find(place) != std::string::npos, "%s: no place is named", what.c_str());
}

void use(const Kind& kind, std::size_t offset, std::size_t length, bool readable, bool writable) {
  const parc_place at{0, window, offset};
  std::vector<unsigned char> buffer(length);
  const std::string where = std::to_string(length) + " bytes at " + std::to_string(offset);
  expect_place(kind, parc_get(parc, &at, buffer.data(), length), readable, "getting " + where);
  const parc_op put = parc_initput(parc, &at, buffer.data(), length, PARC_SYNCHRONOUS);
  expect_place(kind, put < 0 ? static_cast<int>(put) : parc_wait(parc, put, nullptr), writable,
               "putting " + where);
  int code = parc_put(parc, &at, buffer.data(), length); // its wait may return before it is known
  if (code == PARC_OK) code = parc_quiet(parc);
  expect_place(kind, code, writable, "putting, and being quiet about, " + where);
  for (const std::size_t width : {4, 8}) {
    std::uint64_t before = 0;
    const parc_op add = parc_initatomic(parc, &at, PARC_ADD, width, 1, 0, &before, 0);
    expect_place(kind, add < 0 ? static_cast<int>(add) : parc_wait(parc, add, nullptr), writable,
                 "adding at " + std::to_string(offset));
  }
}

void use_all(const Kind& kind, Part part) {
  const bool any = part != Part::none, writable = any && part != Part::readable;
  for (const std::size_t length : {std::size_t{8}, std::size_t{30'000}}) {
    use(kind, 0, length, any, writable);
    use(kind, half, length, any && part != Part::first_half, writable && part != Part::first_half);
  }
}

} // namespace

int main() {
  parc = rank::open();
  for (const Kind& kind : kinds) {
    if (rank::number == 0) {
      void* const memory = kind.make();
      rank::expect_code(parc_expose(parc, window, memory, bytes, PARC_MAY_GET | PARC_MAY_PUT), PARC_OK,
                        "parc_expose");
      tell(), hear();
      kind.take(memory);
      tell(), hear();
      const int code = parc_unexpose(parc, window);
      rank::expect(code == PARC_OK || (kind.left == Part::unknown && code == PARC_EINVAL),
                   "%s: parc_unexpose gave %d", kind.name, code);
      tell();
    } else {
      hear();
      use_all(kind, Part::all);
      tell(), hear();
      use_all(kind, kind.left);
      tell(), hear();
    }
  }
  rank::expect_code(parc_close(parc), PARC_OK, "parc_close");
}
