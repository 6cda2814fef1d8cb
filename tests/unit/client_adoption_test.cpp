// SPDX-License-Identifier: BSD-3-Clause
// Adopted memory and the table of segments, which adoption shares with parc_alloc: it takes what is left, and
// gives way.
#include "client/early/adoption.hpp"
#include "client/early/hooks.hpp"
#include "client/early/mappings.hpp"
#include "fake_program.hpp"

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <vector>

// A sanitizer's malloc is not glibc's: its memory is bounced.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

int strange_detaches = 0;

} // namespace

// Libraries stand before it that look in /proc/self/maps what begins there, and Open MPI's never ends where
// nothing does.
extern "C" int shmdt(const void* address) noexcept {
  static auto* const real = reinterpret_cast<int (*)(const void*)>(dlsym(RTLD_NEXT, "shmdt"));
  parc::client::Mappings mappings;
  const auto there = mappings.find(reinterpret_cast<std::uintptr_t>(address));
  if (!there || there->begin != reinterpret_cast<std::uintptr_t>(address)) ++strange_detaches;
  return real(address);
}

BOOST_AUTO_TEST_SUITE(client_adoption)

using namespace parc::test;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20, page = 4096;
constexpr std::size_t most = parc::client::Adopted::most;

struct Releasing : FakeProgram {
  Releasing() {
    mallopt(M_MMAP_THRESHOLD, 128 << 10);                // chunks of their own
    parc::client::Adoption::alone = [] { return true; }; // but for the kernel, which frees nothing here
    BOOST_REQUIRE(parc_set_release(p, PARC_RELEASE_FULL) == PARC_OK);
  }
  void pass(char* into, std::size_t bytes, int tag = 0) {
    const std::string text = pattern(bytes, static_cast<unsigned>(tag) + 1);
    kernel.send({.source = 0, .tag = tag, .bytes = text});
    BOOST_TEST(parc_read(p, 0, tag, into, bytes, nullptr) == PARC_OK);
    BOOST_TEST((std::string(into, bytes) == text));
  }
};

// Mapped by malloc: what earlier tests have left free in its heap it would give out before.
char* chunk() {
  std::vector<void*> of_heap;
  for (;;) {
    const std::size_t mapped = mallinfo2().hblks;
    void* const memory = std::malloc(mib);
    if (mallinfo2().hblks != mapped) {
      for (void* const each : of_heap) std::free(each);
      return static_cast<char*>(memory);
    }
    of_heap.push_back(memory);
  }
}

alignas(page) char areas[3 * most][4 * page];

} // namespace

BOOST_AUTO_TEST_CASE(only_the_pages_of_a_buffer_are_adopted) {
  Releasing program;
  program.pass(areas[0] + page, 2 * page - 10);
  BOOST_TEST(program.kernel.segments() == 1u);
  BOOST_TEST(program.kernel.maps() == 1u);
  program.pass(areas[0] + page + 100, page); // lies in the same
  BOOST_TEST(program.kernel.maps() == 1u);
  program.pass(areas[0], 4 * page); // what is missing around it
  BOOST_TEST(program.kernel.maps() == 3u);
}

