// SPDX-License-Identifier: BSD-3-Clause
// When a wait for a write may return, what it copies, and what the peer gets although the program goes on
// changing its memory.
#include "fake_program.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <thread>

BOOST_AUTO_TEST_SUITE(client_waits)

using namespace parc::test;
using parc::shm::slot_of;

namespace {

// A read of tag 7 that the kernel has.
parc_op post_queued(FakeProgram& program, const iovec& piece) {
  const parc_envelope envelope{PARC_ANY_SOURCE, 7, 0, 0};
  const parc_op read = parc_initreadv(program.p, &envelope, &piece, 1, PARC_QUEUED);
  program.kernel.await([&] { return program.kernel.reads_posted() == 1; });
  return read;
}

constexpr std::size_t length = 200'000;

struct HeldWrite {
  explicit HeldWrite(unsigned flags = 0, std::uint64_t pace = 0) : program(2), text(pattern(length)) {
    buffer = program.alloc(length);
    std::copy(text.begin(), text.end(), buffer);
    program.kernel.set_pace(pace);
    const parc_envelope envelope = parc_envelope_of(1, 0, 4);
    const iovec pieces[] = {{buffer, length / 3}, {buffer + length / 3, length - length / 3}};
    write = parc_initwritev(program.p, &envelope, pieces, 2, flags);
    BOOST_REQUIRE(write > 0);
    program.kernel.await([&] { return program.kernel.writes_in_progress() == 1 || pace != 0; });
  }
  void scribble() { std::fill(buffer, buffer + length, '#'); }
  // Lets the network have the rest; true when the peer got what was written.
  bool arrives_whole() {
    program.kernel.set_pace(FakeKernel::all_at_once);
    program.kernel.await([&] { return program.kernel.writes_in_progress() == 0; });
    const auto sent = program.kernel.sent();
    return sent.size() == 1 && sent[0].bytes == text;
  }

  FakeProgram program;
  std::string text;
  char* buffer = nullptr;
  parc_op write = 0;
};

} // namespace

BOOST_DATA_TEST_CASE(a_wait_copies_what_the_network_has_not_taken,
                     boost::unit_test::data::make({0u, PARC_FROM_END}) *
                         boost::unit_test::data::make({0, 1, 50'000, 199'999}),
                     flags, taken) {
  HeldWrite held(flags);
  if (taken) held.program.kernel.take_from_oldest(static_cast<std::uint64_t>(taken));
  parc_status status;
  BOOST_TEST(parc_wait(held.program.p, held.write, &status) == PARC_OK);
  BOOST_TEST(status.length == length);
  BOOST_TEST(held.program.kernel.hand_overs() == 1u);
  held.scribble();
  BOOST_TEST(held.arrives_whole());
}

