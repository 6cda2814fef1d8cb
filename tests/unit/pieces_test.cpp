// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/pieces.hpp"

#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

BOOST_AUTO_TEST_SUITE(pieces)

using namespace parc::protocol;

namespace {

// Of a process in which everything lies `shift` higher, up to `end`.
struct Elsewhere final : CrossMemory {
  static constexpr std::ptrdiff_t shift = 1 << 20;
  const std::byte* end = nullptr;
  bool read(std::byte* to, const std::byte* from, std::uint64_t length, std::uint64_t) override {
    if (from - shift + length > end) return false;
    std::memcpy(to, from - shift, length);
    return true;
  }
  bool write(std::byte* to, const std::byte* from, std::uint64_t length, std::uint64_t) override {
    if (to - shift + length > end) return false;
    std::memcpy(to - shift, from, length);
    return true;
  }
  Operated operate(std::byte*, const Atomic&, std::uint64_t, std::uint64_t&) override {
    return Operated::not_yet;
  }
  bool busy(std::uint64_t) const override { return false; }
  void forget(std::uint64_t) override {}
};

} // namespace

BOOST_AUTO_TEST_CASE(empty_pieces_count_for_nothing) {
  std::byte byte{};
  const Piece parts[] = {{&byte, 0}, {&byte, 1}, {nullptr, 0}};
  const Pieces pieces{std::span<const Piece>(parts)};
  BOOST_TEST(pieces.size() == 1u);
  BOOST_TEST(pieces.count() == 1u);
  BOOST_TEST(Pieces().size() == 0u);
  Pieces().each(0, 0, [](std::byte*, std::uint64_t) { BOOST_ERROR("nothing to use"); });
}

// Any stretch of any cut of a message is the same bytes, whichever way they are reached.
BOOST_AUTO_TEST_CASE(stretches_of_random_cuts) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::byte> memory(300), message;
    for (std::byte& b : memory) b = static_cast<std::byte>(random());
    Pieces pieces;
    for (unsigned n = random() % 8; n != 0; --n) {
      const std::size_t at = random() % 200, length = random() % 30;
      pieces.append({memory.data() + at, length});
      message.insert(message.end(), memory.begin() + static_cast<long>(at),
                     memory.begin() + static_cast<long>(at + length));
    }
    BOOST_REQUIRE(pieces.size() == message.size());
    const std::size_t begin = random() % (message.size() + 1),
                      length = random() % (message.size() - begin + 1);
    std::vector<std::byte> out(length);
    pieces.copy_out(begin, out.data(), length);
    BOOST_TEST(std::equal(out.begin(), out.end(), message.begin() + static_cast<long>(begin)));

    std::vector<std::byte> moved(message.begin() + static_cast<long>(begin),
                                 message.begin() + static_cast<long>(begin + length));
    pieces.replace(begin, moved.data(), length);
    BOOST_REQUIRE(pieces.size() == message.size());
    out.resize(message.size());
    pieces.copy_out(0, out.data(), out.size());
    BOOST_TEST(out == message);
    std::uint64_t in_moved = 0;
    pieces.each(begin, length, [&](const std::byte* base, std::uint64_t n) {
      in_moved += base >= moved.data() && base + n <= moved.data() + moved.size() ? n : 0;
    });
    BOOST_TEST(in_moved == length);
  }
}

BOOST_AUTO_TEST_CASE(copies_between_different_cuts) {
  std::vector<std::byte> from(100), to(100);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i);
  const Piece source[] = {{from.data(), 33}, {from.data() + 33, 1}, {from.data() + 34, 66}};
  const Piece target[] = {{to.data(), 10}, {to.data() + 10, 90}};
  BOOST_TEST(copy(Pieces(std::span<const Piece>(target)), Pieces(std::span<const Piece>(source)), 5, 90));
  BOOST_TEST(std::equal(from.begin() + 5, from.begin() + 95, to.begin() + 5));
  BOOST_TEST((to[4] == std::byte{0} && to[95] == std::byte{0}));
}

BOOST_AUTO_TEST_CASE(copies_from_and_to_other_processes) {
  constexpr std::size_t size = 200'000; // some blocks, and a part
  std::vector<std::byte> from(size);
  for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const bool here_from : {false, true})
    for (const bool here_to : {false, true}) {
      std::vector<std::byte> to(size);
      Elsewhere writer, reader;
      writer.end = from.data() + size;
      reader.end = to.data() + size;
      Pieces source, target;
      if (here_from)
        source.append({from.data(), size});
      else
        source.append({from.data() + Elsewhere::shift, size, &writer});
      target.append({to.data(), 10});
      if (here_to)
        target.append({to.data() + 10, size - 10});
      else
        target.append({to.data() + 10 + Elsewhere::shift, size - 10, &reader});
      BOOST_TEST(copy(target, source, 0, size));
      BOOST_TEST((to == from));
      if (!here_to) {
        reader.end -= 1;
        BOOST_TEST(!copy(target, source, 0, size));
      }
      if (!here_from) {
        writer.end -= 1;
        BOOST_TEST(!copy(target, source, 0, size));
        source.replace(size / 2, from.data() + size / 2, size - size / 2); // handed over
        reader.end = to.data() + size;
        std::ranges::fill(to, std::byte{0});
        BOOST_TEST(copy(target, source, 0, size));
        BOOST_TEST((to == from));
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