// A halo row of a grid that is most of the memory: what lies beside it stays where it is.
BOOST_AUTO_TEST_CASE(of_a_long_chunk_a_piece_is_adopted) {
  Releasing program;
  constexpr std::size_t grid_bytes = 64 * mib;
  char* const grid = static_cast<char*>(std::malloc(grid_bytes));
  const auto adopted = [&] {
    parc::client::Mappings mappings;
    std::size_t bytes = 0;
    for (auto at = reinterpret_cast<std::uintptr_t>(grid);
         at < reinterpret_cast<std::uintptr_t>(grid) + grid_bytes;) {
      const auto mapping = mappings.find(at);
      BOOST_TEST_REQUIRE(mapping.has_value());
      if (mapping->shared) bytes += mapping->end - mapping->begin;
      at = mapping->end;
    }
    return bytes;
  };
  program.pass(grid + 32 * mib, 16 * page, 1);
  BOOST_TEST(program.kernel.maps() == 1u);
  program.pass(grid + 48 * mib, 16 * page, 2); // its front lies below what was adopted first
  BOOST_TEST(program.kernel.maps() == 2u);
  program.pass(grid, 16 * page, 3);
  BOOST_TEST(program.kernel.maps() == 4u); // the front for itself
  program.pass(grid, 32 * page, 4);        // and what is missing behind it
  BOOST_TEST(program.kernel.maps() == 5u);
  BOOST_TEST(adopted() <= 80 * page);
  char* const longer = static_cast<char*>(std::realloc(grid, 2 * grid_bytes));
  BOOST_TEST((std::string(longer + 48 * mib, 16 * page) == pattern(16 * page, 3)));
  std::memset(longer + grid_bytes, 7, grid_bytes);
  program.pass(longer + 32 * mib, 16 * page, 5);
  std::free(longer);
}

// Cut down to its first page, and grown again from that.
BOOST_AUTO_TEST_CASE(a_front_may_grow) {
  Releasing program;
  char* memory = static_cast<char*>(std::malloc(64 * mib));
  program.pass(memory, 16 * page, 1);
  memory = static_cast<char*>(std::realloc(memory, page / 2));
  memory = static_cast<char*>(std::realloc(memory, 8 * mib));
  BOOST_TEST((std::string(memory, page / 2) == pattern(16 * page, 2).substr(0, page / 2)));
  std::memset(memory + page, 5, 8 * mib - page);
  program.pass(memory, 8 * mib, 2);
  std::free(memory);
}

BOOST_AUTO_TEST_CASE(a_segment_is_detached_where_it_begins) {
  strange_detaches = 0;
  {
    Releasing program;
    char* const memory = chunk();
    errno = EINTR;
    program.pass(memory, mib / 2);
    std::free(memory);
  }
  BOOST_TEST(strange_detaches == 0);
}

// As libparc-early.so asks for.
BOOST_AUTO_TEST_CASE(what_the_program_changes_becomes_its_own_again) {
  using parc::client::PageChange;
  Releasing program;
  char* const memory = static_cast<char*>(std::malloc(64 * mib));
  char* const pages = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory) + mib) & ~(page - 1));
  const auto mapping_of = [](const char* at) {
    parc::client::Mappings mappings;
    return mappings.find(reinterpret_cast<std::uintptr_t>(at)).value();
  };
  const auto whole = mapping_of(pages);
  for (const PageChange change : {PageChange::discard, PageChange::move, PageChange::pin}) {
    program.pass(pages, 16 * page, 1);
    BOOST_TEST(mapping_of(pages).shared);
    BOOST_TEST(parc::client::before_change(pages + 4 * page, 2 * page, change));
    BOOST_TEST(!mapping_of(pages + 4 * page).shared);
    BOOST_TEST((std::string(pages, 16 * page) == pattern(16 * page, 2)));
    // One mapping, as it was before.
    BOOST_TEST((mapping_of(pages).begin == whole.begin && mapping_of(pages).end == whole.end));
  }
  program.pass(pages, 16 * page, 2);
  BOOST_TEST(!mapping_of(pages).shared); // pinned
  BOOST_TEST(parc::client::before_change(pages, 16 * page, PageChange::unpin));
  program.pass(pages, 16 * page, 3);
  BOOST_TEST(mapping_of(pages).shared);
  // What is read-only stays that, and where a message comes into it nothing is taken away from under that.
  BOOST_TEST(parc::client::before_change(pages, 16 * page, PageChange::protect));
  BOOST_TEST(mprotect(pages, 16 * page, PROT_READ) == 0);
  BOOST_TEST(parc::client::before_change(pages, 16 * page, PageChange::move));
  BOOST_TEST((!mapping_of(pages).shared && !mapping_of(pages).write));
  BOOST_TEST(mprotect(pages, 16 * page, PROT_READ | PROT_WRITE) == 0);
  const parc_op read = parc_initread(program.p, 0, 4, pages, 16 * page);
  BOOST_TEST(mapping_of(pages).shared);
  BOOST_TEST(!parc::client::before_change(pages, 16 * page, PageChange::discard));
  BOOST_TEST(mapping_of(pages).shared);
  program.kernel.send({.source = 0, .tag = 4, .bytes = pattern(16 * page, 9)});
  BOOST_TEST(parc_wait(program.p, read, nullptr) == PARC_OK);
  BOOST_TEST((std::string(pages, 16 * page) == pattern(16 * page, 9)));
  std::free(memory);
}

