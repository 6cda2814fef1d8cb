// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/mappings.hpp"

#include "shm/segment.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <sys/mman.h>

namespace parc::client {

BOOST_AUTO_TEST_SUITE(mappings)

namespace {

int in_data = 1;
const int constant = 1;

std::uintptr_t address_of(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

} // namespace

BOOST_AUTO_TEST_CASE(the_query_and_the_text_agree) {
  Mappings maps;
  int on_the_stack = 0;
  void* const heap = std::malloc(1000);
  auto segment = shm::Segment::create(3 * 4096);
  BOOST_REQUIRE(segment);
  BOOST_REQUIRE(mprotect(segment.value().data() + 4096, 4096, PROT_READ) == 0);
  for (const void* memory : {static_cast<const void*>(&in_data), static_cast<const void*>(&constant),
                             static_cast<const void*>(&on_the_stack), static_cast<const void*>(heap),
                             static_cast<const void*>(segment.value().data()),
                             static_cast<const void*>(segment.value().data() + 5000),
                             reinterpret_cast<const void*>(&std::malloc)}) {
    const auto asked = maps.find(address_of(memory)), read = maps.find_in_text(address_of(memory));
    BOOST_REQUIRE((asked && read));
    BOOST_TEST((asked->begin <= address_of(memory) && address_of(memory) < asked->end));
    BOOST_TEST((asked->begin == read->begin && asked->end == read->end && asked->offset == read->offset &&
                asked->inode == read->inode && asked->device == read->device && asked->read == read->read &&
                asked->write == read->write && asked->execute == read->execute &&
                asked->shared == read->shared && asked->heap == read->heap && asked->stack == read->stack));
  }
  const auto middle = maps.find(address_of(segment.value().data() + 5000));
  BOOST_TEST((middle->shared && middle->read && !middle->write && middle->offset == 4096u));
  BOOST_TEST(middle->inode == static_cast<std::uint64_t>(segment.value().id()));
  std::free(heap);
}

BOOST_AUTO_TEST_CASE(nothing_is_mapped_at_zero) {
  Mappings maps;
  BOOST_TEST(!maps.find(0));
  BOOST_TEST(!maps.find_in_text(0));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace parc::client
