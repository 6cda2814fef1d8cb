// SPDX-License-Identifier: BSD-3-Clause
// Wake-ups under stress: a program of several threads and a kernel, which sleep at every occasion. A wake-up
// that is lost leaves somebody asleep with work to do, and a watchdog then says who and ends the test.
//
//   requests      threads push through Ring; the consumer sleeps by the rules of shm/doorbell.hpp. Every
//                 request comes once, whole, and in the order of its thread.
//   completions   threads wait through Sleep, each for its own operation, some with a limit that passes; the
//                 kernel finishes them in an order of its own and rings. Once without polling, once with it.
//
// Usage: stress_test [ROUNDS], by default 100,000.
#include "client/operation/sleep.hpp"
#include "client/session/ring.hpp"
#include "shm/doorbell.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace parc;
using namespace std::chrono_literals;

namespace {

constexpr int producers = 3;
constexpr auto patience = 20s; // a machine may be busy, but not that busy

struct PipeEnds {
  PipeEnds() {
    int both[2];
    if (pipe2(both, O_NONBLOCK | O_CLOEXEC) != 0) std::abort();
    out.reset(both[0]);
    in.reset(both[1]);
  }
  Fd out, in;
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "stress_test: %s\n", what);
  std::exit(1);
}

// Ends the test when its count stops moving.
class Watchdog {
public:
  explicit Watchdog(const char* what)
      : thread_([this, what](const std::stop_token& stop) { watch(stop, what); }) {}
  void progress() { count_.fetch_add(1, std::memory_order_relaxed); }

private:
  void watch(const std::stop_token& stop, const char* what) {
    std::uint64_t seen = 0;
    auto moved = std::chrono::steady_clock::now();
    for (; !stop.stop_requested(); std::this_thread::sleep_for(10ms)) {
      const auto now = std::chrono::steady_clock::now();
      if (const auto count = count_.load(std::memory_order_relaxed); count != seen) {
        seen = count;
        moved = now;
      }
      if (now - moved > patience) fail(what);
    }
  }

  std::atomic<std::uint64_t> count_ = 0;
  std::jthread thread_;
};

// A control segment and its pipes; the program's ends are in `pipes`.
struct Session {
  std::unique_ptr<shm::Control> control = std::make_unique<shm::Control>();
  PipeEnds down, up;
  client::Pipes pipes{std::move(down.out), std::move(up.in)};
};

void kernel_sleep(Session& session, std::uint64_t head) {
  auto& header = session.control->header;
  shm::announce_sleep(header.kernel_asleep);
  if (header.request_tail.load(std::memory_order_acquire) == head) {
    pollfd end{.fd = session.up.out.get(), .events = POLLIN, .revents = 0};
    poll(&end, 1, -1);
    char bells[512];
    (void)!read(session.up.out.get(), bells, sizeof bells);
  }
  shm::announce_awake(header.kernel_asleep);
}

void stress_requests(std::uint64_t rounds) {
  Session session;
  client::Ring ring(*session.control, session.pipes);
  Watchdog watchdog("a request lies in the ring and its consumer sleeps: a doorbell was lost");
  std::vector<std::jthread> threads;
  for (int producer = 0; producer < producers; ++producer)
    threads.emplace_back([&, producer] {
      std::minstd_rand random(static_cast<unsigned>(producer + 1));
      for (std::uint64_t i = 0; i < rounds; ++i) {
        shm::Request request{};
        request.peer = producer;
        request.id = request.write.tag = request.address = i;
        if (!ring.push(request)) fail("the ring says that the kernel has gone");
        if (random() % 4 == 0) sched_yield();
      }
    });
  auto& header = session.control->header;
  std::array<std::uint64_t, producers> next{};
  for (std::uint64_t head = 0; head < rounds * producers;) {
    if (header.request_tail.load(std::memory_order_acquire) == head) {
      kernel_sleep(session, head);
      continue;
    }
    const shm::Request request = session.control->requests[head % shm::request_slots];
    header.request_head.store(++head, std::memory_order_release);
    auto& expected = next.at(static_cast<std::size_t>(request.peer));
    if (request.id != expected || request.write.tag != expected || request.address != expected)
      fail("a request came twice, out of order or torn");
    ++expected;
    watchdog.progress();
  }
}

// Each waiter has the slot of its number. It asks by a request, and rests until the answer of this round is
// there.
void stress_completions(std::uint64_t rounds, client::Clock::duration spin) {
  Session session;
  client::Ring ring(*session.control, session.pipes);
  client::Sleep rest(session.control->header, session.pipes, spin);
  Watchdog watchdog("an operation is done and its thread sleeps: a wake-up was lost");
  auto& operations = session.control->operations;
  std::vector<std::jthread> threads;
  for (int waiter = 0; waiter < producers; ++waiter)
    threads.emplace_back([&, waiter] {
      auto& state = operations[waiter].state;
      std::minstd_rand random(static_cast<unsigned>(waiter + 1));
      for (std::uint64_t i = 1; i <= rounds; ++i) {
        shm::Request request{};
        request.id = i << shm::slot_bits | static_cast<unsigned>(waiter);
        if (!ring.push(request)) fail("the ring says that the kernel has gone");
        const auto done = [&] { return state.load(std::memory_order_acquire) == i; };
        if (random() % 8 == 0) (void)rest.until(done, client::Clock::now() + 20us);
        if (rest.until(done) != client::Woken::done) fail("a rest ended without its operation");
        watchdog.progress();
      }
    });
  auto& header = session.control->header;
  std::minstd_rand random(99);
  std::vector<std::uint64_t> open;
  for (std::uint64_t head = 0, finished = 0; finished < rounds * producers;) {
    while (header.request_tail.load(std::memory_order_acquire) != head) {
      open.push_back(session.control->requests[head % shm::request_slots].id);
      header.request_head.store(++head, std::memory_order_release);
    }
    if (open.empty()) {
      kernel_sleep(session, head);
      continue;
    }
    if (open.size() < producers && random() % 4 == 0) sched_yield(); // others may join, so that orders differ
    std::swap(open[random() % open.size()], open.back());
    const auto id = open.back();
    open.pop_back();
    ++finished;
    operations[shm::slot_of(id)].state.store(shm::generation_of(id), std::memory_order_release);
    header.completions.fetch_add(1, std::memory_order_release);
    if (!shm::must_ring(header.program_asleep)) continue;
    const std::uint64_t bell = 1;
    (void)!write(session.down.in.get(), &bell, sizeof bell);
  }
}

} // namespace

int main(int argc, char** argv) {
  const std::uint64_t rounds = argc > 1 ? std::stoull(argv[1]) : 100'000;
  stress_requests(rounds);
  stress_completions(rounds, client::Clock::duration::zero());
  stress_completions(rounds, client::Sleep::default_spin);
  std::printf("%llu requests and twice as many completions: no wake-up lost\n",
              static_cast<unsigned long long>(rounds * producers));
}
