// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/unexpected.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <random>
#include <vector>

BOOST_AUTO_TEST_SUITE(unexpected)

using namespace parc::protocol;

namespace {

struct Stored;
struct Source {
  hook::List<Stored, hook::Queue> stored;
};
struct Stored : Unexpected<Source> {
  std::size_t number = 0;
};
struct Read : Wanted<Source> {};

// Messages of a few sources, beside the same in a plain list.
struct Fixture {
  std::vector<Source> sources = std::vector<Source>(3);
  UnexpectedMessages<Stored> messages;
  std::vector<std::unique_ptr<Stored>> all; // by number; none: taken
  std::mt19937 random{7};

  void add(std::uint64_t tag, std::size_t source, Space space = Space::programs) {
    Stored& made = *all.emplace_back(std::make_unique<Stored>());
    made.pair = &sources[source];
    made.space = space;
    made.tag = tag;
    made.number = all.size() - 1;
    messages.add(made, made.pair->stored);
  }
  Stored* find(const Read& read) {
    return messages.find(read, read.pair != nullptr ? &read.pair->stored : nullptr);
  }
  Stored* find_plainly(const Read& read) {
    const auto found = std::ranges::find_if(all, [&](const auto& each) {
      return each != nullptr && read.fits(each->pair, each->space, each->tag);
    });
    return found == all.end() ? nullptr : found->get();
  }
};

} // namespace

// Whatever is asked for, in whatever order, among few and many, it is the oldest that fits.
BOOST_FIXTURE_TEST_CASE(the_oldest_that_fits_is_found, Fixture) {
  const std::uint64_t masks[] = {0, 0, 0, 0xff, ~std::uint64_t{0}, 0x1, 0xff00, 0xf0};
  std::size_t found = 0, vain = 0;
  for (int step = 0; step < 6000; ++step) {
    const std::size_t times = random() % 200 == 0 ? 400 : 1;
    for (std::size_t i = 0; i < times; ++i)
      add(random() % 600, random() % sources.size(), random() % 8 == 0 ? Space::untagged : Space::programs);
    for (int i = 0; i < 3; ++i) {
      Read read;
      read.pair = random() % 3 == 0 ? nullptr : &sources[random() % sources.size()];
      read.space = random() % 8 == 0 ? Space::untagged : Space::programs;
      read.ignore = masks[random() % std::size(masks)];
      read.tag = random() % 600;
      Stored* const right = find_plainly(read);
      BOOST_REQUIRE(find(read) == right);
      (right != nullptr ? found : vain) += 1;
      if (right == nullptr || random() % 4 == 0) continue;
      right->take_out();
      if (random() % 2 == 0)
        all[right->number].reset(); // or it stays somewhere else
      else
        right->pair = nullptr, right->space = Space::kernels;
    }
    if (step % 2000 == 1999) all.clear();
  }
  BOOST_TEST(found > 1000u);
  BOOST_TEST(vain > 1000u);
  BOOST_TEST(messages.empty());
}

// Twice as many take about twice as long, not four times: counted by what is compared.
BOOST_FIXTURE_TEST_CASE(the_newest_first_costs_no_search, Fixture) {
  struct Counting : Wanted<Source> {
    mutable std::size_t compared = 0;
    bool fits(const Source* of, Space in, std::uint64_t bits) const {
      ++compared;
      return Wanted<Source>::fits(of, in, bits);
    }
  };
  constexpr std::size_t count = 20'000;
  for (std::size_t i = 0; i < count; ++i) add(i, i % sources.size());
  std::size_t compared = 0;
  for (std::size_t i = count; i-- != 0;) {
    Counting read;
    read.pair = i % 2 == 0 ? &sources[i % sources.size()] : nullptr;
    read.tag = i;
    Stored* const message = messages.find(read, read.pair != nullptr ? &read.pair->stored : nullptr);
    BOOST_REQUIRE((message != nullptr && message->tag == i));
    message->take_out();
    compared += read.compared;
  }
  BOOST_TEST(compared < count * 40);
}

BOOST_AUTO_TEST_SUITE_END()