BOOST_AUTO_TEST_CASE(adopted_memory_that_the_kernel_still_uses_keeps_its_place) {
  Releasing program;
  for (int i = 0; i < 30; ++i) {
    char* const memory = chunk();
    BOOST_TEST(parc_initread(program.p, 0, i, memory, mib - page) > 0);
    // As a free() that does not look at the block.
    munmap(memory - 16, mib + page);
  }
  BOOST_TEST(program.kernel.maps() >= most);
  BOOST_TEST(program.kernel.maps() <= most + 5); // and the arena's, for what was bounced
}

BOOST_AUTO_TEST_CASE(memory_that_nothing_uses_is_given_back_for_the_arena) {
  Releasing program;
  char* const memory[] = {chunk(), chunk()};
  for (int i : {0, 1}) program.pass(memory[i], mib / 2, i);
  BOOST_TEST(program.kernel.segments() == 4u);
  program.kernel.set_most_segments(4);
  char* const block = program.alloc(2 * mib);
  BOOST_TEST(program.kernel.segments() == 3u); // a chunk's two went
  for (int i : {0, 1}) {
    BOOST_TEST((std::string(memory[i], mib / 2) == pattern(mib / 2, static_cast<unsigned>(i) + 1)));
    program.pass(memory[i], mib / 2, 2 + i); // adopted again, or bounced
    std::free(std::realloc(memory[i], 3 * mib));
  }
  parc_free(program.p, block);
}

BOOST_AUTO_TEST_CASE(a_buffer_that_is_read_into_is_not_given_back) {
  Releasing program;
  char* const memory = chunk();
  const parc_op read = parc_initread(program.p, 0, 7, memory, mib / 2);
  BOOST_TEST(program.kernel.segments() == 2u);
  program.kernel.set_most_segments(2);
  BOOST_TEST(parc_alloc(program.p, mib) == static_cast<void*>(nullptr));
  program.kernel.send({.source = 0, .tag = 7, .bytes = pattern(mib / 2)});
  BOOST_TEST(parc_wait(program.p, read, nullptr) == PARC_OK);
  BOOST_TEST((std::string(memory, mib / 2) == pattern(mib / 2)));
  (void)parc_initread(program.p, 0, 8, nullptr, 0); // whoever starts frees what has ended
  BOOST_TEST(parc_alloc(program.p, mib) != static_cast<void*>(nullptr));
  std::free(memory);
}

BOOST_AUTO_TEST_CASE(more_buffers_than_places) {
  Releasing program;
  for (int turn = 0; turn < 8; ++turn) // the first of them are used no more, and give way
    for (std::size_t i = turn == 0 ? 0 : most; i < 3 * most; i += 2)
      program.pass(areas[i] + 10, 3 * page, static_cast<int>(i));
  BOOST_TEST(program.kernel.segments() <= most + 1);
  for (std::size_t i = most; i < 3 * most; i += 2)
    BOOST_TEST((std::string(areas[i] + 10, 3 * page) == pattern(3 * page, static_cast<unsigned>(i) + 1)));
}

BOOST_AUTO_TEST_SUITE_END()
#endif
