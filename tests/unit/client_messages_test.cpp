// SPDX-License-Identifier: BSD-3-Clause
// Messages through libparc: where their bytes lie, what the calls report.
#include "fake_program.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(client_messages)

using namespace parc::test;

BOOST_AUTO_TEST_CASE(a_context_knows_its_place) {
  FakeProgram program(3);
  BOOST_TEST(parc_rank(program.p) == 0);
  BOOST_TEST(parc_size(program.p) == 3);
  BOOST_TEST(parc_host(program.p, 2) == std::string("testhost"));
  BOOST_TEST(parc_host(program.p, 3) == static_cast<const char*>(nullptr));
  parc_context* second = nullptr;
  BOOST_TEST(parc_open(&second) == PARC_EINVAL);
}

BOOST_AUTO_TEST_CASE(host_names_come_from_the_job) {
  Environment environment;
  environment.set("PARC_HOSTS", "a:2,b:1");
  FakeProgram program(7); // round and round
  const std::string names = "aabaaba";
  for (int rank = 0; rank < 7; ++rank)
    BOOST_TEST(parc_host(program.p, rank) == names.substr(static_cast<std::size_t>(rank), 1));
}

// Direct and bounced, on either side, short and long.
BOOST_DATA_TEST_CASE(a_message_arrives,
                     boost::unit_test::data::make({0, 1, 200, 1024, 5000, 300'000}) * //
                         boost::unit_test::data::make({false, true}) *
                         boost::unit_test::data::make({false, true}),
                     bytes, direct_write, direct_read) {
  FakeProgram program;
  const auto length = static_cast<std::size_t>(bytes);
  const std::string text = pattern(length);
  std::string from_heap = text, to_heap(length, 'x');
  char* const from = direct_write ? program.alloc(length) : from_heap.data();
  char* const to = direct_read ? program.alloc(length) : to_heap.data();
  std::copy(text.begin(), text.end(), from);

  const parc_op read = parc_initread(program.p, 0, 7, to, length);
  const parc_op write = parc_initwrite(program.p, 0, 7, from, length);
  BOOST_TEST(write > 0);
  BOOST_TEST(parc_wait(program.p, write, nullptr) == PARC_OK);
  parc_status status;
  BOOST_TEST(parc_wait(program.p, read, &status) == PARC_OK);
  BOOST_TEST(status.source == 0);
  BOOST_TEST(status.tag == 7);
  BOOST_TEST(status.length == length);
  BOOST_TEST((std::string(to, length) == text));
}

BOOST_AUTO_TEST_CASE(a_short_message_leaves_the_rest_of_the_buffer_alone) {
  FakeProgram program;
  std::string buffer(100, 'x');
  const parc_op read = parc_initread(program.p, PARC_ANY_SOURCE, PARC_ANY_TAG, buffer.data(), buffer.size());
  program.kernel.send({.source = 0, .tag = 3, .bytes = "hello"});
  parc_status status;
  BOOST_TEST(parc_wait(program.p, read, &status) == PARC_OK);
  BOOST_TEST(status.tag == 3);
  BOOST_TEST(status.length == 5u);
  BOOST_TEST(buffer == "hello" + std::string(95, 'x'));
}

BOOST_AUTO_TEST_CASE(a_long_message_is_truncated_and_reported_whole) {
  FakeProgram program;
  program.kernel.send({.source = 0, .tag = 3, .bytes = "hello, world"});
  char buffer[6] = "     ";
  parc_status status;
  BOOST_TEST(parc_read(program.p, 0, 3, buffer, 5, &status) == PARC_ETRUNCATE);
  BOOST_TEST(status.error == PARC_ETRUNCATE);
  BOOST_TEST(status.length == 12u);
  BOOST_TEST(buffer == std::string("hello"));
  BOOST_TEST(std::string(parc_error_detail()).find("the message has 12 bytes and the read 5") !=
             std::string::npos);
}

// A list of pieces, all in the arena or some of them not, with empty ones in between.
BOOST_DATA_TEST_CASE(lists_of_pieces_are_one_message,
                     boost::unit_test::data::make({false, true}) *
                         boost::unit_test::data::make({0u, PARC_FROM_END}),
                     direct, flags) {
  FakeProgram program;
  const std::string text = pattern(9000);
  std::string heap(9000, 'x');
  char* const from = program.alloc(9000);
  char* const to = program.alloc(9000);
  std::copy(text.begin(), text.end(), from);
  const iovec pieces_out[] = {{from, 10}, {nullptr, 0}, {from + 10, 4990}, {from + 5000, 4000}};
  const iovec pieces_in[] = {{to, 6000}, {direct ? to + 6000 : heap.data(), 3000}, {to, 0}};
  const parc_envelope envelope = parc_envelope_of(0, 5, 1);
  const parc_op read = parc_initreadv(program.p, &envelope, pieces_in, 3, flags);
  const parc_op write = parc_initwritev(program.p, &envelope, pieces_out, 4, flags);
  BOOST_TEST(parc_wait(program.p, write, nullptr) == PARC_OK);
  parc_status status;
  BOOST_TEST(parc_wait(program.p, read, &status) == PARC_OK);
  BOOST_TEST(status.context == 5u);
  const std::string got = std::string(to, 6000) + std::string(direct ? to + 6000 : heap.data(), 3000);
  BOOST_TEST((got == text));
}

BOOST_AUTO_TEST_CASE(an_envelope_is_of_a_context_and_a_tag) {
  const auto same = [](const parc_envelope& got, const parc_envelope& wanted) {
    BOOST_TEST(got.peer == wanted.peer);
    BOOST_TEST(got.tag == wanted.tag);
    BOOST_TEST(got.ignore == wanted.ignore);
    BOOST_TEST(got.data == wanted.data);
  };
  const std::uint32_t last = PARC_CONTEXT_RESERVED - 1;
  same(parc_envelope_of(3, 0, 9), {3, 9, 0, 0});
  same(parc_envelope_of(3, last, INT32_MAX), {3, 0xfffe'ffff'7fff'ffff, 0, 0});
  same(parc_envelope_of(PARC_ANY_SOURCE, last, PARC_ANY_TAG),
       {PARC_ANY_SOURCE, 0xfffe'ffff'0000'0000, 0xffff'ffff, 0});
  same(parc_envelope_of(3, 5, -2), {PARC_NO_PEER, 0x5'ffff'fffe, 0, 0});
  same(parc_envelope_of(3, PARC_CONTEXT_RESERVED, 1), {PARC_NO_PEER, 0xffff'0000'0000'0001, 0, 0});
}

// Whose halves are no context and no tag of a program: the bits count, and a status shows them as they are.
BOOST_AUTO_TEST_CASE(any_tag_of_64_bits_is_one) {
  FakeProgram program;
  const parc_envelope last{0, UINT64_MAX, 0, 0};
  const parc_envelope of_context_0 = parc_envelope_of(0, 0, PARC_ANY_TAG);
  const iovec piece{nullptr, 0};
  BOOST_TEST(parc_wait(program.p, parc_initwritev(program.p, &last, &piece, 1, 0), nullptr) == PARC_OK);
  parc_status status;
  BOOST_TEST(parc_iprobe(program.p, &of_context_0, &status) == 0);
  BOOST_TEST(parc_wait(program.p, parc_initreadv(program.p, &last, &piece, 1, 0), &status) == PARC_OK);
  BOOST_TEST(status.tag == -1);
  BOOST_TEST(status.context == UINT32_MAX);
}

BOOST_AUTO_TEST_CASE(blocking_calls_and_probes) {
  FakeProgram program;
  const parc_envelope any = parc_envelope_of(PARC_ANY_SOURCE, 0, PARC_ANY_TAG);
  parc_status status;
  BOOST_TEST(parc_iprobe(program.p, &any, &status) == 0);
  BOOST_TEST(parc_write(program.p, 0, 9, "abc", 3) == PARC_OK);
  BOOST_TEST(parc_probe(program.p, &any, &status) == PARC_OK);
  BOOST_TEST(status.tag == 9);
  BOOST_TEST(status.length == 3u);
  BOOST_TEST(parc_iprobe(program.p, &any, &status) == 1);
  char buffer[4] = {};
  BOOST_TEST(parc_read(program.p, 0, 9, buffer, 3, &status) == PARC_OK);
  BOOST_TEST(buffer == std::string("abc"));
}

BOOST_AUTO_TEST_CASE(a_cancelled_read_ends) {
  FakeProgram program;
  std::string buffer(50, 'x');
  const parc_op read = parc_initread(program.p, 0, 1, buffer.data(), buffer.size());
  BOOST_TEST(parc_test(program.p, read, nullptr) == 0);
  BOOST_TEST(parc_cancel(program.p, read) == PARC_OK);
  BOOST_TEST(parc_wait(program.p, read, nullptr) == PARC_ECANCELED);
  BOOST_TEST(buffer == std::string(50, 'x'));
}

BOOST_AUTO_TEST_CASE(a_read_is_cancelled_while_a_thread_waits_for_it) {
  FakeProgram program;
  char byte = 0;
  const parc_op read = parc_initread(program.p, 0, 1, &byte, 1);
  int code = PARC_OK;
  std::thread waiter([&] { code = parc_wait(program.p, read, nullptr); });
  // Tested while the thread has it, it is neither done nor spent.
  while (parc_test(program.p, read, nullptr) == 0 &&
         program.kernel.control().header.program_asleep.load() == 0)
    std::this_thread::yield();
  BOOST_TEST(parc_cancel(program.p, read) == PARC_OK);
  waiter.join();
  BOOST_TEST(code == PARC_ECANCELED);
}

BOOST_AUTO_TEST_CASE(answers_name_what_is_wrong) {
  FakeProgram program(2);
  const auto said = [](const char* words) {
    BOOST_TEST(std::string(parc_error_detail()).find(words) != std::string::npos, parc_error_detail());
  };
  parc_op none[] = {PARC_OP_NULL};
  BOOST_TEST(parc_waitany(program.p, 1, none, nullptr, nullptr) == PARC_EINVAL);
  said("there is no place for the index");
  BOOST_TEST(parc_waitsome(program.p, 1, none, nullptr, nullptr, nullptr) == PARC_EINVAL);
  said("there is no place for the number");
  BOOST_TEST(parc_probe(program.p, nullptr, nullptr) == PARC_EINVAL);
  said("the envelope is a null pointer");
  parc_envelope wrong = parc_envelope_of(0, 0, -7);
  const iovec nothing{nullptr, 0};
  BOOST_TEST(parc_probe(program.p, &wrong, nullptr) == PARC_EINVAL);
  said("tag -7 is out of range: a tag is 0 to 2147483647");
  BOOST_TEST(parc_initwritev(program.p, &wrong, &nothing, 1, 0) == PARC_EINVAL);
  said("tag -7 is out of range");
  for (const int tag : {5, PARC_ANY_TAG}) {
    wrong = parc_envelope_of(0, PARC_CONTEXT_RESERVED + 1, tag);
    BOOST_TEST(parc_initprobe(program.p, &wrong, 0) == PARC_EINVAL);
    said("context 0xffff0001 is parc's own: a program's are below 0xffff0000");
  }
  wrong = parc_envelope_of(0, 7, PARC_ANY_TAG);
  BOOST_TEST(parc_initwritev(program.p, &wrong, &nothing, 1, 0) == PARC_EINVAL);
  said("a write needs one tag: PARC_ANY_TAG, as whatever ignores bits of the tag (here 0xffffffff)");
  wrong = parc_envelope_of(PARC_NO_PEER, 0, 0);
  BOOST_TEST(parc_initreadv(program.p, &wrong, &nothing, 1, 0) == PARC_EINVAL);
  said("there is no rank -2 in this job of 2");
  const parc_op spent = parc_initwrite(program.p, 0, 9, "abcdef", 6);
  BOOST_TEST(parc_wait(program.p, spent, nullptr) == PARC_OK);
  BOOST_TEST(parc_test(program.p, spent, nullptr) == PARC_EINVAL);
  said("has been waited for already");
  BOOST_TEST(parc_cancel(program.p, spent) == PARC_EINVAL);
  said("has been waited for already");
  BOOST_TEST(parc_cancel(program.p, PARC_OP_NULL) == PARC_EINVAL);
  char byte = 0;
  BOOST_TEST(parc_read(program.p, 0, 9, &byte, 1, nullptr) == PARC_ETRUNCATE);
  said("the read from rank 0 on host testhost (tag 9) failed: the message has 6 bytes and the read 1");
  // Of several the sentence is about the first, as the code is.
  char room[8];
  parc_op both[] = {parc_initread(program.p, 0, 1, room, 2), parc_initread(program.p, 0, 2, room, 1)};
  for (const int tag : {2, 1}) BOOST_TEST(parc_write(program.p, 0, tag, "abcdef", 6) == PARC_OK);
  BOOST_TEST(parc_waitall(program.p, 2, both, nullptr) == PARC_ETRUNCATE);
  said("(tag 1) failed: the message has 6 bytes and the read 2");
}

BOOST_AUTO_TEST_CASE(bad_arguments_are_refused_with_a_sentence) {
  FakeProgram program(2);
  char buffer[8] = {};
  BOOST_TEST(parc_initread(program.p, 2, 0, buffer, 8) == PARC_EINVAL);
  BOOST_TEST(parc_error_detail() == std::string("there is no rank 2 in this job of 2"));
  BOOST_TEST(parc_initwrite(program.p, PARC_ANY_SOURCE, 0, buffer, 8) == PARC_EINVAL);
  BOOST_TEST(parc_initwrite(program.p, 1, PARC_ANY_TAG, buffer, 8) == PARC_EINVAL);
  BOOST_TEST(parc_initread(program.p, 0, 0, nullptr, 8) == PARC_EINVAL);
  BOOST_TEST(parc_initread(program.p, 0, 0, buffer, std::size_t{9} << 30) == PARC_EINVAL);
  const parc_envelope reserved = parc_envelope_of(0, PARC_CONTEXT_RESERVED, 0);
  const iovec piece{buffer, 8};
  BOOST_TEST(parc_initreadv(program.p, &reserved, &piece, 1, 0) == PARC_EINVAL);
  const parc_envelope envelope = parc_envelope_of(0, 0, 0);
  BOOST_TEST(parc_initreadv(program.p, &envelope, &piece, 1, 8) == PARC_EINVAL);
  const std::vector<iovec> too_many(1025, piece);
  BOOST_TEST(parc_initreadv(program.p, &envelope, too_many.data(), 1025, 0) == PARC_EINVAL);
  BOOST_TEST(parc_initread(nullptr, 0, 0, buffer, 8) == PARC_EINVAL);
  BOOST_TEST(program.kernel.requests() == 0u);
}

BOOST_AUTO_TEST_CASE(an_operation_is_spent_once) {
  FakeProgram program;
  char byte = 'a';
  const parc_op write = parc_initwrite(program.p, 0, 0, &byte, 1);
  BOOST_TEST(parc_wait(program.p, write, nullptr) == PARC_OK);
  BOOST_TEST(parc_wait(program.p, write, nullptr) == PARC_EINVAL);
  BOOST_TEST(parc_test(program.p, write, nullptr) == PARC_EINVAL);
  BOOST_TEST(parc_wait(program.p, PARC_OP_NULL, nullptr) == PARC_OK);
  BOOST_TEST(parc_wait(program.p, PARC_EAGAIN, nullptr) == PARC_EAGAIN);
  BOOST_TEST(parc_wait(program.p, parc_op{1} << 40 | 4000, nullptr) == PARC_EINVAL);
}

BOOST_AUTO_TEST_CASE(tables_grow_with_what_is_unfinished) {
  FakeProgram program;
  std::string bytes(5000, ' ');
  std::vector<parc_op> reads(bytes.size());
  for (std::size_t i = 0; i < reads.size(); ++i)
    reads[i] = parc_initread(program.p, 0, static_cast<int>(i), &bytes[i], 1);
  BOOST_TEST(*std::min_element(reads.begin(), reads.end()) > 0);
  std::vector<int> places(reads.size());
  std::transform(reads.begin(), reads.end(), places.begin(), parc_op_index);
  std::sort(places.begin(), places.end());
  BOOST_TEST((std::adjacent_find(places.begin(), places.end()) == places.end()));
  BOOST_TEST((places.front() >= 0 && places.back() < PARC_MAX_OPERATIONS));
  for (std::size_t i = reads.size(); i-- > 0;) {
    const char byte = static_cast<char>('a' + i % 26);
    BOOST_TEST(parc_write(program.p, 0, static_cast<int>(i), &byte, 1) == PARC_OK);
    BOOST_TEST(parc_wait(program.p, reads[i], nullptr) == PARC_OK);
    BOOST_TEST(bytes[i] == byte);
  }
  const parc_op again = parc_initread(program.p, 0, 1, &bytes[0], 1);
  BOOST_TEST(parc_op_index(again) < 1024); // the lowest that are free
  BOOST_TEST(parc_cancel(program.p, again) == PARC_OK);
  BOOST_TEST(parc_wait(program.p, again, nullptr) == PARC_ECANCELED);
}

BOOST_AUTO_TEST_CASE(queued_operations_behind_the_first_block_are_reported) {
  FakeProgram program;
  char byte = 0;
  const iovec piece{&byte, 1};
  const parc_envelope envelope{0, 1, 0, 0};
  std::vector<parc_op> reads(9000);
  for (auto& read : reads) read = parc_initreadv(program.p, &envelope, &piece, 1, PARC_QUEUED);
  BOOST_TEST(*std::min_element(reads.begin(), reads.end()) > 0);
  for (const auto read : reads) BOOST_TEST(parc_cancel(program.p, read) == PARC_OK);
  std::vector<parc_op> ended;
  std::vector<parc_completion> some(100);
  while (ended.size() < reads.size()) {
    const int taken = parc_completions(program.p, some.data(), 100, -1);
    BOOST_REQUIRE(taken > 0);
    for (int i = 0; i < taken; ++i) ended.push_back(some[static_cast<std::size_t>(i)].operation);
  }
  std::sort(reads.begin(), reads.end());
  std::sort(ended.begin(), ended.end());
  BOOST_TEST((reads == ended));
}

BOOST_AUTO_TEST_CASE(where_memory_for_the_table_ends_it_says_so_and_recovers) {
  FakeProgram program;
  program.kernel.set_most_blocks(0);
  char byte = 0;
  std::vector<parc_op> reads(1024);
  for (auto& read : reads) read = parc_initread(program.p, 0, 1, &byte, 1);
  BOOST_TEST(*std::min_element(reads.begin(), reads.end()) > 0);
  BOOST_TEST(parc_initread(program.p, 0, 1, &byte, 1) == PARC_EAGAIN);
  const std::string said = parc_error_detail();
  BOOST_TEST(said.find("cannot have more than 1024 unfinished reads or writes") != said.npos, said);
  BOOST_TEST(parc_write(program.p, 0, 3, "z", 1) == PARC_OK); // the other half
  for (const auto read : reads) parc_cancel(program.p, read);
  for (const auto read : reads) BOOST_TEST(parc_wait(program.p, read, nullptr) == PARC_ECANCELED);
  const parc_op again = parc_initread(program.p, 0, 2, &byte, 1);
  BOOST_TEST(parc_write(program.p, 0, 2, "z", 1) == PARC_OK);
  BOOST_TEST(parc_wait(program.p, again, nullptr) == PARC_OK);
  BOOST_TEST(byte == 'z');
}

BOOST_AUTO_TEST_CASE(more_writes_than_the_table_holds_are_all_reported) {
  FakeProgram program(2);
  char* const from = program.alloc(2000);
  std::vector<parc_op> writes(3000);
  for (auto& write : writes) write = parc_initwrite(program.p, 1, 1, from, 2000);
  BOOST_TEST(*std::min_element(writes.begin(), writes.end()) > 0);
  std::vector<parc_status> statuses(writes.size());
  BOOST_TEST(parc_waitall(program.p, 3000, writes.data(), statuses.data()) == PARC_OK);
  for (const auto& status : statuses) BOOST_TEST((status.length == 2000 && status.source == 1));
  BOOST_TEST(program.kernel.sent().size() == 3000u);
}

BOOST_AUTO_TEST_CASE(waits_for_several) {
  FakeProgram program;
  std::string a(10, 'x'), b(10, 'x');
  parc_op ops[] = {parc_initread(program.p, 0, 1, a.data(), 10), PARC_OP_NULL,
                   parc_initread(program.p, 0, 2, b.data(), 10)};
  program.kernel.send({.source = 0, .tag = 2, .bytes = "two"});
  int index = 0;
  parc_status status;
  BOOST_TEST(parc_waitany(program.p, 3, ops, &index, &status) == PARC_OK);
  BOOST_TEST(index == 2);
  BOOST_TEST(status.length == 3u);
  BOOST_TEST(ops[2] == PARC_OP_NULL);
  program.kernel.send({.source = 0, .tag = 1, .bytes = "one"});
  int done = 0, indices[3] = {};
  parc_status statuses[3];
  BOOST_TEST(parc_waitsome(program.p, 3, ops, &done, indices, statuses) == PARC_OK);
  BOOST_TEST(done == 1);
  BOOST_TEST(indices[0] == 0);
  BOOST_TEST(parc_waitsome(program.p, 3, ops, &done, indices, statuses) == PARC_OK);
  BOOST_TEST(done == -1);
  BOOST_TEST(parc_waitany(program.p, 3, ops, &index, nullptr) == PARC_OK);
  BOOST_TEST(index == -1);
  BOOST_TEST(a.substr(0, 3) == "one");
  BOOST_TEST(b.substr(0, 3) == "two");
}

// Six ranks of which five are the test: rank 0 hears from rank -2^k and tells rank +2^k.
BOOST_AUTO_TEST_CASE(a_barrier_waits_for_everybody) {
  FakeProgram program(6);
  std::atomic<int> through = 1;
  std::thread rank([&] { through = parc_barrier(program.p); });
  for (const int below : {5, 4, 2}) {
    BOOST_TEST(through == 1);
    program.kernel.send({.source = below, .tag = 0, .context = PARC_CONTEXT_RESERVED, .bytes = ""});
  }
  rank.join();
  BOOST_TEST(through == PARC_OK);
  std::vector<int> told;
  for (const auto& message : program.kernel.sent()) told.push_back(message.source);
  BOOST_TEST(told == (std::vector<int>{1, 2, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
