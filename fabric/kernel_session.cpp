// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/kernel_session.hpp"

#include "fabric/endpoint.hpp"

#include <algorithm>

namespace parc::fabric {
namespace {

constexpr int taken_at_once = 64;
constexpr int patience = 16;           // looks in a row that find nothing, before one sleeps
constexpr std::int64_t at_once = 2000; // ns between two looks that have nothing in between
constexpr double nap = 0.001;          // s; what arrives ends it
constexpr std::chrono::milliseconds longest_lead(100);

std::mutex session_lock;
KernelSession* the_session; // under session_lock

} // namespace

int KernelSession::acquire(KernelSession*& session) {
  const std::lock_guard hold(session_lock);
  if (!the_session) {
    if (const int code = parc_start_kernel(); code != PARC_OK)
      return refused(FI_LOG_DOMAIN, "there is no kernel", code);
    auto* const made = new KernelSession;
    if (const int code = parc_open(&made->parc_); code != PARC_OK) {
      delete made;
      return refused(FI_LOG_DOMAIN, "cannot use parc", code);
    }
    the_session = made;
  }
  ++the_session->users_;
  session = the_session;
  return 0;
}

void KernelSession::release() {
  const std::lock_guard hold(session_lock);
  if (--users_ != 0) return;
  (void)parc_close(parc_);
  the_session = nullptr;
  delete this;
}

ssize_t KernelSession::not_started(int error) {
  if (error == PARC_EAGAIN) return -FI_EAGAIN;
  return refused(FI_LOG_EP_DATA, "cannot start an operation", error);
}

void KernelSession::began(parc_op operation, const Request& request) {
  Place& place = places_[static_cast<std::size_t>(parc_op_index(operation))];
  parc_completion early{};
  {
    const std::lock_guard hold(lock_);
    if (place.early.operation == operation) {
      early = place.early;
      place.early = {};
    } else {
      place.operation = operation;
      place.request = request;
    }
  }
  if (early.operation != PARC_OP_NULL) request.endpoint->ended(request, early);
}

void KernelSession::ended(const parc_completion& completion) {
  Place& place = places_[static_cast<std::size_t>(parc_op_index(completion.operation))];
  Request request;
  {
    const std::lock_guard hold(lock_);
    if (place.operation != completion.operation) {
      place.early = completion;
      return;
    }
    place.operation = PARC_OP_NULL;
    request = place.request;
  }
  request.endpoint->ended(request, completion);
}

int KernelSession::progress(double timeout) {
  std::array<parc_completion, taken_at_once> completions;
  const int taken = parc_completions(parc_, completions.data(), taken_at_once, timeout);
  if (taken < 0) return -errno_of(taken);
  for (int i = 0; i < taken; ++i) ended(completions[static_cast<std::size_t>(i)]);
  return taken;
}

// MPI's libraries wait by looking: on a host whose cores all compute, those looks cost somebody's time.
int KernelSession::poll() {
  const int taken = progress(0);
  if (taken != 0) {
    empty_.store(0, std::memory_order_relaxed);
    return taken;
  }
  const std::int64_t now = Clock::now().time_since_epoch().count();
  const bool nothing_between = now - last_empty_.exchange(now, std::memory_order_relaxed) < at_once;
  const int empty = nothing_between ? empty_.load(std::memory_order_relaxed) + 1 : 0;
  empty_.store(empty, std::memory_order_relaxed);
  if (empty < patience) return 0;
  const int later = progress(nap);
  if (later != 0) empty_.store(0, std::memory_order_relaxed);
  last_empty_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  return later;
}

// One of those who wait takes what ends, and hands it on; the others are woken when it has.
bool KernelSession::wait_once(std::optional<Clock::time_point> end) {
  std::unique_lock hold(waiting_);
  const auto step = Clock::now() + longest_lead;
  const auto until = end ? std::min(*end, step) : step;
  if (led_) {
    woken_.wait_until(hold, until);
    return true;
  }
  led_ = true;
  hold.unlock();
  const double seconds = std::chrono::duration<double>(until - Clock::now()).count();
  const int taken = progress(std::max(seconds, 0.0));
  hold.lock();
  led_ = false;
  woken_.notify_all();
  return taken >= 0;
}

void KernelSession::wake() {
  const std::lock_guard hold(waiting_);
  woken_.notify_all();
}

bool KernelSession::cancel(const Endpoint& endpoint, const void* context) {
  const std::lock_guard hold(lock_);
  for (const Place& place : places_)
    if (place.operation != PARC_OP_NULL && place.request.endpoint == &endpoint &&
        place.request.context == context && place.request.purpose == Purpose::receive) {
      (void)parc_cancel(parc_, place.operation);
      return true;
    }
  return false;
}

void KernelSession::cancel_all(const Endpoint& endpoint) {
  const std::lock_guard hold(lock_);
  for (const Place& place : places_)
    if (place.operation != PARC_OP_NULL && place.request.endpoint == &endpoint &&
        place.request.purpose != Purpose::send)
      (void)parc_cancel(parc_, place.operation);
}

} // namespace parc::fabric
