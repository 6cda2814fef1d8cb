// SPDX-License-Identifier: BSD-3-Clause
// The table of guarded pages, in an address space of small pages that it never touches.
#include "client/early/guard_table.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

namespace parc::client {
namespace {

BOOST_AUTO_TEST_SUITE(guard_table)

constexpr std::uintptr_t page = 16, base = 1024, pages = 24;

Guard guard_of(parc_op id, bool writes, std::initializer_list<Pages> places) {
  Guard guard{};
  guard.id = id;
  guard.writes = writes;
  for (const Pages& place : places) {
    guard.piece[guard.pieces++] = {reinterpret_cast<void*>(place.begin), place.end - place.begin};
    guard.length += place.end - place.begin;
  }
  guard.missing = {0, guard.length};
  return guard;
}

// Pages as the system would have them.
struct Memory {
  std::array<Access, pages> access;
  unsigned refuses = 0; // one in so many runs
  std::mt19937_64* random = nullptr;
  unsigned runs = 0;

  Memory() { access.fill(Access::all); }
  auto apply() {
    return [this](const GuardTable::Run& run) {
      BOOST_REQUIRE((run.pages.begin % page == 0 && run.pages.end % page == 0 && !run.pages.empty()));
      if (refuses != 0 && (*random)() % refuses == 0) return false;
      ++runs;
      for (std::uintptr_t at = run.pages.begin; at < run.pages.end; at += page)
        access.at((at - base) / page) = run.access;
      return true;
    };
  }
  std::string text() const {
    std::string text;
    for (const Access each : access) text += "-r+"[static_cast<std::size_t>(each)];
    return text;
  }
};

// The same from the definition, byte by byte.
std::vector<std::uintptr_t> addresses_of(const Guard& guard) {
  std::vector<std::uintptr_t> addresses;
  for (std::size_t i = 0; i < guard.pieces; ++i)
    for (std::size_t k = 0; k < guard.piece[i].iov_len; ++k)
      addresses.push_back(address_of(guard.piece[i].iov_base) + k);
  return addresses;
}

bool is_in(const auto& stretches, std::uint64_t at) {
  return std::ranges::any_of(stretches,
                             [at](const Stretch& each) { return each.low <= at && at < each.high; });
}

void guard_naively(Memory& memory, const Guard& guard, const Stretch& missing) {
  if (missing.empty()) return;
  const std::vector<std::uintptr_t> addresses = addresses_of(guard);
  for (std::uint64_t at = missing.low; at < missing.high; ++at) {
    if (is_in(guard.islands, at)) continue;
    Access& access = memory.access.at((addresses[at] - base) / page);
    access = std::min(access, guard.writes ? Access::loads : Access::none);
  }
}

std::string naively(const GuardTable& table) {
  Memory memory;
  for (const Guard& guard : table) guard_naively(memory, guard, guard.missing);
  return memory.text();
}

std::optional<Stretch> missing_naively(const Guard& guard, const Pages& there) {
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < guard.pieces; ++i) {
    Stretch found{UINT64_MAX, 0};
    for (std::size_t k = 0; k < guard.piece[i].iov_len; ++k, ++at) {
      const std::uintptr_t address = address_of(guard.piece[i].iov_base) + k;
      if (at < guard.missing.low || at >= guard.missing.high || address < there.begin ||
          address >= there.end || is_in(guard.islands, at) || (!found.empty() && found.high != at))
        continue;
      found = {std::min(found.low, at), at + 1};
    }
    if (!found.empty()) return found;
  }
  return {};
}

Guard any_guard(std::mt19937_64& random, parc_op id) {
  Guard guard{};
  guard.id = id;
  guard.writes = random() % 3 == 0;
  const std::size_t pieces = 1 + random() % 4;
  for (; guard.pieces < pieces; ++guard.pieces) {
    const std::uintptr_t begin = random() % (page * pages), most = page * pages - begin;
    const std::uint64_t length = random() % (std::min<std::uintptr_t>(most, 5 * page) + 1);
    guard.piece[guard.pieces] = {reinterpret_cast<void*>(base + begin), length};
    guard.length += length;
  }
  guard.missing = {0, guard.length};
  if (guard.length != 0) guard.missing.low = random() % guard.length;
  return guard;
}

// What is still missing after some more has arrived, from either end.
Stretch less(std::mt19937_64& random, const Guard& guard) {
  Stretch missing = guard.missing;
  if (missing.empty() || random() % 6 == 0) return {missing.high, missing.high};
  const std::uint64_t left = missing.high - missing.low;
  if (random() % 2 == 0)
    missing.low += random() % (left + 1);
  else
    missing.high -= random() % (left + 1);
  return missing;
}

// Some that has come between the ends of what is missing.
Stretch any_island(std::mt19937_64& random, const Stretch& missing) {
  if (missing.empty()) return missing;
  const std::uint64_t low = missing.low + random() % (missing.high - missing.low);
  return {low, low + random() % (missing.high - low + 1)};
}

void check(const GuardTable& table, const Memory& memory) {
  BOOST_REQUIRE_EQUAL(memory.text(), naively(table));
  for (std::uintptr_t i = 0; i < pages; ++i)
    BOOST_REQUIRE((table.access_of(base + i * page) == memory.access[i]));
}

BOOST_AUTO_TEST_CASE(a_page_has_the_strictest_access_of_its_guards) {
  GuardTable table(4, page);
  Memory memory;
  const Guard& write = table.add(guard_of(1, true, {{base + 8, base + 56}})); // pages 0 to 3
  BOOST_TEST(table.guard_pages(write, memory.apply()));
  BOOST_TEST(memory.text().substr(0, 5) == "rrrr+");
  Guard& read = table.add(guard_of(2, false, {{base + 40, base + 72}})); // pages 2 to 4
  BOOST_TEST(table.guard_pages(read, memory.apply()));
  BOOST_TEST(memory.text().substr(0, 6) == "rr---+");
  BOOST_TEST(table.shrink(read, {8, 32}, memory.apply())); // [base + 48, ...): page 2 is the write's again
  BOOST_TEST(memory.text().substr(0, 6) == "rrr--+");
  BOOST_TEST(table.open_pages(read, memory.apply()));
  BOOST_TEST(memory.text().substr(0, 6) == "rrrr++");
}

BOOST_AUTO_TEST_CASE(pages_of_one_access_are_one_run) {
  GuardTable table(4, page);
  Memory memory;
  Guard& read = table.add(guard_of(1, false, {{base, base + 8 * page}}));
  BOOST_TEST(table.guard_pages(read, memory.apply()));
  BOOST_TEST(memory.runs == 1);
  BOOST_TEST(table.shrink(read, {5 * page, 8 * page}, memory.apply()));
  BOOST_TEST(memory.runs == 2);
  BOOST_TEST(table.open_pages(read, memory.apply()));
  BOOST_TEST(memory.runs == 3);
}

BOOST_AUTO_TEST_CASE(a_guard_whose_pages_are_refused_keeps_them) {
  GuardTable table(4, page);
  Memory memory;
  std::mt19937_64 random(1);
  memory.random = &random;
  Guard& read = table.add(guard_of(1, false, {{base, base + 4 * page}}));
  BOOST_TEST(table.guard_pages(read, memory.apply()));
  memory.refuses = 1;
  BOOST_TEST(!table.shrink(read, {page, 4 * page}, memory.apply()));
  BOOST_TEST(read.missing.low == 0);
  BOOST_TEST(memory.text().substr(0, 5) == "----+");
}

BOOST_AUTO_TEST_CASE(what_came_between_is_opened) {
  GuardTable table(4, page);
  Memory memory;
  Guard& read = table.add(guard_of(1, false, {{base, base + 8 * page}}));
  BOOST_TEST(table.guard_pages(read, memory.apply()));
  BOOST_TEST(table.open_island(read, {2 * page + 1, 5 * page}, memory.apply())); // page 2 not whole
  BOOST_TEST(memory.text().substr(0, 9) == "---++---+");
  BOOST_TEST(table.open_island(read, {2 * page, 2 * page + 1}, memory.apply()));
  BOOST_TEST(memory.text().substr(0, 9) == "--+++---+");
  BOOST_TEST(table.shrink(read, {5 * page, 8 * page}, memory.apply())); // the gap before it has closed
  BOOST_TEST(memory.text().substr(0, 9) == "+++++---+");
  BOOST_TEST((read.islands.begin() == read.islands.end()));
}

// Mappings are few: what comes between the ends of many reads stays shut.
BOOST_AUTO_TEST_CASE(islands_of_all_guards_are_bounded) {
  GuardTable table(4, page, 2);
  Memory memory;
  Guard& one = table.add(guard_of(1, false, {{base, base + 8 * page}}));
  Guard& other = table.add(guard_of(2, false, {{base + 8 * page, base + 16 * page}}));
  BOOST_TEST((table.guard_pages(one, memory.apply()) && table.guard_pages(other, memory.apply())));
  const auto comes = [&](Guard& guard, std::uint64_t at) {
    return table.open_island(guard, {at * page, (at + 1) * page}, memory.apply());
  };
  BOOST_TEST((comes(one, 1) && comes(other, 1)));
  BOOST_TEST((!comes(one, 3) && !comes(other, 5)));
  BOOST_TEST((comes(one, 2) && comes(one, 1))); // they are one
  BOOST_TEST(memory.text().substr(0, 17) == "-++------+------+");
  BOOST_TEST(table.shrink(one, {3 * page, 8 * page}, memory.apply()));
  BOOST_TEST((comes(other, 3) && !comes(one, 5)));
  BOOST_TEST(table.open_pages(other, memory.apply()));
  table.remove(other);
  BOOST_TEST((comes(one, 5) && comes(one, 7) && !comes(one, 3)));
  BOOST_TEST(memory.text().substr(0, 17) == "+++--+-++++++++++");
}

BOOST_AUTO_TEST_CASE(finds_what_is_missing_in_a_range_of_addresses) {
  const Guard guard =
      guard_of(1, false, {{base + 32, base + 64}, {base + 100, base + 110}, {base, base + 8}});
  const auto in = [&](std::uintptr_t from, std::uintptr_t to) {
    return GuardTable::missing_in(guard, {base + from, base + to});
  };
  BOOST_TEST((in(40, 50)->low == 8 && in(40, 50)->high == 18));
  BOOST_TEST((in(104, 200)->low == 36 && in(104, 200)->high == 42));
  BOOST_TEST((in(0, 200)->low == 0 && in(0, 200)->high == 32)); // of one piece
  BOOST_TEST((!in(64, 100) && !in(8, 32)));
}

// Guards come, shrink and go in any way, over each other: after every step each page has the access that the
// definition gives it.
BOOST_AUTO_TEST_CASE(is_what_the_definition_says) {
  const std::uint64_t first = std::random_device()();
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      GuardTable table(6, page);
      Memory memory;
      for (int step = 0; step < 60; ++step) {
        if (!table.full() && random() % 3 == 0) {
          const Guard& added = table.add(any_guard(random, step + 1));
          BOOST_REQUIRE(table.guard_pages(added, memory.apply()));
        } else if (table.size() != 0) {
          Guard& guard = table[random() % table.size()];
          const Stretch island = any_island(random, guard.missing);
          if (random() % 2 == 0 &&
              (table.open_island(guard, island, memory.apply()) || !guard.islands.full()))
            for (std::uint64_t at = island.low; at < island.high; ++at)
              BOOST_REQUIRE(is_in(guard.islands, at));
          else
            BOOST_REQUIRE(table.shrink(guard, less(random, guard), memory.apply()));
          if (guard.missing.empty()) table.remove(guard);
        }
        check(table, memory);
        const std::uintptr_t from = base + random() % (pages * page);
        const Pages there{from, from + random() % (4 * page)};
        for (const Guard& guard : table) {
          const auto found = GuardTable::missing_in(guard, there), naive = missing_naively(guard, there);
          BOOST_REQUIRE(found.has_value() == naive.has_value());
          if (found) BOOST_REQUIRE((found->low == naive->low && found->high == naive->high));
        }
      }
      while (table.size() != 0) {
        BOOST_REQUIRE(table.open_pages(table[0], memory.apply()));
        table.remove(table[0]);
        check(table, memory);
      }
    }
  }
}

