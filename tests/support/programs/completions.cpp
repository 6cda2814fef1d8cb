// SPDX-License-Identifier: BSD-3-Clause
// Two ranks, and the completion queue: many operations of every kind under way, each reported once and with
// its own result; thousands that nobody answers; what was cancelled; messages with and without a tag apart
// from each other; and two threads that take from the same queue.
#include "tests/support/programs/rank.hpp"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace {

constexpr int messages = 600;
constexpr int many = 5000; // of one kind: the tables grow for them

std::size_t size_of(int message) {
  constexpr std::size_t sizes[] = {0, 8, 900, 5000, 70'000};
  return sizes[message % 5];
}

unsigned space_of(int message) {
  return message % 3 == 0 ? PARC_UNTAGGED : 0;
}

struct Under {
  std::atomic<parc_op> operation = PARC_OP_NULL;
  int message = 0;
};

// What is under way, by the operations' places.
std::array<Under, PARC_MAX_OPERATIONS> under_way;

void begun(parc_op operation, int message) {
  rank::expect(operation > 0, "message %d was not started: %d", message, static_cast<int>(operation));
  Under& place = under_way[static_cast<std::size_t>(parc_op_index(operation))];
  place.message = message;
  place.operation = operation;
}

int ended(const parc_completion& completion) {
  Under& place = under_way[static_cast<std::size_t>(parc_op_index(completion.operation))];
  rank::expect(place.operation.exchange(PARC_OP_NULL) == completion.operation,
               "something ended twice, or never began");
  return place.message;
}

// Takes until `left` have been; each goes to `check` with its message.
template <class Check> void take(parc_context* parc, std::atomic<int>& left, const Check& check) {
  std::array<parc_completion, 7> completions;
  while (left > 0) {
    const int taken = parc_completions(parc, completions.data(), completions.size(), 0.01);
    rank::expect(taken >= 0, "taking completions gave %d", taken);
    left -= taken;
    for (int i = 0; i < taken; ++i)
      check(ended(completions[static_cast<std::size_t>(i)]), completions[static_cast<std::size_t>(i)].status);
  }
}

void write_all(parc_context* parc) {
  std::vector<std::vector<unsigned char>> memory(messages);
  std::atomic<int> left = messages;
  for (int m = 0; m < messages; ++m) {
    auto& bytes = memory[static_cast<std::size_t>(m)];
    bytes.resize(size_of(m));
    rank::fill(bytes.data(), bytes.size(), static_cast<std::uint64_t>(m));
    const iovec piece{bytes.data(), bytes.size()};
    const bool untagged = space_of(m) != 0;
    const parc_envelope envelope{1, untagged ? 0 : static_cast<std::uint64_t>(m), 0,
                                 static_cast<std::uint64_t>(m)};
    const unsigned synchronous = m % 4 == 0 ? PARC_SYNCHRONOUS : 0;
    const unsigned at_once = m % 2 == 0 ? PARC_AT_ONCE : 0;
    const parc_op write =
        parc_initwritev(parc, &envelope, &piece, 1, PARC_QUEUED | space_of(m) | synchronous | at_once);
    if (write == PARC_OP_NULL && at_once != 0 && synchronous == 0)
      --left; // its memory is the program's again
    else
      begun(write, m);
    if (write == PARC_OP_NULL) bytes.assign(bytes.size(), 0xee);
  }
  take(parc, left, [](int message, const parc_status& status) {
    rank::expect(status.error == PARC_OK && status.length == size_of(message), "write %d: %d", message,
                 status.error);
  });
}

// Tagged ones backwards, so that most come before they are wanted; the others in their order. Two threads
// take.
void read_all(parc_context* parc) {
  std::vector<std::vector<unsigned char>> memory(messages);
  std::atomic<int> left = messages;
  const auto read = [&](int m) {
    auto& bytes = memory[static_cast<std::size_t>(m)];
    bytes.resize(size_of(m));
    const iovec piece{bytes.data(), bytes.size()};
    const parc_envelope envelope{PARC_ANY_SOURCE, space_of(m) != 0 ? 0 : static_cast<std::uint64_t>(m), 0, 0};
    begun(parc_initreadv(parc, &envelope, &piece, 1, PARC_QUEUED | space_of(m)), m);
  };
  for (int m = messages - 1; m >= 0; --m)
    if (space_of(m) == 0) read(m);
  for (int m = 0; m < messages; ++m)
    if (space_of(m) != 0) read(m);
  const auto check = [&](int message, const parc_status& status) {
    const auto& bytes = memory[static_cast<std::size_t>(message)];
    rank::expect(status.error == PARC_OK && status.source == 0 && status.length == bytes.size() &&
                     status.data == static_cast<std::uint64_t>(message) &&
                     rank::filled(bytes.data(), bytes.size(), status.data),
                 "read %d ended with %d, %zu bytes of message %d", message, status.error,
                 static_cast<std::size_t>(status.length), static_cast<int>(status.data));
  };
  std::thread other([&] { take(parc, left, check); });
  take(parc, left, check);
  other.join();
}

// Reads that nobody answers; given up, each is reported.
void start_and_cancel(parc_context* parc) {
  const parc_envelope nobodys{PARC_ANY_SOURCE, 1, 0, 0};
  std::vector<parc_op> started;
  for (int i = 0; i < many; ++i) {
    started.push_back(parc_initreadv(parc, &nobodys, nullptr, 0, PARC_QUEUED));
    begun(started.back(), i);
  }
  parc_completion none;
  rank::expect_code(parc_completions(parc, &none, 1, 0), 0, "completions of nothing");
  rank::expect_code(parc_barrier(parc), PARC_OK, "a barrier beside them");
  for (const parc_op each : started) rank::expect_code(parc_cancel(parc, each), PARC_OK, "cancel");
  std::atomic<int> left = many;
  take(parc, left, [](int, const parc_status& status) {
    rank::expect_code(status.error, PARC_ECANCELED, "what was cancelled");
  });
}

// Writes that wait for a match.
void write_many(parc_context* parc) {
  const parc_envelope envelope{1, 7, 0, 0};
  std::atomic<int> left = many;
  for (int i = 0; i < many; ++i)
    begun(parc_initwritev(parc, &envelope, nullptr, 0, PARC_QUEUED | PARC_SYNCHRONOUS), i);
  take(parc, left, [](int, const parc_status& status) {
    rank::expect_code(status.error, PARC_OK, "a write that was matched");
  });
}

void read_many(parc_context* parc) {
  const parc_envelope envelope{0, 7, 0, 0};
  std::atomic<int> left = many;
  for (int i = 0; i < many; ++i) begun(parc_initreadv(parc, &envelope, nullptr, 0, PARC_QUEUED), i);
  take(parc, left,
       [](int, const parc_status& status) { rank::expect_code(status.error, PARC_OK, "a read of nothing"); });
}

} // namespace

int main() {
  parc_context* parc = rank::open();
  if (rank::number == 0)
    write_all(parc);
  else
    read_all(parc);
  start_and_cancel(parc);
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  if (rank::number == 0)
    write_many(parc);
  else
    read_many(parc);
  rank::expect_code(parc_completions(parc, nullptr, 1, 0), PARC_EINVAL, "completions nowhere");
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
