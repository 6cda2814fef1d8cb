// SPDX-License-Identifier: BSD-3-Clause
// Reads that are started and then left alone: the program calculates (it looks at its memory) and calls
// nothing, and the kernel sleeps. Their messages move all the same, whether they came before the read or come
// after it. Two ranks; rank 0 reads. "long": only messages that are announced.
#include "tests/support/programs/rank.hpp"

#include <atomic>
#include <sched.h>
#include <span>
#include <time.h>

namespace {

constexpr int tag = 1, tag_ready = 2;
constexpr std::size_t longest = 3'000'000; // not with its announcement
constexpr std::size_t lengths[] = {8, 5000, longest};

// As long as the kernel may take to fall asleep; where it is slower, the case is only easier.
void let_kernels_sleep() {
  const timespec while_{0, 20'000'000};
  nanosleep(&while_, nullptr);
}

void await_bytes(const unsigned char* memory, std::size_t bytes) {
  auto* const last = const_cast<unsigned char*>(memory + bytes - 1);
  while (std::atomic_ref(*last).load(std::memory_order_acquire) != 0xab) sched_yield();
}

void receive(parc_context* parc, unsigned char* memory, std::size_t bytes, bool message_first) {
  memory[bytes - 1] = 0;
  if (message_first) {
    const parc_envelope envelope = parc_envelope_of(1, 0, tag);
    rank::expect_code(parc_write(parc, 1, tag_ready, nullptr, 0), PARC_OK, "ready");
    rank::expect_code(parc_probe(parc, &envelope, nullptr), PARC_OK, "probe");
    let_kernels_sleep();
  }
  const parc_op read = parc_initread(parc, 1, tag, memory, bytes);
  rank::expect(read > 0, "initread gave %ld", static_cast<long>(read));
  if (!message_first) rank::expect_code(parc_write(parc, 1, tag_ready, nullptr, 0), PARC_OK, "ready");
  await_bytes(memory, bytes);
  rank::expect_code(parc_wait(parc, read, nullptr), PARC_OK, "wait");
}

// Nothing rings for this one: it is the message that wakes the kernel.
void receive_alone(parc_context* parc, unsigned char* memory, std::size_t bytes) {
  memory[bytes - 1] = 0;
  rank::expect_code(parc_write(parc, 1, tag_ready, nullptr, 0), PARC_OK, "ready");
  const parc_op read = parc_initread(parc, 1, tag, memory, bytes);
  await_bytes(memory, bytes);
  rank::expect_code(parc_wait(parc, read, nullptr), PARC_OK, "wait");
}

void send(parc_context* parc, unsigned char* memory, std::size_t bytes) {
  rank::expect_code(parc_read(parc, 0, tag_ready, nullptr, 0, nullptr), PARC_OK, "read");
  let_kernels_sleep();
  rank::expect_code(parc_write(parc, 0, tag, memory, bytes), PARC_OK, "write");
}

} // namespace

int main(int argc, char**) {
  parc_context* const parc = rank::open();
  auto* const memory = static_cast<unsigned char*>(parc_alloc(parc, longest));
  rank::expect(memory != nullptr, "parc_alloc");
  for (std::size_t i = 0; i < longest; ++i) memory[i] = 0xab;
  const auto from = argc > 1 ? std::size(lengths) - 1 : 0;
  for (const std::size_t bytes : std::span(lengths).subspan(from))
    for (int round = 0; round < 6; ++round) {
      if (rank::number == 1) {
        send(parc, memory, bytes);
        continue;
      }
      if (round % 3 == 2)
        receive_alone(parc, memory, bytes);
      else
        receive(parc, memory, bytes, round % 3 == 0);
    }
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
