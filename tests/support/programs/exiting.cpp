// SPDX-License-Identifier: BSD-3-Clause
// Two ranks. Rank 0 leaves by exit with objects that outlive libparc's handler: their destructors cancel,
// wait and free after it; or with a thread that goes on writing meanwhile. Rank 1 reads nothing before that:
// what was accepted has to come all the same. Or it exits in the handler of a signal that may have
// interrupted a call: the job ends with its status. Usage: exiting objects|thread|waiting|talking
#include "tests/support/programs/rank.hpp"

#include <atomic>
#include <csignal>
#include <optional>
#include <parc/parc.hpp>
#include <string>
#include <sys/time.h>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t part = 1'000'000, parts = 3, given_up = parts;
constexpr int tag_end = 100, tag_never = 101;

// Made before the context is, and so destroyed after libparc's own exit handler.
std::optional<parc::Context> context;
std::optional<parc::Buffer<unsigned char>> buffer;
parc::Operation read, written;
unsigned char nothing[1000];

void write_parts() {
  for (std::size_t i = 0; i < parts; ++i) {
    std::vector<unsigned char> bytes(part);
    rank::fill(bytes.data(), part, i);
    context->initwrite(1, static_cast<int>(i), std::span<const unsigned char>(bytes)).wait();
  }
}

void leave_objects() {
  buffer.emplace(context->buffer<unsigned char>(part));
  rank::fill(buffer->data(), part, given_up);
  written = context->initwrite(1, given_up, buffer->span());
  read = context->initread(1, tag_never, std::span(nothing));
}

void leave_thread() {
  static std::atomic<int> count = 0;
  std::thread([] {
    const std::vector<unsigned char> bytes(5000);
    for (;; ++count) (void)parc_write(context->get(), 1, tag_end, bytes.data(), bytes.size());
  }).detach();
  while (count < 20) std::this_thread::yield();
}

// Rank 0 exits in a handler, in a read that nobody answers, or while both write to each other.
[[noreturn]] void exit_in_handler(bool waiting) {
  parc_context* const parc = context->get();
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  if (rank::number == 0) {
    std::signal(SIGALRM, [](int) { std::exit(7); });
    const itimerval soon{{0, 0}, {0, 20'000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    if (waiting) (void)parc_read(parc, 1, tag_never, nothing, sizeof nothing, nullptr);
  }
  int code = PARC_OK;
  while (code == PARC_OK) {
    code = parc_write(parc, 1 - rank::number, 0, nothing, sizeof nothing);
    if (code == PARC_OK) code = parc_read(parc, 1 - rank::number, 0, nothing, sizeof nothing, nullptr);
  }
  rank::expect_code(code, PARC_EPEER, "the exchange");
  std::exit(0);
}

void read_parts() {
  parc_context* const parc = context->get();
  // Rank 0 has gone.
  rank::expect_code(parc_read(parc, 0, tag_never, nothing, 1, nullptr), PARC_EPEER,
                    "a read that nobody answers");
  std::vector<unsigned char> bytes(part);
  for (std::size_t i = 0; i < parts; ++i) {
    rank::expect_code(parc_read(parc, 0, static_cast<int>(i), bytes.data(), part, nullptr), PARC_OK, "read");
    rank::expect(rank::filled(bytes.data(), part, i), "part %zu is wrong", i);
  }
  // Given up: it may have been canceled in time; else it is whole.
  if (parc_read(parc, 0, given_up, bytes.data(), part, nullptr) == PARC_OK)
    rank::expect(rank::filled(bytes.data(), part, given_up), "what was given up is wrong");
  while (parc_read(parc, 0, tag_end, bytes.data(), part, nullptr) == PARC_OK) {
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  context.emplace();
  rank::number = context->rank();
  const std::string how = argv[1];
  if (how == "waiting" || how == "talking") exit_in_handler(how == "waiting");
  if (rank::number == 1) {
    read_parts();
    return 0;
  }
  write_parts();
  how == "objects" ? leave_objects() : leave_thread();
  return 0;
}
