// SPDX-License-Identifier: BSD-3-Clause
// Two ranks that exchange messages one by one, and wait for each in poll and epoll, on the descriptor of
// their context, while another thread of each waits for messages of its own: none may miss its bell.
#include "tests/support/programs/rank.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr int rounds = 2000;
constexpr std::uint64_t in_loop = 1;
constexpr int beside = 2;

// Sleeps until something of the context may have ended.
class Sleep {
public:
  explicit Sleep(parc_context* parc)
      : descriptor_(parc_descriptor(parc)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    rank::expect(descriptor_ >= 0 && parc_descriptor(parc) == descriptor_, "there is no descriptor");
    epoll_event readable{.events = EPOLLIN, .data = {}};
    rank::expect(epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor_, &readable) == 0, "epoll refuses it");
  }
  Sleep(const Sleep&) = delete;
  Sleep& operator=(const Sleep&) = delete;
  ~Sleep() { close(epoll_); }

  void operator()(int round) {
    if (round % 2 == 0) {
      pollfd waits{.fd = descriptor_, .events = POLLIN, .revents = 0};
      rank::expect(poll(&waits, 1, -1) == 1 && waits.revents == POLLIN, "poll says %d", waits.revents);
    } else {
      epoll_event readable;
      rank::expect(epoll_wait(epoll_, &readable, 1, -1) == 1, "epoll_wait fails");
    }
  }

private:
  int descriptor_, epoll_;
};

// How one queued operation ended.
parc_status finish(parc_context* parc, Sleep& sleep, parc_op operation, int round) {
  rank::expect(operation > 0, "nothing was started");
  for (;;) {
    const int armed = parc_arm(parc);
    rank::expect(armed == 0 || armed == 1, "parc_arm gave %d", armed);
    if (armed == 0) sleep(round);
    parc_completion completion;
    const int taken = parc_completions(parc, &completion, 1, 0);
    rank::expect(armed == 0 || taken == 1, "parc_arm promised what did not come");
    if (taken == 0) continue;
    rank::expect(taken == 1 && completion.operation == operation, "something else ended");
    return completion.status;
  }
}

void exchange(parc_context* parc, Sleep& sleep) {
  const int peer = 1 - rank::number;
  for (int round = 0; round < rounds; ++round) {
    const bool writes = round % 2 == rank::number;
    std::uint64_t bytes = writes ? static_cast<std::uint64_t>(round) : 0;
    const iovec piece{&bytes, sizeof bytes};
    const parc_envelope envelope{peer, in_loop, 0, 0};
    const parc_op operation = writes ? parc_initwritev(parc, &envelope, &piece, 1, PARC_QUEUED)
                                     : parc_initreadv(parc, &envelope, &piece, 1, PARC_QUEUED);
    const parc_status status = finish(parc, sleep, operation, round);
    rank::expect(status.error == PARC_OK && bytes == static_cast<std::uint64_t>(round), "round %d", round);
  }
}

void exchange_beside(parc_context* parc) {
  const int peer = 1 - rank::number;
  for (int round = 0; round < rounds; ++round) {
    int bytes = round;
    const int code = round % 2 == rank::number ? parc_write(parc, peer, beside, &bytes, sizeof bytes)
                                               : parc_read(parc, peer, beside, &bytes, sizeof bytes, nullptr);
    rank::expect(code == PARC_OK && bytes == round, "round %d beside", round);
  }
}

} // namespace

int main() {
  parc_context* parc = rank::open();
  {
    Sleep sleep(parc);
    exchange(parc, sleep);
    std::thread other([&] { exchange_beside(parc); });
    exchange(parc, sleep);
    other.join();
  }
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
