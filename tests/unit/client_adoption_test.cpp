// SPDX-License-Identifier: BSD-3-Clause
// Adopted memory and the table of segments, which adoption shares with parc_alloc: it takes what is left, and
// gives way.
#include "client/early/adoption.hpp"
#include "fake_program.hpp"

#include <boost/test/unit_test.hpp>
#include <malloc.h>
#include <sys/mman.h>

// A sanitizer's malloc is not glibc's: its memory is bounced.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

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

char* chunk() {
  return static_cast<char*>(std::malloc(mib));
}

alignas(page) char areas[3 * most][4 * page];

} // namespace

BOOST_AUTO_TEST_SUITE(client_adoption)

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
