// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/program/bounce.hpp"

#include "protocol/atomic_operation.hpp"
#include "tests/unit/engine_test.hpp"

#include <cstring>

BOOST_AUTO_TEST_SUITE(bounce)

using namespace parc::sim;

namespace {

// Nothing of its memory is reached from outside.
struct Program final : CrossMemory {
  bool read(std::byte* to, const std::byte* from, std::uint64_t length, std::uint64_t name) override {
    bool asks = false;
    return name != no_name && kernel.read(to, reinterpret_cast<std::uintptr_t>(from),
                                          static_cast<std::uint32_t>(length), name, asks);
  }
  bool write(std::byte* to, const std::byte* from, std::uint64_t length, std::uint64_t name) override {
    bool asks = false;
    return name != no_name && kernel.write(reinterpret_cast<std::uintptr_t>(to), from,
                                           static_cast<std::uint32_t>(length), name, asks);
  }
  Operated operate(std::byte* word, const Atomic& atomic, std::uint64_t name,
                   std::uint64_t& before) override {
    bool asks = false;
    return kernel.operate(reinterpret_cast<std::uintptr_t>(word), atomic, name, before, asks);
  }
  bool busy(std::uint64_t name) const override { return kernel.busy(name); }
  void forget(std::uint64_t name) override { kernel.forget(name); }

  [[nodiscard]] bool is_asked() const { return parc::shm::number_asked(shared->asked) != shared->answered; }
  [[nodiscard]] bool is_wanted() const { return is_asked() && parc::shm::is_wanted(shared->asked); }
  void answer() {
    auto* const memory = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(shared->address.load()));
    if (is_wanted()) {
      ++copies;
      switch (shared->what.load()) {
      case parc::shm::Bounce::What::fetch: std::memcpy(shared->bytes, memory, shared->length); break;
      case parc::shm::Bounce::What::store: std::memcpy(memory, shared->bytes, shared->length); break;
      case parc::shm::Bounce::What::operate: {
        Atomic atomic;
        std::memcpy(&atomic, shared->bytes, sizeof atomic);
        parc::shm::Bounce::Operated how{};
        if (has_word) how = {operate_on<std::uint64_t>(memory, atomic), 1};
        std::memcpy(shared->bytes, &how, sizeof how);
      }
      }
    }
    shared->answered = parc::shm::number_asked(shared->asked);
  }

  std::unique_ptr<parc::shm::Bounce> shared = std::make_unique<parc::shm::Bounce>();
  parc::daemon::Bounce kernel{*shared};
  int copies = 0;
  bool has_word = true;
};

Pieces memory_of(Program* program, Bytes& bytes) {
  Pieces pieces;
  pieces.append({bytes.data(), bytes.size(), program});
  return pieces;
}

Op& write(Hosts& hosts, std::uint32_t from, std::uint32_t to, Program* program, Bytes& bytes) {
  WriteRequest request;
  request.destination = to;
  request.memory = memory_of(program, bytes);
  return hosts.post(from, request);
}
Op& read(Hosts& hosts, std::uint32_t at, Program* program, Bytes& bytes, bool from_end = false) {
  ReadRequest request;
  request.memory = memory_of(program, bytes);
  request.flags = when(from_end, MessageFlags::from_end);
  return hosts.post(at, request);
}

// That of a rank, if it is one of those.
Program* one_of(int who, Program* programs, std::uint32_t rank) {
  return (who >> rank & 1) != 0 ? programs + rank : nullptr;
}

// Each answers once, if it is asked. False: none was.
bool answer(Hosts& hosts, std::initializer_list<Program*> programs) {
  bool any = false;
  for (Program* const program : programs) {
    if (!program->is_asked()) continue;
    program->answer();
    BOOST_TEST(program->kernel.is_answered());
    program->kernel.look();
    hosts.engine(0).resume_copies();
    any = true;
  }
  hosts.settle();
  return any;
}

} // namespace