// Where some calls are refused, as where the system is out of mappings, pages may stay shut for longer, but
// none is open that a byte which has not arrived needs shut.
BOOST_AUTO_TEST_CASE(never_opens_what_is_missing_where_calls_are_refused) {
  const std::uint64_t first = std::random_device()();
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      std::mt19937_64 random(seed);
      GuardTable table(6, page, random() % 2 == 0 ? 2 : SIZE_MAX);
      Memory memory;
      memory.random = &random;
      struct Truth {
        Stretch missing; // what has really not arrived, but for these
        std::vector<Stretch> islands;
      };
      std::map<parc_op, Truth> truth;
      for (int step = 0; step < 60; ++step) {
        memory.refuses = random() % 2 == 0 ? 3 : 0;
        if (!table.full() && random() % 3 == 0) {
          Guard& added = table.add(any_guard(random, step + 1));
          truth[added.id] = {added.missing, {}};
          if (!table.guard_pages(added, memory.apply())) {
            memory.refuses = 0; // else the program ends
            BOOST_REQUIRE(table.open_pages(added, memory.apply()));
            table.remove(added);
          }
        } else if (table.size() != 0) {
          Guard& guard = table[random() % table.size()];
          auto& [missing, islands] = truth.at(guard.id);
          if (random() % 2 == 0) {
            islands.push_back(any_island(random, missing));
            (void)table.open_island(guard, islands.back(), memory.apply());
          }
          Guard before = guard;
          before.missing = missing;
          missing = less(random, before);
          if (table.shrink(guard, missing, memory.apply()) && guard.missing.empty()) table.remove(guard);
        }
        Memory needed;
        for (Guard guard : table) {
          const auto& [missing, islands] = truth.at(guard.id);
          guard.islands = {};
          for (std::uint64_t at = missing.low; at < missing.high; ++at)
            if (!is_in(islands, at)) guard_naively(needed, guard, {at, at + 1});
        }
        for (std::size_t i = 0; i < pages; ++i) BOOST_REQUIRE((memory.access[i] <= needed.access[i]));
      }
      memory.refuses = 0;
      for (; table.size() != 0; table.remove(table[0]))
        BOOST_REQUIRE(table.open_pages(table[0], memory.apply()));
      BOOST_REQUIRE_EQUAL(memory.text(), Memory().text());
    }
  }
}

// At both ends of a buffer, and between its pieces.
BOOST_AUTO_TEST_CASE(pages_that_are_shared_are_told) {
  const GuardTable table(4, page);
  const Guard guard =
      guard_of(1, false, {{base + 4, base + 5 * page}, {base + 6 * page, base + 8 * page + 1}});
  const std::uint64_t edge = page - 4, first = 5 * page - 4, length = guard.length;
  BOOST_TEST(!table.on_whole_pages(guard, {0, length}));
  BOOST_TEST(!table.on_whole_pages(guard, {edge - 1, length - 1}));
  BOOST_TEST(!table.on_whole_pages(guard, {edge, length}));
  BOOST_TEST(table.on_whole_pages(guard, {edge, length - 1}));
  BOOST_TEST(table.on_whole_pages(guard, {edge + 3, first + page + 1}));
  BOOST_TEST(table.on_whole_pages(guard, {0, 0}));
  const Guard shared = guard_of(2, false, {{base, base + 2 * page + 4}, {base + 3 * page, base + 5 * page}});
  BOOST_TEST(!table.on_whole_pages(shared, {page, shared.length}));
  BOOST_TEST(table.on_whole_pages(shared, {2 * page + 4, shared.length}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace parc::client
