// SPDX-License-Identifier: BSD-3-Clause
// Breaks the rules of the control segment in the way that its argument names, after it has joined properly:
//   tail       requests that do not exist
//   kind       a request of a kind that does not exist
//   slot       an operation in a place that is not its own
//   memory     a write of memory that nobody shares
//   pieces     a list of pieces that reaches outside
//   hand-over  of a write that waits, to memory that nobody shares
// One way breaks no rule, but libparc would never do it:
//   last-words rank 0 ends at once, without a bell, when it has filled the ring and put an abort (status 42)
//   at
//              its end; the others stay
//   after-leaving
//              rank 0 asks for all there is after it has left; what it wrote before reaches rank 1 all the
//              same
// Exit status 0 when the kernel has then done what it should: ended the session, or refused that request
// alone.
#include "shm/doorbell.hpp"
#include "shm/layout.hpp"
#include "system/environment.hpp"
#include "tests/support/programs/rank.hpp"

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

// Our own mapping of the segment that carries the magic.
parc::shm::Control* find_control() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/SYSV") == line.npos) continue;
    auto* control = reinterpret_cast<parc::shm::Control*>(std::strtoull(line.c_str(), nullptr, 16));
    if (control->header.magic == parc::shm::control_magic) return control;
  }
  return nullptr;
}

int bell() { // the second of "READ,WRITE", a number in front; libparc takes the variable away
  const char* pipes = std::getenv(parc::env_pipes);
  const char* comma = pipes != nullptr ? std::strchr(pipes, ',') : nullptr;
  return comma != nullptr ? std::atoi(comma + 1) : -1;
}

// A sleeping kernel sees nothing, good or bad, before it is rung.
void publish(parc::shm::Control& control, std::uint64_t tail, int bell) {
  control.header.request_tail.store(tail);
  const std::uint64_t ring = 1;
  if (parc::shm::must_ring(control.header.kernel_asleep))
    rank::expect(write(bell, &ring, sizeof ring) == sizeof ring, "no bell");
}

void push(parc::shm::Control& control, const parc::shm::Request& request, int bell) {
  const auto tail = control.header.request_tail.load();
  control.requests[tail % parc::shm::request_slots] = request;
  publish(control, tail + 1, bell);
}

// Only the end of the pipe tells a kernel that sleeps of these.
[[noreturn]] void say_last_words(parc::shm::Control& control) {
  constexpr std::uint64_t all = parc::shm::request_slots;
  const auto& header = control.header;
  while (header.kernel_asleep.load() == 0 || header.request_head.load() != header.request_tail.load())
    std::this_thread::yield();
  const auto tail = header.request_tail.load();
  parc::shm::Request request{};
  request.kind = parc::shm::RequestKind::cancel; // of nothing
  for (std::uint64_t i = 0; i + 1 < all; ++i) control.requests[(tail + i) % all] = request;
  request.kind = parc::shm::RequestKind::abort;
  request.aborted.status = 42;
  control.requests[(tail + all - 1) % all] = request;
  control.header.request_tail.store(tail + all);
  std::_Exit(0);
}

constexpr std::size_t long_message = 3'000'000;

std::uint64_t id_of(std::uint32_t slot) {
  return std::uint64_t{1000} << parc::shm::slot_bits | slot;
}

void wait_for_answer(const parc::shm::Control& control, std::uint32_t slot) {
  while (control.operations[slot].state.load() != parc::shm::state_word(1000, parc::shm::Phase::done))
    std::this_thread::yield();
}

[[noreturn]] void ask_after_leaving(parc_context* parc, parc::shm::Control& control, int bell) {
  using parc::shm::RequestKind;
  const std::vector<char> bytes(long_message, 'x');
  rank::expect_code(parc_write(parc, 1, 1, bytes.data(), bytes.size()), PARC_OK, "the write");
  parc::shm::Request request{};
  request.id = id_of(parc::shm::control_slot);
  request.kind = RequestKind::leave;
  push(control, request, bell);
  wait_for_answer(control, parc::shm::control_slot);
  for (const RequestKind kind : {RequestKind::cancel, RequestKind::release, RequestKind::hand_over,
                                 RequestKind::abort, static_cast<RequestKind>(200), RequestKind::read}) {
    request.kind = kind;
    request.id = id_of(7);
    push(control, request, bell);
  }
  wait_for_answer(control, 7);
  rank::expect_code(control.operations[7].error.load(), PARC_ECANCELED, "a read after leaving");
  std::_Exit(0);
}

// The first read ends with the departure of rank 0: from then on nothing but the kernels holds its message.
[[noreturn]] void hear_of_it(parc_context* parc) {
  std::vector<char> bytes(long_message);
  rank::expect_code(parc_read(parc, 0, 2, bytes.data(), 1, nullptr), PARC_EPEER,
                    "a read of what was not written");
  rank::expect_code(parc_read(parc, 0, 1, bytes.data(), bytes.size(), nullptr), PARC_OK, "the read");
  rank::expect(bytes.back() == 'x', "other bytes");
  std::printf("heard\n");
  std::exit(0);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string how = argv[1];
  const int bell = ::bell();
  parc_context* parc = rank::open();
  parc::shm::Control* control = find_control();
  rank::expect(control != nullptr, "no control segment in /proc/self/maps");
  if (how == "last-words" && rank::number == 0) say_last_words(*control);
  while (how == "last-words") pause();
  if (how == "after-leaving" && rank::number == 0) ask_after_leaving(parc, *control, bell);
  if (how == "after-leaving") hear_of_it(parc);
  parc::shm::Request request{};
  request.id = std::uint64_t{1000} << parc::shm::slot_bits | (parc::shm::read_slots + 7);
  request.kind = parc::shm::RequestKind::write;
  request.length = 100;
  if (how == "tail") publish(*control, 1 << 20, bell);
  if (how == "kind") {
    request.kind = static_cast<parc::shm::RequestKind>(200);
    push(*control, request, bell);
  }
  if (how == "slot") {
    request.id = 5; // of reads, and of no generation
    push(*control, request, bell);
  }
  if (how == "memory") {
    request.address = 0xdead0000;
    push(*control, request, bell);
  }
  if (how == "pieces") {
    request.pieces = 1000;
    request.address = reinterpret_cast<std::uintptr_t>(control);
    push(*control, request, bell);
  }
  if (how == "hand-over") {
    const parc_op write = parc_initwrite(parc, 0, 1, parc_alloc(parc, 100), 100);
    rank::expect(write > 0, "parc_initwrite gave %lld", static_cast<long long>(write));
    request.kind = parc::shm::RequestKind::hand_over;
    request.id = static_cast<std::uint64_t>(write);
    request.address = 0xdead0000;
    push(*control, request, bell);
  }
  // What is refused without ending the session is answered in its slot, and the session goes on.
  char byte = 'x';
  (void)parc_write(parc, 0, 0, &byte, 1);
  byte = 0;
  const int code = parc_read(parc, 0, 0, &byte, 1, nullptr);
  const bool refused = how == "memory" || how == "pieces";
  rank::expect_code(code, refused ? PARC_OK : PARC_EKERNEL, "what came after it");
  rank::expect(!refused || byte == 'x', "the wrong byte");
  std::printf("survived\n");
  std::fflush(stdout);
  std::_Exit(0);
}