// Of either program, of both, and of one that writes to itself: from either end, several at once both ways.
BOOST_DATA_TEST_CASE(what_is_not_reached_is_copied_by_its_program,
                     data::xrange(1, 4) * data::make({false, true}), who, from_end) {
  constexpr int messages = 3;
  Hosts hosts({0, 0});
  Program programs[2];
  std::vector<Bytes> out, in;
  std::vector<Op*> ops;
  for (int i = 0; i < 3 * messages; ++i) {
    out.push_back(
        pattern(std::size_t{70'000} * static_cast<std::size_t>(i + 1), static_cast<std::uint32_t>(i)));
    in.emplace_back(out.back().size());
  }
  for (int i = 0; i < 3 * messages; ++i) {
    const std::uint32_t from = i % 3 == 0 ? 1 : 0, to = i % 3 == 1 ? 1 : 0; // 1 to 0, 0 to 1, 0 to 0
    ops.push_back(&read(hosts, to, one_of(who, programs, to), in[static_cast<std::size_t>(i)], from_end));
    ops.push_back(&write(hosts, from, to, one_of(who, programs, from), out[static_cast<std::size_t>(i)]));
    hosts.settle();
  }
  while (answer(hosts, {&programs[0], &programs[1]})) {
  }
  for (const Op* op : ops) BOOST_TEST((op->finished && op->outcome.fault == Fault::none));
  BOOST_TEST((in == out));
  for (std::uint32_t rank : {0U, 1U})
    BOOST_TEST((programs[rank].copies != 0) == (one_of(who, programs, rank) != nullptr));
}

BOOST_AUTO_TEST_CASE(what_nobody_waits_for_is_not_copied_and_is_answered) {
  Hosts hosts({0, 0, 0});
  Program writer, reader;
  Bytes out = pattern(200'000, 1), in(out.size()), other(out.size());
  Op& ends = write(hosts, 0, 1, &writer, out);
  read(hosts, 1, &reader, in);
  hosts.settle();
  BOOST_TEST((writer.is_wanted() && !reader.is_asked()));
  hosts.engine(0).kill(hosts.endpoint(1));
  BOOST_TEST((ends.finished && ends.outcome.fault == Fault::peer));
  BOOST_TEST((writer.is_asked() && !writer.is_wanted()));
  // The next one waits until that is answered: the program may be at it.
  Op& next = write(hosts, 0, 2, &writer, out);
  read(hosts, 2, nullptr, other);
  hosts.settle();
  BOOST_TEST(!writer.is_wanted());
  while (answer(hosts, {&writer})) {
  }
  BOOST_TEST((next.finished && other == out && writer.copies == 4));
}

BOOST_AUTO_TEST_CASE(a_message_that_is_handed_over_needs_its_program_no_more) {
  Hosts hosts({0, 0});
  Program writer;
  Bytes out = pattern(200'000, 1), in(out.size()), copy = out;
  Op& op = write(hosts, 0, 1, &writer, out);
  read(hosts, 1, nullptr, in);
  hosts.settle();
  for (int i = 0; i < 2; ++i) BOOST_TEST((answer(hosts, {&writer}) && writer.is_wanted()));
  const std::uint64_t begin = op.progress.front;
  BOOST_TEST(begin != 0u);
  hosts.engine(0).hand_over(op.handle, begin, copy.data() + begin, copy.size() - begin);
  BOOST_TEST(!writer.is_wanted());
  std::memset(out.data(), 0, out.size());
  hosts.settle();
  BOOST_TEST((op.finished && in == copy));
}

// It hurts itself: nothing is taken for an answer that was not asked for.
BOOST_AUTO_TEST_CASE(a_program_that_lies_gets_what_it_says) {
  Program writer;
  writer.shared->answered = 7;
  Bytes out = pattern(1000, 1), in(out.size());
  BOOST_TEST(!writer.kernel.is_answered());
  BOOST_TEST(!writer.read(in.data(), out.data(), out.size(), 5));
  BOOST_TEST(!writer.kernel.is_answered());
  writer.shared->answered = 0;
  writer.shared->asked = 0;
  BOOST_TEST(!writer.read(in.data(), out.data(), out.size(), 5));
  writer.shared->answered = 1;
  writer.kernel.look();
  BOOST_TEST((!writer.read(in.data(), out.data(), out.size(), 6) && writer.busy(6)));
  BOOST_TEST(writer.read(in.data(), out.data(), out.size(), 5));
}

// It says so itself: there is no such word, or it may not be stored into.
BOOST_AUTO_TEST_CASE(an_operation_on_a_word_that_may_be_there) {
  Program program;
  std::uint64_t word = 7, before = 0;
  auto* const there = reinterpret_cast<std::byte*>(&word);
  const Atomic add{5, 0, Atomic::What::add, 8, 0, 0};
  for (const bool has_word : {true, false}) {
    const std::uint64_t name = has_word ? 1 : 2;
    program.has_word = has_word;
    BOOST_TEST((program.operate(there, add, name, before) == Operated::not_yet));
    program.answer();
    program.kernel.look();
    BOOST_TEST(
        (program.operate(there, add, name, before) == (has_word ? Operated::made : Operated::no_word)));
    if (has_word) BOOST_TEST(before == 7u);
    BOOST_TEST(word == 12u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
