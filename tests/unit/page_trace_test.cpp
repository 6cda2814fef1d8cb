// SPDX-License-Identifier: BSD-3-Clause
// First touches of pages, in an address space of small pages that they never touch.
#include "client/early/page_trace.hpp"

#include "system/environment.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fcntl.h>
#include <random>
#include <set>
#include <unistd.h>

namespace parc::client {
namespace {

BOOST_AUTO_TEST_SUITE(page_trace)

constexpr std::uintptr_t page = 16, base = 1024;

Guard read_of(parc_op id, std::initializer_list<Pages> places) {
  Guard guard{};
  guard.id = id;
  for (const Pages& place : places) {
    guard.piece[guard.pieces++] = {reinterpret_cast<void*>(place.begin), place.end - place.begin};
    guard.length += place.end - place.begin;
  }
  return guard;
}

// With what it says, and the pages that the program could not touch.
struct Traced {
  int ends[2];
  const std::string host = "here";
  std::optional<Trace> trace;
  std::optional<PageTrace> pages;
  std::uint64_t time = 0;

  explicit Traced(bool of_pages = true) {
    if (of_pages)
      setenv(env_trace_pages, "yes", 1);
    else
      unsetenv(env_trace_pages);
    BOOST_REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    trace.emplace(Fd(ends[1]), host);
    pages.emplace(*trace, trace->of_pages(), page);
    unsetenv(env_trace_pages);
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;
  ~Traced() { close(ends[0]); }

  bool touch(std::uintptr_t address, std::uint64_t after = 10) {
    time += after;
    const PageTrace::Touch touch{address, time, time + 1, 7};
    time += 1;
    return pages->touch(touch, [](const Adopted&, const Pages&) {});
  }
  std::set<std::uintptr_t> closed(const Pages& of) const {
    std::set<std::uintptr_t> all;
    std::uintptr_t at = of.begin;
    (void)pages->each_stretch(of, [&](const Pages& stretch, bool is_closed) {
      BOOST_TEST((stretch.begin == at && !stretch.empty()));
      at = stretch.end;
      for (std::uintptr_t each = stretch.begin; is_closed && each < stretch.end; each += page)
        all.insert(each);
      return true;
    });
    BOOST_TEST(at == of.end);
    return all;
  }
  std::vector<trace::Record> said() {
    trace->flush();
    std::vector<trace::Record> touches;
    for (trace::Record record; read(ends[0], &record, sizeof record) == sizeof record;)
      if (record.kind == trace::Kind::touches) touches.push_back(record);
    return touches;
  }
};

constexpr auto nothing = [](const Adopted&, const Pages&) {};

BOOST_AUTO_TEST_CASE(whole_pages_are_closed_and_no_others) {
  Traced traced;
  BOOST_TEST(traced.pages->add(read_of(1, {{base + 1, base + 4 * page + 3}})));
  BOOST_TEST((traced.closed({base, base + 6 * page}) ==
              std::set<std::uintptr_t>{base + page, base + 2 * page, base + 3 * page}));
  BOOST_TEST(!traced.pages->add(read_of(2, {{base + 5 * page + 1, base + 6 * page + 8}})));
  BOOST_TEST(!traced.touch(base));
  BOOST_TEST(!traced.touch(base + 4 * page));
  BOOST_TEST(traced.touch(base + 2 * page));
  BOOST_TEST(!traced.touch(base + 2 * page));
  BOOST_TEST(
      (traced.closed({base, base + 6 * page}) == std::set<std::uintptr_t>{base + page, base + 3 * page}));
}

BOOST_AUTO_TEST_CASE(touches_in_a_row_are_one_record) {
  Traced traced;
  BOOST_TEST(traced.pages->add(read_of(5, {{base + 4, base + 12 * page}})));
  for (const std::uintptr_t at : {1, 2, 3, 8, 7, 6}) BOOST_TEST(traced.touch(base + at * page));
  traced.pages->open({0, UINTPTR_MAX}, nothing);
  BOOST_TEST(traced.pages->empty());
  const auto said = traced.said();
  BOOST_REQUIRE(said.size() == 2u);
  BOOST_TEST((said[0].id == 5 && said[0].bytes == page - 4 && said[0].first == 3 * page - 4));
  BOOST_TEST((said[0].context == 3 && said[0].begin == 10 && said[0].end == 33 && said[0].released == 3));
  BOOST_TEST((said[0].site == 7 && said[0].address == base + page));
  BOOST_TEST((said[1].id == 5 && said[1].bytes == 8 * page - 4 && said[1].first == 6 * page - 4));
  BOOST_TEST(said[1].context == 3);
}

// Its buffer was used again: that is known of it, too.
BOOST_AUTO_TEST_CASE(what_nobody_touches_is_told_of) {
  Traced traced;
  BOOST_TEST(traced.pages->add(read_of(5, {{base, base + 4 * page}})));
  BOOST_TEST(traced.pages->add(read_of(6, {{base + 8 * page, base + 12 * page}})));
  BOOST_TEST(traced.pages->add(read_of(7, {{base + 16 * page, base + 20 * page}})));
  BOOST_TEST(traced.touch(base + 9 * page));
  traced.pages->open({base + 17 * page, base + 18 * page}, nothing); // for a reason that says nothing
  traced.pages->overwrite({0, UINTPTR_MAX}, nothing);
  const auto said = traced.said();
  BOOST_REQUIRE(said.size() == 2u);
  BOOST_TEST((said[0].id == 5 && said[0].context == 0));
  BOOST_TEST((said[1].id == 6 && said[1].context == 1));
}

BOOST_AUTO_TEST_CASE(a_pause_ends_a_row) {
  Traced traced;
  BOOST_TEST(traced.pages->add(read_of(5, {{base, base + 12 * page}})));
  for (std::uintptr_t at = 0; at < 12; ++at)
    BOOST_TEST(traced.touch(base + at * page, at == 6 ? 1'000'000 : 10));
  BOOST_TEST(traced.pages->empty());
  const auto said = traced.said();
  BOOST_REQUIRE(said.size() == 2u);
  BOOST_TEST((said[0].context == 6 && said[1].context == 6));
}

BOOST_AUTO_TEST_CASE(a_call_uses_what_it_is_given) {
  Traced traced;
  BOOST_TEST(traced.pages->add(read_of(5, {{base, base + 8 * page}})));
  std::vector<Pages> opened;
  traced.pages->use({base + 2 * page, base + 4 * page}, 9,
                    [&](const Adopted&, const Pages& pages) { opened.push_back(pages); });
  BOOST_REQUIRE(opened.size() == 1u);
  BOOST_TEST((opened[0].begin == base + 2 * page && opened[0].end == base + 4 * page));
  traced.pages->open({0, UINTPTR_MAX}, nothing);
  const auto said = traced.said();
  BOOST_REQUIRE(said.size() == 1u);
  BOOST_TEST((said[0].context == 2 && said[0].bytes == 2 * page && said[0].site == 9));
}

BOOST_AUTO_TEST_CASE(pieces_and_transfers_are_told_apart) {
  Traced traced;
  BOOST_TEST(traced.pages->add(read_of(5, {{base + 8 * page, base + 10 * page}, {base, base + 2 * page}})));
  BOOST_TEST(traced.pages->add(read_of(6, {{base + 2 * page, base + 4 * page}})));
  for (const std::uintptr_t at : {1, 2, 9}) BOOST_TEST(traced.touch(base + at * page));
  traced.pages->open({0, UINTPTR_MAX}, nothing);
  auto said = traced.said();
  std::ranges::sort(said, {}, &trace::Record::begin);
  BOOST_REQUIRE(said.size() == 3u);
  BOOST_TEST((said[0].id == 5 && said[0].bytes == 3 * page));
  BOOST_TEST((said[1].id == 6 && said[1].bytes == 0));
  BOOST_TEST((said[2].id == 5 && said[2].bytes == page));
}

BOOST_AUTO_TEST_CASE(what_no_message_has_filled_stays_open) {
  Traced traced;
  Guard read = read_of(5, {{base, base + 2 * page}, {base + 4 * page, base + 9 * page}});
  read.length = 4 * page + 3;
  BOOST_TEST(traced.pages->add(read));
  BOOST_TEST((traced.closed({base, base + 9 * page}) ==
              std::set<std::uintptr_t>{base, base + page, base + 4 * page, base + 5 * page}));
}

BOOST_AUTO_TEST_CASE(without_pages_nothing_is_closed) {
  Traced traced(false);
  BOOST_TEST(!traced.pages->on());
  BOOST_TEST(traced.pages->empty());
}

// A buffer that is touched here and there leaves more stretches than there is room for: then a stretch opens.
BOOST_AUTO_TEST_CASE(what_has_no_room_is_opened) {
  const auto seed = std::random_device()();
  BOOST_TEST_INFO("seed " << seed);
  std::mt19937_64 random(seed);
  Traced traced;
  constexpr std::uintptr_t pages = 40'000;
  const Pages all{base, base + pages * page};
  BOOST_TEST(traced.pages->add(read_of(5, {all})));
  std::set<std::uintptr_t> closed = traced.closed(all);
  for (int i = 0; i < 30'000; ++i) {
    const std::uintptr_t at = base + random() % pages * page;
    const bool was = traced.touch(at);
    if (was != closed.contains(at)) BOOST_REQUIRE(closed.contains(at)); // what is open is never closed again
    if (i % 64 == 0) (void)traced.said();
    closed.erase(at);
  }
  const auto left = traced.closed(all);
  for (const std::uintptr_t each : left) BOOST_TEST_REQUIRE(closed.contains(each));
  traced.pages->open({0, UINTPTR_MAX}, nothing);
  BOOST_TEST((traced.pages->empty() && traced.closed(all).empty()));
}

BOOST_AUTO_TEST_CASE(there_are_only_so_many_transfers) {
  Traced traced;
  std::uintptr_t at = base;
  parc_op id = 1;
  while (traced.pages->add(read_of(id, {{at, at + page}}))) {
    at += page;
    BOOST_TEST_REQUIRE(++id < 100'000);
  }
  BOOST_TEST(id > 100);
  BOOST_TEST(traced.touch(base));
  BOOST_TEST(traced.pages->add(read_of(id, {{at, at + page}})));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::client
