// SPDX-License-Identifier: BSD-3-Clause
// This process's session with the kernel of its host (a parc_context), which all its domains share, and what
// the operations are for that go through it. Whoever looks into any completion queue takes what has ended off
// libparc's queue and hands it to whom it belongs. Threads: any.
#pragma once

#include "fabric/provider.hpp"
#include "parc/parc.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <sys/uio.h>

namespace parc::fabric {

class Endpoint;

using Clock = std::chrono::steady_clock;

enum class Purpose : std::uint8_t {
  send,
  receive,
  peek,             // a look at a message
  peek_and_claim,   // which is then that look's alone
  peek_and_discard, // which is thrown away
  discard,          // the second half of the latter, or of a claim
};

// What a program asked an endpoint for, and what it is to be told when that has ended.
struct Request {
  Purpose purpose = Purpose::send;
  Endpoint* endpoint = nullptr;
  void* context = nullptr; // the program's
  std::uint64_t flags = 0; // of its completion
  bool reported = true;    // in a completion queue also when it succeeds
  bool anonymous = false;  // nor when it fails: nobody could tell what it was
  void* buffer = nullptr;  // of a receive, its first piece
  std::uint64_t room = 0;  // bytes of a receive
  parc_status found{};     // of a message that is being discarded: what the look at it said
};

class KernelSession {
public:
  // The one of this process, opened where it is not open; a negative FI_E* where it cannot be.
  [[nodiscard]] static int acquire(KernelSession*& session);
  void release(); // the last one closes it: what was written is delivered

  [[nodiscard]] parc_context* parc() const { return parc_; }
  std::atomic<bool> has_endpoint = false;

  // Starts an operation for a request. `start` returns a parc_op, of one with PARC_QUEUED.
  template <class Start> ssize_t begin(const Request& request, const Start& start) {
    parc_op operation = start();
    if (operation == PARC_EAGAIN && progress(0) > 0) operation = start();
    if (operation < 0) return not_started(static_cast<int>(operation));
    began(operation, request);
    return 0;
  }

  // Takes what has ended off libparc's queue, after at most `timeout` seconds of waiting for something.
  // Returns how many operations, or a negative FI_E*: the kernel has gone and nothing is left.
  int progress(double timeout);

  // The same for somebody who looks again and again: when it has found nothing for a while, with nothing else
  // to do in between, it sleeps for a moment.
  int poll();

  // Until done() (called with no lock held) or the time has come; progresses meanwhile. False: it has come.
  template <class Done> bool wait(const Done& done, std::optional<Clock::time_point> end) {
    while (!done()) {
      if (end && Clock::now() >= *end) return false;
      if (!wait_once(end)) return done();
    }
    return true;
  }
  void wake(); // those who wait look again

  // Of the operations that an endpoint has under way.
  [[nodiscard]] bool cancel(const Endpoint& endpoint, const void* context);
  void cancel_all(const Endpoint& endpoint);

private:
  struct Place { // of an operation, at parc_op_index
    parc_op operation = PARC_OP_NULL;
    Request request;
    parc_completion early{}; // it has ended before anybody knew what it was for
  };

  static ssize_t not_started(int error);
  void began(parc_op operation, const Request& request);
  void ended(const parc_completion& completion);
  bool wait_once(std::optional<Clock::time_point> end);

  parc_context* parc_ = nullptr;
  unsigned users_ = 0;

  std::mutex lock_;
  std::array<Place, PARC_MAX_OPERATIONS> places_;

  std::mutex waiting_;
  std::condition_variable woken_;
  bool led_ = false; // one of those who wait progresses, the others sleep

  std::atomic<std::int64_t> last_empty_ = 0; // poll() found nothing, ns
  std::atomic<int> empty_ = 0;               // that often in a row
};

} // namespace parc::fabric