// The network works while the wait copies towards it.
BOOST_DATA_TEST_CASE(a_copy_meets_the_network,
                     boost::unit_test::data::make({0u, PARC_FROM_END}) *
                         boost::unit_test::data::make({300, 3000, 30'000}),
                     flags, pace) {
  HeldWrite held(flags, static_cast<std::uint64_t>(pace));
  BOOST_TEST(parc_wait(held.program.p, held.write, nullptr) == PARC_OK);
  held.scribble();
  BOOST_TEST(held.arrives_whole());
}

BOOST_AUTO_TEST_CASE(handed_over_memory_may_be_freed_and_the_arena_goes_on_growing) {
  HeldWrite held;
  BOOST_TEST(parc_wait(held.program.p, held.write, nullptr) == PARC_OK);
  parc_free(held.program.p, held.buffer);
  for (int i = 0; i < 3; ++i) BOOST_TEST(held.program.alloc(std::size_t{5} << 20)[0] == 0);
  BOOST_TEST(held.arrives_whole());
}

BOOST_AUTO_TEST_CASE(without_room_for_copies_a_wait_waits_for_the_network) {
  HeldWrite held;
  BOOST_TEST(parc_set_copy_room(held.program.p, 0) == PARC_OK);
  std::atomic<int> returned = 1;
  std::thread waiter([&] { returned = parc_wait(held.program.p, held.write, nullptr); });
  held.program.kernel.take_from_oldest(length / 2);
  BOOST_TEST(returned == 1);
  BOOST_TEST(held.arrives_whole());
  waiter.join();
  BOOST_TEST(returned == PARC_OK);
  BOOST_TEST(held.program.kernel.hand_overs() == 0u);
}

// Who writes more than the network takes would fill the host's memory.
BOOST_AUTO_TEST_CASE(where_much_is_held_a_wait_keeps_the_networks_pace) {
  constexpr std::size_t bytes = 2 << 20, held_before = 128, half = bytes / 2;
  FakeProgram program(2);
  program.kernel.set_pace(0);
  const char* const text = program.alloc(bytes);
  const auto write = [&] { return parc_write(program.p, 1, 7, text, bytes); };
  for (std::size_t i = 0; i < held_before; ++i) BOOST_TEST_REQUIRE(write() == PARC_OK);
  BOOST_TEST(program.kernel.hand_overs() == held_before);

  BOOST_TEST(write() == PARC_OK); // nobody reads, and copies are made all the same
  BOOST_TEST(program.kernel.hand_overs() == held_before + 1);

  program.kernel.take_from_oldest(half); // it goes on: what follows waits until less is held
  std::atomic<bool> returned = false;
  std::thread writer([&] {
    BOOST_TEST(write() == PARC_OK);
    returned = true;
  });
  program.kernel.await([&] { return program.kernel.writes_in_progress() == held_before + 2; });
  for (std::size_t taken = half; taken < bytes; taken += half / 8) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // in which it may do wrong
    BOOST_TEST(!returned);
    program.kernel.take_from_oldest(half / 8);
  }
  BOOST_TEST(!returned);
  program.kernel.take_from_oldest(bytes); // of the next one, whole
  writer.join();
  BOOST_TEST(program.kernel.hand_overs() == held_before + 2);
}

// Of ordinary memory, which is copied when a write begins. What is queued is the network's to end.
BOOST_AUTO_TEST_CASE(where_much_is_held_so_do_waits_for_what_is_copied_already) {
  constexpr std::size_t bytes = 2 << 20, held_before = 128;
  FakeProgram program(2);
  program.kernel.set_pace(0);
  const std::string text(bytes, 'x');
  const auto write = [&] { return parc_write(program.p, 1, 7, text.data(), bytes); };
  for (std::size_t i = 0; i < held_before; ++i) BOOST_TEST_REQUIRE(write() == PARC_OK);
  BOOST_TEST(write() == PARC_OK); // nobody reads

  const parc_envelope to{1, 7, 0, 0};
  const iovec whole{const_cast<char*>(text.data()), bytes};
  const parc_op queued = parc_initwritev(program.p, &to, &whole, 1, PARC_QUEUED);
  parc_completion completion;
  BOOST_TEST(parc_completions(program.p, &completion, 1, 0) == 0);

  program.kernel.take_from_oldest(bytes / 2);
  std::atomic<bool> returned = false;
  std::thread writer([&] {
    BOOST_TEST(write() == PARC_OK);
    returned = true;
  });
  program.kernel.await([&] { return program.kernel.writes_in_progress() == held_before + 3; });
  for (int i = 0; i < 8; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // in which it may do wrong
    BOOST_TEST(!returned);
    program.kernel.take_from_oldest(bytes / 32);
  }
  program.kernel.take_from_oldest(bytes / 4);
  program.kernel.take_from_oldest(bytes);
  writer.join();
  program.kernel.set_pace(FakeKernel::all_at_once);
  BOOST_TEST(parc_completions(program.p, &completion, 1, -1) == 1);
  BOOST_TEST(completion.operation == queued);
}

BOOST_AUTO_TEST_CASE(tests_never_copy) {
  HeldWrite held;
  for (int i = 0; i < 100; ++i) BOOST_TEST(parc_test(held.program.p, held.write, nullptr) == 0);
  BOOST_TEST(held.arrives_whole());
  parc_status status;
  BOOST_TEST(parc_test(held.program.p, held.write, &status) == 1);
  BOOST_TEST(status.source == 1);
  BOOST_TEST(held.program.kernel.hand_overs() == 0u);
}

BOOST_AUTO_TEST_CASE(a_bounced_write_is_the_librarys_at_once) {
  FakeProgram program(2);
  program.kernel.set_pace(0);
  std::string text = pattern(length), buffer = text;
  const parc_op write = parc_initwrite(program.p, 1, 0, buffer.data(), length);
  BOOST_TEST(parc_test(program.p, write, nullptr) == 1);
  std::fill(buffer.begin(), buffer.end(), '#');
  program.kernel.set_pace(FakeKernel::all_at_once);
  program.kernel.await(
      [&] { return program.kernel.writes_in_progress() == 0 && program.kernel.requests_now() >= 2; });
  BOOST_TEST((program.kernel.sent().at(0).bytes == text));
}

// Copies end when nothing but writes is left; before that, waitall and waitany rest.
BOOST_AUTO_TEST_CASE(waitall_copies_last) {
  HeldWrite held;
  char byte = 0;
  parc_op both[] = {held.write, parc_initread(held.program.p, 1, 5, &byte, 1)};
  int code = 1;
  std::thread waiter([&] { code = parc_waitall(held.program.p, 2, both, nullptr); });
  held.program.kernel.await([&] { return held.program.kernel.reads_posted() == 1; });
  BOOST_TEST(held.program.kernel.hand_overs() == 0u);
  held.program.kernel.send({.source = 1, .tag = 5, .bytes = "r"});
  waiter.join();
  BOOST_TEST(code == PARC_OK);
  BOOST_TEST(held.program.kernel.hand_overs() == 1u);
  held.scribble();
  BOOST_TEST(held.arrives_whole());
}

BOOST_AUTO_TEST_CASE(waitany_copies_when_only_writes_are_left) {
  HeldWrite held;
  parc_op one[] = {PARC_OP_NULL, held.write};
  int index = -1;
  BOOST_TEST(parc_waitany(held.program.p, 2, one, &index, nullptr) == PARC_OK);
  BOOST_TEST(index == 1);
  held.scribble();
  BOOST_TEST(held.arrives_whole());
}

BOOST_AUTO_TEST_CASE(any_number_of_writes_start_without_waiting) {
  FakeProgram program(2);
  char* const from = program.alloc(2000);
  program.kernel.set_pace(0);
  std::vector<parc_op> writes(5000);
  for (auto& write : writes) write = parc_initwrite(program.p, 1, 1, from, 2000);
  BOOST_TEST(*std::min_element(writes.begin(), writes.end()) > 0);
  program.kernel.await([&] { return program.kernel.writes_in_progress() == 5000; });
  BOOST_TEST(program.alloc(std::size_t{20} << 20)[0] == 0);
  program.kernel.take_from_oldest(2000);
  BOOST_TEST(parc_wait(program.p, writes.front(), nullptr) == PARC_OK);
  BOOST_TEST(parc_test(program.p, writes.front(), nullptr) == PARC_EINVAL);
  writes.erase(writes.begin());
  program.kernel.set_pace(FakeKernel::all_at_once);
  BOOST_TEST(parc_waitall(program.p, static_cast<int>(writes.size()), writes.data(), nullptr) == PARC_OK);
}

// The first short write to a rank that is gone may return before anybody knows; a later one reports it.
BOOST_AUTO_TEST_CASE(a_departed_peer_is_reported) {
  FakeProgram program(2);
  program.kernel.set_unknown_peer(1);
  char* const direct = program.alloc(5000);
  program.kernel.await([&] { return program.kernel.requests_now() == 1; });
  int code = PARC_OK;
  for (int i = 0; i < 10'000 && code == PARC_OK; ++i) code = parc_write(program.p, 1, 0, "x", 1);
  BOOST_TEST(code == PARC_EPEER);
  BOOST_TEST(parc_write(program.p, 1, 0, "x", 1) == PARC_EPEER);
  BOOST_TEST(parc_write(program.p, 1, 0, direct, 5000) == PARC_EPEER);
  BOOST_TEST(std::string(parc_error_detail()).find("write to rank 1") != std::string::npos);
  program.kernel.set_unknown_peer(-1);
  BOOST_TEST(parc_write(program.p, 1, 0, "x", 1) == PARC_OK);
}

BOOST_AUTO_TEST_CASE(several_threads_wait_each_for_its_own) {
  FakeProgram program;
  constexpr int threads = 6, messages = 200;
  std::vector<std::thread> readers;
  for (int tag = 0; tag < threads; ++tag)
    readers.emplace_back([&program, tag] {
      for (int i = 0; i < messages; ++i) {
        int value = -1;
        const parc_op read = parc_initread(program.p, 0, tag, &value, sizeof value);
        // BOOST_TEST is not for threads
        if (parc_wait(program.p, read, nullptr) != PARC_OK || value != i) std::abort();
      }
    });
  for (int i = 0; i < messages; ++i)
    for (int tag = 0; tag < threads; ++tag)
      program.kernel.send(
          {.source = 0, .tag = tag, .bytes = std::string(reinterpret_cast<char*>(&i), sizeof i)});
  for (auto& reader : readers) reader.join();
}

namespace {

parc_context* handlers_context;
parc_op handlers_operation;
std::atomic<int> handlers_result, handlers_spoilt;

// Also of an operation that is spent, and leaving errno as it was.
void test_in_handler(int) {
  const int before = errno;
  const int result = parc_test(handlers_context, handlers_operation, nullptr);
  if (errno != before) handlers_spoilt = errno;
  if (handlers_result == 0) handlers_result = result;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_handler_may_test_and_a_wait_goes_on_after_it) {
  FakeProgram program;
  std::string bounced(3000, 'x'), other(10, 'x');
  handlers_context = program.p;
  handlers_operation = parc_initread(program.p, 0, 1, bounced.data(), bounced.size());
  const parc_op waited = parc_initread(program.p, 0, 2, other.data(), other.size());
  struct sigaction action {};
  action.sa_handler = test_in_handler;
  sigaction(SIGUSR1, &action, nullptr);
  handlers_result = 0;
  const pthread_t waiter = pthread_self();
  std::thread sender([&] {
    program.kernel.send({.source = 0, .tag = 1, .bytes = pattern(3000)});
    while (handlers_result == 0) {
      pthread_kill(waiter, SIGUSR1);
      std::this_thread::yield();
    }
    program.kernel.send({.source = 0, .tag = 2, .bytes = "there"});
  });
  BOOST_TEST(parc_wait(program.p, waited, nullptr) == PARC_OK);
  sender.join();
  signal(SIGUSR1, SIG_DFL);
  BOOST_TEST(handlers_result == 1);
  BOOST_TEST(handlers_spoilt == 0);
  BOOST_TEST((bounced == pattern(3000)));
  BOOST_TEST(other.substr(0, 5) == "there");
}

// Who sleeps in a poll of its own hears that the kernel has gone, too.
BOOST_AUTO_TEST_CASE(the_descriptor_says_that_the_kernel_has_gone) {
  FakeProgram program;
  pollfd waits{.fd = parc_descriptor(program.p), .events = POLLIN, .revents = 0};
  char byte = 0;
  const iovec piece{&byte, 1};
  const parc_envelope envelope{0, 1, 0, 0};
  const parc_op read = parc_initreadv(program.p, &envelope, &piece, 1, PARC_QUEUED);
  BOOST_TEST(parc_arm(program.p) == 0);
  BOOST_TEST(poll(&waits, 1, 0) == 0);
  program.kernel.die();
  BOOST_TEST(poll(&waits, 1, -1) == 1);
  BOOST_TEST(parc_arm(program.p) == 1);
  parc_completion completion;
  BOOST_TEST(parc_completions(program.p, &completion, 1, 0) == 1);
  BOOST_TEST((completion.operation == read && completion.status.error == PARC_EKERNEL));
}

// A thread that waits for whatever ends is woken by another one, be it asleep, about to be, or behind a
// thread that waits for something else.
BOOST_AUTO_TEST_CASE(who_waits_for_completions_is_woken) {
  FakeProgram program;
  parc_completion completion;
  BOOST_TEST(parc_wake(program.p) == PARC_OK);
  BOOST_TEST(parc_wake(program.p) == PARC_OK);
  BOOST_TEST(parc_completions(program.p, &completion, 1, 0) == 0); // does not wait, and leaves it
  BOOST_TEST(parc_completions(program.p, &completion, 1, -1) == 0);
  const auto in_turns = [&] {
    std::atomic<int> woken = 0;
    std::thread waits([&] {
      parc_completion none;
      for (int i = 0; i < 300; ++i) woken += 1 + parc_completions(program.p, &none, 1, -1);
    });
    for (int i = 0; i < 300; ++i) {
      (void)parc_wake(program.p);
      while (woken.load() == i) std::this_thread::yield();
    }
    waits.join();
    BOOST_TEST(woken.load() == 300);
  };
  in_turns();
  std::string byte(1, 0);
  const parc_op read = parc_initread(program.p, 0, 1, byte.data(), 1);
  std::thread leads([&] { (void)parc_wait(program.p, read, nullptr); });
  in_turns();
  program.kernel.send({.source = 0, .tag = 1, .bytes = "x"});
  leads.join();
  in_turns();
}

// Who sleeps in a poll of its own hears of a read that is released early, too.
BOOST_AUTO_TEST_CASE(the_descriptor_says_that_a_read_can_be_released) {
  constexpr std::size_t edge = 4096, size = 16 * edge + 100; // not a whole number of pages
  FakeProgram program;
  BOOST_TEST(parc_set_release(program.p, PARC_RELEASE_ENVELOPE) == PARC_OK);
  pollfd waits{.fd = parc_descriptor(program.p), .events = POLLIN, .revents = 0};
  char* const buffer = program.alloc(size);
  const iovec piece{buffer, size};
  const parc_op read = post_queued(program, piece);
  const FakeKernel::Message message{.source = 0, .tag = 7, .bytes = pattern(size)};
  parc_completion completion;
  program.kernel.begin(message, edge, 0);
  BOOST_TEST(parc_arm(program.p) == 0);
  BOOST_TEST(parc_completions(program.p, &completion, 1, 0) == 0);
  BOOST_TEST(parc_arm(program.p) == 0);
  program.kernel.begin(message, edge, edge);
  BOOST_TEST(poll(&waits, 1, -1) == 1);
  BOOST_TEST(parc_arm(program.p) == 1);
  BOOST_TEST(parc_completions(program.p, &completion, 1, 0) == 1);
  BOOST_TEST((completion.operation == read && completion.status.error == PARC_OK));
  BOOST_TEST((completion.status.source == 0 && completion.status.length == size));
  program.kernel.send(message);
  BOOST_TEST((std::string(buffer, size) == message.bytes));
  parc_release_counts counts;
  BOOST_TEST(parc_get_release_counts(program.p, &counts) == PARC_OK);
  BOOST_TEST(counts.released == 1u);
}

// Neither what is before the touched page nor all that is waited for with it need come first.
BOOST_DATA_TEST_CASE(a_touch_ends_with_a_page_that_comes_between, boost::unit_test::data::make({0, 16, 256}),
                     strip) {
  constexpr std::size_t page = 4096, pages = 256, touched = 110, size = pages * page;
  FakeProgram program;
  BOOST_TEST(parc_set_release(program.p, PARC_RELEASE_ENVELOPE) == PARC_OK);
  BOOST_TEST(parc_set_strip(program.p, static_cast<std::size_t>(strip) * page) == PARC_OK);
  char* const buffer = program.alloc(size);
  post_queued(program, {buffer, size});
  const FakeKernel::Message message{.source = 0, .tag = 7, .bytes = pattern(size)};
  program.kernel.begin(message, page, page);
  parc_completion completion;
  BOOST_TEST_REQUIRE(parc_completions(program.p, &completion, 1, -1) == 1);
  std::atomic<bool> goes_on = false;
  bool waited_for_all = false;
  std::thread brings([&] {
    while (program.kernel.control().header.program_watching.load() == 0) std::this_thread::yield();
    program.kernel.begin(message, page, page, {100 * page, 140 * page});
    for (int ms = 0; ms < 10'000 && !goes_on; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    waited_for_all = !goes_on;
    program.kernel.send(message);
  });
  const char found = *const_cast<volatile char*>(buffer + touched * page);
  goes_on = true;
  brings.join();
  BOOST_TEST(found == message.bytes[touched * page]);
  BOOST_TEST(!waited_for_all);
  BOOST_TEST((std::string(buffer, size) == message.bytes));
}

// One that will be truncated is not released: it has to end, and nobody spins until then.
BOOST_AUTO_TEST_CASE(a_queued_read_that_cannot_be_released_is_waited_for) {
  constexpr std::size_t size = 16 * 4096;
  FakeProgram program;
  BOOST_TEST(parc_set_release(program.p, PARC_RELEASE_ENVELOPE) == PARC_OK);
  const iovec piece{program.alloc(size), size};
  const parc_op read = post_queued(program, piece);
  const FakeKernel::Message message{.source = 0, .tag = 7, .bytes = pattern(size + 1)};
  program.kernel.begin(message, 5000, 5000);
  parc_completion completion;
  BOOST_TEST(parc_completions(program.p, &completion, 1, 0) == 0);
  BOOST_TEST(parc_completions(program.p, &completion, 1, 0.001) == 0);
  BOOST_TEST(parc_arm(program.p) == 0);
  program.kernel.send(message);
  BOOST_TEST(parc_completions(program.p, &completion, 1, -1) == 1);
  BOOST_TEST((completion.operation == read && completion.status.error == PARC_ETRUNCATE));
}

BOOST_AUTO_TEST_CASE(a_read_is_not_released_where_gets_are) {
  constexpr std::size_t size = 16 * 4096;
  FakeProgram program;
  BOOST_TEST(parc_set_release(program.p, PARC_RELEASE_GETS) == PARC_OK);
  const iovec piece{program.alloc(size), size};
  const parc_op read = post_queued(program, piece);
  const FakeKernel::Message message{.source = 0, .tag = 7, .bytes = pattern(size)};
  program.kernel.begin(message, 5000, 5000);
  parc_completion completion;
  BOOST_TEST(parc_completions(program.p, &completion, 1, 0) == 0);
  program.kernel.send(message);
  BOOST_TEST(parc_completions(program.p, &completion, 1, -1) == 1);
  BOOST_TEST((completion.operation == read && completion.status.error == PARC_OK));
  BOOST_TEST(parc_set_release(program.p, PARC_RELEASE_GETS + 1) == PARC_EINVAL);
}

// More pieces than can be guarded.
BOOST_AUTO_TEST_CASE(a_read_of_many_pieces_is_waited_for) {
  constexpr std::size_t count = 64, size = 4096;
  FakeProgram program;
  BOOST_TEST(parc_set_release(program.p, PARC_RELEASE_ENVELOPE) == PARC_OK);
  char* const buffer = program.alloc(count * size);
  std::vector<iovec> pieces;
  for (std::size_t i = 0; i < count; ++i) pieces.push_back({buffer + i * size, size});
  const parc_envelope envelope = parc_envelope_of(PARC_ANY_SOURCE, 0, 7);
  const parc_op read = parc_initreadv(program.p, &envelope, pieces.data(), count, 0);
  program.kernel.send({.source = 0, .tag = 7, .bytes = pattern(count * size)});
  parc_status status;
  BOOST_TEST(parc_wait(program.p, read, &status) == PARC_OK);
  BOOST_TEST((std::string(buffer, count * size) == pattern(count * size)));
}

BOOST_AUTO_TEST_SUITE_END()
