// SPDX-License-Identifier: BSD-3-Clause
#include "shm/guarded_pages.hpp"

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace parc::shm {

BOOST_AUTO_TEST_SUITE(guarded_pages)

namespace {

constexpr std::size_t bytes = 64 << 10;

// How a child ends that does this: 0, or the signal that killed it.
template <class Does> int end_of(const Does& does) {
  const pid_t child = fork();
  if (child == 0) {
    does();
    _exit(0);
  }
  int how = 0;
  waitpid(child, &how, 0);
  return WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_touch_opens_what_is_closed) {
  auto made = GuardedPages::make(bytes);
  BOOST_TEST_REQUIRE(made.has_value());
  auto& pages = made.value();
  pages.touch(); // open from the beginning
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(pages.close());
    pages.touch();
    BOOST_TEST(pages.close());
    BOOST_TEST(pages.time_fault().count() > 0);
  }
  BOOST_TEST(pages.close());
  BOOST_TEST(pages.open());
  pages.touch();
}

BOOST_AUTO_TEST_CASE(the_handler_goes_with_the_pages) {
  struct sigaction before {};
  sigaction(SIGSEGV, nullptr, &before);
  for (int i = 0; i < 2; ++i) {
    const auto pages = GuardedPages::make(bytes);
    BOOST_TEST_REQUIRE(pages.has_value());
    struct sigaction within {};
    sigaction(SIGSEGV, nullptr, &within);
    BOOST_TEST((within.sa_sigaction != before.sa_sigaction));
  }
  struct sigaction after {};
  sigaction(SIGSEGV, nullptr, &after);
  BOOST_TEST((after.sa_sigaction == before.sa_sigaction));
}

// A handler that opened, or ignored, any address would let the child go on or run for ever.
BOOST_AUTO_TEST_CASE(a_fault_elsewhere_ends_the_program) {
  const auto pages = GuardedPages::make(bytes);
  BOOST_TEST_REQUIRE(pages.has_value());
  void* const closed = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  BOOST_TEST_REQUIRE(closed != MAP_FAILED);
  BOOST_TEST(end_of([closed] { *static_cast<volatile char*>(closed) = 1; }) == SIGSEGV);
  munmap(closed, bytes);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::shm
